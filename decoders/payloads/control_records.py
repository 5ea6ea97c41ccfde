"""The contents of control batches: the ends of transactions (KIP-98), and those of the metadata quorum
(KIP-595, KIP-630, KIP-853).
"""

from klamm.decoders.payloads.declaration import VERSION, payload
from klamm.decoders.schema import array, int16, int32, int64, string, struct, uint16, uuid

# fmt: off

VOTERS = [int32("voter_id"), uuid("voter_directory_id", "1+")]

CONTROL_RECORD_TYPE = payload(
    "ControlRecordTypeSchema", versions="0", flexible=None, newer_as_newest=True,
    fields=[VERSION, int16("type")],
)

END_TXN_MARKER = payload(
    "EndTxnMarker", versions="0", flexible=None, newer_as_newest=True,
    fields=[VERSION, int32("coordinator_epoch")],
)

LEADER_CHANGE = payload(
    "LeaderChangeMessage", versions="0-1", flexible="0+", newer_as_newest=True,
    fields=[
        VERSION,
        int32("leader_id"), array("voters", of=VOTERS), array("granting_voters", of=VOTERS),
    ],
)

SNAPSHOT_HEADER = payload(
    "SnapshotHeaderRecord", versions="0", flexible="0+", newer_as_newest=True,
    fields=[VERSION, int64("last_contained_log_timestamp")],
)

SNAPSHOT_FOOTER = payload(
    "SnapshotFooterRecord", versions="0", flexible="0+", newer_as_newest=True, fields=[VERSION],
)

KRAFT_VERSION = payload(
    "KRaftVersionRecord", versions="0", flexible="0+", newer_as_newest=True,
    fields=[VERSION, int16("kraft_version")],
)

# The controllers' endpoints, which clients are not told: no marks.
KRAFT_VOTERS = payload(
    "VotersRecord", versions="0", flexible="0+", newer_as_newest=True,
    fields=[
        VERSION,
        array("voters", of=[
            int32("voter_id"), uuid("voter_directory_id"),
            array("endpoints", of=[string("name"), string("host"), uint16("port")]),
            struct("kraft_version_feature", of=[
                int16("min_supported_version"), int16("max_supported_version"),
            ]),
        ]),
    ],
)

# By the type in a control record's key: a name and the layout of its value.
CONTROL_TYPES = {
    0: ("ABORT", END_TXN_MARKER),
    1: ("COMMIT", END_TXN_MARKER),
    2: ("LEADER_CHANGE", LEADER_CHANGE),
    3: ("SNAPSHOT_HEADER", SNAPSHOT_HEADER),
    4: ("SNAPSHOT_FOOTER", SNAPSHOT_FOOTER),
    5: ("KRAFT_VERSION", KRAFT_VERSION),
    6: ("KRAFT_VOTERS", KRAFT_VOTERS),
}
