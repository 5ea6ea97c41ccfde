"""The first requests of a client: versions, brokers, coordinators."""

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
    string,
    struct,
    uuid,
)

API_VERSIONS = api(
    18, "ApiVersions", versions="0-5", flexible="3+", response_headers={0: "0+"},
    request=[
        string("client_software_name", "3+", mark=CLIENT_TEXT),
        string("client_software_version", "3+", mark=CLIENT_TEXT),
        string("cluster_id", "5+", null="5+", default=None),  # the cluster it means to reach (KIP-1242)
        int32("node_id", "5+", default=-1),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("api_keys", of=[int16("api_key"), int16("min_version"), int16("max_version")]),
        int32("throttle_time_ms", "1+"),
        array("supported_features", "3+", tag=0, of=[
            string("name"), int16("min_version"), int16("max_version"),
        ]),
        int64("finalized_features_epoch", "3+", tag=1, default=-1),
        array("finalized_features", "3+", tag=2, of=[
            string("name"), int16("max_version_level"), int16("min_version_level"),
        ]),
        boolean("zk_migration_ready", "3+", tag=3),
    ],
)

METADATA = api(
    3, "Metadata", versions="0-13", flexible="9+", aliases=("TopicMetadata",),
    request=[
        array("topics", null="1+", of=[  # null asks for every topic; in v0 an empty list does
            uuid("topic_id", "10+", mark=TOPIC_ID),
            string("name", null="10+", mark=TOPIC),
        ]),
        boolean("allow_auto_topic_creation", "4+", default=True),
        boolean("include_cluster_authorized_operations", "8-10"),  # then in DescribeCluster (KIP-700)
        boolean("include_topic_authorized_operations", "8+"),
    ],
    response=[
        int32("throttle_time_ms", "3+"),
        array("brokers", of=[
            int32("node_id", mark=NODE_ID), string("host", mark=HOST), int32("port", mark=PORT),
            string("rack", "1+", null="1+", default=None),
        ]),
        string("cluster_id", "2+", null="2+", default=None),
        int32("controller_id", "1+", default=-1),
        array("topics", of=[
            int16("error_code", mark=ERROR), string("name", null="12+", mark=TOPIC),
            uuid("topic_id", "10+", mark=TOPIC_ID),
            boolean("is_internal", "1+"),
            array("partitions", of=[
                int16("error_code", mark=ERROR), int32("partition_index", mark=PARTITION), int32("leader_id"),
                int32("leader_epoch", "7+", default=-1),
                array("replica_nodes", of="int32"), array("isr_nodes", of="int32"),
                array("offline_replicas", "5+", of="int32"),
            ]),
            int32("topic_authorized_operations", "8+", default=-2**31),
        ]),
        int32("cluster_authorized_operations", "8-10", default=-2**31),
        int16("error_code", "13+", mark=ERROR),
    ],
)

OF_A_GROUP = ("key_type", 0)  # else a key is a transactional id or a share key

FIND_COORDINATOR = api(
    10, "FindCoordinator", versions="0-6", flexible="3+", aliases=("GroupCoordinator", "ConsumerMetadata"),
    request=[
        string("key", "0-3", mark=GROUP, only=OF_A_GROUP),
        int8("key_type", "1+"),
        array("coordinator_keys", "4+", of="string", mark=GROUP, only=OF_A_GROUP),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", "0-3", mark=ERROR),
        string("error_message", "1-3", null="1-3"),
        int32("node_id", "0-3", mark=NODE_ID), string("host", "0-3", mark=HOST),
        int32("port", "0-3", mark=PORT),
        array("coordinators", "4+", of=[
            string("key"), int32("node_id", mark=NODE_ID), string("host", mark=HOST),
            int32("port", mark=PORT), int16("error_code", mark=ERROR), string("error_message", null="4+"),
        ]),
    ],
)

DESCRIBE_CLUSTER = api(
    60, "DescribeCluster", versions="0-2", flexible="0+",
    request=[
        boolean("include_cluster_authorized_operations"),
        int8("endpoint_type", "1+", default=1),  # 1: brokers, 2: controllers (KIP-919)
        boolean("include_fenced_brokers", "2+"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
        int8("endpoint_type", "1+", default=1),  # 1: brokers, 2: controllers (KIP-919)
        string("cluster_id"), int32("controller_id", default=-1),
        array("brokers", of=[
            int32("broker_id", mark=NODE_ID), string("host", mark=HOST), int32("port", mark=PORT),
            string("rack", null="0+", default=None),
            boolean("is_fenced", "2+"),
        ]),
        int32("cluster_authorized_operations", default=-2**31),
    ],
)

DESCRIBE_TOPIC_PARTITIONS = api(
    75, "DescribeTopicPartitions", versions="0", flexible="0+",
    request=[
        array("topics", of=[string("name", mark=TOPIC)]),
        int32("response_partition_limit", default=2000),
        struct("cursor", null="0+", default=None, of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("topics", of=[
            int16("error_code", mark=ERROR), string("name", null="0+", mark=TOPIC),
            uuid("topic_id", mark=TOPIC_ID), boolean("is_internal"),
            array("partitions", of=[
                int16("error_code", mark=ERROR), int32("partition_index", mark=PARTITION), int32("leader_id"),
                int32("leader_epoch", default=-1), array("replica_nodes", of="int32"),
                array("isr_nodes", of="int32"),
                array("eligible_leader_replicas", null="0+", default=None, of="int32"),
                array("last_known_elr", null="0+", default=None, of="int32"),
                array("offline_replicas", of="int32"),
            ]),
            int32("topic_authorized_operations", default=-2**31),
        ]),
        struct("next_cursor", null="0+", default=None, of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
        ]),
    ],
)
