"""Rows that a filter cannot choose are not made, and nothing else changes by that."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.captures import headers
from klamm.captures.choosing import chosen
from klamm.captures.ended import Ended
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.headers import keeping
from klamm.captures.period import Period
from klamm.captures.storage.reading import read
from klamm.captures.summaries.timeline import exchanges_in
from klamm.rules.expressions import parse
from tests.captures.random_work import random_work
from tests.captures.rows import MS, START_NS, Talk, connection, in_time, lost, written

FILTERS = [
    'client_id == "app"', 'client_id == "nobody"', 'not client_id == "app"', "connection in (2, 5)",
    'client_port > 50000 or broker == "1"', 'api == Heartbeat and client_id == "other"', "version >= 12",
    "api in (Produce, ApiVersions)", "acks == 0", "acks != 1", 'topic == "orders"', "error != NONE",
    'group == "never answered"', "latency_ms > 200", "api == ApiVersions and version == 0", "False",
]  # fmt: skip


def found(paths: list[str], where: str, part: Period, lean: bool) -> list[Exchange]:
    expression = parse(where)
    ended = Ended(paths, part, keeping(expression) if lean else None)
    return [one.exchange for one in chosen(ended, expression)]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_exchanges_are_chosen_in_the_same_order(seed: int, where: str, tmp_path: Path) -> None:
    work = random_work(seed)
    newer = Talk(connection(9), "new").exchange("ApiVersions", 0, {}, {"error_code": 35, "api_keys": []})
    work += [row._replace(api_version=9) for row in newer.rows]
    work += Talk(connection(10)).answer_alone().rows
    written(tmp_path / "1.arrow", work[: len(work) // 2])
    written(tmp_path / "2.arrow", work[len(work) // 2 :])
    paths = [str(tmp_path)]
    for part in (Period(), Period(START_NS + 100 * MS, START_NS + 600 * MS)):
        assert found(paths, where, part, True) == found(paths, where, part, False)


def test_only_rows_that_can_count_are_made(tmp_path: Path) -> None:
    one = Talk().opened().metadata().produce().heartbeat().closed()
    other = Talk(connection(2), "other", 1.0).opened().produce().heartbeat()
    path = written(tmp_path / "a.arrow", [*in_time(one, other), lost(7)])

    def rows(where: str) -> list[tuple[str, int, str | None]]:
        made = read(path, keep=keeping(parse(where)))
        return [(row.kind, row.api_key, row.client_id) for row in made if row.kind == "frame"]

    assert rows('client_id == "other"') == [
        ("frame", 3, "app"), ("frame", 3, "app"), ("frame", 0, "other"), ("frame", 0, "other"),
        ("frame", 12, "other"), ("frame", 12, "other"),
    ]  # fmt: skip
    assert {key for _, key, _ in rows("acks == 1")} == {3, 0}
    kinds = [row.kind for row in read(path, keep=keeping(parse("False"))) if row.kind != "frame"]
    assert sorted(kinds) == ["closed", "lost", "opened", "opened"]


def test_a_filter_for_all_apis_that_reads_bodies_leaves_nothing_out() -> None:
    assert keeping(parse("error != NONE")) is None
    assert keeping(None) is None


def test_more_headers_than_are_kept_are_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "MOST", 2)
    path = written(tmp_path / "a.arrow", random_work(1))
    where = 'client_id == "app"'
    few = found([str(path)], where, Period(), True)
    assert few == found([str(path)], where, Period(), False) != []


@pytest.mark.parametrize("seed", range(3))
def test_exchanges_are_counted_without_their_bodies(seed: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", [*random_work(seed), *Talk(connection(10)).answer_alone().rows])
    assert exchanges_in(read(path)) == len(list(exchanges(read(path))))
