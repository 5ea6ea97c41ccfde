"""Names of APIs and errors from older Kafka, its clients and its guides."""

import pytest

from klamm.decoders import API, ERRORS

APIS = {
    "Offset": 2, "Offsets": 2, "ListOffset": 2, "LIST_OFFSETS": 2, "TopicMetadata": 3,
    "LeaderAndIsr": 4, "LEADER_AND_ISR": 4, "StopReplica": 5, "UpdateMetadata": 6, "ControlledShutdown": 7,
    "ConsumerMetadata": 10, "GroupCoordinator": 10,
    "OffsetsForLeaderEpoch": 23, "ElectPreferredLeaders": 43, "AlterIsr": 56,
    "ListClientMetricsResources": 74,
}  # fmt: skip
ERRORS_UNTIL_2_5 = {
    "UNKNOWN": -1, "NOT_LEADER_FOR_PARTITION": 6, "GROUP_LOAD_IN_PROGRESS": 14,
    "GROUP_COORDINATOR_NOT_AVAILABLE": 15, "NOT_COORDINATOR_FOR_GROUP": 16, "INVALID_TOPIC_EXCEPTION": 17,
}  # fmt: skip
ERRORS_OF_0_8 = {
    "UnknownCode": -1, "NoError": 0, "OffsetOutOfRangeCode": 1, "InvalidMessageCode": 2,
    "UnknownTopicOrPartitionCode": 3, "InvalidFetchSizeCode": 4, "LeaderNotAvailableCode": 5,
    "NotLeaderForPartitionCode": 6, "RequestTimedOutCode": 7, "BrokerNotAvailableCode": 8,
    "ReplicaNotAvailableCode": 9, "MessageSizeTooLargeCode": 10, "StaleControllerEpochCode": 11,
    "OffsetMetadataTooLargeCode": 12, "StaleLeaderEpochCode": 13, "OffsetsLoadInProgressCode": 14,
    "ConsumerCoordinatorNotAvailableCode": 15, "NotCoordinatorForConsumerCode": 16, "InvalidTopicCode": 17,
    "MessageSetSizeTooLargeCode": 18, "NotEnoughReplicasCode": 19, "NotEnoughReplicasAfterAppendCode": 20,
}  # fmt: skip


@pytest.mark.parametrize(("name", "key"), APIS.items())
def test_an_api_is_found_by_its_older_names(name: str, key: int) -> None:
    assert API[name].key == key


@pytest.mark.parametrize(("name", "code"), (ERRORS_UNTIL_2_5 | ERRORS_OF_0_8).items())
def test_an_error_is_found_by_its_older_names(name: str, code: int) -> None:
    assert ERRORS[name].code == code


def test_no_name_stands_for_two_apis_or_two_errors() -> None:
    for each in ([(api.name, *api.aliases) for api in API], [(e.name, *e.aliases) for e in ERRORS]):
        names = [name for group in each for name in group]
        assert len(set(names)) == len(names)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(LookupError, match="'NOT_LEADER_OR_FOLOWER'; nearest: NOT_LEADER_OR_FOLLOWER"):
        ERRORS["NOT_LEADER_OR_FOLOWER"]
