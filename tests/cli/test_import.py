"""`klamm import`: what is said, and the exit codes."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from klamm.captures.packets.packet_files import Packet
from klamm.captures.storage.reading import read
from klamm.cli import main
from klamm.decoders.records import Batch, Record, write
from tests.captures.dialogue import BEGIN_NS, ETHERNET, Dialogue, pcap, request
from tests.captures.packets.test_decrypting import encrypted
from tests.captures.tunnels import MACS, udp, vxlan

ORDERS = {"name": "Metadata", "version": 1}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    dialogue = Dialogue().open().ask(0).ask(1, **ORDERS).ask(2, **ORDERS).close()
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(dialogue.packets))
    return path


def run(*words: object) -> int:
    return main(["import", *map(str, words)])


def test_what_was_found_is_said_and_written(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "-o", tmp_path / "capture") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "12 packets from 2023-11-14 22:13:20.001Z to 2023-11-14 22:13:20.012Z",
        "1 connection of Kafka",
        "",
        "  api          requests  responses",
        "  Metadata     2         2",
        "  ApiVersions  1         1",
        "",
        f"written to {tmp_path / 'capture'}",
    ]
    rows = list(read([tmp_path / "capture"]))
    assert [row.kind for row in rows] == ["opened", *["frame"] * 6, "closed"]
    assert [row.correlation_id for row in rows[1:-1]] == [0, 0, 1, 1, 2, 2]


def test_the_summary_is_an_object_for_programs(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "-o", tmp_path / "capture", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["connections"] == {"kafka": 1, "tls": 0, "other": 0}
    assert found["apis"][0] == {"api": "Metadata", "requests": 2, "responses": 2}
    assert found["lost"] == found["problems"] == []


def test_bytes_that_are_missing_are_said_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialogue = Dialogue().open().ask(0).ask(1, **ORDERS).ask(2, **ORDERS).close()
    del dialogue.packets[6]  # the answer to 1
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(dialogue.packets))
    assert run(path, "-o", tmp_path / "capture") == 1
    printed = capsys.readouterr().out
    line = "lost: 20 bytes of responses, 10.0.0.1:29092 to 10.0.0.7:40000, at 2023-11-14 22:13:20.008Z"
    assert line in printed.splitlines()
    assert run(path, "-o", tmp_path / "another", "--json") == 1
    (lost,) = json.loads(capsys.readouterr().out)["lost"]
    assert (lost["side"], lost["missing"]) == ("response", 20)


def test_bad_files_are_said_in_a_line_each_and_the_rest_is_read(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = cut, foreign, empty, none = [tmp_path / name for name in ("cut", "foreign", "empty", "none")]
    another = Dialogue(ports=(41_000, 29_092)).open().ask(0).ask(1, **ORDERS).ask(2, **ORDERS).close()
    cut.write_bytes(pcap(another.packets)[:-1])
    foreign.write_text("foreign")
    empty.write_bytes(b"")
    none.write_bytes(pcap([]))
    assert run(file, *names, "-o", tmp_path / "capture") == 1
    output = capsys.readouterr()
    assert output.out.splitlines()[1] == "2 connections of Kafka"
    assert output.err.splitlines() == [
        f"klamm: {foreign}: it is no pcap or pcapng file",
        f"klamm: {empty}: it is empty",
        f"klamm: {cut}: it ends within packet 12",
    ]


def test_where_nothing_can_be_read_nothing_else_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("foreign")
    assert run(foreign, "-o", tmp_path / "capture") == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"klamm: {foreign}: it is no pcap or pcapng file\n")


def test_files_of_one_capture_are_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packets = Dialogue().open().ask(0).ask(1, **ORDERS).close().packets
    (tmp_path / "b").write_bytes(pcap(packets[:6]))
    (tmp_path / "a").write_bytes(gzip.compress(pcap(packets[6:])))
    assert run(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "capture") == 0
    assert "  Metadata     1         1" in capsys.readouterr().out.splitlines()


def test_packets_come_through_a_pipe_too(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with file.open("rb") as opened:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(opened))
        assert run("-", "-o", tmp_path / "capture") == 0
    assert "1 connection of Kafka" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ports", "found"), [(["29092"], 1), (["1,29092"], 1), (["1", "--port", "29092"], 1), (["1"], 0)]
)
def test_ports_may_be_named(
    ports: list[str], found: int, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, "-o", tmp_path / "capture", "--json", "--port", *ports) == 0
    assert json.loads(capsys.readouterr().out)["connections"]["kafka"] == found


@pytest.mark.parametrize(("words", "kept"), [([], False), (["--records", "keep"], True)])
def test_records_are_blanked_unless_they_are_to_be_kept(words: list[str], kept: bool, tmp_path: Path) -> None:
    records = write(Batch(), [Record(value=b"of a customer")])
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    asked = {"acks": -1, "timeout_ms": 1, "topic_data": topics}
    dialogue = Dialogue().open().ask(0)
    dialogue.send("request", request(1, "Produce", 8, **asked))
    path = tmp_path / "kafka.pcap"
    path.write_bytes(pcap(dialogue.packets))
    assert run(path, "-o", tmp_path / "capture", *words) == 0
    assert any(b"customer" in (row.frame or b"") for row in read([tmp_path / "capture"])) is kept


def test_tls_is_named_and_read_with_its_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, secrets = encrypted(tmp_path, ssl.TLSVersion.TLSv1_3)
    assert run(file, "-o", tmp_path / "none") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:] == [
        "0 connections of Kafka, 1 of TLS",
        "TLS, not read: 1 connection to 10.0.0.1:29092",
        "TLS is read with --keys, if clients wrote an SSLKEYLOGFILE",
        "nothing was written",
    ]
    assert not (tmp_path / "none").exists()
    assert run(file, "-o", tmp_path / "capture", "--keys", secrets) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "1 connection of Kafka (1 in TLS)"
    rows = [row for row in read([tmp_path / "capture"]) if row.kind == "frame"]
    assert [row.correlation_id for row in rows] == [n // 2 for n in range(10)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["absent.pcap", "-o", "capture"], "klamm: cannot read absent.pcap: No such file or directory"),
        (["{file}", "-o", "{file}"], "klamm: -o {file}: a capture is a folder, and this is a file"),
        (["{file}", "-o", "capture", "--port", "x"], "klamm: --port: 'x' is not a port number"),
        (["{file}", "-o", "capture", "--keys", "absent"], "klamm: --keys: there is no file absent"),
        (
            ["-", "-o", "capture", "--keys", "{file}"],
            "klamm: --keys: tshark reads files, not the standard input",
        ),
    ],
)
def test_wrong_words_are_named(
    words: list[str], problem: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*(word.format(file=file) for word in words)) == 2
    assert capsys.readouterr().err.splitlines()[0] == problem.format(file=file)


def test_a_capture_that_is_there_is_added_to_only_if_so_asked(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "capture"
    assert run(file, "-o", folder) == 0
    before = list(read([folder]))
    capsys.readouterr()
    assert run(file, "-o", folder) == 2
    reason = f"{folder} is there already: name a new folder, or say --append to add to it"
    assert capsys.readouterr().err == f"klamm: {reason}\n"
    assert list(read([folder])) == before
    assert run(file, "-o", folder, "--append") == 0
    assert len(list(read([folder]))) == 2 * len(before)


def test_a_full_disk_is_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("klamm.captures.storage.growing.Growing.write", full)
    assert run(file, "-o", tmp_path / "capture") == 1
    assert capsys.readouterr().err == f"klamm: {tmp_path / 'capture'}: No space left on device\n"


def test_answers_without_their_requests_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialogue = Dialogue().open().ask(0).ask(1, **ORDERS).ask(2, **ORDERS).close()
    del dialogue.packets[5]  # the request 1
    file = tmp_path / "kafka.pcap"
    file.write_bytes(pcap(dialogue.packets))
    assert run(file, "-o", tmp_path / "capture") == 1
    assert capsys.readouterr().out.splitlines()[3:8] == [
        "  api          requests  responses",
        "  Metadata     1         1",
        "  ApiVersions  1         1",
        "",
        "answers without their requests: 1, 20B",
    ]
    run(file, "-o", tmp_path / "another", "--json")
    found = json.loads(capsys.readouterr().out)
    assert {one["api"] for one in found["apis"]} == {"ApiVersions", "Metadata"}
    assert found["without_request"] == {"responses": 1, "bytes": 20}


def test_packets_that_are_not_read_are_named_with_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arp, lldp = (MACS + kind + bytes(28) for kind in (b"\x08\x06", b"\x88\xcc"))
    frames = 2 * [arp] + 3 * [MACS + vxlan(arp)] + [MACS + vxlan(lldp)] + [MACS + udp(4789, b"\x08")]
    file = tmp_path / "mirrored.pcap"
    file.write_bytes(pcap(Packet(BEGIN_NS, ETHERNET, frame) for frame in frames))
    assert run(file, "-o", tmp_path / "capture") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "0 connections of Kafka",
        "not read: 6 packets, not TCP (3 ARP in VXLAN, 2 ARP, 1 LLDP in VXLAN)",
        "not read: 1 packet, malformed or cut short (VXLAN)",
        "nothing was written",
    ]
    assert run(file, "-o", tmp_path / "another", "--json") == 0
    unread = json.loads(capsys.readouterr().out)["unread_packets"]
    assert unread[0] == {"why": "not TCP", "what": "ARP in VXLAN", "packets": 3}


def test_of_many_kinds_of_packets_the_most_frequent_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = [MACS + udp(port, b"") for port in range(1, 15) for _ in range(20 - port)]
    file = tmp_path / "many.pcap"
    file.write_bytes(pcap(Packet(BEGIN_NS, ETHERNET, frame) for frame in frames))
    run(file, "-o", tmp_path / "capture")
    line = capsys.readouterr().out.splitlines()[2]
    assert line.startswith("not read: 175 packets, not TCP (19 UDP port 1, 18 UDP port 2, ")
    assert line.endswith(", 10 UDP port 10, 30 of 4 more kinds)")


def test_it_needs_no_library_of_an_extra(file: Path, tmp_path: Path) -> None:
    absent = dict.fromkeys(("pyarrow", "dpkt", "cramjam", "zstandard"))
    program = f"import sys; sys.modules.update({absent}); from klamm.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "import", str(file), "-o", str(tmp_path / "capture")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(read([tmp_path / "capture"]))) == 8
