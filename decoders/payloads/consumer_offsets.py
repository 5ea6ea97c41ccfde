"""The records of __consumer_offsets that classic groups and committed offsets take."""

from klamm.decoders.payloads.declaration import record
from klamm.decoders.schema import (
    CLIENT_TEXT,
    GROUP,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    array,
    bytestring,
    int32,
    int64,
    string,
    uuid,
)

# fmt: off

COMMITTED_PARTITION = [
    string("group", mark=GROUP), string("topic", mark=TOPIC), int32("partition", mark=PARTITION),
]

LEGACY_OFFSET_COMMIT = record(  # until Kafka 0.8.1
    0, "LegacyOffsetCommit", flexible=None,
    key=COMMITTED_PARTITION,
    value=[int64("offset"), string("metadata", mark=CLIENT_TEXT), int64("commit_timestamp")],
)

OFFSET_COMMIT = record(
    1, "OffsetCommit", versions="0-4", flexible="4+",
    key=COMMITTED_PARTITION,
    value=[
        int64("offset"),
        int32("leader_epoch", "3+", default=-1),
        string("metadata", mark=CLIENT_TEXT), int64("commit_timestamp"),
        int64("expire_timestamp", "1", default=-1),
        uuid("topic_id", "4+", tag=0, mark=TOPIC_ID),
    ],
)

GROUP_METADATA = record(
    2, "GroupMetadata", versions="0-4", flexible="4+",
    key=[string("group", mark=GROUP)],
    value=[
        string("protocol_type"), int32("generation"),
        string("protocol", null="0+"), string("leader", null="0+"),
        int64("current_state_timestamp", "2+", default=-1),
        array("members", of=[
            string("member_id"),
            string("group_instance_id", "3+", null="3+", default=None, mark=CLIENT_TEXT),
            string("client_id", mark=CLIENT_TEXT), string("client_host"),
            int32("rebalance_timeout", "1+", default=-1),
            int32("session_timeout"),
            bytestring("subscription", mark=CLIENT_TEXT),
            bytestring("assignment", mark=CLIENT_TEXT),
        ]),
    ],
)
