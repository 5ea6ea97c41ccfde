"""A capture in the page's terms: rows, the exchanges behind them, and filters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.chosen.copies import NoCopy, copy
from klamm.dashboards.web.chosen.trees import Node, opened
from klamm.dashboards.web.lines import Row, Rows
from klamm.dashboards.web.source import Found, Gone, Wish
from klamm.decoders import ERRORS
from tests.captures.rows import START_NS, Talk, written


@pytest.fixture
def captures(tmp_path: Path) -> Captures:
    talk = Talk().opened().metadata().produce().fetch().heartbeat(27)
    return Captures([str(written(tmp_path / "a.arrow", talk.rows))])


EVERYTHING = Wish()


def found(source: Captures, wish: Wish = EVERYTHING) -> list[Found]:
    async def read() -> list[Found]:
        return [each async for each in source.found(wish)]

    return asyncio.run(read())


def rows(all_found: Iterable[Found]) -> list[Row]:
    return [row for each in all_found for key, one in each.exchanges for row in Rows().read(key, one)]


def flat(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every field, the outer before the inner."""
    for node in nodes:
        yield node
        yield from flat(node.parts)


def named(nodes: Iterable[Node], name: str) -> Node:
    """The first field of this name, wherever it is."""
    return next(node for node in flat(nodes) if node.name == name)


def test_each_exchange_is_a_row_and_the_end_is_told(captures: Captures) -> None:
    everything = found(captures)
    assert [row.api for row in rows(everything)] == ["Metadata", "Produce", "Fetch", "Heartbeat"]
    assert [row.client_id for row in rows(everything)] == ["app"] * 4
    assert rows(everything)[3].errors == {"REBALANCE_IN_PROGRESS": 1}
    assert rows(everything)[1].topics == {"orders": [3]}
    assert everything[-1].whole
    assert not any(each.more for each in everything)


def test_bodies_come_where_they_are_wished(captures: Captures) -> None:
    bodies = [one.request for each in found(captures, Wish(bodies=True)) for _, one in each.exchanges]
    assert all(body is not None and body.raw for body in bodies)
    bodies = [one.request for each in found(captures) for _, one in each.exchanges]
    assert bodies == [None] * 4


def test_a_part_of_the_time_is_enough(captures: Captures) -> None:
    everything = rows(found(captures))
    part = rows(found(captures, Wish(since=everything[1].time - 1e-4, until=everything[2].time + 1e-4)))
    assert 0 < len(part) < len(everything)
    assert {row.time for row in part} < {row.time for row in everything}


def test_a_filter_chooses(captures: Captures) -> None:
    assert [row.api for row in rows(found(captures, Wish("error != NONE")))] == ["Heartbeat"]


def test_more_than_a_page_shows_is_told(captures: Captures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.captured.ROWS", 2)
    monkeypatch.setattr("klamm.dashboards.web.captured.BATCH", 2)
    some = found(captures)
    assert (len(rows(some)), some[-1].more, some[-1].whole) == (2, True, False)


def test_a_row_is_told_soon_though_few_are_found(captures: Captures) -> None:
    ticks = count()
    captures.clock = lambda: next(ticks) * 0.25
    everything = found(captures, Wish("api == Produce"))
    assert [len(each.exchanges) for each in everything] == [0, 1, 0]
    assert (everything[0].state, everything[-1].whole) == ("reading", True)


def test_a_row_leads_to_the_bytes_and_their_fields(captures: Captures) -> None:
    row = rows(found(captures))[3]
    one = opened(asyncio.run(captures.exchange(row.key)))
    assert (one.exchange.api, one.exchange.errors) == ("Heartbeat", {"REBALANCE_IN_PROGRESS": 1})
    assert list(one.meanings) == ["REBALANCE_IN_PROGRESS"]
    assert one.meanings["REBALANCE_IN_PROGRESS"].startswith(ERRORS["REBALANCE_IN_PROGRESS"].meaning)
    assert one.request is not None
    assert one.response is not None
    group = named(one.request.tree, "group_id")
    assert (group.start, group.text, group.kind) == (0, "billing", "string")
    error = named(one.response.tree, "error_code")
    assert (error.text, error.error) == ("27 REBALANCE_IN_PROGRESS", True)
    assert one.response.bytes >= error.end


def test_an_answer_without_its_request_has_a_row_that_leads_to_it(tmp_path: Path) -> None:
    alone = Captures([str(written(tmp_path / "a.arrow", Talk().answer_alone(119).rows))])
    (row,) = rows(found(alone))
    assert (row.api, row.version, row.request_bytes) == ("answer without its request", -1, 0)
    one = opened(asyncio.run(alone.exchange(row.key)))
    assert (one.request, one.exchange.response_bytes) == (None, 123)
    assert one.response is not None
    assert one.response.reason == "only its size was kept"
    for form in ("rule", "test", "decode"):
        with pytest.raises(NoCopy, match="klamm does not know its API"):
            copy(one.exchange, form)


@pytest.mark.parametrize("key", ["", "1-2", "a-b-c-d", f"{START_NS}-{START_NS}-1-99"])
def test_a_key_that_leads_nowhere_is_told(captures: Captures, key: str) -> None:
    with pytest.raises(Gone):
        asyncio.run(captures.exchange(key))


def test_a_capture_has_a_period_and_no_klamm_to_ask(captures: Captures) -> None:
    about = asyncio.run(captures.about())
    assert (about.kind, about.first is not None, about.last is not None) == ("capture", True, True)
    with pytest.raises(Gone, match="no klamm to ask"):
        asyncio.run(captures.relay("GET", "/v1/rules", None))
