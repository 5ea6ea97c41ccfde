"""The APIs, versions and side of a written rule: as written, limited to those that its actions and conditions
can use. An API that is named and cannot be used is a fault; others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from klamm.decoders import API
from klamm.decoders.schema import ALL, PARTITION, TOPIC, TOPIC_ID, Api, Side, Versions, marked
from klamm.rules.errors.answers import places
from klamm.rules.rule import Event
from klamm.settings.nearest import suggestion

SIDES: tuple[Side, Side] = ("request", "response")
Path = tuple[str | int, ...]
Fault = tuple[Path, str]  # the key in the rule, and the reason
Steps = Sequence[tuple[Path, Any]]  # actions, each with its path
Check = Callable[[Api, int, Side], str | None]  # None: it can be used; else why not


@dataclass
class Reach:
    """`apis`: the versions of each in which a rule on frames can apply. `broken`: reasons why it cannot."""

    side: Side
    event: Event = "frame"
    apis: dict[Api, list[int]] = field(default_factory=dict)
    broken: list[Fault] = field(default_factory=list)


def reach(rule: Any, steps: Steps) -> Reach:
    """As written, or else by the actions; the first side on which the rule can work."""
    wanted = [rule.side] if rule.side is not None else [s for s in SIDES if _all_on(steps, s)] or [SIDES[0]]
    connect = steps and all(set(action.sides) == {"connect"} for _, action in steps)
    if (rule.event or ("connect" if connect else "frame")) == "connect":
        return Reach(SIDES[0], "connect")
    first = _on(rule, steps, wanted[0])
    others = (_on(rule, steps, side) for side in wanted[1:])
    return next((each for each in others if not each.broken), first) if first.broken else first


def _all_on(steps: Steps, side: Side) -> bool:
    return all(side in action.sides for _, action in steps)


def _on(rule: Any, steps: Steps, side: Side) -> Reach:
    found = Reach(side)
    for path, action in steps:
        if side not in action.sides:
            found.broken.append((path, _wrong_side(rule, action, side)))
    if found.broken:
        return found
    named = {key for pattern in rule.api if pattern.exact for key in pattern.keys}
    keys = {key for pattern in rule.api for key in pattern.keys} or {api.key for api in API}
    apis = {
        api: list(range(api.versions.first, api.versions.last + 1))
        for api in map(API.get, sorted(keys))
        if api
    }
    for path, check, strict in _checks(rule, steps):
        apis = _narrowed(found, apis, named, path, check, side, strict)
        if not apis:
            break
    found.apis = apis
    return found


def _narrowed(
    found: Reach,
    apis: Mapping[Api, list[int]],
    named: set[int],
    path: Path,
    check: Check,
    side: Side,
    strict: bool,
) -> dict[Api, list[int]]:
    """The rest after one check. `strict`: it must hold in every version of a named API."""
    left: dict[Api, list[int]] = {}
    reasons: list[str] = []
    for api, versions in apis.items():
        reason = {version: check(api, version, side) for version in versions}
        fit = [version for version in versions if reason[version] is None]
        wrong = [version for version in versions if reason[version] is not None]
        if wrong and (not fit or strict) and api.key in named:
            found.broken.append((path, _advice(api, fit, wrong, str(reason[wrong[-1]]))))
        if wrong:
            reasons.append(str(reason[wrong[-1]]))
        if fit:
            left[api] = fit
    if not left and not found.broken:
        found.broken.append((path, f"can hold for no API: {reasons[0]}"))
    return left


def _advice(api: Api, fit: list[int], wrong: list[int], reason: str) -> str:
    if not fit:
        return reason
    newest = fit[-1] == api.versions.last
    advice = f"{fit[0]}+" if newest else f"{fit[0]}-{fit[-1]}" if fit[0] != fit[-1] else str(fit[0])
    return f"{reason} (in {version_list(wrong)}): add versions: {advice}"


def version_list(versions: Sequence[int]) -> str:
    """version 4, versions 0-3, 7"""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"version{'s' * (len(versions) > 1)} {text}"


def _wrong_side(rule: Any, action: Any, side: Side) -> str:
    on = [s for s in action.sides if s in SIDES]
    if not on:
        return f"{action.name} is for connections as they open: add event: connect"
    if rule.side is not None:
        return f"{action.name} works on {on[0]}s, not on {side}s: leave side out, or write side: {on[0]}"
    return f"{action.name} works on {on[0]}s only, and another action of this rule does not: make two rules"


def _checks(rule: Any, steps: Steps) -> Iterator[tuple[Path, Check, bool]]:
    """(path in the rule, check, must it hold in every version)"""
    for path, action in steps:
        only = getattr(action, "apis", ())
        if only:
            yield path, _only(action.name, only), True
    if rule.versions is not None:
        yield ("versions",), _in(rule.versions), False
    if rule.topic:
        yield ("topic",), _marked("topic", TOPIC, TOPIC_ID), False
    if rule.partition:
        yield ("partition",), _marked("partition", PARTITION), False
    if rule.where is not None:
        yield ("where",), _fits(rule.where), False
    for path, action in steps:
        if action.name == "error":
            yield ((*path, "at") if action.at else path), _errors(action), True
        elif hasattr(action, "fits"):
            yield path, action.fits, True


def _fits(where: Any) -> Check:
    """A field that a version lacks is unknown there, and no misfit: one version decides for all."""
    return lambda api, version, side: cast(str | None, where.fits(api, api.versions.last, side))


def _only(name: str, apis: Sequence[str]) -> Check:
    return lambda api, version, side: (
        None
        if api.name in apis
        else f"{name} works on {' and '.join(apis)}, not on {api.name}: leave api out"
    )


def _in(wanted: Versions) -> Check:
    def check(api: Api, version: int, side: Side) -> str | None:
        if version in wanted:
            return None
        return f"{api.name} has the versions {api.versions}, not {wanted}"

    return check


def _marked(what: str, *marks: str) -> Check:
    wanted = frozenset(marks)

    def check(api: Api, version: int, side: Side) -> str | None:
        if _has(api, version, side, wanted):
            return None
        other: Side = "response" if side == "request" else "request"
        if _has(api, version, other, wanted):
            return f"{api.name}'s {side}s name no {what}s, its {other}s do: write side: {other}"
        return f"{api.name} names no {what}s"

    return check


@lru_cache(4096)
def _has(api: Api, version: int, side: Side, marks: frozenset[str]) -> bool:
    return bool(marked(api.fields(side), version, marks))


def _errors(action: Any) -> Check:
    path = tuple(action.at.split(".")) if action.at else None

    def check(api: Api, version: int, side: Side) -> str | None:
        known = [place.path for place in places(api, version)]
        if not known:
            return f"{api.name} v{version} has no field for an error"
        if path is None or path in known:
            return None
        words = [".".join(place) for place in known]
        return f"{api.name}'s answer has no error at {action.at}{suggestion(action.at, words)}"

    return check


def span(versions: Mapping[Api, list[int]], written: Versions | None) -> Versions:
    """The smallest range with every version."""
    if written is not None:
        return written
    if all(len(found) == api.versions.last - api.versions.first + 1 for api, found in versions.items()):
        return ALL
    return Versions(
        min(min(found) for found in versions.values()), max(max(found) for found in versions.values())
    )
