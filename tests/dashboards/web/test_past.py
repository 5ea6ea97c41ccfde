"""Pages of marks begin with the exchanges that are kept, and know of which times some are missing."""

from __future__ import annotations

import time
from itertools import count

import pytest

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.kept import Kept
from klamm.dashboards.web.source import Cut, Found, Part, Wish
from klamm.dashboards.web.spans import AROUND_S, LATE_S, Span, Spans, Wanted
from tests.dashboards.web.exchanges import heartbeat, produce
from tests.dashboards.web.talking import Page, Talking, member, reading, source
from tests.fakes.waiting import on_uvloop

GROUPS = Wish("api in (Heartbeat, JoinGroup)", bodies=True, kept=True)
LIST = Wish(of_list="a")
LATENCIES = count(1)


def beat(name: str, ahead: float = 0.0) -> Exchange:
    """One that ends now."""
    return heartbeat(0, name, time=time.time() + ahead, latency_ms=next(LATENCIES) / 1000)


def live(page: Page) -> bool:
    """Whether it has got what there was before."""
    return bool(page.missing)


@on_uvloop
async def test_a_page_begins_with_what_another_page_got_and_goes_on_without_repeating_it() -> None:
    klamm = Talking()
    shared = source(klamm)
    async with reading(shared, LIST) as shown:
        await shown.until(lambda page: page.found)
        klamm.tell(beat("one"))
        klamm.tell(produce(time=time.time()))
        klamm.tell(beat("two"))
        await shown.until(lambda page: len(page.exchanges) == 3)
        async with reading(shared, GROUPS) as marks:
            await marks.until(lambda page: page.found)  # while it looks at what is kept
            klamm.tell(beat("three"))
            await marks.until(live)
            klamm.tell(beat("four"))
            await marks.has("one", "two", "three", "four")
            before = marks.exchanges
        async with reading(shared, GROUPS) as marks:
            await marks.has("one", "two", "three", "four")
            assert [key for key, _ in marks.exchanges] == [key for key, _ in before]
            assert len(marks.missing) == 1
            assert marks.missing[0].since == 0
            until = marks.missing[0].until
            assert until is not None
            assert until <= marks.exchanges[0][1].time


@on_uvloop
async def test_exchanges_of_several_pages_come_in_the_order_of_time() -> None:
    klamm = Talking()
    shared = source(klamm)
    one, two, three = beat("one"), beat("two", 1e-3), beat("three", 2e-3)
    for each in (two, three, one):
        shared.kept.add(each)
    async with reading(shared, GROUPS) as marks:
        await marks.has("one", "two", "three")


@on_uvloop
async def test_what_a_filter_left_out_is_a_part_and_what_it_passed_is_there() -> None:
    klamm = Talking()
    shared = source(klamm)
    async with reading(shared, Wish('member_id == "two"', of_list="a")) as shown:
        await shown.until(lambda page: page.found)
        klamm.tell(beat("one"))
        klamm.tell(beat("two"))
        await shown.has("two")
        async with reading(shared, GROUPS) as marks:
            await marks.has("two")
            (part,) = marks.missing
            assert part.since == 0
            assert part.until is not None
            assert part.until > marks.exchanges[0][1].time
        async with reading(shared, Wish(f'({GROUPS.where}) and member_id == "two"', kept=True)) as marks:
            await marks.has("two")
            assert marks.missing[0].until is not None
            assert marks.missing[0].until < marks.exchanges[0][1].time


@on_uvloop
async def test_exchanges_without_their_bodies_are_a_part_and_no_marks() -> None:
    klamm = Talking()
    shared = source(klamm)
    one, two = beat("one"), beat("two", 1.0)
    shared.kept = Kept(most_bytes=sum(len(body.raw or "") for body in (two.request, two.response) if body))
    for each in (one, two):
        shared.kept.add(each)
    assert shared.kept.since == one.time
    shared.spans.over.append(Span(Wanted(None, ()), one.time - 5, two.time))
    async with reading(shared, GROUPS) as marks:
        await marks.has("two")
        assert marks.missing[0] == Part(0, one.time)


