"""Expressions of callers of the admin API: they leave nothing behind, and the loop makes none of them."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from klamm.decoders import API, encode, layout
from klamm.decoders.compile import locate, pick, walk
from klamm.proxy.control.conditions import made_for_all
from klamm.rules import expressions
from klamm.rules.actions import ACTIONS
from klamm.rules.expressions import ExpressionError, body, meaning, parse
from klamm.rules.file.written import file_type
from klamm.rules.frame import Frame, Peer
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
PEER = Peer("blue", "2", "10.0.0.1:5555", "k", 12)
EXPRESSIONS = [
    "json(record.value).a == {}",
    "group_id == 'g{}'",
    "any(t.name == '{}' for t in topics)",
    "nosuch.a == {}",
    "topic == orders{}",
    "(a.b == {}",
]


def beat() -> Frame:
    return Frame(API["Heartbeat"], 3, "request", encode(BEAT, "Heartbeat", 3, "request"), "app", PEER, 0)


def judge(text: str) -> None:
    """All that klamm does with an expression of a caller."""
    with suppress(ExpressionError):
        where = made_for_all(text)
        where.holds(beat())


def circles(do: Callable[[], Any]) -> int:
    """The objects that only the collector can give back after it, once all that is made once is made."""
    do()
    gc.collect()
    gc.disable()
    try:
        do()
        return gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_given_back_when_it_is_needed_no_more(text: str) -> None:
    numbers = iter(range(2))
    assert circles(lambda: judge(text.format(next(numbers)))) == 0


@pytest.mark.parametrize("make", [pick, walk, locate])
def test_a_made_function_is_given_back(make: Callable[..., Any]) -> None:
    of = layout("Metadata", 12, "response")
    assert circles(lambda: make(of, (("topics", "name"),))) == 0


def test_expressions_with_the_same_fields_share_what_picks_them() -> None:
    one, two = (parse(f"group_id == 'g{n}'").fitted(API["Heartbeat"], 3, "request") for n in range(2))
    before = body.picking.cache_info()
    assert [one.of(beat()), two.of(beat())] == [False, False]
    after = body.picking.cache_info()
    assert after.misses - before.misses <= 1
    assert after.maxsize is not None


@contextmanager
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[tuple[str, bool]]]:
    """The APIs that expressions are made for, and whether the loop's thread does it, with how often."""
    counted: Counter[tuple[str, bool]] = Counter()
    fitted = meaning.fitted

    def counting(tree: Any, of: Any, *rest: Any) -> Any:
        counted[of.name, threading.current_thread() is threading.main_thread()] += 1
        return fitted(tree, of, *rest)

    monkeypatch.setattr(expressions, "fitted", counting)
    yield counted


@on_uvloop
async def test_kept_exchanges_are_looked_through_with_what_their_apis_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with api() as it:
        client = await it.edge.client()
        await it.klamm.exchanges(bodies=True)
        await client.ask("Heartbeat", 3, BEAT)
        with made(monkeypatch) as counted:
            found = await it.klamm.exchanges(where="size > 0")
        assert [one.api for one in found.exchanges] == ["Heartbeat"]
        assert {name for name, _ in counted} <= {next(iter(API)).name, "Heartbeat"}
        assert not any(in_loop for _, in_loop in counted)


@on_uvloop
async def test_the_loop_makes_nothing_when_a_reader_of_live_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with api() as it:
        with made(monkeypatch) as counted:
            async with it.klamm.live(where="group_id == 'g'"):
                assert it.edge.proxied.context.planner.wishes.listeners
        assert counted
        assert not any(in_loop for _, in_loop in counted)


def test_rules_by_hand_are_read_with_the_same_classes() -> None:
    """Each takes 50 KiB, and is remembered."""
    first = file_type(ACTIONS)
    assert file_type(dict(ACTIONS)) is first
    assert file_type({**ACTIONS, "other": ACTIONS["delay"]}) is not first
