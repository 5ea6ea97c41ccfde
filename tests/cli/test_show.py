"""`klamm show`: what is printed, and the exit code."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.captured import Captured, Fate
from klamm.captures.storage.leftovers import CUT
from klamm.captures.storage.reading import Reading, read
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import write_file
from klamm.cli import main
from klamm.decoders import API, encode, records
from klamm.decoders.headers import response_frame
from klamm.decoders.records import Batch, Record
from klamm.settings.extras import installing
from tests.captures.rows import MS, START_NS, Talk, connection, in_time, lost, written

Says = Callable[..., tuple[int, str, str]]  # exit code, output, errors

METADATA = "22:13:20.001 Metadata v12 client=app broker=1 connection=1 orders 22B -> 53B 1.0ms"
PRODUCE = "22:13:20.002 Produce v9 client=app broker=1 connection=1 orders[3] 42B -> 57B 1.0ms"
FETCH = "22:13:20.007 Fetch v15 client=app broker=1 connection=1 orders[3] 94B -> 76B 5.0ms"
HEARTBEAT = (
    "22:13:20.008 Heartbeat v4 client=app broker=1 connection=1 group=billing 34B -> 16B 1.0ms "
    "REBALANCE_IN_PROGRESS"
)


def work() -> Talk:
    return Talk().opened().metadata().produce().fetch().heartbeat(27)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "a.arrow", work().rows)


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["show", *words])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


def test_an_exchange_is_a_line_as_in_tail(capture: Path, says: Says) -> None:
    code, out, errors = says("a.arrow")
    assert (code, errors) == (0, "")
    assert out.splitlines() == ["2023-11-14", METADATA, PRODUCE, FETCH, HEARTBEAT]


def test_an_expression_chooses_wherever_it_stands(capture: Path, says: Says) -> None:
    for words in (
        ("a.arrow", "error != NONE"),
        ("error != NONE", "a.arrow"),
        ("a.arrow", "-n", "1", "error != NONE"),
    ):
        assert says(*words)[1].splitlines()[1:] == [HEARTBEAT]


def test_nothing_found_is_said_with_how_much_was_looked_at(capture: Path, says: Says, tmp_path: Path) -> None:
    nothing = "klamm: 0 of 4 exchanges matched\n"
    assert says("a.arrow", 'group == "nosuch"') == (0, "", nothing)
    assert says("a.arrow", 'group == "nosuch"', "--json") == (0, "", nothing)
    code, out, errors = says("a.arrow", 'group == "nosuch"', "-o", "cut")
    assert (code, out, errors) == (0, "cut: 0 rows in 0 segments\n", nothing)
    assert says("a.arrow", 'group == "billing"')[2] == ""
    empty = str(written(tmp_path / "empty.arrow", Talk().opened().rows))
    assert says(empty, "error != NONE") == (0, "", "klamm: 0 of 0 exchanges matched\n")


def test_a_time_outside_of_the_capture_is_answered_with_what_it_covers(capture: Path, says: Says) -> None:
    covers = "klamm: the capture covers 2023-11-14 22:13:20.000 to 2023-11-14 22:13:20.008\n"
    for words in (("--since", "23:00"), ("--until", "2020-01-01")):
        assert says("a.arrow", *words) == (0, "", f"klamm: 0 of 4 exchanges lie in that time\n{covers}")
    assert says("a.arrow", "--since", "23:00", "error != NONE")[2] == (
        f"klamm: 0 of 4 exchanges matched\n{covers}"
    )


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (
            "blank",
            "klamm: records are blanked in this capture (klamm run --capture-records keep, or klamm import",
        ),
        (
            "hash",
            "klamm: records are hashed in this capture (klamm run --capture-records keep, or klamm import",
        ),
    ],
)
def test_who_asks_for_records_that_were_not_kept_is_told_so(
    tmp_path: Path, says: Says, kept: str, message: str
) -> None:
    content = batch_of(2)
    talk = Talk().produce(records=content)
    blank(talk, content)
    write_file(tmp_path / "a.arrow", talk.rows, Origin("test", kept))
    _, out, errors = says(str(tmp_path / "a.arrow"), 'record.value == "x"')
    assert (out, errors.splitlines()[0]) == ("", "klamm: 0 of 1 exchange matched")
    assert errors.splitlines()[1].startswith(message)
    write_file(tmp_path / "b.arrow", Talk().produce(records=content).rows, Origin("test", "keep"))
    assert says(str(tmp_path / "b.arrow"), 'record.value == "x"')[2] == "klamm: 0 of 1 exchange matched\n"


def test_a_connection_is_followed_by_its_number_or_its_port(tmp_path: Path, says: Says) -> None:
    one, other = Talk().heartbeat(), Talk(of=connection(12, client="10.0.0.9:4711"), now_ms=5).heartbeat()
    path = str(written(tmp_path / "a.arrow", in_time(one, other)))
    everything, number, port = (
        says(path, *words)[1].splitlines()[1:]
        for words in ((), ("connection == 12",), ("client_port == 4711",))
    )
    assert ["connection=1 " in everything[0], "connection=12 " in everything[1]] == [True, True]
    assert number == port == everything[1:]
    assert [
        json.loads(says(path, "connection == 12", "--json")[1])[key]
        for key in ("connection", "connection_id")
    ] == ["10.0.0.9:4711", 12]
    assert len(says(path, "duration > 0.5")[1].splitlines()) == 3


def test_count_ends_it(capture: Path, says: Says) -> None:
    assert says("a.arrow", "-n", "2")[1].splitlines()[1:] == [METADATA, PRODUCE]


def test_times_are_local_or_in_utc(capture: Path, says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    day, first, *_ = says("a.arrow")[1].splitlines()
    assert (day, first.split()[0]) == ("2023-11-15", "07:13:20.001")
    assert says("a.arrow", "--utc")[1].splitlines()[0] == "2023-11-14"


def test_values_are_a_tree_of_the_fields(capture: Path, says: Says) -> None:
    lines = says("a.arrow", "api == Heartbeat", "-v")[1].splitlines()[1:]
    assert lines == [
        HEARTBEAT,
        "  request, 16 bytes",
        "    group_id: billing",
        "    generation_id: 1",
        "    member_id: m",
        "    group_instance_id: None",
        "  response, 7 bytes",
        "    throttle_time_ms: 0",
        "    error_code: 27 REBALANCE_IN_PROGRESS",
    ]


def test_values_name_the_error_of_a_code(tmp_path: Path, says: Says) -> None:
    path = str(written(tmp_path / "a.arrow", Talk().heartbeat(82).heartbeat(0).rows))
    codes = [line.strip() for line in says(path, "-v")[1].splitlines() if "error_code" in line]
    assert codes == ["error_code: 82 FENCED_INSTANCE_ID", "error_code: 0"]
    values = [json.loads(line)["response"]["values"] for line in says(path, "-v", "--json")[1].splitlines()]
    assert [one["error_code"] for one in values] == [82, 0]


def test_hex_is_the_tree_beside_the_bytes_as_in_decode(capture: Path, says: Says) -> None:
    lines = says("a.arrow", "api == Heartbeat", "-x")[1].splitlines()[1:]
    assert lines[:2] == [HEARTBEAT, "  request"]
    assert any("00 00 00 03 " in line and line.endswith("correlation_id: 3") for line in lines)
    assert any(line.endswith('client_id: "app"') for line in lines)
    assert lines[-1].endswith("error_code: 27 REBALANCE_IN_PROGRESS")


def test_blank_records_are_not_shown_as_damaged(tmp_path: Path, says: Says) -> None:
    content = records.write(Batch(), [Record(value=b"x" * 50)] * 2)
    talk = Talk().produce(records=content)
    row = talk.rows[0]
    frame = row.frame or b""
    at = frame.index(content) + 61
    blank = frame[:at] + bytes(len(content) - 61) + frame[at + len(content) - 61 :]
    talk.rows[0] = row._replace(frame=blank, blanks=((at, len(content) - 61),))
    out = says(str(written(tmp_path / "a.arrow", talk.rows)), "-x")[1]
    assert "batch of 2 records, blank" in out
    assert "records_count: 2" in out
    assert "checksum" not in out


def batch_of(values: int, **of_batch: Any) -> bytes:
    """From 22:13:20 on, a record each second."""
    some = [Record(n, START_NS // MS + n * 1000, b"k%d" % n, b"v%d" % n) for n in range(values)]
    return records.write(Batch(**of_batch), some)


def blank(talk: Talk, content: bytes) -> None:
    """The content of its batch, as captures are without --capture-records."""
    row = talk.rows[0]
    frame = row.frame or b""
    at, size = frame.index(content) + 61, len(content) - 61
    talk.rows[0] = row._replace(frame=frame[:at] + bytes(size) + frame[at + size :], blanks=((at, size),))


def test_values_tell_what_batches_are_though_their_records_are_blank(tmp_path: Path, says: Says) -> None:
    content = batch_of(3, codec="gzip", producer_id=4001, producer_epoch=2, base_sequence=17)
    talk = Talk().produce(records=content)
    blank(talk, content)
    path = str(written(tmp_path / "a.arrow", talk.rows))
    expected = [
        f"bytes: {len(content)}", "batches:", "[0]:", "records: 3", f"bytes: {len(content)}", "codec: gzip",
        "offsets: 0-2", "base_timestamp: 2023-11-14 22:13:20.000Z",
        "max_timestamp: 2023-11-14 22:13:22.000Z", "producer_id: 4001", "producer_epoch: 2",
        "base_sequence: 17", "content: blank: this capture keeps no records",
    ]  # fmt: skip
    lines = [line.strip() for line in says(path, "-v")[1].splitlines()]
    at = lines.index("records:") + 1
    assert lines[at : at + len(expected)] == expected
    partition = json.loads(says(path, "-v", "--json")[1])["request"]["values"]["topic_data"][0][
        "partition_data"
    ][0]
    (only,) = partition["records"]["batches"]
    assert (only["records"], only["codec"], only["max_timestamp"]) == (3, "gzip", "2023-11-14 22:13:22.000Z")


def test_values_show_records_that_were_kept_up_to_a_bound(tmp_path: Path, says: Says) -> None:
    talk = Talk().metadata().fetch(records=batch_of(12) + batch_of(1)[:-4])
    path = str(written(tmp_path / "a.arrow", talk.rows))
    out = says(path, "-v")[1]
    assert '[0]: offset 0  2023-11-14 22:13:20.000Z  key "k0"  value "v0"\n' in out
    assert out.count("offset ") == 10
    assert "more: 2 records, which -x shows\n" in out
    assert f"part_of_a_batch: {len(batch_of(1)) - 4}\n" in out
    assert "producer_id" not in out
    assert all(f'"k{n}"' in says(path, "-x")[1] for n in range(12))
    [found] = [json.loads(line) for line in says(path, "api == Fetch", "-v", "--json")[1].splitlines()]
    content = found["response"]["values"]["responses"][0]["partitions"][0]["records"]["batches"][0]["content"]
    assert content[1] == {
        "offset": 1, "timestamp": "2023-11-14 22:13:21.000Z", "key": "k1", "value": "v1", "headers": [],
    }  # fmt: skip


def test_batches_that_are_damaged_or_of_old_messages_are_told_as_far_as_they_can_be(
    tmp_path: Path, says: Says
) -> None:
    damaged = bytearray(batch_of(2))
    damaged[16] = 9
    talk = Talk().produce(records=bytes(damaged)).produce(records=batch_of(2, magic=1), version=2)
    out = says(str(written(tmp_path / "a.arrow", talk.rows)), "-v")[1]
    assert "unreadable: records at byte 0: magic 9; known are 0, 1 and 2\n" in out
    assert 'key "k1"  value "v1"' in out


def test_json_is_an_object_for_each_exchange(capture: Path, says: Says) -> None:
    objects = [json.loads(line) for line in says("a.arrow", "--json")[1].splitlines()]
    assert [one["api"] for one in objects] == ["Metadata", "Produce", "Fetch", "Heartbeat"]
    last = objects[-1]
    assert (last["latency_ms"], last["errors"], last["group"]) == (
        1.0,
        {"REBALANCE_IN_PROGRESS": 1},
        "billing",
    )
    with_bodies = json.loads(says("a.arrow", "api == Heartbeat", "--json", "-v")[1])
    assert with_bodies["request"]["values"]["group_id"] == "billing"


def test_what_klamm_did_and_what_is_missing_is_said(tmp_path: Path, says: Says) -> None:
    talk = Talk().metadata()
    answer = talk.rows[1]
    sent = (answer.frame or b"").replace(b"orders", b"ORDERS")
    talk.rows[1] = answer._replace(fate="rewritten", forwarded=sent)
    talk.heartbeat()
    talk.rows[-2:] = [talk.rows[-2]._replace(fate="withheld"), talk.rows[-1]._replace(fate="made")]
    late = Talk(of=connection(2), now_ms=50).heartbeat()
    talk.request("Heartbeat", 4, {"group_id": "g"})
    path = str(written(tmp_path / "a.arrow", [*talk.rows, late.rows[1], lost(7)]))
    lines = says(path)[1].splitlines()
    assert lines[0] == "... 7 frames are missing here: the disk is slow"
    assert lines[2] == f"{METADATA} (changed by klamm)"
    assert lines[3].endswith("1.0ms (answered by klamm)")
    assert lines[4].endswith("-> 16B answer without its request")
    assert lines[5].endswith("no answer")
    assert "    topics[0].name: orders -> ORDERS" in says(path, "-v", "api == Metadata")[1].splitlines()
    assert says(path, "-x", "api == Metadata")[1].count('name: "ORDERS"') == 1
    objects = [json.loads(line) for line in says(path, "--json")[1].splitlines()]
    assert (objects[0]["lost"], objects[1]["fates"]) == (7, {"response": "rewritten"})
    assert (objects[3]["api"], objects[3]["request_missing"]) == ("Heartbeat", True)


@pytest.mark.parametrize(
    ("side", "fate"), [("request", "rewritten"), ("request", "withheld"), ("response", "withheld")]
)
def test_what_became_of_a_frame_is_told_as_by_klamm_tail(
    side: str, fate: Fate, tmp_path: Path, says: Says
) -> None:
    talk = Talk().heartbeat()
    at = -2 if side == "request" else -1
    talk.rows[at] = talk.rows[at]._replace(fate=fate, forwarded=talk.rows[at].frame)
    path = str(written(tmp_path / "a.arrow", talk.rows))
    assert says(path)[1].splitlines()[1].endswith(f"ms {side} {fate} by klamm")
    object_ = json.loads(says(path, "--json")[1].splitlines()[0])
    assert object_["fates"] == {side: fate}
    assert not [name for name in object_ if name.endswith("delay_ms")]  # nobody knows them


def test_what_klamm_changes_without_a_rule_is_told_apart(tmp_path: Path, says: Says) -> None:
    def metadata(host: str, rack: str = "a", nodes: int = 2) -> dict[str, Any]:
        brokers = [{"node_id": n, "host": f"{host}-{n}", "port": 9092, "rack": rack} for n in range(nodes)]
        return {"brokers": brokers}

    def offered(newest: int, error_code: int = 0) -> dict[str, Any]:
        return {
            "error_code": error_code,
            "api_keys": [{"api_key": 3, "min_version": 0, "max_version": newest}],
        }

    came, talk = metadata("kafka"), Talk()
    cases: list[tuple[str, int, dict[str, Any], dict[str, Any] | bytes, str]] = [
        ("ApiVersions", 3, offered(99), offered(13), "versions limited"),
        ("ApiVersions", 3, offered(99), offered(9), "(changed by klamm)"),
        ("ApiVersions", 3, offered(99), offered(99, 31), "CLUSTER_AUTHORIZATION_FAILED (changed by klamm)"),
        ("Metadata", 12, came, metadata("klamm"), "addresses replaced"),
        ("Metadata", 12, came, metadata("klamm", nodes=1), "addresses replaced"),
        ("Metadata", 12, came, metadata("klamm", "b"), "(changed by klamm)"),
        ("Metadata", 12, came, {**came, "topics": [{"name": "tea"}]}, "(changed by klamm)"),
        ("Metadata", 12, came, b"\x00", "response rewritten"),  # it cannot be read
    ]
    for api, version, one, other, note in cases:
        body = other if isinstance(other, bytes) else encode(other, api, version, "response")
        went = response_frame(API[api], version, len(talk.rows) // 2, body)[4:]
        talk.exchange(api, version, {}, one, fate="rewritten", forwarded=went)
        path = str(written(tmp_path / f"{len(talk.rows)}.arrow", talk.rows[-2:]))
        line, object_ = says(path)[1].splitlines()[1], json.loads(says(path, "--json")[1])
        assert line.rpartition("ms ")[2] == note
        assert object_.get("changed", False) == ("changed" in note)
        assert object_["origin"] == ("klamm" if "changed" in note else "broker")


def test_an_error_that_klamm_put_into_an_answer_is_told_and_found(tmp_path: Path, says: Says) -> None:
    talk = Talk().heartbeat(error_code=27)
    talk.rows[-1] = talk.rows[-1]._replace(
        fate="rewritten", forwarded=(talk.rows[-1].frame or b"").replace(b"\x00\x1b", b"\x00\x19")
    )
    path = str(written(tmp_path / "a.arrow", talk.rows))
    line = says(path)[1].splitlines()[1]  # below the day
    assert line.endswith("UNKNOWN_MEMBER_ID (changed by klamm)")
    for where in ("error == UNKNOWN_MEMBER_ID", "error == REBALANCE_IN_PROGRESS"):
        assert says(path, where)[1].splitlines()[1] == line
    assert json.loads(says(path, "--json")[1].splitlines()[0])["errors"] == {"UNKNOWN_MEMBER_ID": 1}
    (api,) = json.loads(says(path, "--stats", "--json")[1])["apis"]
    assert api["errors"] == {"UNKNOWN_MEMBER_ID": 1}


def test_a_frame_of_a_client_that_is_no_request_is_listed_as_such(tmp_path: Path, says: Says) -> None:
    row = Captured(START_NS, "frame", connection(1), "request", size=3, awaits=False)
    path = str(written(tmp_path / "a.arrow", [row, *Talk().heartbeat().rows]))
    line = says(path)[1].splitlines()[1]
    assert line == "22:13:20.000 frame that is no request broker=1 connection=1 7B"
    assert json.loads(says(path, "--json")[1].splitlines()[0])["api"] == "frame that is no request"


def test_an_answer_without_its_request_is_listed_as_such_with_its_size(tmp_path: Path, says: Says) -> None:
    path = str(written(tmp_path / "a.arrow", Talk().answer_alone(119).heartbeat().rows))
    assert says(path)[1].splitlines()[1] == (
        "22:13:20.000 answer without its request broker=1 connection=1 -> 123B"
    )
    assert says(path, "-v")[1].splitlines()[2] == "  response, 119 bytes: only its size was kept"
    found = json.loads(says(path, "--json")[1].splitlines()[0])
    assert found["request_missing"] is True
    assert (found["api"], found["version"], found["request_bytes"]) == (None, None, None)
    assert (found["response_bytes"], found["correlation_id"]) == (123, 77)


def test_stats_count_answers_without_their_requests_apart(tmp_path: Path, says: Says) -> None:
    talk = Talk().answer_alone(6).answer_alone(56).heartbeat()
    path = str(written(tmp_path / "a.arrow", talk.rows))
    for options in ((), ("--headers",)):
        out = says(path, "--stats", *options)[1]
        assert ": 1 requests of 1 client id in 1 connection\n" in out
        assert [line.split()[0] for line in out.splitlines() if line.startswith("  ")] == [
            "api", "Heartbeat", "client", "app"
        ]  # fmt: skip
        assert "\nanswers without their requests: 2, 70B\n" in out
    found = json.loads(says(path, "--stats", "--json")[1])
    assert [one["api"] for one in found["apis"]] == ["Heartbeat"]
    assert [one["client_id"] for one in found["clients"]] == ["app"]
    assert (found["without_request"]["responses"], found["without_request"]["response_bytes"]) == (2, 70)


def test_what_is_missing_of_a_connection_is_said_with_its_number_and_time(tmp_path: Path, says: Says) -> None:
    talk = Talk(of=connection(7)).heartbeat()
    cut = lost(1, "the connection ended in the middle of a request", at_ms=2)._replace(connection=talk.of)
    path = str(written(tmp_path / "a.arrow", [*talk.rows, cut]))
    assert says(path)[1].splitlines()[-1] == (
        "... 22:13:20.002 connection=7: 1 frame is missing here: "
        "the connection ended in the middle of a request"
    )
    document = json.loads(says(path, "--json")[1].splitlines()[-1])
    assert (document["lost"], document["connection"], document["connection_id"]) == (1, "10.0.0.7:50000", 7)


def test_what_was_kept_as_its_size_only_says_so(tmp_path: Path, says: Says) -> None:
    path = str(written(tmp_path / "a.arrow", [row._replace(frame=None) for row in Talk().heartbeat().rows]))
    assert "Heartbeat v4 client=app broker=1 connection=1 34B -> 16B 1.0ms" in says(path)[1]
    for option in ("-v", "-x"):
        assert says(path, option)[1].count("only its size was kept") == 2


def test_an_api_that_klamm_does_not_know_is_shown_by_its_key(tmp_path: Path, says: Says) -> None:
    rows = [row._replace(api_key=9999) for row in Talk().heartbeat().rows]
    path = str(written(tmp_path / "a.arrow", rows))
    assert "API key 9999 v4 client=app" in says(path)[1]
    assert "API key 9999 v4 is not known to klamm: " in says(path, "-x")[1]


def test_several_captures_are_read_as_one(tmp_path: Path, says: Says) -> None:
    one = Talk(of=connection(run="a")).heartbeat().heartbeat()
    other = Talk(of=connection(run="b", client="10.0.0.9:1"), now_ms=0.5, client_id="other").heartbeat()
    paths = [str(written(tmp_path / f"{n}.arrow", rows)) for n, rows in enumerate((one.rows, other.rows))]
    found = [json.loads(line)["client_id"] for line in says(*paths, "--json")[1].splitlines()]
    assert found == ["app", "other", "app"]


def test_each_of_several_captures_has_its_own_numbers_of_connections(tmp_path: Path, says: Says) -> None:
    one = Talk(of=connection(7, run="a")).heartbeat()
    other = Talk(of=connection(7, run="b", client="10.0.0.9:1"), now_ms=5, client_id="other").heartbeat()
    paths = [str(written(tmp_path / f"{n}.arrow", rows)) for n, rows in enumerate((one.rows, other.rows))]
    found = [json.loads(line) for line in says(*paths, "connection == 7", "--json")[1].splitlines()]
    assert [(line["client_id"], line["connection_id"]) for line in found] == [("app", 7), ("other", 7)]


def test_stats_sum_up(capture: Path, says: Says) -> None:
    code, out, _ = says("a.arrow", "--stats")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith(
        "2023-11-14 22:13:20 to 2023-11-14 22:13:20 (0.0 s): 4 requests of 1 client id in 1"
    )
    assert ["Fetch", "v15", "1", "25.0%", "94B", "76B", "94B,", "76B", "5.0ms", "5.0ms", "5.0ms"] in lines
    [beat] = [line for line in lines if line[:1] == ["Heartbeat"]]
    assert beat[-2:] == ["REBALANCE_IN_PROGRESS", "1"]
    assert ["app", "4", "100.0%", "192B", "202B"] in lines
    assert "REBALANCE" not in says("a.arrow", "--stats", "--headers")[1]


def test_without_errors_no_column_of_bodies_is_read(
    capture: Path, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    batches = Reading.batches

    def noted(reading: Reading, columns: Collection[str]) -> Iterator[Any]:
        asked.update(columns)
        return batches(reading, columns)

    monkeypatch.setattr(Reading, "batches", noted)
    monkeypatch.delattr(Reading, "__iter__")  # which would read rows
    assert says("a.arrow", "--stats", "--headers")[0] == 0
    assert asked & {"frame", "forwarded", "size"} == {"size"}
    assert says("a.arrow", "--stats")[0] == 0
    assert "frame" in asked


def test_stats_as_json_are_one_object(capture: Path, says: Says) -> None:
    found = json.loads(says("a.arrow", "--stats", "--json")[1])
    [beat] = [api for api in found["apis"] if api["api"] == "Heartbeat"]
    assert beat == {
        "api": "Heartbeat", "version": 4,
        "requests": 1, "responses": 1, "request_bytes": 34, "response_bytes": 16,
        "latency_ms": {"p50": 1.0, "p99": 1.0, "max": 1.0}, "errors": {"REBALANCE_IN_PROGRESS": 1},
    }  # fmt: skip
    assert (found["connections"], found["unanswered"], found["lost"]) == (1, 0, [])


def test_stats_say_what_was_lost_and_what_has_no_answer(tmp_path: Path, says: Says) -> None:
    talk = Talk().heartbeat()
    talk.request("Heartbeat", 4, {"group_id": "g"})
    out = says(str(written(tmp_path / "a.arrow", [*talk.rows, lost(7)])), "--stats")[1]
    assert "lost: 7 frames: the disk is slow" in out
    assert "without an answer: 1 request\n" in out


def test_a_capture_that_was_cut_short_says_so(tmp_path: Path, says: Says) -> None:
    path = str(written(tmp_path / "a.arrow", [*Talk().heartbeat().rows, lost(0, CUT, at_ms=1)]))
    assert "\nthe capture ends abruptly: its last moments may be missing\n" in says(path, "--stats")[1]
    assert "... the capture ends abruptly: its last moments may be missing\n" in says(path)[1]


def test_output_cuts_and_merges(tmp_path: Path, says: Says) -> None:
    one = Talk(of=connection(run="a")).opened().heartbeat(27).metadata().closed("done")
    other = Talk(of=connection(run="b"), now_ms=0.5, client_id="other").heartbeat(27)
    quiet = Talk(of=connection(5, run="b"), now_ms=9).metadata()
    paths = [
        str(written(tmp_path / f"{n}.arrow", rows))
        for n, rows in enumerate((one.rows, in_time(other, quiet) + [lost(3)]))
    ]
    merged, cut = tmp_path / "merged.arrow", tmp_path / "cut"
    assert says(*paths, "-o", str(merged))[:2] == (0, f"{merged}: 11 rows\n")
    rows = [lost(3), *in_time(one, other, quiet)]
    assert sorted(read(merged), key=key) == sorted(rows, key=key)
    assert says(str(merged), "error != NONE", "-o", str(cut))[:2] == (0, f"{cut}: 7 rows in 1 segment\n")
    wanted = [
        row for row in rows if row.api_key == 12 or (row.kind != "frame" and row.connection != quiet.of)
    ]
    assert sorted(read(cut), key=key) == sorted(wanted, key=key)


def key(row: Captured) -> tuple[int, str, str]:
    return row.time_ns, row.kind, str(row.connection)


def test_exchanges_of_a_time_are_those_that_ended_in_it(capture: Path, says: Says, tmp_path: Path) -> None:
    def listed(*words: str) -> list[str]:
        return says(*words)[1].splitlines()[1:]

    assert listed("a.arrow", "--until", "22:13:20.002") == [METADATA]
    assert listed("a.arrow", "--since", "2023-11-14T22:13:20.007") == [FETCH, HEARTBEAT]
    assert listed("a.arrow", "--since", "2023-11-15T07:13:20.008+09:00") == [HEARTBEAT]
    says("a.arrow", "--since", "22:13:20.002", "--until", "22:13:20.008", "-o", "cut")
    assert [row.api_key for row in read(tmp_path / "cut") if row.kind == "frame"] == [0, 0, 1, 1]


def test_a_time_is_shown_without_what_is_damaged_or_missing_elsewhere(says: Says, tmp_path: Path) -> None:
    """But with the names of topics that were told before it."""
    folder = tmp_path / "capture"
    folder.mkdir()
    written(folder / "1.arrow", Talk(connection(1)).opened().metadata().rows)
    path = written(folder / "2.arrow", [*Talk(connection(2), now_ms=10_000).heartbeat().rows, lost(3)])
    written(folder / "3.arrow", Talk(connection(3), now_ms=60_000).opened().fetch().rows)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"billing")] ^= 1
    path.write_bytes(damaged)
    code, out, errors = says(str(folder), "--since", "22:14")
    assert (code, errors, len(out.splitlines())) == (0, "", 2)
    assert " Fetch v15 client=app broker=1 connection=3 orders[3] " in out
    code, out, errors = says(str(folder))
    assert (code, len(out.splitlines()), errors.startswith(f"klamm: {path}: damaged")) == (1, 3, True)


def test_a_cut_has_names_of_topics_where_it_has_the_metadata_that_tells_them(
    capture: Path, says: Says, tmp_path: Path
) -> None:
    for where, named in (("api == Fetch", False), ("api == Fetch or api == Metadata", True)):
        cut = str(tmp_path / f"{named}.arrow")
        says("a.arrow", where, "-o", cut)
        fetched = says(cut)[1].splitlines()[-1]
        assert (" Fetch v15 " in fetched, "orders" in fetched) == (True, named)


def test_output_does_not_touch_what_is_there(capture: Path, says: Says) -> None:
    code, _, errors = says("a.arrow", "-o", "a.arrow")
    assert (code, errors) == (2, "klamm: a.arrow is there already: name a new file or folder\n")
    assert len(list(read(capture))) == len(work().rows)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nothing",), "'nothing' is no file or folder; the first word is a capture: a file or a folder"),
        (("nothing", "api == Fetch"), "'nothing' is no file or folder; the first word is a capture"),
        (("a.arrow", "nothing", "api == Fetch"), "'nothing' is no file or folder"),
        (
            ("a.arrow", "gruop == 1"),
            'unknown field "gruop" (column 1); did you mean group?',
        ),
        (("a.arrow", "api =="), "not an expression: it ends too early (column 6)"),
        (
            ("a.arrow", "latency_ms > 500ms"),
            "not an expression: numbers have no units; times are in ms, sizes in bytes (column 16)",
        ),
        (("latency > 5",), 'unknown field "latency" (column 1); did you mean latency_ms?'),
        (("latency_ms > 5",), "name a capture, a file or a folder, before 'latency_ms > 5'"),
        (("a.arrow", "api == produce"), "API names are case-sensitive: Produce (column 8)"),
        (("a.arrow", "topic == orders"), 'text needs quotes: topic == "orders" (column 10)'),
        (("a.arrow", 'latency_ms > "5"'), "latency_ms is a number: drop the quotes (column 1)"),
        (("a.arrow", "error"), "write error != NONE (column 1)"),
        (("a.arrow", "api == Fetch", "version > 3"), "two expressions: join them with and: 'version > 3'"),
        (("a.arrow", "api", "==", "Fetch"), "quote the expression: 'api == Fetch'"),
        (("a.arrow", "tpics"), "'tpics' is no file or folder, and no expression: tpics is no condition"),
        (("a.arrow", "--headers"), "--headers is of --stats: say both"),
        (
            ("a.arrow", "--stats", "api == Fetch"),
            "--stats is of whole captures: cut a part",
        ),
        (("a.arrow", "-f", "--stats"), "--follow lists exchanges as they come: leave out --stats"),
        (
            ("a.arrow", "--since", "yesterday"),
            "--since yesterday: write it as 15:30:12.5, or",
        ),
        (("a.arrow", "-n", "0"), "--count 0: must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_said(capture: Path, says: Says, words: tuple[str, ...], reason: str) -> None:
    code, out, errors = says(*words)
    assert (code, out) == (2, "")
    assert errors.startswith(f"klamm: {reason}")
    assert len(errors.splitlines()) == 1


def test_what_is_damaged_is_said_in_a_line_and_the_rest_is_shown(
    capture: Path, says: Says, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("no capture")
    (tmp_path / "empty").mkdir()
    code, out, errors = says("a.arrow", "notes.txt", "empty")
    assert code == 1
    assert out.splitlines()[1:] == [METADATA, PRODUCE, FETCH, HEARTBEAT]
    assert len(errors.splitlines()) == 2
    assert "notes.txt" in errors
    assert "empty" in errors
    assert says("a.arrow", "notes.txt", "--stats")[0] == 1


def test_a_capture_that_grows_is_followed(capture: Path, says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    more = Talk(of=connection(2), now_ms=60, client_id="late").heartbeat()
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            written(capture.with_name("b.arrow"), more.rows)
        assert len(looks) < 5

    monkeypatch.setattr("klamm.cli.captures.show.time.sleep", sleep)
    out = says(".", "-f", "-n", "5")[1]
    assert out.splitlines()[1:5] == [METADATA, PRODUCE, FETCH, HEARTBEAT]
    assert "client=late" in out.splitlines()[5]
    assert looks == [0.5, 0.5]


def test_without_pyarrow_it_says_what_to_install(
    capture: Path, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, errors = says("a.arrow")
    assert (code, errors) == (1, f"klamm: klamm show needs pyarrow: {installing('capture')}\n")
