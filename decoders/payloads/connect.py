"""The metadata and assignments of the workers of Kafka Connect: version 0 is eager, 1 cooperative (KIP-415),
2 signs its requests (KIP-507).
"""

from klamm.decoders.payloads.declaration import VERSION, payload
from klamm.decoders.schema import CLIENT_TEXT, array, bytestring, int16, int32, int64, string

# fmt: off

# Task -1 is the connector itself.
TASKS = [string("connector"), array("tasks", of="int32")]

SUBSCRIPTION = payload(
    "ConnectSubscription", versions="0-2", flexible=None,
    fields=[
        VERSION,
        string("url", mark=CLIENT_TEXT), int64("config_offset"),
        bytestring("allocation", "1+", null="1+"),  # a ConnectAssignment
    ],
)

ASSIGNMENT = payload(
    "ConnectAssignment", versions="0-2", flexible=None,
    fields=[
        VERSION,
        int16("error"),  # of Connect's own: 1 is CONFIG_MISMATCH
        string("leader"), string("leader_url", mark=CLIENT_TEXT), int64("config_offset"),
        array("assignment", null="1+", of=TASKS),
        array("revoked", "1+", null="1+", of=TASKS),
        int32("delay", "1+"),
    ],
)
