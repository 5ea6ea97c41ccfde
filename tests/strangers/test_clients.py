"""Requests that clients write oddly: the same bytes to a broker, directly and through klamm."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import pack

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from tests.brokers.kraft import Cluster
from tests.brokers.wire import receive_exactly
from tests.brokers.zookeeper import old_cluster
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

FORESEEN = ["bad_size", "undecodable_header", "undecodable", "unknown_api", "unknown_version"]
BEAT = b"\2g" + pack(">i", 1) + b"\2m\0\0"


def frame(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def beat(correlation_id: int = 1, client_id: bytes | None = b"c", tags: bytes = b"\0") -> bytes:
    """Heartbeat 4 of no member, with these tagged fields in its header."""
    size = -1 if client_id is None else len(client_id)
    return frame(pack(">hhih", 12, 4, correlation_id, size) + (client_id or b"") + tags + BEAT)


def list_groups(version: int, behind_client_id: bytes) -> bytes:
    return frame(pack(">hhih", 16, version, 2, 1) + b"c" + behind_client_id)


VERSIONS = request_frame(API["ApiVersions"], 0, 3, "c", b"")
MEMBER = pack(">h", 1) + b"m"
ASSIGNED = bytes.fromhex("0000 00000001 0001 74 00000001 00000000")  # version 0, partition 0 of topic "t"


def sync_group(assignment: bytes | None, behind: bytes = b"") -> bytes:
    size = pack(">i", -1 if assignment is None else len(assignment))
    one = pack(">h", 1) + b"g" + pack(">i", 1) + MEMBER + pack(">i", 1) + MEMBER
    return request_frame(API["SyncGroup"], 0, 4, "c", one + size + (assignment or b"") + behind)


STRANGE = {
    "no client id": beat(client_id=None),
    "a client id that is not UTF-8": beat(client_id=b"\xff\xfe"),
    "a client id of control characters": beat(client_id=b"a\0\n\x1b[31m"),
    "ids that are negative, repeat and wrap": b"".join(map(beat, (-5, 7, 7, 2**31 - 1, -(2**31)))),
    "ApiVersions behind other requests, and twice": beat(1) + VERSIONS + beat(2) + VERSIONS,
    "tagged fields of a header in no order": beat(tags=b"\2\7\1a\5\1b"),
    "a tagged field of a header twice": beat(tags=b"\2\5\1a\5\1b"),
    "a padded number of tagged fields": beat(tags=b"\x80\0"),
    "header 1 where 2 is due": beat() + list_groups(3, b"") + beat(),
    "header 2 where 1 is due": list_groups(0, b"\0") + beat(),
    "a compact client id": beat() + frame(pack(">hhi", 12, 4, 2) + b"\2c\0" + BEAT) + beat(),
    "an assignment without user_data, which stands behind all": sync_group(ASSIGNED, bytes(4)) + beat(),
    "an assignment with null user_data": sync_group(ASSIGNED + b"\xff" * 4) + beat(),
    "a null assignment": beat() + sync_group(None) + beat(),
    "a frame of no byte": beat(1) + frame(b"") + beat(2),
    "a frame of 7 bytes": beat(1) + frame(bytes(7)) + beat(2),
    "only a frame of 3 bytes": frame(b"abc"),
    "a negative size": beat() + pack(">i", -1) + beat(),
    "more than any broker takes": beat() + pack(">i", 2**31 - 1),
    "a word": beat() + b"ping\n",
    "HTTP": beat() + b"HEAD / HTTP/1.1\r\n\r\n",
    "a version of Metadata that no broker knows": beat() + frame(pack(">hhih", 3, 99, 2, -1)) + beat(),
}
LAST = frame(pack(">hhih", 12000, 0, 2, -1))  # no broker knows this API: it closes the connection


def told(address: tuple[str, int], requests: bytes) -> bytes:
    """The answers of a server up to its close."""
    answers = b""
    with socket.create_connection(address, timeout=20) as client, suppress(ConnectionResetError):
        client.sendall(requests + LAST)
        while data := client.recv(1 << 16):
            answers += data
    return answers


@pytest.fixture(scope="module")
def klamm(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    log = tmp_path_factory.mktemp("clients") / "klamm.log"
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, foreseen=FORESEEN) as klamm:
        yield klamm


@pytest.mark.parametrize("what", STRANGE)
def test_a_broker_says_the_same_through_klamm(what: str, kafka: Cluster, klamm: Klamm) -> None:
    requests = STRANGE[what]
    assert told(klamm.address, requests) == told(kafka.address(1), requests)


def test_kafka_0_10_skips_a_frame_of_no_byte_through_klamm_too(tmp_path: Path) -> None:
    body = encode({"group_id": "g", "generation_id": 1, "member_id": "m"}, 12, 0, "request")
    asked = b"".join(frame(b"") + request_frame(API["Heartbeat"], 0, number, "c", body) for number in (1, 2))
    log = tmp_path / "klamm.log"
    with (
        old_cluster("0.10.1.1", tmp_path) as kafka,
        klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, foreseen=FORESEEN) as klamm,
    ):
        for bootstrap in (kafka.bootstrap(), klamm.bootstrap):
            host, _, port = bootstrap.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=20) as client:
                client.sendall(asked)
                answers = receive_exactly(client, 20)
                assert [answers[4:8], answers[14:18]] == [pack(">i", number) for number in (1, 2)]
    assert "a frame of 0 bytes" in log.read_text()
