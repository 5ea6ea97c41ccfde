"""Faults as rules, and rules that are in force for a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from klamm.rules.file.connecting import is_address

Written = dict[str, Any]
Names = str | Sequence[str]
POLL_S = 0.02


class Conditions(TypedDict, total=False):
    """When, how often and for whom, as in a rule file (docs/rules.md).

    `for_`, `from_` and `until` are durations: text with a unit, or numbers of seconds.
    """

    name: str
    client: Names
    principal: Names
    cluster: Names
    chance: float | str
    times: int
    every: int
    nth: int | Sequence[int]
    from_: float | str
    until: float | str
    for_: float | str
    since: str
    per: str
    once_hit: str
    until_hit: str
    dry: bool


class Selectors(Conditions, total=False):
    """And for which frames or connections."""

    versions: str
    side: str
    topic: Names
    partition: int | Sequence[int]
    group: Names
    broker: int | str | Sequence[int]
    where: str


TIMES = frozenset({"from", "until", "for"})


def duration(value: float | str) -> str:
    """A duration as rules have it: a number means seconds."""
    return value if isinstance(value, str) else f"{round(value * 1000)}ms"


def rule(action: Mapping[str, Any], selectors: Mapping[str, Any]) -> Written:
    """One rule; by default it lasts until it is removed. None leaves a key out."""
    written = {key.removesuffix("_"): value for key, value in selectors.items() if value is not None}
    written = {key: duration(value) if key in TIMES else value for key, value in written.items()}
    written = {
        key: list(value) if isinstance(value, tuple | set) else value for key, value in written.items()
    }
    return {"for": "forever", **written, **action}


def down(selectors: Mapping[str, Any]) -> list[Written]:
    """The rules that let a broker seem gone to the clients that are selected: connections that are open are
    cut as they say something. No new one opens, but for clients that are selected by their ids: an id is said
    in the first request, at which their connections are cut.
    """
    client = selectors.get("client")
    patterns = client.split(",") if isinstance(client, str) else list(client or ())
    patterns = [pattern.strip() for pattern in patterns]
    ids = [pattern for pattern in patterns if not is_address(pattern)]
    on_frames = {**selectors, "event": "frame", "down": True}
    on_connect = {**selectors, "event": "connect", "down": True}
    if ids:
        on_connect["client"] = [pattern for pattern in patterns if pattern not in ids]
        chosen = any(not pattern.startswith("!") for pattern in on_connect["client"])
        if not chosen or any(pattern.startswith("!") for pattern in ids):
            return [on_frames]
    return [on_connect, on_frames]


class RuleCounters(NamedTuple):
    """Counts of a rule: `matches` of its selectors, and `hits`, on which it acted."""

    name: str
    written: Mapping[str, Any]
    matches: int
    hits: int


class Fault:
    """Rules in force, from now until the `with` that it stands in, `remove()` or the test ends."""

    def __init__(
        self, names: Sequence[str], ask: Callable[[str], RuleCounters], end: Callable[[str], None]
    ) -> None:
        self.names, self._ask, self._end = tuple(names), ask, end
        self._ended: dict[str, RuleCounters] = {}

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Fault {', '.join(self.names)}>"

    @property
    def counters(self) -> tuple[RuleCounters, ...]:
        """The counters of each rule; of a removed one, as they were then."""
        return tuple(self._ended.get(name) or self._ask(name) for name in self.names)

    @property
    def hits(self) -> int:
        """The number of hits, of all rules together."""
        return sum(counter.hits for counter in self.counters)

    @property
    def matches(self) -> int:
        """The number of matches, hits or not: `times`, `chance` and the like decide."""
        return sum(counter.matches for counter in self.counters)

    def remove(self) -> None:
        """End it now. Once more does nothing."""
        for name in self.names:
            if name not in self._ended:
                self._ended[name] = self._ask(name)
                self._end(name)

    def wait(self, hits: int = 1, timeout_s: float = 10.0) -> None:
        """Waits until it has so many hits. AssertionError after `timeout_s`."""
        __tracebackhide__ = True
        ends = time.monotonic() + timeout_s
        while self.hits < hits:
            if time.monotonic() > ends:
                counts = ", ".join(
                    f"{each.name}: {each.hits} hits of {each.matches} matches" for each in self.counters
                )
                raise AssertionError(f"not {hits} hits within {timeout_s:g} s ({counts})")
            time.sleep(POLL_S)
