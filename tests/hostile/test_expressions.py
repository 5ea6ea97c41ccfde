"""Expressions over hostile frames, and hostile expressions: bounded in work, and blind to secrets."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.streams.blanking import Keeping
from klamm.cli import main
from klamm.client import Refused
from klamm.decoders import API, DecodeError, decode, encode
from klamm.decoders.records import Batch, Record, v2, write
from klamm.decoders.records.codecs import compress
from klamm.decoders.records.shapes import CODECS
from klamm.decoders.schema import SECRET, Api, Field, Side, all_fields
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine, Gate
from klamm.rules.expressions import SIDES, ExpressionError, parse
from klamm.rules.expressions.failure import Secret
from klamm.rules.expressions.work import LIVE, OFFLINE, OverLimit
from klamm.rules.file.rule_file import load
from klamm.rules.frame import Frame, Peer
from klamm.rules.rule import Rule
from tests.captures.made_traffic import exchange_steps, play
from tests.captures.rows import written
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api
from tests.proxy.traffic import exchange

PEER = Peer("blue", "2", "10.0.0.1:5555", "k", 12)
TINY = b"\x0c\0\0\0\1\1\0"  # a record of seven bytes: no key, no value
MOST_CALLS = 4 * LIVE  # in one evaluation: a step is some calls of functions


def frame(name: str, version: int, side: Side, values: dict[str, Any]) -> Frame:
    return Frame(API[name], version, side, encode(values, name, version, side), "app", PEER, 0)


def produce(records: bytes) -> Frame:
    data = [{"name": "o", "partition_data": [{"index": 0, "records": records}]}]
    return frame("Produce", 9, "request", {"acks": 1, "topic_data": data})


def tiny_records(count: int, codec: str = "gzip") -> bytes:
    """So many records in few bytes."""
    body = compress(codec, TINY * count) if codec != "none" else TINY * count
    checked = v2.CHECKED.pack(CODECS.index(codec), count - 1, 0, 0, -1, -1, -1, count) + body
    return v2.UNCHECKED.pack(0, v2.UNCHECKED.size - 12 + len(checked), -1, 2, 0) + checked


def metadata(topics: int) -> Frame:
    rows = [{"name": f"t{n}", "topic_id": n.to_bytes(16, "big"), "partitions": []} for n in range(topics)]
    return frame("Metadata", 12, "response", {"topics": rows})


def calls_of(text: str, of: Frame) -> tuple[bool, int]:
    """Whether the limit was met, and how many functions were called until then: work, without a clock."""
    judge, calls = parse(text).on(of.api, of.version, of.side), 0
    with suppress(DecodeError):  # once before, since what is made on first use is made once
        judge(frame(of.api.name, of.version, of.side, {}))

    def count(frame: object, event: str, what: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        judge(of)
        return False, calls
    except OverLimit:
        return True, calls
    finally:
        sys.setprofile(before)


THREE = " and ".join(("a.name == b.name", "b.name == c.name", "a.name == 'x'"))
USUAL = Record(key=b"a", value=b'{"id": 7, "name": "%s"}' % (b"v" * 180))
EMPTY = write(Batch(base_offset=0, last_offset=0), [])
MUCH = write(Batch(codec="gzip"), [Record(value=bytes(1 << 20))])
LISTS = write(Batch(codec="gzip"), [Record(value=b"[" + b"[]," * 900_000 + b"[]]")])
OLD = write(Batch(codec="gzip", magic=1), [Record(number, 0) for number in range(100_000)])
ATTACKS: dict[str, tuple[str, Frame]] = {
    "tiny records": ("record.key == 'k'", produce(tiny_records(300_000))),
    "tiny records of another codec": ("record.key == 'k'", produce(tiny_records(300_000, "zstd"))),
    "tiny records, not compressed": ("record.key == 'k'", produce(tiny_records(100_000, "none"))),
    "many batches of tiny records": ("record.key == 'k'", produce(tiny_records(3000) * 100)),
    "many batches that yield much": ("record.key == 'k'", produce(MUCH * 100)),
    "many empty batches": ("record.key == 'k'", produce(EMPTY * 30_000)),
    "messages of old clients": ("record.key == 'k'", produce(OLD)),
    "nested any": (f"any({THREE} for a in topics for b in topics for c in topics)", metadata(300)),
    "nested all": ("all(a.name == b.name or True for a in topics for b in topics)", metadata(1000)),
    "a name for several in any": ("any(topic == 'x' for t in topics)", metadata(3000)),
    "text in text of each": ("any('x' in client_id for a in topics for b in topics)", metadata(1000)),
    "JSON of many lists": ("json(record.value).a == 1", produce(LISTS)),
    "text of many bytes": (" or ".join(["lower(record.value) == 'k'"] * 100), produce(MUCH)),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_work_of_an_evaluation_is_bounded(attack: str) -> None:
    limited, calls = calls_of(*ATTACKS[attack])
    assert limited
    assert calls < MOST_CALLS


def test_records_with_very_many_headers_are_unknown() -> None:
    headers = (("", None),) * 200_000
    of = produce(write(Batch(), [Record(headers=headers)]))
    limited, calls = calls_of("record.key == 'k'", of)
    assert not limited
    assert calls < 1000
    assert parse("record.key == 'k'").on(of.api, of.version, of.side)(of) is None


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("record.key == 'k'", produce(write(Batch(codec="gzip"), [USUAL] * 3000))),
        ("any(t.error_code == 3 for t in topics)", metadata(10_000)),
        ("topic == 'orders' and error == NONE", metadata(10_000)),
        ("any(a.name == b.name and a.error_code == 1 for a in topics for b in topics)", metadata(100)),
        ("json(record.value).id == 7", produce(write(Batch(), [USUAL] * 500))),
    ],
)  # fmt: skip
def test_what_people_ask_of_large_frames_is_answered(text: str, of: Frame) -> None:
    assert parse(text).on(of.api, of.version, of.side)(of) in (True, False)


def test_beyond_the_limit_there_is_no_match_and_it_is_counted() -> None:
    text, of = ATTACKS["nested any"]
    for said in (text, f"not {text}", f"size < 0 or {text}"):
        where = parse(said)
        assert not where.holds(None, of)
        assert where.unjudged == 1


def test_commands_that_read_captures_may_work_more_but_not_without_end() -> None:
    text, many = ATTACKS["nested any"]
    few = metadata(60)
    assert parse(text, OFFLINE).on(few.api, 12, "response")(few) is False
    for limit, of in ((LIVE, few), (OFFLINE, many)):
        with pytest.raises(OverLimit):
            parse(text, limit).on(of.api, 12, "response")(of)


def test_a_rule_whose_condition_takes_too_much_work_does_not_act_and_says_so_once() -> None:
    text, of = ATTACKS["nested any"]
    engine = Engine(1)
    rule = Rule("r", (ACTIONS["delay"](1),), keys=frozenset({3}), side="response", where=parse(text))  # type: ignore[call-arg]
    engine.load([rule], 0)
    gate = Gate(engine, PEER, lambda topic_id: None)
    look = gate.look(engine.concerned(of.api, 12, "response", PEER, "app"), "app", 0)
    for _ in range(3):
        assert gate.orders(of, look, 0) == []
    counted = engine.by_name["r"]
    assert (counted.matches, counted.hits, counted.failures) == (0, 0, 3)
    why = "its condition does not match where it takes more than 100,000 steps, as on a Metadata response"
    assert engine.failed == [("r", why)]


@on_uvloop
async def test_a_listener_is_told_how_many_frames_took_too_much_work() -> None:
    async with api() as it:
        client = await it.edge.client()
        async with it.klamm.live("record.key == 'k'") as lines:
            await client.ask("Produce", 9, decode(ATTACKS["tiny records"][1].body, 0, 9, "request"))
            async with asyncio.timeout(5):
                line = await anext(lines)
        assert (line.exchange, line.dropped, line.unjudged) == (None, 0, 1)
        await it.klamm.exchanges(bodies=True)
        await client.ask("Produce", 9, decode(ATTACKS["tiny records"][1].body, 0, 9, "request"))
        found = await it.klamm.exchanges("record.key == 'k'")
        assert (found.exchanges, found.unjudged) == ([], 1)


def test_show_says_how_many_frames_took_too_much_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, of = ATTACKS["nested any"]
    values = decode(of.body, 3, 12, "response")
    rows = play(exchange_steps(exchange("Metadata", 12, {}, values)), keeping=Keeping("keep"))
    capture = written(tmp_path / "capture.arrow", rows)
    assert main(["show", str(capture), text]) == 1
    said = f"left out: 1 frame on which the expression takes more than {OFFLINE:,} steps"
    assert said in capsys.readouterr().err


def secrets() -> list[tuple[Api, Side, tuple[str, ...], Field]]:
    """Every field with a secret."""
    return [
        (one, side, path, f)
        for one in API
        for side in SIDES
        for path, f in all_fields(one.fields(side), one.versions.last)
        if f.mark == SECRET
    ]


def about(one: Api, side: Side, path: tuple[str, ...], what: str) -> str:
    """A condition about a field, through the arrays on its way; `what` has {} in its place."""
    fields, at, loops = dict(all_fields(one.fields(side), one.versions.last)), "body", ""
    for depth, name in enumerate(path[:-1], 1):
        at = f"{at}.{name}"
        if fields[path[:depth]].kind == "array":
            loops += f" for x{depth} in {at}"
            at = f"x{depth}"
    condition = what.format(f"{at}.{path[-1]}")
    return f"any({condition}{loops})" if loops else condition


TELLING = ("{} == 'a'", "{} < 'a'", "startswith({}, 'a')", "matches({}, 'a')", "'a' in {}",
           "lower({}) == 'a'", "{} in ['a', 'b']", "glob({}, 'a*')", "not {} != 'a'")  # fmt: skip


@pytest.mark.parametrize(
    ("one", "side", "path", "f"), secrets(), ids=lambda v: v.name if isinstance(v, Api) else None
)
def test_a_secret_is_compared_by_rules_of_files_only(
    one: Api, side: Side, path: tuple[str, ...], f: Field
) -> None:
    for what in TELLING:
        text = about(one, side, path, what)
        assert isinstance(parse(text).misfit(one, one.versions.last, side), Secret), text
        assert parse(text, secrets=True).fits(one, one.versions.last, side) is None, text
    allowed = ["{} is None", "{} is not None", *(["len({}) == 3"] if f.kind == "bytes" else [])]
    for what in allowed:
        assert parse(about(one, side, path, what)).fits(one, one.versions.last, side) is None
    whole = parse(about(one, side, path, "{}"), secrets=True)
    with pytest.raises(ExpressionError):
        whole.value_on(one, one.versions.last, side)


def test_a_field_is_a_secret_in_all_its_versions() -> None:
    for one in API:
        for side in SIDES:
            marks: dict[tuple[str, ...], set[bool]] = {}
            for version in range(one.versions.first, one.versions.last + 1):
                for path, f in all_fields(one.fields(side), version):
                    marks.setdefault(path, set()).add(f.mark == SECRET)
            assert all(len(found) == 1 for found in marks.values()), one.name


ORACLE = 'startswith(auth_bytes, "\\0alice\\0h")'
REFUSED = "auth_bytes is a secret"


@on_uvloop
async def test_the_admin_api_answers_no_question_about_a_secret() -> None:
    async with api() as it:
        with pytest.raises(Refused, match=REFUSED):
            async with it.klamm.live(ORACLE):
                pass
        with pytest.raises(Refused, match=REFUSED):
            await it.klamm.exchanges(ORACLE)
        with pytest.raises(Refused) as no:
            await it.klamm.add_rule({"api": "SaslAuthenticate", "where": ORACLE, "delay": "1ms"})
        assert REFUSED in no.value.mistakes[0].reason
        with pytest.raises(Refused) as no:
            await it.klamm.add_rule({"api": "SaslAuthenticate", "set": {"auth_bytes": "= auth_bytes"}})
        assert REFUSED in no.value.mistakes[0].reason


@pytest.mark.parametrize("command", ["show", "export"])
def test_commands_answer_no_question_about_a_secret(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = play(exchange_steps(exchange("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0hush"}, {})))
    capture = written(tmp_path / "capture.arrow", rows)
    output = ["-o", str(tmp_path / "out.jsonl")] if command == "export" else []
    assert main([command, str(capture), ORACLE, *output]) == 2
    assert REFUSED in capsys.readouterr().err


def test_a_capture_is_not_filtered_by_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "127.0.0.1:1", "--capture", str(tmp_path / "c"), "--capture-filter", ORACLE]
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(words))
    assert end.value.code == 2
    assert REFUSED in capsys.readouterr().err


def test_a_rule_of_a_file_compares_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"rules": [{"api": "SaslAuthenticate", "where": ORACLE, "delay": "1ms"}]}))
    found = load(str(file))
    assert not found.mistakes
    where = found.rules[0].where
    assert where is not None
    for password, right in ((b"\0alice\0hush", True), (b"\0alice\0other", False)):
        of = frame("SaslAuthenticate", 2, "request", {"auth_bytes": password})
        assert where.on(of.api, 2, "request")(of) is right
