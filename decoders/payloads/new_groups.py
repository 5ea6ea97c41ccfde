"""The records of __consumer_offsets that consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071)
take.

Kafka's schemas give tagged fields a default of null, but the classes made from them do not have it: a null is
written, and an absent field is read as empty.
"""

from klamm.decoders.payloads.declaration import record
from klamm.decoders.schema import (
    CLIENT_TEXT,
    GROUP,
    PARTITION,
    SECRET,
    TOPIC,
    TOPIC_ID,
    array,
    bytestring,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)

# fmt: off

OF_GROUP = [string("group_id", mark=GROUP)]
OF_MEMBER = [string("group_id", mark=GROUP), string("member_id")]

MEMBER_EPOCHS = [int32("member_epoch"), int32("previous_member_epoch"), int8("state")]
TARGET_EPOCH = [int32("assignment_epoch"), int64("assignment_timestamp", tag=0)]
CLIENT = [string("client_id", mark=CLIENT_TEXT), string("client_host")]
INSTANCE = string("instance_id", null="0+", mark=CLIENT_TEXT)
RACK = string("rack_id", null="0+", mark=CLIENT_TEXT)
SUBSCRIBED = array("subscribed_topic_names", mark=TOPIC, of="string")

TOPIC_PARTITIONS = [uuid("topic_id", mark=TOPIC_ID), array("partitions", mark=PARTITION, of="int32")]
ASSIGNMENT_EPOCHS = array("assignment_epochs", null="0+", tag=0, of="int32")

CONSUMER_GROUP_METADATA = record(
    3, "ConsumerGroupMetadata", key=OF_GROUP, value=[int32("epoch"), int64("metadata_hash", tag=0)],
)

CONSUMER_GROUP_PARTITION_METADATA = record(
    4, "ConsumerGroupPartitionMetadata",
    key=OF_GROUP,
    value=[
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID), string("topic_name", mark=TOPIC), int32("num_partitions"),
            array("partition_metadata", of=[
                int32("partition", mark=PARTITION), array("racks", of="string"),
            ]),
        ]),
    ],
)

