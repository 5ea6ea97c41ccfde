"""The Raft quorum of the controllers (KIP-595, KIP-853)."""

from klamm.decoders.schema import (
    ERROR,
    HOST,
    NODE_ID,
    PARTITION,
    PORT,
    TOPIC,
    api,
    array,
    boolean,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uint16,
    uuid,
)

# Requests between controllers have no marks: clients learn of controllers from DescribeQuorum only.
NODE_ENDPOINT = [int32("node_id"), string("host"), uint16("port")]
LISTENER = [string("name"), string("host"), uint16("port")]

VOTE = api(
    52, "Vote", versions="0-2", flexible="0+",
    request=[
        string("cluster_id", null="0+", default=None),
        int32("voter_id", "1+", default=-1),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int32("replica_epoch"), int32("replica_id"),
                uuid("replica_directory_id", "1+"), uuid("voter_directory_id", "1+"),
                int32("last_offset_epoch"), int64("last_offset"),
                boolean("pre_vote", "2+"),
            ]),
        ]),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR), int32("leader_id"),
                int32("leader_epoch"), boolean("vote_granted"),
            ]),
        ]),
        array("node_endpoints", "1+", tag=0, of=NODE_ENDPOINT),
    ],
)

BEGIN_QUORUM_EPOCH = api(
    53, "BeginQuorumEpoch", versions="0-1", flexible="1+",
    request=[
        string("cluster_id", null="0+", default=None),
        int32("voter_id", "1+", default=-1),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION),
                uuid("voter_directory_id", "1+"),
                int32("leader_id"), int32("leader_epoch"),
            ]),
        ]),
        array("leader_endpoints", "1+", of=LISTENER),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR), int32("leader_id"),
                int32("leader_epoch"),
            ]),
        ]),
        array("node_endpoints", "1+", tag=0, of=NODE_ENDPOINT),
    ],
)

END_QUORUM_EPOCH = api(
    54, "EndQuorumEpoch", versions="0-1", flexible="1+",
    request=[
        string("cluster_id", null="0+", default=None),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int32("leader_id"), int32("leader_epoch"),
                array("preferred_successors", "0", of="int32"),
                array("preferred_candidates", "1+", of=[
                    int32("candidate_id"), uuid("candidate_directory_id"),
                ]),
            ]),
        ]),
        array("leader_endpoints", "1+", of=LISTENER),
    ],
    response=[
        int16("error_code", mark=ERROR),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR), int32("leader_id"),
                int32("leader_epoch"),
            ]),
        ]),
        array("node_endpoints", "1+", tag=0, of=NODE_ENDPOINT),
    ],
)

REPLICA_STATE = [
    int32("replica_id"),
    uuid("replica_directory_id", "2+"),
    int64("log_end_offset"),
    int64("last_fetch_timestamp", "1+", default=-1), int64("last_caught_up_timestamp", "1+", default=-1),
]

DESCRIBE_QUORUM = api(
    55, "DescribeQuorum", versions="0-2", flexible="0+",
    request=[
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[int32("partition_index", mark=PARTITION)]),
        ]),
    ],
    response=[
        int16("error_code", mark=ERROR),
        string("error_message", "2+", null="2+"),
        array("topics", of=[
            string("topic_name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", "2+", null="2+"),
                int32("leader_id"), int32("leader_epoch"), int64("high_watermark"),
                array("current_voters", of=REPLICA_STATE),
                array("observers", of=REPLICA_STATE),
            ]),
        ]),
        array("nodes", "2+", of=[
            int32("node_id", mark=NODE_ID),
            array("listeners", of=[string("name"), string("host", mark=HOST), uint16("port", mark=PORT)]),
        ]),
    ],
)

FETCH_SNAPSHOT = api(
    59, "FetchSnapshot", versions="0-1", flexible="0+",
    request=[
        string("cluster_id", tag=0, null="0+", default=None),
        int32("replica_id", default=-1), int32("max_bytes", default=2**31 - 1),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition", mark=PARTITION), int32("current_leader_epoch"),
                struct("snapshot_id", of=[int64("end_offset"), int32("epoch")]),
                int64("position"),
                uuid("replica_directory_id", "1+", tag=0),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("index", mark=PARTITION), int16("error_code", mark=ERROR),
                struct("snapshot_id", of=[int64("end_offset"), int32("epoch")]),
                struct("current_leader", tag=0, of=[int32("leader_id"), int32("leader_epoch")]),
                int64("size"), int64("position"), records("unaligned_records"),
            ]),
        ]),
        array("node_endpoints", "1+", tag=0, of=NODE_ENDPOINT),
    ],
)

ADD_RAFT_VOTER = api(
    80, "AddRaftVoter", versions="0-1", flexible="0+",
    request=[
        string("cluster_id", null="0+"), int32("timeout_ms"), int32("voter_id"), uuid("voter_directory_id"),
        array("listeners", of=LISTENER),
        boolean("ack_when_committed", "1+", default=True),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
    ],
)

REMOVE_RAFT_VOTER = api(
    81, "RemoveRaftVoter", versions="0", flexible="0+",
    request=[string("cluster_id", null="0+"), int32("voter_id"), uuid("voter_directory_id")],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
    ],
)

UPDATE_RAFT_VOTER = api(
    82, "UpdateRaftVoter", versions="0", flexible="0+",
    request=[
        string("cluster_id", null="0+"), int32("current_leader_epoch"), int32("voter_id"),
        uuid("voter_directory_id"),
        array("listeners", of=LISTENER),
        struct("kraft_version_feature", of=[int16("min_supported_version"), int16("max_supported_version")]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        struct("current_leader", tag=0, of=[
            int32("leader_id", default=-1), int32("leader_epoch", default=-1), string("host"), int32("port"),
        ]),
    ],
)
