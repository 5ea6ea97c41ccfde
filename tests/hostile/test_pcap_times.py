"""Times in files of packets are the sender's: any of them is read, or is a line of the summary."""

from __future__ import annotations

import io
import json
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.captured import Captured
from klamm.captures.packets.importing import FIRST_NS, LAST_NS, Import
from klamm.captures.packets.packet_files import BadFile, Packet, packets
from klamm.captures.storage.arrow.encoding import Encoding, columns_of
from klamm.captures.streams.blanking import Keeping
from klamm.cli import main
from klamm.cli.captures.import_summary import print_lines
from tests.captures.dialogue import Dialogue, pcap
from tests.captures.packets.test_packet_files import block, interface, section

RESOLUTION, OFFSET = 9, 14
INT64 = -(1 << 63), (1 << 63) - 1
EIGHT = st.binary(min_size=8, max_size=8)
AS_WRITTEN = Dialogue().open().ask(0).ask(1, name="Metadata", version=1).close().packets


def pcapng(times: list[bytes], options: bytes) -> bytes:
    """A conversation with these times, one after the other, as they stand in the file."""
    made = section() + interface(1, options)
    for number, packet in enumerate(AS_WRITTEN):
        size = len(packet.data)
        head = pack("<I", 0) + times[number % len(times)] + pack("<II", size, size)
        made += block(6, head + packet.data)
    return made


def classic(times: list[bytes]) -> bytes:
    """The same as an old pcap file."""
    made = pcap([])[:24]
    for number, packet in enumerate(AS_WRITTEN):
        size = len(packet.data)
        made += times[number % len(times)] + pack("<II", size, size) + packet.data
    return made


def option(code: int, value: bytes) -> bytes:
    return pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def imported(data: bytes) -> list[Captured]:
    """The rows as a capture stores them, and the summary as people read it."""
    rows: list[Captured] = []
    importing = Import("c", Keeping(), rows.extend)
    try:
        for packet in packets(io.BufferedReader(io.BytesIO(data))):
            importing.take(packet)
    except BadFile:
        pass
    importing.end()
    print_lines(importing.found, "there")
    assert all(FIRST_NS <= row.time_ns <= LAST_NS for row in rows)
    if rows:
        Encoding().batch(columns_of(rows))
    return rows


@given(st.lists(EIGHT, min_size=1, max_size=12), st.integers(0, 255), EIGHT)
def test_any_time_of_pcapng_is_read(times: list[bytes], resolution: int, offset: bytes) -> None:
    rows = imported(pcapng(times, option(RESOLUTION, bytes([resolution])) + option(OFFSET, offset)))
    assert rows


@given(st.lists(EIGHT, min_size=1, max_size=12))
def test_any_time_of_pcap_is_read(times: list[bytes]) -> None:
    assert imported(classic(times))


@given(st.lists(EIGHT, min_size=1, max_size=4), st.binary(max_size=40))
def test_any_options_of_an_interface_are_read_or_said_to_be_damaged(
    times: list[bytes], options: bytes
) -> None:
    imported(pcapng(times, options))


@pytest.mark.parametrize("offset_s", INT64)
def test_times_that_a_capture_cannot_hold_are_the_nearest_and_are_told(
    offset_s: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "hostile.pcapng", tmp_path / "capture"
    file.write_bytes(pcapng([bytes(8)], option(OFFSET, pack("<q", offset_s))))
    assert main(["import", str(file), "-o", str(output)]) == 0
    said = capsys.readouterr().out
    assert f"times: {len(AS_WRITTEN)} packets from before 1970 or after 2262, moved to these years" in said
    for words in (
        ["show"],
        ["show", "--json"],
        ["show", "--stats"],
        ["export", "-o", str(tmp_path / "out.pcapng")],
    ):
        assert main([words[0], str(output), *words[1:]]) == 0, words
    again = tmp_path / "again"
    assert main(["import", "--json", str(file), "-o", str(again)]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1].strip() or "{}")
    assert found["moved_times"] == len(AS_WRITTEN)


def test_connections_at_the_first_time_of_all_end_once() -> None:
    importing = Import("c", Keeping(), lambda rows: None)
    for packet in AS_WRITTEN:
        importing.take(Packet(0, packet.link_type, packet.data))
    importing.end()
    assert importing.found.connections["Kafka"] == 1
