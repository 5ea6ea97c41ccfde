"""Classic consumer groups, and the offsets of all groups."""

from klamm.decoders.schema import (
    CLIENT_TEXT,
    ERROR,
    GROUP,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    api,
    array,
    boolean,
    bytestring,
    int16,
    int32,
    int64,
    string,
    uuid,
)

PARTITION_ERROR = [int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR)]

OFFSET_COMMIT = api(
    8, "OffsetCommit", versions="0-10", flexible="8+",
    request=[
        string("group_id", mark=GROUP),
        int32("generation_id_or_member_epoch", "1+", default=-1), string("member_id", "1+"),
        int64("retention_time_ms", "2-4", default=-1),
        string("group_instance_id", "7+", null="7+", default=None, mark=CLIENT_TEXT),
        array("topics", of=[
            string("name", "0-9", mark=TOPIC),
            uuid("topic_id", "10+", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int64("committed_offset"),
                int64("commit_timestamp", "1", default=-1),
                int32("committed_leader_epoch", "6+", default=-1),
                string("committed_metadata", null="0+", mark=CLIENT_TEXT),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms", "3+"),
        array("topics", of=[
            string("name", "0-9", mark=TOPIC),
            uuid("topic_id", "10+", mark=TOPIC_ID),
            array("partitions", of=PARTITION_ERROR),
        ]),
    ],
)

OFFSET_FETCH = api(
    9, "OffsetFetch", versions="0-10", flexible="6+",
    request=[
        string("group_id", "0-7", mark=GROUP),
        array("topics", "0-7", null="2-7", of=[  # null: every topic of the group
            string("name", mark=TOPIC), array("partition_indexes", mark=PARTITION, of="int32"),
        ]),
        array("groups", "8+", of=[
            string("group_id", mark=GROUP),
            string("member_id", "9+", null="9+", default=None), int32("member_epoch", "9+", default=-1),
            array("topics", null="8+", of=[  # null: every topic of the group
                string("name", "8-9", mark=TOPIC),
                uuid("topic_id", "10+", mark=TOPIC_ID),
                array("partition_indexes", mark=PARTITION, of="int32"),
            ]),
        ]),
        boolean("require_stable", "7+"),
    ],
    response=[
        int32("throttle_time_ms", "3+"),
        array("topics", "0-7", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int64("committed_offset"),
                int32("committed_leader_epoch", "5-7", default=-1),
                string("metadata", null="0-7", mark=CLIENT_TEXT), int16("error_code", mark=ERROR),
            ]),
        ]),
        int16("error_code", "2-7", mark=ERROR),
        array("groups", "8+", of=[
            string("group_id", mark=GROUP),
            array("topics", of=[
                string("name", "8-9", mark=TOPIC),
                uuid("topic_id", "10+", mark=TOPIC_ID),
                array("partitions", of=[
                    int32("partition_index", mark=PARTITION), int64("committed_offset"),
                    int32("committed_leader_epoch", default=-1),
                    string("metadata", null="8+", mark=CLIENT_TEXT), int16("error_code", mark=ERROR),
                ]),
            ]),
            int16("error_code", mark=ERROR),
        ]),
    ],
)

JOIN_GROUP = api(
    11, "JoinGroup", versions="0-9", flexible="6+",
    request=[
        string("group_id", mark=GROUP), int32("session_timeout_ms"),
        int32("rebalance_timeout_ms", "1+", default=-1),
        string("member_id"),
        string("group_instance_id", "5+", null="5+", default=None, mark=CLIENT_TEXT),
        string("protocol_type"),
        array("protocols", of=[string("name"), bytestring("metadata", mark=CLIENT_TEXT)]),
        string("reason", "8+", null="8+", default=None, mark=CLIENT_TEXT),
    ],
    response=[
        int32("throttle_time_ms", "2+"),
        int16("error_code", mark=ERROR), int32("generation_id", default=-1),
        string("protocol_type", "7+", null="7+", default=None),
        string("protocol_name", null="7+"), string("leader"),
        boolean("skip_assignment", "9+"),
        string("member_id"),
        array("members", of=[  # told to the leader only
            string("member_id"),
            string("group_instance_id", "5+", null="5+", default=None, mark=CLIENT_TEXT),
            bytestring("metadata", mark=CLIENT_TEXT),
        ]),
    ],
)

