"""Requests of the controller to brokers in the ZooKeeper era, until Kafka 3.9."""

from klamm.decoders.schema import (
    ERROR,
    PARTITION,
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
    uuid,
)

# Hosts and ports here are told to brokers, not to clients: no marks.

PARTITION_ERROR = [
    string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
    int16("error_code", mark=ERROR),
]

LEADER_AND_ISR = api(
    4, "LeaderAndIsr", versions="0-7", flexible="4+",
    request=[
        int32("controller_id"),
        boolean("is_kraft_controller", "7+"),
        int32("controller_epoch"),
        array("ungrouped_partition_states", "0-1", of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
            int32("controller_epoch"), int32("leader"), int32("leader_epoch"), array("isr", of="int32"),
            int32("partition_epoch"), array("replicas", of="int32"),
            boolean("is_new", "1"),
        ]),
        int64("broker_epoch", "2+", default=-1),
        int8("type", "5+"),
        array("topic_states", "2+", of=[
            string("topic_name", mark=TOPIC),
            uuid("topic_id", "5+", mark=TOPIC_ID),
            array("partition_states", of=[
                int32("partition_index", mark=PARTITION), int32("controller_epoch"), int32("leader"),
                int32("leader_epoch"), array("isr", of="int32"), int32("partition_epoch"),
                array("replicas", of="int32"),
                array("adding_replicas", "3+", of="int32"), array("removing_replicas", "3+", of="int32"),
                boolean("is_new"),
                int8("leader_recovery_state", "6+"),
            ]),
        ]),
        array("live_leaders", of=[int32("broker_id"), string("host_name"), int32("port")]),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("partition_errors", "0-4", of=PARTITION_ERROR),
        array("topics", "5+", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partition_errors", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
            ]),
        ]),
    ],
)

STOP_REPLICA = api(
    5, "StopReplica", versions="0-4", flexible="2+",
    request=[
        int32("controller_id"),
        boolean("is_kraft_controller", "4+"),
        int32("controller_epoch"),
        int64("broker_epoch", "1+", default=-1),
        boolean("delete_partitions", "0-2"),
        array("ungrouped_partitions", "0", of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
        ]),
        array("topics", "1-2", of=[
            string("name", mark=TOPIC), array("partition_indexes", mark=PARTITION, of="int32"),
        ]),
        array("topic_states", "3+", of=[
            string("topic_name", mark=TOPIC),
            array("partition_states", of=[
                int32("partition_index", mark=PARTITION), int32("leader_epoch", default=-1),
                boolean("delete_partition"),
            ]),
        ]),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("partition_errors", of=PARTITION_ERROR),
    ],
)

UPDATE_METADATA = api(
    6, "UpdateMetadata", versions="0-8", flexible="6+",
    request=[
        int32("controller_id"),
        boolean("is_kraft_controller", "8+"),
        int8("type", "8+", tag=0),
        int32("controller_epoch"),
        array("ungrouped_partition_states", "0-4", of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
            int32("controller_epoch"), int32("leader"), int32("leader_epoch"), array("isr", of="int32"),
            int32("zk_version"), array("replicas", of="int32"),
            array("offline_replicas", "4", of="int32"),
        ]),
        int64("broker_epoch", "5+", default=-1),
        array("topic_states", "5+", of=[
            string("topic_name", mark=TOPIC),
            uuid("topic_id", "7+", mark=TOPIC_ID),
            array("partition_states", of=[
                int32("partition_index", mark=PARTITION), int32("controller_epoch"), int32("leader"),
                int32("leader_epoch"), array("isr", of="int32"), int32("zk_version"),
                array("replicas", of="int32"), array("offline_replicas", of="int32"),
            ]),
        ]),
        array("live_brokers", of=[
            int32("id"),
            string("v0_host", "0"), int32("v0_port", "0"),
            array("endpoints", "1+", of=[
                int32("port"), string("host"),
                string("listener", "3+"),
                int16("security_protocol"),
            ]),
            string("rack", "2+", null="2+"),
        ]),
    ],
    response=[int16("error_code", mark=ERROR)],
)

# The request header of v0 has no client id.
CONTROLLED_SHUTDOWN = api(
    7, "ControlledShutdown", versions="0-3", flexible="3+", request_headers={0: "0"},
    request=[
        int32("broker_id"),
        int64("broker_epoch", "2+", default=-1),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("remaining_partitions", of=[
            string("topic_name", mark=TOPIC), int32("partition_index", mark=PARTITION),
        ]),
    ],
)
