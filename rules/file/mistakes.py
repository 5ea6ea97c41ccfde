"""Finds mistakes that no single key shows: keys that contradict each other, and rules that can never act.
Paths are those of the rule's keys; a fault keeps the file from being used, a doubt does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import NEWEST, Api
from klamm.rules.actions.streams import Bandwidth
from klamm.rules.errors.documents import documented
from klamm.rules.expressions.tree import Name, Node
from klamm.rules.file.connecting import connect_faults
from klamm.rules.file.reach import Fault, Reach, Steps, version_list
from klamm.rules.quantities import ErrorCode
from klamm.rules.rule import Moment
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import keys

LONGEST_NAME = 250  # characters, as of a topic
KILOBYTE = 1000


def faults(rule: Any, steps: Steps, reach: Reach, names: Mapping[str, int], index: int) -> Iterator[Fault]:
    """The faults, which make a rule useless. `names`: the named rules, by name."""
    yield from _action_faults(rule, steps)
    if rule.name == "":
        yield ("name",), "an empty name: leave it out, and it gets one"
    if rule.name and len(rule.name) > LONGEST_NAME:
        yield ("name",), f"a name of {len(rule.name):,} characters: it may have {LONGEST_NAME}"
    if rule.name and names[rule.name] != index:
        yield ("name",), f"rules[{names[rule.name]}] has the name {rule.name!r} already"
    if reach.event == "connect":
        yield from connect_faults(rule, steps)
    else:
        yield from reach.broken or _too_new(rule)
    if rule.where is not None and not _names_something(rule.where.tree):
        yield ("where",), "names nothing of the frame: it says the same of every one"
    yield from _time_faults(rule)
    yield from _count_faults(rule)
    for key in ("once_hit", "until_hit"):
        other = getattr(rule, key)
        if other and other not in names:
            known = suggestion(other, names) or "; no rule has a name yet: give one to the rule that is meant"
            yield (key,), f"no rule is named {other!r}{known}"
    if rule.once_hit and rule.once_hit == rule.name:
        yield ("once_hit",), "the rule waits for a hit of its own, which never comes"
    elif rule.once_hit and rule.once_hit == rule.until_hit:
        yield ("until_hit",), f"the rule begins and ends with the first hit of {rule.once_hit}: it never acts"


def _action_faults(rule: Any, steps: Steps) -> Iterator[Fault]:
    direct = [path for path, _ in steps if path[0] != "do"]
    if not steps:
        yield (), "does nothing: give it an action, such as error: NOT_LEADER_OR_FOLLOWER, or count: true"
    if direct and rule.do:
        yield direct[0], "stands beside do: move it into do, as `- " + f"{direct[0][-1]}: ...`"
    for number, step in enumerate(rule.do):
        written = [f.name for f in fields(step) if getattr(step, f.name) is not None]
        if len(written) > 1:
            yield ("do", number), f"{' and '.join(written)} in one entry: start each action with '- '"
        elif not written:
            yield ("do", number), "an entry without an action"


def _too_new(rule: Any) -> Iterator[Fault]:
    """Versions beyond those of every API that is named."""
    named = [API[key] for pattern in rule.api if pattern.exact for key in pattern.keys]
    if rule.versions is not None and rule.versions.last < NEWEST and len(named) == len(rule.api) > 0:
        newest = max(named, key=lambda api: api.versions.last)
        if rule.versions.last > newest.versions.last:
            first = rule.versions.first
            yield ("versions",), f"{newest.name} ends with version {newest.versions.last}: write {first}+"


def _time_faults(rule: Any) -> Iterator[Fault]:
    begin, end = rule.from_, rule.until
    if rule.for_ == 0:
        yield ("for",), "for 0 never begins"
    if end is not None and not end.absolute and end.ns == 0:
        yield ("until",), "until 0 never begins"
    if begin is not None and end is not None and begin.absolute == end.absolute and begin.ns >= end.ns:
        yield ("until",), "is not after from: the rule never acts"
    if end is not None and not end.absolute and rule.for_ is not None:
        yield ("for",), "for and until both say when the rule ends: keep one"
    relative = [m for m in (begin, end) if m is not None and not m.absolute]
    if rule.since == "first match" and not relative and rule.for_ is None:
        yield ("since",), "nothing is counted from it: add from, until or for as a duration"


def _names_something(tree: Any) -> bool:
    """Whether an expression has a name that is no constant."""
    if isinstance(tree, tuple):
        return any(map(_names_something, tree))
    if not isinstance(tree, Node):
        return False
    return isinstance(tree, Name) or any(_names_something(getattr(tree, f.name)) for f in fields(tree))


def _count_faults(rule: Any) -> Iterator[Fault]:
    if rule.chance == 0:
        yield ("chance",), "chance 0 never hits; to leave the rule out write enabled: false"
    if rule.times == 0:
        yield ("times",), "times 0 never hits; to leave the rule out write enabled: false"
    if rule.nth and rule.every > 1 and not any(nth % rule.every == 0 for nth in rule.nth):
        numbers = ", ".join(map(str, rule.nth))
        yield (
            ("nth",),
            f"none of the matches {numbers} is one that every: {rule.every} takes: drop one of the keys",
        )
    if rule.nth and rule.times and rule.times > len(rule.nth) and rule.per == "rule":
        yield ("times",), f"nth has {len(rule.nth)} matches only: leave times out"


NO_ERROR = "NONE is no error: clients take it as success, and what they sent reaches no broker"


def doubts(rule: Any, steps: Steps, reach: Reach, wall_ns: int | None) -> Iterator[Fault]:
    """The doubts: allowed, and probably not meant."""
    named = [API[key] for pattern in rule.api if pattern.exact for key in sorted(pattern.keys)]
    for path, action in steps:
        if isinstance(action, Bandwidth) and action.rate < KILOBYTE:
            told = f"{action.rate} bytes a second: for kilobytes write {action.rate}kB"
            yield path, told if action.rate else "0 bytes a second are no limit: write a rate such as 64kB"
        for key, kind in keys(action.__class__).items():
            code = getattr(action, key, None)
            if kind is not ErrorCode or code is None or action.name not in ("error", "deny"):
                continue
            if not code and reach.side != "response":
                yield path, NO_ERROR
            strange = [api.name for api in named if api in reach.apis and not documented(api, code)]
            if strange:
                error = ERRORS[code].name
                whom = " and ".join(strange)
                yield path, f"Kafka's documents do not name {error} for {whom}: clients may not know it"
    if rule.where is not None:
        for api, versions in reach.apis.items():
            if api in named:
                yield from _unknown(rule.where, api, versions, reach)
    until = rule.until
    if isinstance(until, Moment) and until.absolute and wall_ns is not None and until.ns <= wall_ns:
        yield ("until",), "is past: the rule no longer acts"
    if rule.per != "rule" and rule.times is None and rule.every == 1 and not rule.nth:
        yield ("per",), f"nothing is counted per {rule.per}: add times, every or nth"


def _unknown(where: Any, api: Api, versions: Sequence[int], reach: Reach) -> Iterator[Fault]:
    """Fields come, and go, with versions: the ends of a range show most."""
    ends = (versions[0], versions[-1])
    if any(where.fitted(api, version, reach.side).absent for version in ends):
        absent = {version: where.fitted(api, version, reach.side).absent for version in versions}
        lacking = [version for version in versions if absent[version]]
        what = ".".join(absent[lacking[0]][0])
        yield ("where",), f"{api.name} has no {what} in {version_list(lacking)}: unknown there"


def names_of(rules: Sequence[Any]) -> dict[str, int]:
    """The first rule of each name."""
    found: dict[str, int] = {}
    for index, rule in enumerate(rules):
        name = getattr(rule, "name", None)
        if isinstance(name, str) and name:
            found.setdefault(name, index)
    return found
