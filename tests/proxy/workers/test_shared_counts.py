"""Counts that several processes share."""

import multiprocessing
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.workers import shared_counts
from klamm.proxy.workers.shared_counts import RuleCounts, Table, locked, make_table
from klamm.rules.actions.quota import Quotas
from klamm.rules.parts import place_of

S = 1_000_000_000
KEYS = st.one_of(st.none(), st.text(min_size=1), st.tuples(st.text(min_size=1), st.none()))  # clients, mostly


@given(st.lists(st.tuples(KEYS, st.integers(-3, 3))))
def test_a_table_counts_as_a_dict_does(steps: list[tuple[object, int]]) -> None:
    table, expected = Table(make_table()), dict[object, int]()
    for key, more in steps:
        expected[key] = expected.get(key, 0) + more
        assert table.add(("rule", key), more) == expected[key]
    os.close(table.file)


def test_a_full_table_forgets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_counts, "FULL", 3)
    table = Table(make_table())
    assert [table.add(key, 1) for key in ("a", "b", "c", "a", "d", "a")] == [1, 1, 1, 2, 1, 1]
    os.close(table.file)


def test_processes_add_to_one_count() -> None:
    file = make_table()

    def add() -> None:
        counts = RuleCounts(Table(file), "rule", 1)
        for _ in range(2000):
            counts.add("hits", 1)

    processes = [multiprocessing.get_context("fork").Process(target=add) for _ in range(4)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    counts = RuleCounts(Table(file), "rule", 1)
    assert counts.add("hits", 0) == 8000
    assert RuleCounts(Table(file), "rule", 2).add("hits", 0) == 0
    assert [counts.first(7), counts.first(5)] == [7, 7]
    os.close(file)


def test_a_process_that_dies_with_the_lock_gives_it_back() -> None:
    file = make_table()
    child = multiprocessing.get_context("fork").Process(target=_die_with_the_lock, args=(file,))
    child.start()
    child.join()
    assert Table(file).add("key", 1) == 1
    os.close(file)


def _die_with_the_lock(file: int) -> None:
    with locked(file, 0):
        os._exit(1)


def test_hashes_are_the_same_in_processes_of_one_seed() -> None:
    code = (
        "from klamm.proxy.workers.shared_counts import _hash; from klamm.rules.parts import place_of; "
        "print(_hash((('rule', 1), ('match', None))), _hash(hash(frozenset([place_of({'topic': 'a'})]))))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    found = {
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout
        for _ in range(3)
    }
    assert len(found) == 1
    assert place_of({"topic": None, "partition": 0}) == ("", 0)


def test_a_rate_is_the_same_for_two_processes_together() -> None:
    file = make_table()
    one, other = (Quotas(shared=RuleCounts(Table(file), "rate", 1)) for _ in range(2))
    alone, now, waits = Quotas(), 10**12, []
    for number in range(200):
        now += S // 10
        together = (one, other)[number % 2].take(("bytes", "c"), 1000, 10 * S, 300, now)
        waits.append((together, alone.take(("bytes", "c"), 1000, 10 * S, 300, now)))
    assert waits[0] == (0, 0)
    a_sample = 4 * S  # 3,000 units at 1,000 a second: samples begin at other times
    assert max(abs(together - expected) for together, expected in waits) <= a_sample
    assert waits[-1][0] > 10 * S
    assert one.take(("bytes", "another"), 1000, 10 * S, 300, now) == 0
    assert other.take(("bytes", "c"), 1000, 10 * S, 300, now + 60 * S) == 0
    os.close(file)
