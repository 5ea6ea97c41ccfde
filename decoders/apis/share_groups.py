"""Share groups: queues on topics (KIP-932)."""

from klamm.decoders.schema import (
    CLIENT_TEXT,
    ERROR,
    GROUP,
    HOST,
    NODE_ID,
    PARTITION,
    PORT,
    TOPIC,
    TOPIC_ID,
    api,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)

SHARE_GROUP_HEARTBEAT = api(
    76, "ShareGroupHeartbeat", versions="0-1", flexible="0+",
    request=[
        string("group_id", mark=GROUP), string("member_id"), int32("member_epoch"),
        string("rack_id", null="0+", default=None, mark=CLIENT_TEXT),
        array("subscribed_topic_names", null="0+", default=None, mark=TOPIC, of="string"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None), string("member_id", null="0+", default=None),
        int32("member_epoch"), int32("heartbeat_interval_ms"),
        struct("assignment", null="0+", default=None, of=[
            array("topic_partitions", of=[
                uuid("topic_id", mark=TOPIC_ID), array("partitions", mark=PARTITION, of="int32"),
            ]),
        ]),
    ],
)

SHARE_GROUP_DESCRIBE = api(
    77, "ShareGroupDescribe", versions="0-1", flexible="0+",
    request=[array("group_ids", mark=GROUP, of="string"), boolean("include_authorized_operations")],
    response=[
        int32("throttle_time_ms"),
        array("groups", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
            string("group_id", mark=GROUP), string("group_state"), int32("group_epoch"),
            int32("assignment_epoch"), string("assignor_name"),
            array("members", of=[
                string("member_id"), string("rack_id", null="0+", default=None, mark=CLIENT_TEXT),
                int32("member_epoch"), string("client_id", mark=CLIENT_TEXT), string("client_host"),
                array("subscribed_topic_names", mark=TOPIC, of="string"),
                struct("assignment", of=[
                    array("topic_partitions", of=[
                        uuid("topic_id", mark=TOPIC_ID), string("topic_name", mark=TOPIC),
                        array("partitions", mark=PARTITION, of="int32"),
                    ]),
                ]),
            ]),
            int32("authorized_operations", default=-2**31),
        ]),
    ],
)

NODE_ENDPOINT = [
    int32("node_id", mark=NODE_ID), string("host", mark=HOST), int32("port", mark=PORT),
    string("rack", null="0+", default=None),
]

ACKNOWLEDGEMENT_BATCH = [
    int64("first_offset"), int64("last_offset"), array("acknowledge_types", of="int8"),
]

SHARE_FETCH = api(
    78, "ShareFetch", versions="0-2", flexible="0+",
    request=[
        string("group_id", null="0+", default=None, mark=GROUP), string("member_id", null="0+"),
        int32("share_session_epoch"), int32("max_wait_ms"), int32("min_bytes"),
        int32("max_bytes", default=2**31 - 1),
        int32("max_records", "1+"), int32("batch_size", "1+"),
        int8("share_acquire_mode", "2+"), boolean("is_renew_ack", "2+"),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION),
                int32("partition_max_bytes", "0"),
                array("acknowledgement_batches", of=ACKNOWLEDGEMENT_BATCH),
            ]),
        ]),
        array("forgotten_topics_data", of=[
            uuid("topic_id", mark=TOPIC_ID), array("partitions", mark=PARTITION, of="int32"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
        int32("acquisition_lock_timeout_ms", "1+"),
        array("responses", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None), int16("acknowledge_error_code", mark=ERROR),
                string("acknowledge_error_message", null="0+", default=None),
                struct("current_leader", of=[int32("leader_id"), int32("leader_epoch")]),
                records("records", null="0"),
                array("acquired_records", of=[
                    int64("first_offset"), int64("last_offset"), int16("delivery_count"),
                ]),
            ]),
        ]),
        array("node_endpoints", of=NODE_ENDPOINT),
    ],
)

SHARE_ACKNOWLEDGE = api(
    79, "ShareAcknowledge", versions="0-2", flexible="0+",
    request=[
        string("group_id", null="0+", default=None, mark=GROUP), string("member_id", null="0+"),
        int32("share_session_epoch"),
        boolean("is_renew_ack", "2+"),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION),
                array("acknowledgement_batches", of=ACKNOWLEDGEMENT_BATCH),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
        int32("acquisition_lock_timeout_ms", "2+"),
        array("responses", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None),
                struct("current_leader", of=[int32("leader_id"), int32("leader_epoch")]),
            ]),
        ]),
        array("node_endpoints", of=NODE_ENDPOINT),
    ],
)

DESCRIBE_SHARE_GROUP_OFFSETS = api(
    90, "DescribeShareGroupOffsets", versions="0-1", flexible="0+",
    request=[
        array("groups", of=[
            string("group_id", mark=GROUP),
            array("topics", null="0+", of=[
                string("topic_name", mark=TOPIC), array("partitions", mark=PARTITION, of="int32"),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("groups", of=[
            string("group_id", mark=GROUP),
            array("topics", of=[
                string("topic_name", mark=TOPIC), uuid("topic_id", mark=TOPIC_ID),
                array("partitions", of=[
                    int32("partition_index", mark=PARTITION), int64("start_offset"), int32("leader_epoch"),
                    int64("lag", "1+", default=-1),
                    int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
                ]),
            ]),
            int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
        ]),
    ],
)

ALTER_SHARE_GROUP_OFFSETS = api(
    91, "AlterShareGroupOffsets", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[int32("partition_index", mark=PARTITION), int64("start_offset")]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
        array("responses", of=[
            string("topic_name", mark=TOPIC), uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None),
            ]),
        ]),
    ],
)

DELETE_SHARE_GROUP_OFFSETS = api(
    92, "DeleteShareGroupOffsets", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[string("topic_name", mark=TOPIC)]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
        array("responses", of=[
            string("topic_name", mark=TOPIC), uuid("topic_id", mark=TOPIC_ID),
            int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
        ]),
    ],
)