@on_uvloop
async def test_where_klamm_was_away_is_a_part_until_it_is_back() -> None:
    klamm = Talking(ahead=1000.0)
    shared = source(klamm)
    async with reading(shared, GROUPS) as marks:
        await marks.until(live)
        klamm.tell(beat("one", klamm.ahead))
        await marks.has("one")
        klamm.go()
        await marks.until(lambda page: page.missing[-1].until is None)
        assert any(found.problem for found in marks.found)
        begin = marks.missing[-1].since
        assert begin > 1000 + time.time() - 60
        klamm.away = False
        await marks.until(lambda page: page.missing[-1].until is not None)
        assert [part.since for part in marks.missing] == [0, begin]
        until = marks.missing[-1].until
        assert [found.cut for found in marks.found if found.cut][-2:] == [(begin, begin), (until, begin)]
        klamm.tell(beat("two", klamm.ahead))
        await marks.has("one", "two")
        missing = marks.missing
    async with reading(shared, GROUPS) as marks:
        await marks.has("one", "two")
        assert marks.missing[:2] == missing


@on_uvloop
async def test_a_page_says_what_is_kept_while_klamm_is_away() -> None:
    klamm = Talking()
    klamm.away = True
    shared = source(klamm)
    shared.kept.add(beat("one"))
    async with reading(shared, GROUPS) as marks:
        await marks.has("one")
        assert marks.missing == [Part(0)]


@on_uvloop
async def test_what_came_too_fast_is_a_part_at_its_place() -> None:
    """klamm may tell it seconds later, together with what came before and behind."""
    klamm = Talking()
    klamm.ahead = 20.0
    shared = source(klamm)
    async with reading(shared, GROUPS) as marks:
        await marks.until(live)
        at = klamm.now()
        klamm.tell(beat("one", klamm.ahead))
        klamm.drop(3, at + 1, at + 4)
        klamm.tell(beat("two", klamm.ahead + 5))
        klamm.drop(2, at + 6, at + 6)
        klamm.tell(beat("three", klamm.ahead + 7))
        await marks.has("one", "two", "three")
        assert sum(found.dropped for found in marks.found) == 5
        lost = [(at + 1 - AROUND_S, at + 4 + AROUND_S), (at + 6 - AROUND_S, at + 6 + AROUND_S)]
        assert marks.missing[1:] == [Part(*one) for one in lost]
        (first, first_end), (second, second_end) = lost
        told = [[member(one) for _, one in found.exchanges] or found.cut for found in marks.found]
        assert [each for each in told if each][-7:] == [
            ["one"], Cut(first, first), Cut(first_end, first),
            ["two"], Cut(second, second), Cut(second_end, second), ["three"],
        ]  # fmt: skip


@on_uvloop
async def test_what_another_page_got_while_this_one_lacked_it_comes_too() -> None:
    klamm = Talking()
    shared = source(klamm)
    async with reading(shared, GROUPS) as marks:
        await marks.until(live)
        klamm.tell(beat("one"))
        await marks.has("one")
        shared.kept.add(beat("two"))  # of another page
        klamm.drop(1, klamm.now(), klamm.now())
        await marks.has("one", "two")


def test_one_exchange_is_kept_once_for_pages_of_marks_and_has_one_key() -> None:
    kept = Kept(most=4)
    one, other = beat("one"), beat("one")
    first = kept.add(one)
    again = kept.add(one)
    assert kept.once(one) == first
    second = kept.once(other)
    assert kept.once(other) == second
    assert [key for key, _ in kept.distinct(0)] == [first, second]
    assert [key for key, _ in kept.distinct(int(again))] == [second]
    later = heartbeat(0, "one", time=one.time + 1, latency_ms=one.latency_ms)
    third = kept.once(later)
    assert [member(each) for _, each in kept.distinct(int(third))] == ["one"]
    kept.add(beat("five"))
    assert kept.since == one.time
    assert next(key for key, _ in kept.distinct(0)) == second


