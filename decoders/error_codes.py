"""Kafka's error codes, by code or name: `ERRORS[6]`, `ERRORS["NOT_COORDINATOR"]`; older names are aliases."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple


class KafkaError(NamedTuple):
    """One code. `retriable`: Kafka's own clients may send the same request again."""

    code: int
    name: str
    retriable: bool
    meaning: str
    aliases: tuple[str, ...]


class Errors:
    """The known errors in order of their codes. Names match in any case, with or without underscores, and
    also in 0.8's form: NotLeaderForPartitionCode.
    """

    def __init__(self, errors: list[KafkaError]) -> None:
        self._by_code = {error.code: error for error in errors}
        self._by_name = {_plain(name): error for error in errors for name in (error.name, *error.aliases)}

    def __getitem__(self, key: int | str) -> KafkaError:
        """Raises LookupError, which tells the nearest names."""
        found = self.get(key)
        if found is None:
            raise LookupError(f"no error has the code {key}" if isinstance(key, int) else self._unknown(key))
        return found

    def get(self, key: int | str) -> KafkaError | None:
        return self._by_code.get(key) if isinstance(key, int) else self._by_name.get(_plain(key))

    def __contains__(self, key: int | str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[KafkaError]:
        return iter(self._by_code.values())

    def __len__(self) -> int:
        return len(self._by_code)

    def names(self) -> list[str]:
        """The newest name of each, followed by its older ones."""
        return [name for error in self for name in (error.name, *error.aliases)]

    def _unknown(self, name: str) -> str:
        near = get_close_matches(_plain(name), self._by_name, n=3)
        hint = ", ".join(dict.fromkeys(self._by_name[one].name for one in near))
        return f"no error is named {name!r}" + (f"; nearest: {hint}" if hint else "")


def _plain(name: str) -> str:
    return name.replace("_", "").casefold().removesuffix("code")


def _final(code: int, name: str, meaning: str, *aliases: str) -> KafkaError:
    return KafkaError(code, name, False, meaning, aliases)


def _retry(code: int, name: str, meaning: str, *aliases: str) -> KafkaError:
    return KafkaError(code, name, True, meaning, aliases)


# fmt: off
ERRORS = Errors([
    _final(-1, "UNKNOWN_SERVER_ERROR", "an unexpected failure in the broker, see its log", "UNKNOWN"),
    _final(0, "NONE", "no error", "NO_ERROR"),
    _final(1, "OFFSET_OUT_OF_RANGE", "the log does not hold this offset: not any more, or not yet"),
    _retry(2, "CORRUPT_MESSAGE", "a record's checksum, size or key is not valid", "INVALID_MESSAGE"),
    _retry(3, "UNKNOWN_TOPIC_OR_PARTITION", "this broker knows no such topic or partition"),
    _final(4, "INVALID_FETCH_SIZE", "the fetch size is not valid"),
    _retry(5, "LEADER_NOT_AVAILABLE", "the partition has no leader now; an election goes on"),
    _retry(6, "NOT_LEADER_OR_FOLLOWER", "the broker does not lead or hold the partition: refresh metadata",
           "NOT_LEADER_FOR_PARTITION"),
    _retry(7, "REQUEST_TIMED_OUT", "the broker could not finish within the request's timeout"),
    _final(8, "BROKER_NOT_AVAILABLE", "the broker is not there"),
    _retry(9, "REPLICA_NOT_AVAILABLE", "the replica asked for is not available"),
    _final(10, "MESSAGE_TOO_LARGE", "a batch is larger than the topic allows", "MESSAGE_SIZE_TOO_LARGE"),
    _final(11, "STALE_CONTROLLER_EPOCH", "another controller has taken over"),
    _final(12, "OFFSET_METADATA_TOO_LARGE", "the text committed with an offset is too long"),
    _retry(13, "NETWORK_EXCEPTION", "the connection closed before the answer came", "STALE_LEADER_EPOCH"),
    _retry(14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading its state",
           "GROUP_LOAD_IN_PROGRESS", "OFFSETS_LOAD_IN_PROGRESS"),
    _retry(15, "COORDINATOR_NOT_AVAILABLE", "there is no coordinator for this key now",
           "GROUP_COORDINATOR_NOT_AVAILABLE", "CONSUMER_COORDINATOR_NOT_AVAILABLE"),
    _retry(16, "NOT_COORDINATOR", "this broker does not coordinate this key: find the coordinator again",
           "NOT_COORDINATOR_FOR_GROUP", "NOT_COORDINATOR_FOR_CONSUMER"),
    _final(17, "INVALID_TOPIC_EXCEPTION", "the topic's name is not valid, or clients may not write to it",
           "INVALID_TOPIC"),
    _final(18, "RECORD_LIST_TOO_LARGE", "a batch is larger than a log segment",
           "MESSAGE_SET_SIZE_TOO_LARGE"),
    _retry(19, "NOT_ENOUGH_REPLICAS", "too few replicas are in sync, nothing was written"),
    _retry(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "written, but to fewer in-sync replicas than required"),
    _final(21, "INVALID_REQUIRED_ACKS", "acks is none of -1, 0 and 1"),
    _final(22, "ILLEGAL_GENERATION", "the group has moved on to another generation"),
    _final(23, "INCONSISTENT_GROUP_PROTOCOL", "the member shares no assignment protocol with its group"),
    _final(24, "INVALID_GROUP_ID", "the group id is not valid"),
    _final(25, "UNKNOWN_MEMBER_ID", "the coordinator does not know this member: join again"),
    _final(26, "INVALID_SESSION_TIMEOUT", "the session timeout is outside the broker's limits"),
    _final(27, "REBALANCE_IN_PROGRESS", "the group rebalances: join again"),
    _final(28, "INVALID_COMMIT_OFFSET_SIZE", "the commit is too large to be stored"),
    _final(29, "TOPIC_AUTHORIZATION_FAILED", "the principal may not do this with the topic"),
    _final(30, "GROUP_AUTHORIZATION_FAILED", "the principal may not do this with the group"),
    _final(31, "CLUSTER_AUTHORIZATION_FAILED", "the principal may not do this with the cluster"),
    _final(32, "INVALID_TIMESTAMP", "a record's timestamp is too far from the broker's clock"),
    _final(33, "UNSUPPORTED_SASL_MECHANISM", "the broker does not offer this SASL mechanism"),
    _final(34, "ILLEGAL_SASL_STATE", "not allowed at this point of the authentication"),
    _final(35, "UNSUPPORTED_VERSION", "the broker does not speak this version of the API"),
    _final(36, "TOPIC_ALREADY_EXISTS", "there is a topic of this name already"),
    _final(37, "INVALID_PARTITIONS", "the number of partitions is not valid"),
    _final(38, "INVALID_REPLICATION_FACTOR", "the replication factor is not valid for this cluster"),
    _final(39, "INVALID_REPLICA_ASSIGNMENT", "the assignment of replicas is not valid"),
    _final(40, "INVALID_CONFIG", "a configuration is not valid"),
    _retry(41, "NOT_CONTROLLER", "this node is not the controller: ask the one that is"),
    _final(42, "INVALID_REQUEST", "the broker refuses the request as malformed or contradictory"),
    _final(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the topic's record format is too old for this"),
    _final(44, "POLICY_VIOLATION", "a policy that the broker's operator set forbids this"),
    _final(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "batches of this idempotent producer are missing"),
    _final(46, "DUPLICATE_SEQUENCE_NUMBER", "the broker has this batch already"),
    _final(47, "INVALID_PRODUCER_EPOCH", "the producer's epoch is old: a newer instance has taken over"),
    _final(48, "INVALID_TXN_STATE", "the transaction is not in a state that allows this"),
    _final(49, "INVALID_PRODUCER_ID_MAPPING", "the producer id does not belong to the transactional id"),
    _final(50, "INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is above the broker's limit"),
    _retry(51, "CONCURRENT_TRANSACTIONS", "the previous transaction of this id is still being finished"),
    _final(52, "TRANSACTION_COORDINATOR_FENCED", "the sender no longer coordinates this transaction"),
    _final(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "the principal may not use this transactional id"),
    _final(54, "SECURITY_DISABLED", "the cluster has no authorizer"),
    _final(55, "OPERATION_NOT_ATTEMPTED", "not tried, since another part of the request failed"),
    _retry(56, "KAFKA_STORAGE_ERROR", "the broker cannot read or write its disk"),
    _final(57, "LOG_DIR_NOT_FOUND", "the broker has no such log directory"),
    _final(58, "SASL_AUTHENTICATION_FAILED", "the credentials were refused"),
    _final(59, "UNKNOWN_PRODUCER_ID", "the broker no longer knows the producer: its records are gone"),
    _final(60, "REASSIGNMENT_IN_PROGRESS", "the partition is being moved"),
    _final(61, "DELEGATION_TOKEN_AUTH_DISABLED", "delegation tokens are switched off"),
    _final(62, "DELEGATION_TOKEN_NOT_FOUND", "the broker knows no such delegation token"),
    _final(63, "DELEGATION_TOKEN_OWNER_MISMATCH", "the principal neither owns the token nor may renew it"),
    _final(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "not on a connection authenticated this way"),
    _final(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "the principal may not do this with the token"),
    _final(66, "DELEGATION_TOKEN_EXPIRED", "the token has expired"),
    _final(67, "INVALID_PRINCIPAL_TYPE", "the broker does not support this type of principal"),
    _final(68, "NON_EMPTY_GROUP", "the group still has members"),
    _final(69, "GROUP_ID_NOT_FOUND", "there is no group of this id"),
    _retry(70, "FETCH_SESSION_ID_NOT_FOUND", "the broker dropped this fetch session: start a new one"),
    _retry(71, "INVALID_FETCH_SESSION_EPOCH", "the fetch session is at another epoch: start a new one"),
    _retry(72, "LISTENER_NOT_FOUND", "the leader has no listener of the name that the client came in on"),
    _final(73, "TOPIC_DELETION_DISABLED", "the cluster does not delete topics"),
    _retry(74, "FENCED_LEADER_EPOCH", "the client's leader epoch is older than the broker's"),
    _retry(75, "UNKNOWN_LEADER_EPOCH", "the client's leader epoch is newer than the broker's"),
    _final(76, "UNSUPPORTED_COMPRESSION_TYPE", "the records' compression needs a newer client"),
    _final(77, "STALE_BROKER_EPOCH", "the broker has registered again since"),
    _retry(78, "OFFSET_NOT_AVAILABLE", "a new leader cannot tell the latest offset yet"),
    _final(79, "MEMBER_ID_REQUIRED", "join once more, with the member id of this answer"),
    _retry(80, "PREFERRED_LEADER_NOT_AVAILABLE", "the preferred leader is down or out of sync"),
    _final(81, "GROUP_MAX_SIZE_REACHED", "the group is full"),
    _final(82, "FENCED_INSTANCE_ID", "another member took over this group.instance.id"),
    _retry(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica that could lead the partition is available"),
    _retry(84, "ELECTION_NOT_NEEDED", "the partition is led by the right replica already"),
    _final(85, "NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being moved"),
    _final(86, "GROUP_SUBSCRIBED_TO_TOPIC", "the group still consumes the topic"),
    _final(87, "INVALID_RECORD", "the broker refuses a record for its contents"),
    _retry(88, "UNSTABLE_OFFSET_COMMIT", "a transaction that commits these offsets is still open"),
    _retry(89, "THROTTLING_QUOTA_EXCEEDED", "a quota on this kind of request is used up"),
    _final(90, "PRODUCER_FENCED", "a newer producer uses the same transactional id"),
    _final(91, "RESOURCE_NOT_FOUND", "the request names something that does not exist"),
    _final(92, "DUPLICATE_RESOURCE", "the request names one thing twice"),
    _final(93, "UNACCEPTABLE_CREDENTIAL", "the new credential is too weak, or not valid"),
    _final(94, "INCONSISTENT_VOTER_SET", "sender and receiver disagree on who votes"),
    _final(95, "INVALID_UPDATE_VERSION", "a feature cannot be set to this version"),
    _final(96, "FEATURE_UPDATE_FAILED", "the controller could not update the features"),
    _final(97, "PRINCIPAL_DESERIALIZATION_FAILURE", "a forwarded request's principal is unreadable"),
    _final(98, "SNAPSHOT_NOT_FOUND", "the leader does not have this snapshot"),
    _final(99, "POSITION_OUT_OF_RANGE", "the position is outside the snapshot"),
    _retry(100, "UNKNOWN_TOPIC_ID", "this broker knows no topic of this id"),
    _final(101, "DUPLICATE_BROKER_REGISTRATION", "another broker is registered under this id"),
    _final(102, "BROKER_ID_NOT_REGISTERED", "no broker is registered under this id"),
    _retry(103, "INCONSISTENT_TOPIC_ID", "the log belongs to a topic of another id"),
    _final(104, "INCONSISTENT_CLUSTER_ID", "the request is meant for another cluster"),
    _final(105, "TRANSACTIONAL_ID_NOT_FOUND", "there is no such transactional id"),
    _retry(106, "FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes topic names and topic ids"),
    _final(107, "INELIGIBLE_REPLICA", "a replica in the new ISR may not be in it"),
    _final(108, "NEW_LEADER_ELECTED", "the partition was changed, and has another leader now"),
    _final(109, "OFFSET_MOVED_TO_TIERED_STORAGE", "the offset is in tiered storage, not in the local log"),
    _final(110, "FENCED_MEMBER_EPOCH", "the member is fenced: give up all partitions, join again"),
    _final(111, "UNRELEASED_INSTANCE_ID", "another member still holds this instance id"),
    _final(112, "UNSUPPORTED_ASSIGNOR", "the group does not support this assignor"),
    _final(113, "STALE_MEMBER_EPOCH", "the member's epoch is old: try again after the next heartbeat"),
    _final(114, "MISMATCHED_ENDPOINT_TYPE", "a broker got a request for a controller, or the reverse"),
    _final(115, "UNSUPPORTED_ENDPOINT_TYPE", "the node does not know this type of endpoint"),
    _final(116, "UNKNOWN_CONTROLLER_ID", "no controller has this id"),
    _final(117, "UNKNOWN_SUBSCRIPTION_ID", "the client's metrics subscription is out of date"),
    _final(118, "TELEMETRY_TOO_LARGE", "the pushed metrics are larger than the broker accepts"),
    _final(119, "INVALID_REGISTRATION", "the controller refuses the broker's registration"),
    _final(120, "TRANSACTION_ABORTABLE", "the transaction failed; abort it, then the producer can go on"),
    _final(121, "INVALID_RECORD_STATE", "the record is not in a state that can be acknowledged so"),
    _retry(122, "SHARE_SESSION_NOT_FOUND", "the broker dropped this share session: start a new one"),
    _retry(123, "INVALID_SHARE_SESSION_EPOCH", "the share session is at another epoch: start a new one"),
    _final(124, "FENCED_STATE_EPOCH", "the share group's state has moved on to another epoch"),
    _final(125, "INVALID_VOTER_KEY", "the request is meant for another voter"),
    _final(126, "DUPLICATE_VOTER", "the node is a voter already"),
    _final(127, "VOTER_NOT_FOUND", "the node is not a voter"),
    _final(128, "INVALID_REGULAR_EXPRESSION", "the subscription's regular expression is not valid"),
    _final(129, "REBOOTSTRAP_REQUIRED", "the client's metadata is too old: bootstrap again"),
    _final(130, "STREAMS_INVALID_TOPOLOGY", "the topology is not valid"),
    _final(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "the topology's epoch is not valid"),
    _final(132, "STREAMS_TOPOLOGY_FENCED", "the group uses a newer topology"),
    _retry(133, "SHARE_SESSION_LIMIT_REACHED", "the broker holds as many share sessions as it may"),
    _final(134, "GROUP_DELETION_FAILED", "the group could not be deleted; the message says why"),
    _final(135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", "the topology's description was not stored"),
    _final(136, "CONTROLLER_ID_NOT_REGISTERED", "no controller is registered with this id"),
])
# fmt: on

_NAMES = {error.code: error.name for error in ERRORS}


def error_name(code: int) -> str:
    """The name of a code, or ERROR_1234 for one that is not known."""
    return _NAMES.get(code) or f"ERROR_{code}"
