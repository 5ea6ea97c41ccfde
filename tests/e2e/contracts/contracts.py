"""Shared by the tests of contracts: requests and answers that go apart, and batches made by hand."""

import gzip
import socket
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from crc32c import crc32c

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import request_frame, response_header_version
from tests.brokers.processes import wait_for
from tests.brokers.wire import receive_exactly
from tests.e2e import topics

Values = dict[str, Any]
Address = tuple[str, int]
PLAIN_TOKEN = b"\0alice\0alice-secret"
GZIP = 1
PRODUCER = {"producer_id": -1, "epoch": -1, "sequence": -1, "transactional": False}


class Talk:
    """A connection on which a request need not wait for the answer of the one before. A context manager."""

    def __init__(self, address: Address, client_id: str = "by-hand") -> None:
        self.socket = socket.create_connection(address, timeout=30)
        self.client_id = client_id
        self.correlation_id = 0

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, api: str, version: int, values: Values | None = None) -> int:
        """A request; its correlation id."""
        self.correlation_id += 1
        body = encode(values or {}, api, version, "request")
        self.socket.sendall(request_frame(API[api], version, self.correlation_id, self.client_id, body))
        return self.correlation_id

    def frame(self) -> bytes:
        """The next frame, without its size. EOFError where the connection ends instead."""
        (size,) = struct.unpack(">i", receive_exactly(self.socket, 4))
        return receive_exactly(self.socket, size)

    def answer(self, api: str, version: int, correlation_id: int | None = None) -> Values:
        """The values of the next frame, which must answer that request; the last one where none is named."""
        frame = self.frame()
        assert int.from_bytes(frame[:4], "big") == (correlation_id or self.correlation_id)
        start = 5 if response_header_version(API[api], version) else 4
        return decode(frame[start:], api, version, "response")

    def ask(self, api: str, version: int, values: Values | None = None) -> Values:
        self.send(api, version, values)
        return self.answer(api, version)

    def send_token(self, token: bytes) -> None:
        """A SASL token as it goes after SaslHandshake v0: a size and the token."""
        self.socket.sendall(struct.pack(">i", len(token)) + token)

    def closed(self) -> bool:
        """Whether the other end closes, with nothing said before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def silent(self, for_s: float) -> bool:
        """Whether nothing comes for that long."""
        self.socket.settimeout(for_s)
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(30)


def ask(address: Address, api: str, version: int, values: Values | None = None) -> Values:
    """One question on a connection of its own."""
    with Talk(address) as talk:
        return talk.ask(api, version, values)


def api_versions(talk: Talk, version: int) -> Values:
    """The answer to ApiVersions, which from version 3 on wants to know the client's software."""
    software = {"client_software_name": "by-hand", "client_software_version": "1"}
    return talk.ask("ApiVersions", version, software if version >= 3 else None)


def _varint(value: int) -> bytes:
    value, written = value << 1 ^ value >> 63, bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _record(index: int, value: bytes) -> bytes:
    body = b"\0\0" + _varint(index) + _varint(-1) + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def batch(values: Sequence[bytes], timestamp: int | None = None, **producer: Any) -> bytes:
    """A batch (magic 2) of records without keys; `producer` as in PRODUCER. Times are in ms, now if none."""
    by, at = PRODUCER | producer, int(time.time() * 1000) if timestamp is None else timestamp
    flags = 0x10 if by["transactional"] else 0
    sender = by["producer_id"], by["epoch"], by["sequence"]
    counted = struct.pack(">hiqqqhii", flags, len(values) - 1, at, at, *sender, len(values))
    counted += b"".join(map(_record, range(len(values)), values))
    return struct.pack(">qiibI", 0, len(counted) + 9, -1, 2, crc32c(counted)) + counted


def message_set(values: Sequence[bytes], magic: int, codec: int = 0, offset: int = 0) -> bytes:
    """Messages of format 0 or 1 with offsets from `offset` on; with a codec each message is a wrapper."""
    written = b""
    for index, value in enumerate(values):
        stamp = struct.pack(">q", 1_400_000_000_000 + index) if magic else b""
        counted = struct.pack(">bb", magic, codec) + stamp + struct.pack(">ii", -1, len(value)) + value
        message = struct.pack(">I", zlib.crc32(counted)) + counted
        written += struct.pack(">qi", offset + index, len(message)) + message
    return written


def wrapped(values: Sequence[bytes], magic: int) -> bytes:
    """A message set inside the value of one gzip message."""
    return message_set([gzip.compress(message_set(values, magic))], magic, GZIP)


def messages(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """(offset, magic, codec, value) of each whole message; what is left of a cut one is not looked at."""
    found, at = [], 0
    while len(data) - at >= 12:
        offset, size = struct.unpack_from(">qi", data, at)
        at += 12 + size
        if at > len(data):
            break
        crc, magic, attributes = struct.unpack_from(">Ibb", data, at - size)
        assert crc == zlib.crc32(data[at - size + 4 : at]), f"the message at {offset} has a wrong CRC"
        key = at - size + 6 + 8 * magic
        assert struct.unpack_from(">i", data, key) == (-1,)
        found.append((offset, magic, attributes & 7, data[key + 8 : at]))
    return found


def batches(data: bytes) -> list[tuple[int, int, int]]:
    """(base offset, producer id, count) of each whole batch of magic 2; a control batch has its count minus.

    The records themselves are not looked at.
    """
    found, at = [], 0
    while len(data) - at >= 61:
        base, size = struct.unpack_from(">qi", data, at)
        if at + 12 + size > len(data):
            break
        attributes, *_, producer_id = struct.unpack_from(">hiqqq", data, at + 21)
        (count,) = struct.unpack_from(">i", data, at + 57)
        found.append((base, producer_id, -count if attributes & 0x20 else count))
        at += 12 + size
    return found


def produce(topic: str, data: bytes, acks: int = -1, index: int = 0, **more: Any) -> Values:
    """The values of a Produce to one partition."""
    partition = {"index": index, "records": data}
    return {
        "acks": acks,
        "timeout_ms": 5000,
        "topic_data": [{"name": topic, "partition_data": [partition]}],
        **more,
    }


def produced(answer: Values) -> Values:
    """The one partition of a Produce response."""
    (topic,) = answer["responses"]
    (partition,) = topic["partition_responses"]
    return dict(partition)


def fetch(topic: str, offset: int, *, size: int = 1 << 20, **more: Any) -> Values:
    """The values of a Fetch from one partition: at once, without a session, unless told."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": size}
    return {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [partition]}],
        **more,
    }


def fetched(answer: Values) -> Values:
    """The one partition of a Fetch response."""
    (topic,) = answer["responses"]
    (partition,) = topic["partitions"]
    return dict(partition)


def list_offsets(topic: str, timestamp: int, **more: Any) -> Values:
    """The values of a ListOffsets for one partition; -1 asks for the latest, -2 for the earliest."""
    partition = {"partition_index": 0, "timestamp": timestamp}
    return {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}], **more}


def listed(answer: Values) -> Values:
    """The one partition of a ListOffsets response."""
    (topic,) = answer["topics"]
    (partition,) = topic["partitions"]
    return dict(partition)


def create(
    bootstrap: str,
    leader: Address,
    topic: str,
    nodes: Sequence[int] = (1,),
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic of one partition on `nodes`; return when `leader`, the first of them, leads it."""
    topics.create(bootstrap, topic, [nodes], **(config or {}))
    question = list_offsets(topic, -1)
    wait_for(lambda: listed(ask(leader, "ListOffsets", 1, question))["error_code"] == 0, topic)
