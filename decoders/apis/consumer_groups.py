"""Consumer groups of the new protocol (KIP-848)."""

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
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)

# In a heartbeat null means unchanged.
CONSUMER_GROUP_HEARTBEAT = api(
    68, "ConsumerGroupHeartbeat", versions="0-1", flexible="0+",
    request=[
        string("group_id", mark=GROUP), string("member_id"), int32("member_epoch"),
        string("instance_id", null="0+", default=None, mark=CLIENT_TEXT),
        string("rack_id", null="0+", default=None, mark=CLIENT_TEXT),
        int32("rebalance_timeout_ms", default=-1),
        array("subscribed_topic_names", null="0+", default=None, mark=TOPIC, of="string"),
        string("subscribed_topic_regex", "1+", null="1+", default=None),
        string("server_assignor", null="0+", default=None),
        array("topic_partitions", null="0+", default=None, of=[
            uuid("topic_id", mark=TOPIC_ID), array("partitions", mark=PARTITION, of="int32"),
        ]),
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

ASSIGNMENT = [
    array("topic_partitions", of=[
        uuid("topic_id", mark=TOPIC_ID), string("topic_name", mark=TOPIC),
        array("partitions", mark=PARTITION, of="int32"),
    ]),
]

CONSUMER_GROUP_DESCRIBE = api(
    69, "ConsumerGroupDescribe", versions="0-1", flexible="0+",
    request=[array("group_ids", mark=GROUP, of="string"), boolean("include_authorized_operations")],
    response=[
        int32("throttle_time_ms"),
        array("groups", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+", default=None),
            string("group_id", mark=GROUP), string("group_state"), int32("group_epoch"),
            int32("assignment_epoch"), string("assignor_name"),
            array("members", of=[
                string("member_id"), string("instance_id", null="0+", default=None, mark=CLIENT_TEXT),
                string("rack_id", null="0+", default=None, mark=CLIENT_TEXT), int32("member_epoch"),
                string("client_id", mark=CLIENT_TEXT), string("client_host"),
                array("subscribed_topic_names", mark=TOPIC, of="string"),
                string("subscribed_topic_regex", null="0+", default=None),
                struct("assignment", of=ASSIGNMENT),
                struct("target_assignment", of=ASSIGNMENT),
                int8("member_type", "1+", default=-1),
            ]),
            int32("authorized_operations", default=-2**31),
        ]),
    ],
)
