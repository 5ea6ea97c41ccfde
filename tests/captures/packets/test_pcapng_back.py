"""A capture exported as packets and imported again holds the same exchanges."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from klamm.captures.captured import Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.packets.importing import Import
from klamm.captures.packets.packet_files import packets
from klamm.captures.storage.stored import whole
from klamm.captures.streams.blanking import Keeping
from klamm.decoders.records import Batch, Record, write
from tests.captures.packets.test_pcapng import export
from tests.captures.rows import Talk, connection, in_time


def back(file: Path, lost: bool = False) -> list[Captured]:
    rows: list[Captured] = []
    importing = Import("again", Keeping("keep"), lambda some: rows.extend(map(whole, some)))
    with open(file, "rb") as opened:
        for packet in packets(opened):
            importing.take(packet)
    importing.end()
    assert importing.found.whole == (not lost)
    return sorted(rows, key=lambda row: row.time_ns)


def exchanges_in(rows: Iterable[Captured]) -> list[tuple[object, ...]]:
    """The exchanges, without the fields that depend on where they were captured."""
    found = []
    for one in exchanges(rows):
        assert one.first.connection is not None
        sides = [
            row
            and (
                row.time_ns,
                row.side,
                row.api_key,
                row.api_version,
                row.correlation_id,
                row.client_id,
                row.frame,
            )
            for row in one
        ]
        found.append((one.first.connection.client, one.latency_ns, *sides))
    return sorted(found, key=str)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "exported.pcapng"


def test_exchanges_are_the_same(file: Path) -> None:
    large = write(Batch(), [Record(0, value=bytes(300_000))])
    first = (
        Talk(connection(1)).opened().metadata().produce(records=large).produce(acks=0).heartbeat(25).closed()
    )
    second = Talk(connection(2, "controller 1", "[::1]:50001"), client_id=None).opened().fetch(records=large)
    third = Talk(connection(3, "bootstrap", "10.0.0.7:50003")).opened().metadata().heartbeat()
    rows = in_time(first, second, third)
    export(rows, file)
    assert exchanges_in(back(file)) == exchanges_in(rows)


def test_pipelined_requests_are_the_same(file: Path) -> None:
    talk = Talk().opened()
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    numbers = [talk.request("Heartbeat", 4, asked) for _ in range(5)]
    for number in numbers:
        talk.now_ms += 1
        talk.response("Heartbeat", 4, {"error_code": number}, number)
    export(talk.rows, file)
    assert exchanges_in(back(file)) == exchanges_in(talk.rows)


def test_a_connection_that_began_before_is_one_again(file: Path) -> None:
    talk = Talk().heartbeat().metadata().heartbeat()
    export(talk.rows, file)
    assert exchanges_in(back(file)) == exchanges_in(talk.rows)


def test_after_a_frame_that_was_not_kept_the_exchanges_are_the_same(file: Path) -> None:
    talk = Talk().opened().heartbeat().produce(records=bytes(200_000)).heartbeat().metadata().heartbeat()
    rows = list(talk.rows)
    rows[3] = rows[3]._replace(frame=None)
    export(rows, file)
    found, meant = exchanges_in(back(file, lost=True)), exchanges_in(rows)
    missing = [one for one in meant if one not in found]
    assert missing == exchanges_in(rows[3:5])
    assert len(found) == len(meant)


def test_raw_tokens_are_tokens_again(file: Path) -> None:
    talk = Talk().opened().exchange("SaslHandshake", 0, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
    time_ns = talk.rows[-1].time_ns
    asked = Captured(time_ns + 1, "token", talk.of, "request", size=40, frame=bytes(40))
    granted = Captured(time_ns + 2, "token", talk.of, "response", size=0, frame=b"")
    talk.rows += [asked, granted]
    talk.now_ms += 1
    talk.metadata().heartbeat()
    export(talk.rows, file)
    rows = back(file, lost=True)
    assert [(row.time_ns, row.side, row.size) for row in rows if row.kind == "token"] == [
        (time_ns + 1, "request", 40),
        (time_ns + 2, "response", 0),
    ]
    assert exchanges_in(rows) == exchanges_in(talk.rows)
