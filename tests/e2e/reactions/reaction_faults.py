"""The faults of test_reactions.py, what the protocol asks of clients, and where a client does otherwise."""

from typing import Any, NamedTuple

from tests.e2e.reactions.reactions import Fault

CLIENTS = ("librdkafka", "java", "franz-go", "aiokafka", "kafka-python")
TRANSACTION: dict[str, Any] = {"n": 2, "id": "{name}"}
JOINED: dict[str, Any] = {"options": {"n": 3, "group": "{name}"}, "records": 3}
ASKED = 'any(each.name == "{name}" for each in topics)'
REFRESHED = ("asks for metadata", "asks again", "succeeds")
# Twice where metadata is asked for: librdkafka does that and tries again by two timers of 100 ms.
TIMES: dict[str, dict[str, int]] = {"once": {"times": 1}, "twice": {"times": 2}, "always": {}}


def _produce(error: str, shows: tuple[str, ...], text: str = "once", **more: Any) -> Fault:
    rule = {"api": "Produce", "topic": "{name}", "error": error} | TIMES[text]
    return Fault(f"{error} on Produce", text, "Produce", error, (rule,), shows, **more)


def _group(api: str, error: str, shows: tuple[str, ...], **more: Any) -> Fault:
    """An error of the group's coordinator; `anew` counts joins with an empty member id after it."""
    rules = (
        {"api": api, "group": "{name}", "error": error, "nth": 3 if api == "Heartbeat" else 1},
        {
            "name": "{name} anew",
            "api": "JoinGroup",
            "group": "{name}",
            "where": 'member_id == ""',
            "once_hit": "{name}",
            "count": True,
        },
    )
    return Fault(f"{error} on {api}", "once", api, error, rules, shows, "consume", **more)


def _heartbeat(error: str, proof: str, shows: tuple[str, ...], **more: Any) -> Fault:
    return _group("Heartbeat", error, shows, options={"n": 1, "group": "{name}"}, proof=proof, **more)


def _fetch(error: str, shows: tuple[str, ...], proof: str) -> Fault:
    rules = ({"api": "Fetch", "topic": "{name}", "error": error, "times": 1},)
    options = {"n": 4, "group": "{name}"}
    return Fault(
        f"{error} on Fetch",
        "once",
        "Fetch",
        error,
        rules,
        shows,
        "consume",
        options,
        records=3,
        proof=proof,
        proof_s=5.0,
        unlogged=True,
    )


def _transaction(api: str, error: str, shows: tuple[str, ...], **rule: Any) -> Fault:
    rules = ({"api": api, "error": error, **rule},)
    return Fault(f"{error} on {api}", "always", api, error, rules, shows, "transaction", TRANSACTION)


