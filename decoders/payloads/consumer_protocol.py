"""The metadata and assignments of members of classic consumer groups, in JoinGroup, SyncGroup and
DescribeGroups.

Kafka reads versions to come as the newest that it knows. User data is the assignor's own: those of the Java
client's sticky assignors (KIP-54, KIP-429) stand here, those of Kafka Streams in `streams`.
"""

from klamm.decoders.payloads.declaration import VERSION, payload
from klamm.decoders.schema import CLIENT_TEXT, PARTITION, TOPIC, array, bytestring, int32, string

# fmt: off

TOPIC_PARTITIONS = [string("topic", mark=TOPIC), array("partitions", mark=PARTITION, of="int32")]

SUBSCRIPTION = payload(
    "ConsumerProtocolSubscription", versions="0-3", flexible=None, newer_as_newest=True,
    fields=[
        VERSION,
        array("topics", mark=TOPIC, of="string"),
        bytestring("user_data", null="0+", default=None, mark=CLIENT_TEXT),
        array("owned_partitions", "1+", of=TOPIC_PARTITIONS),
        int32("generation_id", "2+", default=-1),
        string("rack_id", "3+", null="3+", default=None, mark=CLIENT_TEXT),
    ],
)

ASSIGNMENT = payload(
    "ConsumerProtocolAssignment", versions="0-3", flexible=None, newer_as_newest=True,
    fields=[
        VERSION,
        array("assigned_partitions", of=TOPIC_PARTITIONS),
        bytestring("user_data", null="0+", default=None, mark=CLIENT_TEXT),
    ],
)

STICKY_USER_DATA = payload(
    "StickyAssignorUserData", versions="0-1", flexible=None,
    fields=[array("previous_assignment", of=TOPIC_PARTITIONS), int32("generation", "1+", default=-1)],
)

COOPERATIVE_STICKY_USER_DATA = payload(
    "CooperativeStickyAssignorUserData", versions="0", flexible=None,
    fields=[int32("generation", default=-1)],
)