HEARTBEAT = api(
    12, "Heartbeat", versions="0-4", flexible="4+",
    request=[
        string("group_id", mark=GROUP), int32("generation_id"), string("member_id"),
        string("group_instance_id", "3+", null="3+", default=None, mark=CLIENT_TEXT),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", mark=ERROR),
    ],
)

LEAVE_GROUP = api(
    13, "LeaveGroup", versions="0-5", flexible="4+",
    request=[
        string("group_id", mark=GROUP),
        string("member_id", "0-2"),
        array("members", "3+", of=[
            string("member_id"), string("group_instance_id", null="3+", default=None, mark=CLIENT_TEXT),
            string("reason", "5+", null="5+", default=None, mark=CLIENT_TEXT),
        ]),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", mark=ERROR),
        array("members", "3+", of=[
            string("member_id"), string("group_instance_id", null="3+", mark=CLIENT_TEXT),
            int16("error_code", mark=ERROR),
        ]),
    ],
)

SYNC_GROUP = api(
    14, "SyncGroup", versions="0-5", flexible="4+",
    request=[
        string("group_id", mark=GROUP), int32("generation_id"), string("member_id"),
        string("group_instance_id", "3+", null="3+", default=None, mark=CLIENT_TEXT),
        string("protocol_type", "5+", null="5+", default=None),
        string("protocol_name", "5+", null="5+", default=None),
        array("assignments", of=[string("member_id"), bytestring("assignment", mark=CLIENT_TEXT)]),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", mark=ERROR),
        string("protocol_type", "5+", null="5+", default=None),
        string("protocol_name", "5+", null="5+", default=None),
        bytestring("assignment", mark=CLIENT_TEXT),
    ],
)

DESCRIBE_GROUPS = api(
    15, "DescribeGroups", versions="0-6", flexible="5+",
    request=[
        array("groups", mark=GROUP, of="string"),
        boolean("include_authorized_operations", "3+"),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        array("groups", of=[
            int16("error_code", mark=ERROR),
            string("error_message", "6+", null="6+", default=None),
            string("group_id", mark=GROUP), string("group_state"), string("protocol_type"),
            string("protocol_data"),
            array("members", of=[
                string("member_id"),
                string("group_instance_id", "4+", null="4+", default=None, mark=CLIENT_TEXT),
                string("client_id", mark=CLIENT_TEXT), string("client_host"),
                bytestring("member_metadata", mark=CLIENT_TEXT),
                bytestring("member_assignment", mark=CLIENT_TEXT),
            ]),
            int32("authorized_operations", "3+", default=-2**31),
        ]),
    ],
)

LIST_GROUPS = api(
    16, "ListGroups", versions="0-5", flexible="3+",
    request=[
        array("states_filter", "4+", of="string"),
        array("types_filter", "5+", of="string"),
    ],
    response=[
        int32("throttle_time_ms", "1+"),
        int16("error_code", mark=ERROR),
        array("groups", of=[
            string("group_id", mark=GROUP), string("protocol_type"),
            string("group_state", "4+"),
            string("group_type", "5+"),
        ]),
    ],
)

DELETE_GROUPS = api(
    42, "DeleteGroups", versions="0-3", flexible="2+",
    request=[array("groups_names", mark=GROUP, of="string")],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[
            string("group_id", mark=GROUP), int16("error_code", mark=ERROR),
            string("error_message", "3+", null="3+", default=None),
        ]),
    ],
)

OFFSET_DELETE = api(
    47, "OffsetDelete", versions="0", flexible=None,
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[int32("partition_index", mark=PARTITION)]),
        ]),
    ],
    response=[
        int16("error_code", mark=ERROR), int32("throttle_time_ms"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=PARTITION_ERROR),
        ]),
    ],
)
