"""The holes that filters leave in a list: where they are, and for which filters."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from klamm.dashboards.web.history import MOST, History
from klamm.dashboards.web.live import Live
from klamm.dashboards.web.source import Found, Hole, Wish
from tests.dashboards.web.exchanges import heartbeat, produce
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

FETCHES = "api == Fetch"


def read(*filters: tuple[str | None, tuple[str, ...]]) -> History:
    """Read with each of these filters for ten seconds, in which ten exchanges came."""
    history = History()
    for number, (where, hide) in enumerate(filters):
        history.begin(where, hide, 10 * number + 1, 10.0 * number)
    return history


def test_what_an_earlier_filter_did_not_pass_is_a_hole_for_another_one() -> None:
    history = read((None, ()), (FETCHES, ()), (None, ("heartbeats",)), (None, ()))
    assert history.holes(None, (), 0) == [
        Hole(11, 10.0, 20.0, FETCHES), Hole(21, 20.0, 30.0, None, ("heartbeats",)),
    ]  # fmt: skip
    assert [hole.at for hole in history.holes(None, (), 21)] == [21]
    assert history.holes(None, (), 31) == []


@pytest.mark.parametrize(
    ("where", "hide"),
    [
        (FETCHES, ("heartbeats",)),
        ("api==Fetch", ("heartbeats", "empty fetches")),
        (f"({FETCHES}) and error != NONE", ("heartbeats",)),
        (f"size > 100 and ({FETCHES} and error != NONE)", ("heartbeats",)),
    ],
)
def test_a_filter_that_passes_less_has_no_hole(where: str, hide: tuple[str, ...]) -> None:
    assert read((FETCHES, ("heartbeats",)), (where, hide)).holes(where, hide, 0) == []


@pytest.mark.parametrize("first", [f"{FETCHES} or acks == 1", f"(size > 9 and {FETCHES}) or {FETCHES}"])
def test_a_filter_that_passes_one_of_two_has_no_hole_where_either_passed(first: str) -> None:
    assert read((first, ()), (f"size > 5 and {FETCHES}", ())).holes(f"size > 5 and {FETCHES}", (), 0) == []
    assert len(read((f"(size > 9 and {FETCHES}) or acks == 1", ()), (FETCHES, ())).holes(FETCHES, (), 0)) == 1


@pytest.mark.parametrize(
    ("where", "hide"),
    [(FETCHES, ()), ("api == Produce", ("heartbeats",)), (f"{FETCHES} or acks == 1", ("heartbeats",))],
)
def test_a_filter_that_passes_more_or_others_has_one(where: str, hide: tuple[str, ...]) -> None:
    assert len(read((FETCHES, ("heartbeats",)), (where, hide)).holes(where, hide, 0)) == 1


def test_a_time_in_which_nobody_reads_a_list_is_a_hole_if_it_is_more_than_a_reload() -> None:
    history = History()
    history.begin(FETCHES, (), 1, 0.0).end(5, 7.0)
    history.begin(FETCHES, (), 5, 7.5).end(6, 8.0)
    assert history.holes(FETCHES, (), 0) == []
    history.begin(FETCHES, (), 9, 12.0)
    assert history.holes(FETCHES, (), 0) == [Hole(6, 8.0, 12.0, unread=True)]
    assert history.holes(None, (), 0) == [Hole(1, 0.0, 8.0, FETCHES), Hole(6, 8.0, 12.0, unread=True)]


def test_a_reader_that_goes_late_ends_nothing_of_the_next_one() -> None:
    history = History()
    first = history.begin(FETCHES, (), 1, 0.0)
    second = history.begin(FETCHES, (), 2, 0.5)
    first.end(3, 1.0)
    assert history.stretches[-1].until is None
    second.end(4, 2.0)
    assert history.stretches[-1].until == 2.0


def test_the_oldest_of_many_are_forgotten() -> None:
    history = read(*((f"size > {number}", ()) for number in range(MOST + 5)))
    assert len(history.holes(None, (), 0)) == MOST - 1


@on_uvloop
async def test_a_list_tells_its_holes_at_their_places() -> None:
    async with api() as it:
        live = Live(it.klamm)

        async def got(where: str | None, count: int) -> list[Found]:
            async with aclosing(live.found(Wish(where, of_list="a"))) as found:
                return [await anext(found) for _ in range(count)]

        for where, one in ((None, produce()), ("api == Heartbeat", heartbeat()), (None, produce())):
            await got(where, 1)
            live.lists.open("a").append(live.kept.add(one))
        found = (await got(None, 4))[1:]
        assert [[one.api for _, one in each.exchanges] or each.hole for each in found] == [
            ["Produce"], found[1].hole, ["Heartbeat", "Produce"],
        ]  # fmt: skip
        hole = found[1].hole
        assert hole is not None
        assert (hole.where, hole.since <= hole.until, all(each.again for each in found)) == (
            "api == Heartbeat", True, True,
        )  # fmt: skip


@on_uvloop
async def test_exchanges_are_told_with_the_start_of_the_klamm_from_which_they_are() -> None:
    async with api() as it:
        live = Live(it.klamm)

        async def got(count: int) -> list[Found]:
            async with aclosing(live.found(Wish(of_list="a"))) as found:
                return [await anext(found) for _ in range(count)]

        began = []
        for one in (produce(), produce(), heartbeat()):
            await got(1)
            began.append(live.runs[-1].began)
            live.lists.open("a").append(live.kept.add(one))
            live.runs[-1] = live.runs[-1]._replace(began=live.runs[-1].began - len(began))  # of before
        again = (await got(4))[1:]
        assert [[one.api for _, one in each.exchanges] for each in again] == [
            ["Produce"],
            ["Produce"],
            ["Heartbeat"],
        ]
        assert [each.began for each in again] == [began[0] - 1, began[1] - 2, began[2] - 3]
        assert len(set(began)) == 1
        assert again[-1].began != live.runs[-1].began == began[-1]
