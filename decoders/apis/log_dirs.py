"""The directories in which replicas lie (KIP-113, KIP-858)."""

from klamm.decoders.schema import (
    ERROR,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    api,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uuid,
)

ALTER_REPLICA_LOG_DIRS = api(
    34, "AlterReplicaLogDirs", versions="0-2", flexible="2+",
    request=[
        array("dirs", of=[
            string("path"),
            array("topics", of=[string("name", mark=TOPIC), array("partitions", mark=PARTITION, of="int32")]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
            ]),
        ]),
    ],
)

DESCRIBE_LOG_DIRS = api(
    35, "DescribeLogDirs", versions="0-5", flexible="2+",
    request=[
        array("topics", null="0+", of=[
            string("topic", mark=TOPIC), array("partitions", mark=PARTITION, of="int32"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        int16("error_code", "3+", mark=ERROR),
        array("results", of=[
            int16("error_code", mark=ERROR), string("log_dir"),
            array("topics", of=[
                string("name", mark=TOPIC),
                array("partitions", of=[
                    int32("partition_index", mark=PARTITION), int64("partition_size"), int64("offset_lag"),
                    boolean("is_future_key"),
                ]),
            ]),
            int64("total_bytes", "4+", default=-1), int64("usable_bytes", "4+", default=-1),
            boolean("is_cordoned", "5+"),
        ]),
    ],
)

ASSIGN_REPLICAS_TO_DIRS = api(
    73, "AssignReplicasToDirs", versions="0", flexible="0+",
    request=[
        int32("broker_id"), int64("broker_epoch", default=-1),
        array("directories", of=[
            uuid("id"),
            array("topics", of=[
                uuid("topic_id", mark=TOPIC_ID),
                array("partitions", of=[int32("partition_index", mark=PARTITION)]),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        array("directories", of=[
            uuid("id"),
            array("topics", of=[
                uuid("topic_id", mark=TOPIC_ID),
                array("partitions", of=[
                    int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                ]),
            ]),
        ]),
    ],
)