OURS = {"where": 'transactional_id == "{name}"'}
FATAL = ("tells the application that it is fatal", "nothing is committed")
FAULTS = (
    _produce("NOT_LEADER_OR_FOLLOWER", REFRESHED, "twice"),
    _produce("UNKNOWN_TOPIC_OR_PARTITION", REFRESHED, "twice"),
    _produce("KAFKA_STORAGE_ERROR", REFRESHED, "twice", long=CLIENTS),
    _produce("CORRUPT_MESSAGE", ("asks again", "succeeds")),
    _produce("NOT_ENOUGH_REPLICAS", ("asks again", "succeeds")),
    _produce("TOPIC_AUTHORIZATION_FAILED", ("tells the application", "does not insist"), "always"),
    Fault(
        "UNKNOWN_TOPIC_OR_PARTITION on Metadata",
        "once",
        "Metadata",
        "UNKNOWN_TOPIC_OR_PARTITION",
        (
            {
                "api": "Metadata",
                "topic": "{name}",
                "where": ASKED,
                "error": "UNKNOWN_TOPIC_OR_PARTITION",
                "times": 1,
            },
        ),
        ("asks again", "succeeds"),
        unlogged=True,
    ),
    Fault(
        "TOPIC_AUTHORIZATION_FAILED on Metadata",
        "always",
        "Metadata",
        "TOPIC_AUTHORIZATION_FAILED",
        ({"api": "Metadata", "topic": "{name}", "where": ASKED, "error": "TOPIC_AUTHORIZATION_FAILED"},),
        ("tells the application", "does not insist"),
        options={"n": 1, "timeout_ms": 12_000},
        unlogged=True,
    ),
    Fault(
        "REBOOTSTRAP_REQUIRED on Metadata",
        "once, while Produce is answered NOT_LEADER_OR_FOLLOWER twice",
        "Metadata",
        "REBOOTSTRAP_REQUIRED",
        (
            {
                "api": "Metadata",
                "versions": "13+",
                "where": ASKED,
                "once_hit": "{name} moved",
                "error": "REBOOTSTRAP_REQUIRED",
                "times": 1,
            },
            {
                "name": "{name} moved",
                "api": "Produce",
                "topic": "{name}",
                "error": "NOT_LEADER_OR_FOLLOWER",
                "times": 2,
            },
        ),
        ("goes back to the bootstrap address", "succeeds"),
        long=CLIENTS,
    ),
    Fault(
        "connection cut after the broker wrote, idempotent",
        "once",
        "Produce",
        "",
        ({"api": "Produce", "topic": "{name}", "disconnect": {"when": "after"}, "times": 1},),
        ("asks again", "succeeds", "each record is stored once"),
        options={"n": 3, "idempotent": True},
        unlogged=True,
    ),
    Fault(
        "throttled for 1 s on Produce",
        "once",
        "Produce",
        "",
        ({"api": "Produce", "topic": "{name}", "throttle": "1s", "times": 1},),
        ("is held back as long as it was told", "succeeds"),
        options={"n": 3},
        unlogged=True,
    ),
    _group(
        "JoinGroup",
        "NOT_COORDINATOR",
        ("looks up the coordinator", "asks again", "succeeds"),
        **JOINED,
        long=CLIENTS,
    ),
    _heartbeat("NOT_COORDINATOR", "FindCoordinator", ("looks up the coordinator", "asks again", "succeeds")),
    _group(
        "OffsetCommit", "NOT_COORDINATOR", ("looks up the coordinator", "asks again", "succeeds"), **JOINED
    ),
    _heartbeat("REBALANCE_IN_PROGRESS", "SyncGroup", ("joins again", "keeps its member id", "succeeds")),
    _heartbeat(
        "UNKNOWN_MEMBER_ID",
        "SyncGroup",
        ("joins again", "has an empty member id", "succeeds"),
        long=CLIENTS[2:],
    ),
    _fetch("OFFSET_OUT_OF_RANGE", ("lists offsets", "asks again", "succeeds"), "ListOffsets"),
    _fetch("KAFKA_STORAGE_ERROR", ("asks for metadata, then or later", "asks again", "succeeds"), "Metadata"),
    _transaction(
        "Produce",
        "INVALID_PRODUCER_EPOCH",
        ("aborts the transaction", "nothing is committed"),
        topic="{name}",
    )._replace(text="always"),
    _transaction("EndTxn", "PRODUCER_FENCED", FATAL, **OURS),
    _transaction("AddPartitionsToTxn", "PRODUCER_FENCED", FATAL, topic="{name}"),
    Fault(
        "SASL_AUTHENTICATION_FAILED on SaslAuthenticate",
        "always",
        "SaslAuthenticate",
        "SASL_AUTHENTICATION_FAILED",
        ({"api": "SaslAuthenticate", "error": "SASL_AUTHENTICATION_FAILED"},),
        ("tells the application that it is not authenticated",),
        options={"n": 1, "timeout_ms": 12_000, "username": "alice", "password": "alice-secret"},
        sasl=True,
    ),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


class Difference(NamedTuple):
    """A difference between a client and the protocol, and its reason."""

    missing: tuple[str, ...]
    why: str


FINAL = Difference(("asks again", "succeeds"), "it takes the error as final")
NO_REBOOTSTRAP = ("goes back to the bootstrap address",)
OLD_METADATA = Difference(NO_REBOOTSTRAP, "its Metadata requests are older than version 13")
NOT_TOLD = ("tells the application that it is not authenticated",)
KNOWN_DIFFERENCES = {
    ("CORRUPT_MESSAGE on Produce", "aiokafka"): FINAL,
    ("CORRUPT_MESSAGE on Produce", "franz-go"): FINAL,
    ("CORRUPT_MESSAGE on Produce", "kafka-python"): FINAL,
    ("REBOOTSTRAP_REQUIRED on Metadata", "aiokafka"): OLD_METADATA,
    ("REBOOTSTRAP_REQUIRED on Metadata", "franz-go"): OLD_METADATA,
    ("REBOOTSTRAP_REQUIRED on Metadata", "kafka-python"): Difference(
        NO_REBOOTSTRAP, "it goes on with the brokers that it knows"
    ),
    ("UNKNOWN_MEMBER_ID on Heartbeat", "franz-go"): Difference(
        ("has an empty member id", "succeeds"),
        "it joins with its old id, which the broker still knows, and tells the application of the error",
    ),
    ("KAFKA_STORAGE_ERROR on Fetch", "aiokafka"): Difference(
        ("asks for metadata, then or later",), "it fetches from the same leader again"
    ),
    ("INVALID_PRODUCER_EPOCH on Produce", "librdkafka"): Difference(
        ("aborts the transaction",), "it takes the error as PRODUCER_FENCED, which is fatal"
    ),
    ("INVALID_PRODUCER_EPOCH on Produce", "kafka-python"): Difference(
        ("aborts the transaction",), "it has to be closed: abort_transaction fails"
    ),
    ("PRODUCER_FENCED on AddPartitionsToTxn", "java"): Difference(
        FATAL, "with transactions of version 2 (KIP-890) it sends no AddPartitionsToTxn"
    ),
    ("SASL_AUTHENTICATION_FAILED on SaslAuthenticate", "franz-go"): Difference(
        NOT_TOLD, "it connects again until the time of the record is over"
    ),
    ("SASL_AUTHENTICATION_FAILED on SaslAuthenticate", "aiokafka"): Difference(
        NOT_TOLD, "it says KafkaConnectionError"
    ),
    ("SASL_AUTHENTICATION_FAILED on SaslAuthenticate", "kafka-python"): Difference(
        NOT_TOLD, "it connects again until its time is over, and says KafkaTimeoutError"
    ),
}
