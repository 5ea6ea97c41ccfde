"""The user data of Kafka Streams in classic groups. Its end points and hosts are the applications' own."""

from klamm.decoders.payloads.declaration import payload
from klamm.decoders.schema import (
    CLIENT_TEXT,
    PARTITION,
    TOPIC,
    array,
    bytestring,
    int8,
    int32,
    int64,
    string,
    uuid,
)

# fmt: off

# Partitions of a subtopology, not of one topic: no marks.
TASK = [int32("topic_group_id"), int32("partition")]

SUBSCRIPTION_INFO = payload(
    "SubscriptionInfoData", versions="1-11", flexible=None,
    fields=[
        int32("version"),
        int32("latest_supported_version", "3+", default=-1),
        uuid("process_id"),
        array("prev_tasks", "1-6", of=TASK), array("standby_tasks", "1-6", of=TASK),
        bytestring("user_end_point", "2+", mark=CLIENT_TEXT),
        array("task_offset_sums", "7+", of=[
            int32("topic_group_id"),
            int32("partition", "10+"), int64("offset_sum", "10+"),
            string("named_topology", "10+", null="10+"),
            array("partition_to_offset_sum", "7-9", of=[int32("partition"), int64("offset_sum")]),
        ]),
        int8("unique_field", "8+"),
        int32("error_code", "9+"),  # of Streams' own
        array("client_tags", "11+", of=[
            bytestring("key", mark=CLIENT_TEXT), bytestring("value", mark=CLIENT_TEXT),
        ]),
    ],
)

# A topology's name is UTF-16, a count of units before it; empty stands for none.
ASSIGNED_TASK = [
    int32("topic_group_id"), int32("partition"), array("named_topology", "10+", of="uint16"),
]
PARTITION_OF_TOPIC = [string("topic", mark=TOPIC), int32("partition", mark=PARTITION)]
HOST_OF_APPLICATION = [string("host"), int32("port")]
PARTITIONS_BY_HOST = [
    *HOST_OF_APPLICATION,
    array("partitions", "2-4", of=PARTITION_OF_TOPIC),
    array("partitions", "5+", of=[int32("topic_index"), int32("partition", mark=PARTITION)]),
]

# Written by hand in Streams, so without a schema: the only source is the code of its AssignmentInfo.
ASSIGNMENT_INFO = payload(
    "AssignmentInfo", versions="1-11", flexible=None,
    fields=[
        int32("version"),
        int32("commonly_supported_version", "3+"),
        array("active_tasks", of=ASSIGNED_TASK),
        array("standby_tasks", of=[*ASSIGNED_TASK, array("partitions", of=PARTITION_OF_TOPIC)]),
        array("topics", "5+", of=[int32("topic_index"), string("topic", mark=TOPIC)]),
        array("partitions_by_host", "2+", of=PARTITIONS_BY_HOST),
        array("standby_partitions_by_host", "6+", of=PARTITIONS_BY_HOST),
        int32("error_code", "4+"),
        int64("next_rebalance_ms", "7+"),
    ],
)
