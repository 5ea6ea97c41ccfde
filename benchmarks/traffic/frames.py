"""Kafka frames put together byte by byte, so that klamm is judged by bytes it had no part in.

Layouts: Produce 12 and 13 (KIP-516, KIP-951), Fetch 17 and 18 (KIP-1166), Metadata 12, ApiVersions 0-4
(KIP-35, KIP-511), record batch v2 (KIP-98).
"""

import random
import struct

import crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
VERSION = {PRODUCE: 13, FETCH: 18, METADATA: 12, API_VERSIONS: 4}
OF_KAFKA_4_0 = {PRODUCE: 12, FETCH: 17}  # the newest that Kroxylicious 0.12 reads
CLIENT_ID = "klamm-bench"
TOPIC = "bench"
TOPIC_ID = bytes.fromhex("3b1c9f60d52a4be8a7e0514d2c88f613")
NODE_ID = 0

_NO_TAGS = b"\0"
_NULL = b"\0"
_EMPTY = b"\1"
_ONE = b"\2"
_VALUE = random.Random(7).randbytes(4096)
_RECORD_VALUE_BYTES = 1000
_BATCH_HEAD = struct.Struct(">qiibIhiqqqhii")


def uvarint(value: int) -> bytes:
    """An unsigned varint: seven bits a byte, least significant first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """A signed (zigzag) varint."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def compact_string(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data


def compact_array(items: list[bytes]) -> bytes:
    return uvarint(len(items) + 1) + b"".join(items)


def record(offset_delta: int, value_bytes: int) -> bytes:
    """One record without key or headers."""
    key_and_value = varint(-1) + varint(value_bytes) + _VALUE[:value_bytes]
    body = b"\0\0" + varint(offset_delta) + key_and_value + b"\0"
    return varint(len(body)) + body


def record_batch(size_bytes: int) -> bytes:
    """An uncompressed v2 batch of `size_bytes`; its base offset, which the checksum leaves out, is 0."""
    records: list[bytes] = []
    left = size_bytes - _BATCH_HEAD.size
    while left > 2 * _RECORD_VALUE_BYTES:
        records.append(record(len(records), _RECORD_VALUE_BYTES))
        left -= len(records[-1])
    shortest = left - len(record(len(records), 0)) - 4
    records.append(next(r for n in range(shortest, left) if len(r := record(len(records), n)) == left))
    body = b"".join(records)
    head = [0, size_bytes - 12, 0, 2, 0, 0, len(records) - 1, 0, 0, -1, -1, -1, len(records)]
    head[4] = crc32c.crc32c(body, crc32c.crc32c(_BATCH_HEAD.pack(*head)[21:]))
    return _BATCH_HEAD.pack(*head) + body


def at_offset(batch: bytes, base_offset: int) -> bytes:
    """The same batch, beginning at another offset."""
    return struct.pack(">q", base_offset) + batch[8:]


def frame(payload: bytes) -> bytes:
    """A payload behind its size."""
    return struct.pack(">i", len(payload)) + payload


def request_header(key: int, version: int, correlation_id: int) -> bytes:
    """Header v2: the client id is a classic string even here (KIP-482)."""
    client_id = CLIENT_ID.encode()
    return struct.pack(">hhih", key, version, correlation_id, len(client_id)) + client_id + _NO_TAGS


def response_header(correlation_id: int) -> bytes:
    """Header v1."""
    return struct.pack(">i", correlation_id) + _NO_TAGS


def compact_records(batch: bytes) -> bytes:
    return uvarint(len(batch) + 1) + batch


def produce_request(
    correlation_id: int, batch: bytes, timeout_ms: int = 30_000, version: int = VERSION[PRODUCE]
) -> bytes:
    """Acks=all, one topic, one partition."""
    partition = struct.pack(">i", 0) + compact_records(batch) + _NO_TAGS
    topic = _produced(version) + _ONE + partition + _NO_TAGS
    body = _NULL + struct.pack(">hi", -1, timeout_ms) + _ONE + topic + _NO_TAGS
    return frame(request_header(PRODUCE, version, correlation_id) + body)


def _produced(version: int) -> bytes:
    """The topic of a Produce: its id since version 13, its name before."""
    return TOPIC_ID if version >= 13 else compact_string(TOPIC)


def produce_response(correlation_id: int, base_offset: int, version: int = VERSION[PRODUCE]) -> bytes:
    """No error."""
    partition = struct.pack(">ihqqq", 0, 0, base_offset, -1, 0) + _EMPTY + _NULL + _NO_TAGS
    topic = _produced(version) + _ONE + partition + _NO_TAGS
    body = _ONE + topic + struct.pack(">i", 0) + _NO_TAGS
    return frame(response_header(correlation_id) + body)


