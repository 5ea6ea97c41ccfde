"""tests/sampling.py: which cases of a test run."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling

CASES = [{"client": client, "listener": listener} for client, listener in product(range(6), range(3))]


def test_each_value_of_each_parameter_is_among_the_cases_of_a_sample() -> None:
    for seed in map(str, range(50)):
        run = sampling.chosen(CASES, 6, seed)
        assert len(run) == 6
        assert {CASES[number]["client"] for number in run} == set(range(6))
        assert {CASES[number]["listener"] for number in run} == set(range(3))


def test_each_case_is_in_a_sample_and_the_same_text_gives_the_same() -> None:
    runs = [sampling.chosen(CASES, 6, str(seed)) for seed in range(50)]
    assert set().union(*runs) == set(range(len(CASES)))
    assert runs[7] == sampling.chosen(CASES, 6, "7")
    assert sampling.chosen(CASES[:4], 6, "7") == {0, 1, 2, 3}


def item(name: str, count: int | None, **indices: int) -> Any:
    """A test as pytest collects it: its marker has `count`."""
    mark = None if count is None else SimpleNamespace(args=(count,))
    of = {"callspec": SimpleNamespace(indices=indices)} if indices else {}
    return SimpleNamespace(nodeid=f"{name}[{indices}]", get_closest_marker=lambda _: mark, **of)


@pytest.mark.parametrize(("text", "left_out"), [("", 0), ("abc", 14)])
def test_cases_of_tests_with_the_marker_are_left_out_where_there_is_a_text(
    text: str, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where those of two values of a fixture do not stand beside each other."""
    monkeypatch.setenv("KLAMM_SAMPLE", text)
    items = []
    for ground in range(2):
        items += [item("test_many", 4, n=n, ground=ground) for n in range(9)]
        items += [item("test_all", None, n=n, ground=ground) for n in range(9)]
    items.append(item("test_without_cases", 4))
    names = [one.nodeid.partition("[")[0] for one in sampling.left_out(items)]
    assert names == ["test_many"] * left_out


def test_files_of_the_proxy_run_in_one_of_both_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_in(build: str, text: str) -> set[str]:
        monkeypatch.setenv("KLAMM_BUILD", build)
        monkeypatch.setenv("KLAMM_SAMPLE", text)
        return {one.nodeid for one in items} - {one.nodeid for one in sampling.left_out(items)}

    files = [*(f"tests/proxy/test_{n}.py::test" for n in range(20)), "tests/hostile/test_many.py::test"]
    items = [item(name, None) for name in (*files, "tests/rules/test_many.py::test")]
    both = {item(name, None).nodeid for name in files}
    of_python, compiled = (run_in(build, "abc") & both for build in sampling.BUILDS)
    assert of_python | compiled == both
    assert not of_python & compiled
    assert min(len(of_python), len(compiled)) > 5
    assert compiled == run_in("compiled", "abc") & both != run_in("compiled", "abd") & both
    assert run_in("compiled", "abc") - both == run_in("python", "abc") - both != set()
    for build, text in (("compiled", ""), ("", "abc")):
        assert len(run_in(build, text)) == len(items)
    with_brokers = item("tests/proxy/test_0.py::test_brokers", 0)
    items[:] = [with_brokers]
    assert run_in("python", "abc") == run_in("compiled", "abc") == {with_brokers.nodeid}
