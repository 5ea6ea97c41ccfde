"""Records and their offsets: what producers and consumers do all day."""

from klamm.decoders.schema import (
    CLIENT_TEXT,
    ERROR,
    HOST,
    NODE_ID,
    PARTITION,
    PORT,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONAL_ID,
    api,
    array,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)

# Where the new leaders of an answer's partitions listen (KIP-951).
NODE_ENDPOINT = [
    int32("node_id", mark=NODE_ID), string("host", mark=HOST), int32("port", mark=PORT),
    string("rack", null="0+", default=None),
]

LEADER = [int32("leader_id", default=-1), int32("leader_epoch", default=-1)]

PRODUCE = api(
    0, "Produce", versions="0-13", flexible="9+",
    request=[
        string("transactional_id", "3+", null="3+", default=None, mark=TRANSACTIONAL_ID),
        int16("acks"), int32("timeout_ms"),  # acks 0: no response comes
        array("topic_data", of=[
            string("name", "0-12", mark=TOPIC),
            uuid("topic_id", "13+", mark=TOPIC_ID),
            array("partition_data", of=[int32("index", mark=PARTITION), records("records", null="0+")]),
        ]),
    ],
    response=[
        array("responses", of=[
            string("name", "0-12", mark=TOPIC),
            uuid("topic_id", "13+", mark=TOPIC_ID),
            array("partition_responses", of=[
                int32("index", mark=PARTITION), int16("error_code", mark=ERROR), int64("base_offset"),
                int64("log_append_time_ms", "2+", default=-1),
                int64("log_start_offset", "5+", default=-1),
                array("record_errors", "8+", of=[
                    int32("batch_index"), string("batch_index_error_message", null="8+", default=None),
                ]),
                string("error_message", "8+", null="8+", default=None),
                struct("current_leader", "10+", tag=0, of=LEADER),
            ]),
        ]),
        int32("throttle_time_ms", "1+"),
        array("node_endpoints", "10+", tag=0, of=NODE_ENDPOINT),
    ],
)

FETCH = api(
    1, "Fetch", versions="0-18", flexible="12+",
    request=[
        string("cluster_id", "12+", tag=0, null="12+", default=None),
        int32("replica_id", "0-14", default=-1),  # -1: a consumer
        struct("replica_state", "15+", tag=1, of=[
            int32("replica_id", default=-1), int64("replica_epoch", default=-1),
        ]),
        int32("max_wait_ms"), int32("min_bytes"),
        int32("max_bytes", "3+", default=2**31 - 1),
        int8("isolation_level", "4+"),
        int32("session_id", "7+"), int32("session_epoch", "7+", default=-1),
        array("topics", of=[
            string("topic", "0-12", mark=TOPIC),
            uuid("topic_id", "13+", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition", mark=PARTITION),
                int32("current_leader_epoch", "9+", default=-1),
                int64("fetch_offset"),
                int32("last_fetched_epoch", "12+", default=-1),
                int64("log_start_offset", "5+", default=-1),
                int32("partition_max_bytes"),
                uuid("replica_directory_id", "17+", tag=0),
                int64("high_watermark", "18+", tag=1, default=2**63 - 1),
            ]),
        ]),
        array("forgotten_topics_data", "7+", of=[  # leave the fetch session (KIP-227)
            string("topic", "7-12", mark=TOPIC),
            uuid("topic_id", "13+", mark=TOPIC_ID),
            array("partitions", mark=PARTITION, of="int32"),
        ]),
        string("rack_id", "11+", mark=CLIENT_TEXT),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", "7+", mark=ERROR), int32("session_id", "7+"),
        array("responses", of=[
            string("topic", "0-12", mark=TOPIC),
            uuid("topic_id", "13+", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                int64("high_watermark"),
                int64("last_stable_offset", "4+", default=-1),
                int64("log_start_offset", "5+", default=-1),
                struct("diverging_epoch", "12+", tag=0, of=[
                    int32("epoch", default=-1), int64("end_offset", default=-1),
                ]),
                struct("current_leader", "12+", tag=1, of=LEADER),
                struct("snapshot_id", "12+", tag=2, of=[
                    int64("end_offset", default=-1), int32("epoch", default=-1),
                ]),
                array("aborted_transactions", "4+", null="4+", of=[
                    int64("producer_id"), int64("first_offset"),
                ]),
                int32("preferred_read_replica", "11+", default=-1),  # of the consumer's rack (KIP-392)
                records("records", null="0+"),
            ]),
        ]),
        array("node_endpoints", "16+", tag=0, of=NODE_ENDPOINT),
    ],
)

LIST_OFFSETS = api(
    2, "ListOffsets", versions="0-11", flexible="6+", aliases=("Offset", "Offsets", "ListOffset"),
    request=[
        int32("replica_id"),
        int8("isolation_level", "2+"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION),
                int32("current_leader_epoch", "4+", default=-1),
                int64("timestamp"),  # -1: the latest offset, -2: the earliest
                int32("max_num_offsets", "0", default=1),
            ]),
        ]),
        int32("timeout_ms", "10+"),
    ],
    response=[
        int32("throttle_time_ms", "2+"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                array("old_style_offsets", "0", of="int64"),
                int64("timestamp", "1+", default=-1), int64("offset", "1+", default=-1),
                int32("leader_epoch", "4+", default=-1),
            ]),
        ]),
    ],
)

DELETE_RECORDS = api(
    21, "DeleteRecords", versions="0-2", flexible="2+",
    request=[
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[int32("partition_index", mark=PARTITION), int64("offset")]),
        ]),
        int32("timeout_ms"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int64("low_watermark"),
                int16("error_code", mark=ERROR),
            ]),
        ]),
    ],
)

OFFSET_FOR_LEADER_EPOCH = api(
    23, "OffsetForLeaderEpoch", versions="0-4", flexible="4+", aliases=("OffsetsForLeaderEpoch",),
    request=[
        int32("replica_id", "3+", default=-2),
        array("topics", of=[
            string("topic", mark=TOPIC),
            array("partitions", of=[
                int32("partition", mark=PARTITION),
                int32("current_leader_epoch", "2+", default=-1),
                int32("leader_epoch"),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms", "2+"),
        array("topics", of=[
            string("topic", mark=TOPIC),
            array("partitions", of=[
                int16("error_code", mark=ERROR), int32("partition", mark=PARTITION),
                int32("leader_epoch", "1+", default=-1),
                int64("end_offset", default=-1),
            ]),
        ]),
    ],
)