CONSUMER_GROUP_MEMBER_METADATA = record(
    5, "ConsumerGroupMemberMetadata",
    key=OF_MEMBER,
    value=[
        INSTANCE, RACK, *CLIENT, SUBSCRIBED,
        string("subscribed_topic_regex", null="0+"), int32("rebalance_timeout_ms", default=-1),
        string("server_assignor", null="0+"),
        struct("classic_member_metadata", null="0+", tag=0, of=[
            int32("session_timeout_ms"),
            array("supported_protocols", of=[string("name"), bytestring("metadata", mark=CLIENT_TEXT)]),
        ]),
    ],
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = record(
    6, "ConsumerGroupTargetAssignmentMetadata", key=OF_GROUP, value=TARGET_EPOCH,
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = record(
    7, "ConsumerGroupTargetAssignmentMember",
    key=OF_MEMBER, value=[array("topic_partitions", of=TOPIC_PARTITIONS)],
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = record(
    8, "ConsumerGroupCurrentMemberAssignment",
    key=OF_MEMBER,
    value=[
        *MEMBER_EPOCHS,
        array("assigned_partitions", of=[*TOPIC_PARTITIONS, ASSIGNMENT_EPOCHS]),
        array("partitions_pending_revocation", of=[*TOPIC_PARTITIONS, ASSIGNMENT_EPOCHS]),
    ],
)

SHARE_GROUP_MEMBER_METADATA = record(
    10, "ShareGroupMemberMetadata", key=OF_MEMBER, value=[RACK, *CLIENT, SUBSCRIBED],
)

SHARE_GROUP_METADATA = record(
    11, "ShareGroupMetadata", key=OF_GROUP, value=[int32("epoch"), int64("metadata_hash")],
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = record(
    12, "ShareGroupTargetAssignmentMetadata", key=OF_GROUP, value=TARGET_EPOCH,
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = record(
    13, "ShareGroupTargetAssignmentMember",
    key=OF_MEMBER, value=[array("topic_partitions", of=TOPIC_PARTITIONS)],
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = record(
    14, "ShareGroupCurrentMemberAssignment",
    key=OF_MEMBER, value=[*MEMBER_EPOCHS, array("assigned_partitions", of=TOPIC_PARTITIONS)],
)

NAMED_TOPIC = [uuid("topic_id", mark=TOPIC_ID), string("topic_name", mark=TOPIC)]
NAMED_TOPIC_PARTITIONS = [*NAMED_TOPIC, array("partitions", mark=PARTITION, of="int32")]

SHARE_GROUP_STATE_PARTITION_METADATA = record(
    15, "ShareGroupStatePartitionMetadata",
    key=OF_GROUP,
    value=[
        array("initializing_topics", of=NAMED_TOPIC_PARTITIONS),
        array("initialized_topics", of=NAMED_TOPIC_PARTITIONS),
        array("deleting_topics", of=NAMED_TOPIC),
    ],
)

CONSUMER_GROUP_REGULAR_EXPRESSION = record(
    16, "ConsumerGroupRegularExpression",
    key=[*OF_GROUP, string("regular_expression")],
    value=[
        array("topics", mark=TOPIC, of="string"),
        int64("metadata_version"),  # Kafka calls it version, as it does the one that leads
        int64("timestamp"),
    ],
)

STREAMS_GROUP_METADATA = record(
    17, "StreamsGroupMetadata",
    key=OF_GROUP,
    value=[
        int32("epoch"), int64("metadata_hash"),
        int32("validated_topology_epoch", tag=0, default=-1),
        array("last_assignment_configs", null="0+", tag=1, of=[
            string("key"), string("value", mark=SECRET),
        ]),
    ],
)

STREAMS_GROUP_MEMBER_METADATA = record(
    19, "StreamsGroupMemberMetadata",
    key=OF_MEMBER,
    value=[
        INSTANCE, RACK, *CLIENT,
        int32("rebalance_timeout_ms", default=-1), int32("topology_epoch"),
        string("process_id", mark=CLIENT_TEXT),
        struct("user_endpoint", null="0+", default=None, of=[string("host"), uint16("port")]),
        array("client_tags", of=[string("key", mark=CLIENT_TEXT), string("value", mark=CLIENT_TEXT)]),
    ],
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = record(
    20, "StreamsGroupTargetAssignmentMetadata", key=OF_GROUP, value=TARGET_EPOCH,
)

# Partitions of a subtopology, not of one topic: no marks.
TASKS = [string("subtopology_id"), array("partitions", of="int32")]
ASSIGNED_TASKS = [*TASKS, ASSIGNMENT_EPOCHS]

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = record(
    21, "StreamsGroupTargetAssignmentMember",
    key=OF_MEMBER,
    value=[
        array("active_tasks", of=TASKS), array("standby_tasks", of=TASKS), array("warmup_tasks", of=TASKS),
    ],
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = record(
    22, "StreamsGroupCurrentMemberAssignment",
    key=OF_MEMBER,
    value=[
        *MEMBER_EPOCHS,
        array("active_tasks", of=ASSIGNED_TASKS),
        array("standby_tasks", of=ASSIGNED_TASKS),
        array("warmup_tasks", of=ASSIGNED_TASKS),
        array("active_tasks_pending_revocation", of=ASSIGNED_TASKS),
        array("standby_tasks_pending_revocation", of=ASSIGNED_TASKS),
        array("warmup_tasks_pending_revocation", of=ASSIGNED_TASKS),
    ],
)

INTERNAL_TOPIC = [
    string("name", mark=TOPIC), int32("partitions"), int16("replication_factor"),
    array("topic_configs", of=[string("key"), string("value", mark=SECRET)]),
]

STREAMS_GROUP_TOPOLOGY = record(
    23, "StreamsGroupTopology",
    key=OF_GROUP,
    value=[
        int32("epoch"),
        array("subtopologies", of=[
            string("subtopology_id"), array("source_topics", mark=TOPIC, of="string"),
            array("source_topic_regex", of="string"),
            array("state_changelog_topics", of=INTERNAL_TOPIC),
            array("repartition_sink_topics", mark=TOPIC, of="string"),
            array("repartition_source_topics", of=INTERNAL_TOPIC),
            array("copartition_groups", of=[
                array("source_topics", of="int16"), array("source_topic_regex", of="int16"),
                array("repartition_source_topics", of="int16"),
            ]),
        ]),
    ],
)