def fetch_request(
    correlation_id: int, fetch_offset: int, max_bytes: int, version: int = VERSION[FETCH]
) -> bytes:
    """Outside any fetch session, one topic, one partition."""
    partition = struct.pack(">iiqiqi", 0, 0, fetch_offset, -1, -1, max_bytes) + _NO_TAGS
    topic = TOPIC_ID + _ONE + partition + _NO_TAGS
    head = struct.pack(">iiibii", 500, 1, max_bytes, 0, 0, -1)
    body = head + _ONE + topic + _EMPTY + _EMPTY + _NO_TAGS
    return frame(request_header(FETCH, version, correlation_id) + body)


def fetch_response(correlation_id: int, base_offset: int, batch: bytes) -> bytes:
    """Fetch 17 and 18, no error, one batch, no node endpoints."""
    high_watermark = base_offset + 1000
    partition = struct.pack(">ihqqq", 0, 0, high_watermark, high_watermark, 0) + _NULL + struct.pack(">i", -1)
    partition += compact_records(at_offset(batch, base_offset)) + _NO_TAGS
    topic = TOPIC_ID + _ONE + partition + _NO_TAGS
    body = struct.pack(">ihi", 0, 0, 0) + _ONE + topic + _NO_TAGS
    return frame(response_header(correlation_id) + body)


def api_versions_request(correlation_id: int) -> bytes:
    """ApiVersions 4."""
    body = compact_string("klamm-bench") + compact_string("1") + _NO_TAGS
    return frame(request_header(API_VERSIONS, VERSION[API_VERSIONS], correlation_id) + body)


def api_versions_response(correlation_id: int, version: int, ranges: dict[int, tuple[int, int]]) -> bytes:
    """ApiVersions 0-4; the header is v0 at every version."""
    rows = [struct.pack(">hhh", key, *ranges[key]) for key in sorted(ranges)]
    if version >= 3:
        body = compact_array([row + _NO_TAGS for row in rows]) + struct.pack(">i", 0) + _NO_TAGS
    else:
        body = struct.pack(">i", len(rows)) + b"".join(rows) + (struct.pack(">i", 0) if version else b"")
    return frame(struct.pack(">ih", correlation_id, 0) + body)


def metadata_request(correlation_id: int) -> bytes:
    """Metadata 12, all topics."""
    return frame(request_header(METADATA, VERSION[METADATA], correlation_id) + _NULL + b"\0\0" + _NO_TAGS)


def metadata_body(
    brokers: list[tuple[int, str, int]],
    topics: dict[str, bytes],
    partitions: int,
    replicas: int,
    cluster_id: str,
) -> bytes:
    """Metadata 12's body: `brokers` are (node id, host, port), `topics` names with their ids."""
    nodes = [node_id for node_id, _, _ in brokers]
    broker_rows = [
        struct.pack(">i", node_id) + compact_string(host) + struct.pack(">i", port) + _NULL + _NO_TAGS
        for node_id, host, port in brokers
    ]
    topic_rows = []
    for name, topic_id in topics.items():
        rows = []
        for index in range(partitions):
            on = [nodes[(index + i) % len(nodes)] for i in range(replicas)]
            ids = compact_array([struct.pack(">i", node_id) for node_id in on])
            rows.append(struct.pack(">hiii", 0, index, on[0], 0) + ids + ids + _EMPTY + _NO_TAGS)
        row = struct.pack(">h", 0) + compact_string(name) + topic_id + b"\0" + compact_array(rows)
        topic_rows.append(row + struct.pack(">i", -(1 << 31)) + _NO_TAGS)
    head = struct.pack(">i", 0) + compact_array(broker_rows) + compact_string(cluster_id)
    return head + struct.pack(">i", nodes[0]) + compact_array(topic_rows) + _NO_TAGS


def metadata_response(correlation_id: int, host: str, port: int) -> bytes:
    """Metadata 12 of a cluster of one broker and one topic."""
    body = metadata_body([(NODE_ID, host, port)], {TOPIC: TOPIC_ID}, 1, 1, "klamm-bench-cluster-01")
    return frame(response_header(correlation_id) + body)


def first_address(metadata: bytes) -> tuple[str, int]:
    """Host and port of the first broker in a Metadata 12 response frame."""
    host_at = 4 + 5 + 4 + 1 + 4
    end = host_at + metadata[host_at]
    return metadata[host_at + 1 : end].decode(), struct.unpack_from(">i", metadata, end)[0]
