"""Of a test with many cases, some run: those that KLAMM_SAMPLE, any text, chooses.

`@pytest.mark.sampled(12)` lets 12 cases run where KLAMM_SAMPLE is set. They have as many values of each
parameter as that allows; the same text chooses the same cases. Without KLAMM_SAMPLE all cases run, as they do
in `make test-long`.

The tests of the proxy are for both builds of the session, "python" and "compiled". Where KLAMM_BUILD names
one too, half of their files run in it, and the other half in the other.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest

OF_BOTH = ("tests/proxy/", "tests/hostile/")
BUILDS = ("python", "compiled")
Case = Mapping[str, int]  # parameter -> the number of its value


def text() -> str:
    """KLAMM_SAMPLE; "" where all cases run."""
    return os.environ.get("KLAMM_SAMPLE", "")


def left_out(items: Sequence[pytest.Function]) -> Iterator[pytest.Function]:
    """The tests that do not run."""
    yield from _of_other_build(items)
    yield from _cases(items)


def _of_other_build(items: Sequence[pytest.Function]) -> Iterator[pytest.Function]:
    """Tests with brokers run in one build only, so they stay."""
    build = os.environ.get("KLAMM_BUILD", "")
    for item in items if text() and build else ():
        file = item.nodeid.partition("::")[0]
        is_of_both = file.startswith(OF_BOTH) and item.get_closest_marker("brokers") is None
        if is_of_both and Random(f"{text()} {file}").choice(BUILDS) != build:
            yield item


def _cases(items: Sequence[pytest.Function]) -> Iterator[pytest.Function]:
    cases: dict[str, list[pytest.Function]] = {}
    for item in items if text() else ():
        if item.get_closest_marker("sampled") is not None and hasattr(item, "callspec"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, of_one in cases.items():
        mark = of_one[0].get_closest_marker("sampled")
        assert mark is not None
        of_one.sort(key=lambda item: item.nodeid)
        run = chosen([item.callspec.indices for item in of_one], mark.args[0], f"{text()} {name}")
        yield from (item for number, item in enumerate(of_one) if number not in run)


def chosen(cases: Sequence[Case], count: int, seed: str) -> set[int]:
    """The numbers of `count` cases, or of all where there are fewer."""
    left = list(range(len(cases)))
    Random(seed).shuffle(left)
    run: set[int] = set()
    seen: set[tuple[str, int]] = set()
    while left and len(run) < count:
        newest = max(left, key=lambda number: len(cases[number].items() - seen))
        left.remove(newest)
        run.add(newest)
        seen |= cases[newest].items()
    return run
