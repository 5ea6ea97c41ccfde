"""Topics and partitions: made, deleted, moved."""

from klamm.decoders.schema import (
    ERROR,
    PARTITION,
    SECRET,
    TOPIC,
    TOPIC_ID,
    api,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
    uuid,
)

CREATE_TOPICS = api(
    19, "CreateTopics", versions="0-7", flexible="5+",
    request=[
        array("topics", of=[
            string("name", mark=TOPIC), int32("num_partitions"), int16("replication_factor"),
            array("assignments", of=[
                int32("partition_index", mark=PARTITION), array("broker_ids", of="int32"),
            ]),
            array("configs", of=[string("name"), string("value", null="0+", mark=SECRET)]),
        ]),
        int32("timeout_ms", default=60000),
        boolean("validate_only", "1+"),
    ],
    response=[
        int32("throttle_time_ms", "2+"),
        array("topics", of=[
            string("name", mark=TOPIC),
            uuid("topic_id", "7+", mark=TOPIC_ID),
            int16("error_code", mark=ERROR),
            string("error_message", "1+", null="1+", mark=SECRET),
            int16("topic_config_error_code", "5+", tag=0, mark=ERROR),
            int32("num_partitions", "5+", default=-1), int16("replication_factor", "5+", default=-1),
            array("configs", "5+", null="5+", of=[
                string("name"), string("value", null="5+", mark=SECRET), boolean("read_only"),
                int8("config_source", default=-1), boolean("is_sensitive"),
            ]),
        ]),
    ],
)

DELETE_TOPICS = api(
    20, "DeleteTopics", versions="0-6", flexible="4+",
    request=[
        array("topic_names", "0-5", mark=TOPIC, of="string"),
        array("topics", "6+", of=[
            string("name", null="6+", default=None, mark=TOPIC), uuid("topic_id", mark=TOPIC_ID),
        ]),
        int32("timeout_ms"),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        array("responses", of=[
            string("name", null="6+", mark=TOPIC),
            uuid("topic_id", "6+", mark=TOPIC_ID),
            int16("error_code", mark=ERROR),
            string("error_message", "5+", null="5+", default=None),
        ]),
    ],
)

CREATE_PARTITIONS = api(
    37, "CreatePartitions", versions="0-3", flexible="2+",
    request=[
        array("topics", of=[
            string("name", mark=TOPIC), int32("count"),
            array("assignments", null="0+", of=[array("broker_ids", of="int32")]),
        ]),
        int32("timeout_ms"), boolean("validate_only"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[
            string("name", mark=TOPIC), int16("error_code", mark=ERROR),
            string("error_message", null="0+", default=None),
        ]),
    ],
)

ELECT_LEADERS = api(
    43, "ElectLeaders", versions="0-2", flexible="2+", aliases=("ElectPreferredLeaders",),
    request=[
        int8("election_type", "1+"),
        array("topic_partitions", null="0+", of=[
            string("topic", mark=TOPIC), array("partitions", mark=PARTITION, of="int32"),
        ]),
        int32("timeout_ms", default=60000),
    ],
    response=[
        int32("throttle_time_ms"),
        int16("error_code", "1+", mark=ERROR),
        array("replica_election_results", of=[
            string("topic", mark=TOPIC),
            array("partition_result", of=[
                int32("partition_id", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+"),
            ]),
        ]),
    ],
)

ALTER_PARTITION_REASSIGNMENTS = api(
    45, "AlterPartitionReassignments", versions="0-1", flexible="0+",
    request=[
        int32("timeout_ms", default=60000),
        boolean("allow_replication_factor_change", "1+", default=True),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION),
                array("replicas", null="0+", default=None, of="int32"),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        boolean("allow_replication_factor_change", "1+", default=True),
        int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("responses", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+"),
            ]),
        ]),
    ],
)

LIST_PARTITION_REASSIGNMENTS = api(
    46, "ListPartitionReassignments", versions="0", flexible="0+",
    request=[
        int32("timeout_ms", default=60000),
        array("topics", null="0+", default=None, of=[
            string("name", mark=TOPIC), array("partition_indexes", mark=PARTITION, of="int32"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), array("replicas", of="int32"),
                array("adding_replicas", of="int32"), array("removing_replicas", of="int32"),
            ]),
        ]),
    ],
)
