"""The records of __share_group_state: what a share coordinator keeps of a share-partition (KIP-932)."""

from klamm.decoders.payloads.declaration import record
from klamm.decoders.schema import GROUP, PARTITION, TOPIC_ID, array, int8, int16, int32, int64, string, uuid

# fmt: off

SHARE_PARTITION = [
    string("group_id", mark=GROUP), uuid("topic_id", mark=TOPIC_ID), int32("partition", mark=PARTITION),
]
DELIVERY_COMPLETE_COUNT = int32("delivery_complete_count", tag=0, default=-1)
STATE_BATCHES = array("state_batches", of=[
    int64("first_offset"), int64("last_offset"), int8("delivery_state"), int16("delivery_count"),
])

SHARE_SNAPSHOT = record(
    0, "ShareSnapshot",
    key=SHARE_PARTITION,
    value=[
        int32("snapshot_epoch"), int32("state_epoch"), int32("leader_epoch"), int64("start_offset"),
        DELIVERY_COMPLETE_COUNT,
        int64("create_timestamp"), int64("write_timestamp"), STATE_BATCHES,
    ],
)

SHARE_UPDATE = record(
    1, "ShareUpdate",
    key=SHARE_PARTITION,
    value=[
        int32("snapshot_epoch"), int32("leader_epoch"),
        int64("start_offset"),  # -1: as before
        DELIVERY_COMPLETE_COUNT,
        STATE_BATCHES,
    ],
)
