"""Payloads: the layouts of the bytes that Kafka puts inside its own fields and topics, by name:
`PAYLOADS["ConsumerProtocolSubscription"]`.

    decode_payload(name, data) -> Decoded        by the version or type that its first bytes tell
    read_payload(name, data) -> Decoded          the same as far as the bytes go, with the failure
    payload_oddity(decoded, data) -> str         that failure in words
    encode_payload(name, values) -> bytes        by values["version"]
    payload_layout(name, version) -> Layout      of all its bytes, the leading version or type included
    layout_read(decoded) -> Layout               the one by which it was read
    control_record(key, value) -> (Decoded, Decoded | None)               of a control batch
    coordinator_record(topic, key, value) -> (Decoded, Decoded | None)    of a topic in COORDINATOR_TOPICS
    group_payload(protocol_type, part, data) -> Decoded | None    a member's "metadata" or "assignment"
    user_data(assignor, part, data) -> Decoded | None             what its assignor added to it
    field_payload(api, field, data) -> Decoded | None             in a field that always has the same payload

`Decoded` is (name, version, values, failure). Wrong bytes, and versions that are not known, are a DecodeError
with the payload's name as `api` and "payload" as `side`: `decode_payload` raises it, the others give it as
`failure`. A name that is not known raises UnknownApi.
"""

from klamm.decoders.payloads.body import (
    Decoded,
    control_record,
    coordinator_record,
    decode_payload,
    encode_payload,
    field_payload,
    group_payload,
    layout_read,
    payload_layout,
    read_payload,
    user_data,
)
from klamm.decoders.payloads.oddity import payload_oddity
from klamm.decoders.payloads.tables import COORDINATOR_TOPICS, PAYLOADS

__all__ = [
    "COORDINATOR_TOPICS",
    "PAYLOADS",
    "Decoded",
    "control_record",
    "coordinator_record",
    "decode_payload",
    "encode_payload",
    "field_payload",
    "group_payload",
    "layout_read",
    "payload_layout",
    "payload_oddity",
    "read_payload",
    "user_data",
]
