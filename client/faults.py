"""Faults as rules, and rules that are in force for a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
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
    """As rules have it: a number is of seconds."""
    return value if isinstance(value, str) else f"{round(value * 1000)}ms"


def rule(action: Mapping[str, Any], selectors: Mapping[str, Any]) -> Written:
    """One rule; it lasts until it is taken away where nothing else is said. None leaves a key out."""
    said = {key.removesuffix("_"): value for key, value in selectors.items() if value is not None}
    said = {key: duration(value) if key in TIMES else value for key, value in said.items()}
    said = {key: list(value) if isinstance(value, tuple | set) else value for key, value in said.items()}
    return {"for": "forever", **said, **action}


def down(said: Mapping[str, Any]) -> list[Written]:
    """The rules that let a broker seem gone to the clients that are selected: connections that are open are
    cut as they say something. No new one opens, but for clients that are selected by their ids: an id is said
    in the first request, at which their connections are cut.
    """
    client = said.get("client")
    patterns = client.split(",") if isinstance(client, str) else list(client or ())
    patterns = [pattern.strip() for pattern in patterns]
    ids = [pattern for pattern in patterns if not is_address(pattern)]
    on_frames = {**said, "event": "frame", "down": True}
    on_connect = {**said, "event": "connect", "down": True}
    if ids:
        on_connect["client"] = [pattern for pattern in patterns if pattern not in ids]
        chosen = any(not pattern.startswith("!") for pattern in on_connect["client"])
        if not chosen or any(pattern.startswith("!") for pattern in ids):
            return [on_frames]
    return [on_connect, on_frames]


class Tally(NamedTuple):
    """What a rule has done: `matches` is what its selectors held for, `hits` what it acted on."""

    name: str
    written: Mapping[str, Any]
    matches: int
    hits: int


class Fault:
    """Rules in force, from now until the `with` that it stands in, `remove()` or the test ends."""

    def __init__(self, names: Sequence[str], ask: Callable[[str], Tally], end: Callable[[str], None]) -> None:
        self.names, self._ask, self._end = tuple(names), ask, end
        self._ended: dict[str, Tally] = {}

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Fault {', '.join(self.names)}>"

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Of each rule; of one that was removed, as it was then."""
        return tuple(self._ended.get(name) or self._ask(name) for name in self.names)

    @property
    def hits(self) -> int:
        """How often it acted, all rules together."""
        return sum(tally.hits for tally in self.tallies)

    @property
    def matches(self) -> int:
        """How often it might have acted, but for `times`, `chance` and the like."""
        return sum(tally.matches for tally in self.tallies)

    def remove(self) -> None:
        """End it now. Once more does nothing."""
        for name in self.names:
            if name not in self._ended:
                self._ended[name] = self._ask(name)
                self._end(name)

    def wait(self, hits: int = 1, timeout_s: float = 10.0) -> None:
        """Until it acted so often. AssertionError after `timeout_s`."""
        __tracebackhide__ = True
        ends = time.monotonic() + timeout_s
        while self.hits < hits:
            if time.monotonic() > ends:
                said = ", ".join(
                    f"{each.name}: {each.hits} hits of {each.matches} matches" for each in self.tallies
                )
                raise AssertionError(f"not {hits} hits within {timeout_s:g} s ({said})")
            time.sleep(POLL_S)
