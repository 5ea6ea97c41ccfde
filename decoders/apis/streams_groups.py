"""Groups of Kafka Streams applications (KIP-1071)."""

from klamm.decoders.schema import (
    CLIENT_TEXT,
    ERROR,
    GROUP,
    PARTITION,
    SECRET,
    TOPIC,
    api,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)

# Partitions of a subtopology, not of one topic: no marks.
TASKS = [string("subtopology_id"), array("partitions", of="int32")]
TASK_OFFSET = [string("subtopology_id"), int32("partition"), int64("offset")]
ASSIGNMENT = [
    array("active_tasks", of=TASKS), array("standby_tasks", of=TASKS), array("warmup_tasks", of=TASKS),
]

# A topic that the broker shall make: `partitions` is how many.
INTERNAL_TOPIC = [
    string("name", mark=TOPIC), int32("partitions"), int16("replication_factor"),
    array("topic_configs", of=[string("key"), string("value", mark=SECRET)]),
]

# Where an application answers queries of its own state: not a broker's, so never rewritten.
USER_ENDPOINT = [string("host"), uint16("port")]

TOPIC_PARTITIONS = [string("topic", mark=TOPIC), array("partitions", mark=PARTITION, of="int32")]

NODE = [
    string("name"), int8("node_type"), array("source_topics", mark=TOPIC, of="string"),
    string("sink_topic", null="0+", default=None, mark=TOPIC), array("stores", of="string"),
    array("successors", of="string"),
]
TOPOLOGY_DESCRIPTION = [
    array("subtopologies", of=[string("subtopology_id"), array("nodes", of=NODE)]),
    array("global_stores", of=[struct("source", of=NODE), struct("processor", of=NODE)]),
]

STREAMS_GROUP_HEARTBEAT = api(
    88, "StreamsGroupHeartbeat", versions="0-1", flexible="0+",
    request=[
        string("group_id", mark=GROUP), string("member_id"), int32("member_epoch"),
        int32("endpoint_information_epoch"), string("instance_id", null="0+", default=None, mark=CLIENT_TEXT),
        string("rack_id", null="0+", default=None, mark=CLIENT_TEXT),
        int32("rebalance_timeout_ms", default=-1),
        struct("topology", null="0+", default=None, of=[
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
        ]),
        array("active_tasks", null="0+", default=None, of=TASKS),
        array("standby_tasks", null="0+", default=None, of=TASKS),
        array("warmup_tasks", null="0+", default=None, of=TASKS),
        string("process_id", null="0+", default=None, mark=CLIENT_TEXT),
        struct("user_endpoint", null="0+", default=None, of=USER_ENDPOINT),
        array("client_tags", null="0+", default=None, of=[
            string("key", mark=CLIENT_TEXT), string("value", mark=CLIENT_TEXT),
        ]),
        array("task_offsets", null="0+", default=None, of=TASK_OFFSET),
        array("task_end_offsets", null="0+", default=None, of=TASK_OFFSET),
        boolean("shutdown_application"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None), string("member_id"), int32("member_epoch"),
        int32("heartbeat_interval_ms"), int32("acceptable_recovery_lag_legacy", "0"),
        int32("task_offset_interval_ms"), int64("acceptable_recovery_lag", "1+", default=-1),
        array("status", null="0+", of=[int8("status_code"), string("status_detail", mark=SECRET)]),
        array("active_tasks", null="0+", default=None, of=TASKS),
        array("standby_tasks", null="0+", default=None, of=TASKS),
        array("warmup_tasks", null="0+", default=None, of=TASKS),
        boolean("topology_description_required", "1+"),
        int32("endpoint_information_epoch"),
        array("partitions_by_user_endpoint", null="0+", default=None, of=[
            struct("user_endpoint", of=USER_ENDPOINT),
            array("active_partitions", of=TOPIC_PARTITIONS),
            array("standby_partitions", of=TOPIC_PARTITIONS),
        ]),
    ],
)

STREAMS_GROUP_DESCRIBE = api(
    89, "StreamsGroupDescribe", versions="0-1", flexible="0+",
    request=[
        array("group_ids", mark=GROUP, of="string"), boolean("include_authorized_operations"),
        boolean("include_topology_description", "1+"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("groups", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
            string("group_id", mark=GROUP), string("group_state"), int32("group_epoch"),
            int32("assignment_epoch"),
            struct("topology", null="0+", default=None, of=[
                int32("epoch"),
                array("subtopologies", null="0+", default=None, of=[
                    string("subtopology_id"), array("source_topics", mark=TOPIC, of="string"),
                    array("repartition_sink_topics", mark=TOPIC, of="string"),
                    array("state_changelog_topics", of=INTERNAL_TOPIC),
                    array("repartition_source_topics", of=INTERNAL_TOPIC),
                ]),
            ]),
            array("members", of=[
                string("member_id"), int32("member_epoch"),
                string("instance_id", null="0+", default=None, mark=CLIENT_TEXT),
                string("rack_id", null="0+", default=None, mark=CLIENT_TEXT),
                string("client_id", mark=CLIENT_TEXT), string("client_host"), int32("topology_epoch"),
                string("process_id", mark=CLIENT_TEXT),
                struct("user_endpoint", null="0+", default=None, of=USER_ENDPOINT),
                array("client_tags", of=[string("key", mark=CLIENT_TEXT), string("value", mark=CLIENT_TEXT)]),
                array("task_offsets", of=TASK_OFFSET),
                array("task_end_offsets", of=TASK_OFFSET),
                struct("assignment", of=ASSIGNMENT),
                struct("target_assignment", of=ASSIGNMENT),
                boolean("is_classic"),
            ]),
            int32("authorized_operations", default=-2**31),
            struct("topology_description", "1+", null="1+", default=None, of=TOPOLOGY_DESCRIPTION),
            int8("topology_description_status", "1+"),
            string("assignor_name", "1+", null="1+", default=None),
        ]),
    ],
)

STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = api(
    93, "StreamsGroupTopologyDescriptionUpdate", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP), string("member_id"), int32("topology_epoch"),
        struct("topology_description", of=TOPOLOGY_DESCRIPTION),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
    ],
)