def test_values_of_bodies_that_could_have_secrets_are_kept_for_marks_only() -> None:
    asked = Body(50, values={"group_id": "g", "member_id": "m"}, reason="it carries secrets")
    one = Exchange(
        1.0,
        "main",
        "1",
        "10.0.0.7:5",
        "StreamsGroupHeartbeat",
        0,
        "app",
        "broker",
        60,
        60,
        1.0,
        request=asked,
    )
    kept = Kept(most_bytes=500)
    key = kept.add(one)
    assert kept.distinct(0) == [(key, one)]
    (_, listed), shown = kept.some([key])[0], kept.of(key)
    assert listed == shown
    assert shown.request == Body(50, reason="it carries secrets")
    kept.add(produce())
    assert key not in dict(kept.distinct(0))


def spans(*times: tuple[float, float | None, str | None]) -> Spans:
    found = Spans(lambda: 100.0)
    for since, until, where in times:
        span = Span(Wanted(where, ()), since, until)
        (found.open if until is None else found.over).append(span)
    return found


ALL, ONE = Wanted(None, ()), Wanted("api == Fetch", ())


@pytest.mark.parametrize(
    ("read", "wanted", "since", "kept", "missing"),
    [
        (spans(), ALL, 0, 0, [Part(0)]),
        (spans((10, None, None)), ALL, 0, 0, [Part(0, 10)]),
        (spans((10, None, None)), ALL, 0, 20, [Part(0, 20)]),
        (spans((10, 20, None), (15, 30, None)), ALL, 0, 0, [Part(0, 10), Part(30)]),
        (spans((10, 20, None), (30, None, None)), ALL, 15, 0, [Part(20, 30)]),
        (spans((10, 20, None), (30, None, None)), ALL, 20, 25, [Part(20, 30)]),
        (spans((10, 20, None), (18, None, "api == Fetch")), ALL, 0, 0, [Part(0, 10), Part(20)]),
        (spans((10, 20, None), (18, None, "api == Fetch")), ONE, 0, 0, [Part(0, 10)]),
        (spans((12, None, None), (10, 11, None)), ALL, 0, 0, [Part(0, 10), Part(11, 12)]),
    ],
)
def test_the_parts_that_no_reader_had_are_missing(
    read: Spans, wanted: Wanted, since: float, kept: float, missing: list[Part]
) -> None:
    assert read.missing(wanted, since, kept) == missing


def test_a_reader_that_goes_has_not_got_what_ended_just_before() -> None:
    found = Spans(lambda: now)
    now = 10.0
    with found.reading(ALL) as span:
        now = 20.0
        assert found.open == [span]
        assert found.told(span, Found(lost=Part(12, 15))) == 12 - AROUND_S
        now = 40.0
    assert found.open == []
    times = [(each.since, each.until) for each in found.over]
    assert times == [(10, 12 - AROUND_S), (15 + AROUND_S, 40 - LATE_S)]


def ended(at: float) -> Found:
    """Exchanges of which the last ended then."""
    return Found([("1", heartbeat(0, "one", time=at))])


def test_a_reader_that_is_behind_has_got_only_what_it_was_told() -> None:
    found = Spans(lambda: now)
    now = 10.0
    with found.reading(ALL) as other:
        now = 20.0
        found.told(other, ended(12.0))
        with found.reading(ALL) as own:
            assert found.missing(ALL, 0, 0, own) == [Part(0, 10), Part(12, 20)]
            found.told(own, ended(14.0))
            assert found.missing(ALL, 0, 0, own) == [Part(0, 10), Part(12, 20)]
            found.told(other, ended(19.5))
            assert found.missing(ALL, 0, 0, own) == [Part(0, 10)]
            found.told(other, ended(13.0))
    assert [each.until for each in found.over] == [20.0, 13.0]
