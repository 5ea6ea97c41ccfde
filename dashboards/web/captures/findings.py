"""Findings of `klamm analyze` for the page: whom each is about, and the exchanges that show it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from klamm.decoders import API, ERRORS

LEAST_S = 1e-6  # the end of a time is not in it
TOLD = (
    "severity", "title", "detector", "subject", "what", "count", "first", "last", "advice", "settings",
)  # fmt: skip


class Evidence(Struct, frozen=True):
    """An exchange to look at: `where` (None for all) and times choose it; `show` is the command for it."""

    time: float
    where: str | None
    since: float
    until: float | None
    show: str


class Finding(Struct, frozen=True):
    """`first` and `last` are the times of its `count` events, in seconds since 1970. `where`, None for all
    exchanges, and the time from `since` to `until` choose the exchanges of those whom it is about.
    """

    severity: str
    title: str
    detector: str
    subject: str | None
    clients: list[str]
    groups: list[str]
    topics: list[str]
    brokers: list[str]
    what: str
    count: int
    first: float
    last: float
    advice: str
    settings: list[str]
    where: str | None
    since: float
    until: float
    evidence: list[Evidence]


def findings(found: Mapping[str, Any]) -> list[Finding]:
    """From the object that `klamm analyze --json` prints; the gravest first."""
    return [_finding(one) for one in found["findings"]]


def _finding(one: Mapping[str, Any]) -> Finding:
    evidence = [
        Evidence(each["time"], each["where"], each["since"], each["until"], each["show"])
        for each in one["evidence"]
    ]
    client, about = one["client_id"], _about(one["subject"])
    conditions = [] if client is None else [f"client_id == {_quoted(client)}"]
    ends = (each.until or each.time + LEAST_S for each in evidence)
    told = {name: one[name] for name in TOLD}
    return Finding(
        **told,
        clients=[] if client is None else [client],
        groups=_named(about, "group"),
        topics=_named(about, "topic"),
        brokers=_named(about, "broker"),
        where=" and ".join([*conditions, *_conditions(about)]) or None,
        since=min((one["first"], *(each.since for each in evidence))),
        until=max((one["last"] + LEAST_S, *ends)),
        evidence=evidence,
    )


def _about(subject: str | None) -> dict[str, str]:
    """The words of a subject, such as `topic orders`, by the names that expressions have for them."""
    kind, _, name = (subject or "").partition(" ")
    if kind == "partition":
        topic, _, number = name.rpartition("-")
        return {"topic": topic, "partition": number}
    if kind == "transactional" and name.startswith("id "):
        return {"transactional_id": name.removeprefix("id ")}
    if kind in API and name in ERRORS:
        return {"api": kind, "error": name}
    return {kind: name} if kind in ("topic", "group", "broker") else {}


def _named(about: Mapping[str, str], name: str) -> list[str]:
    return [about[name]] if name in about else []


def _conditions(about: Mapping[str, str]) -> Iterable[str]:
    plain = ("partition", "api", "error")
    return (f"{name} == {text if name in plain else _quoted(text)}" for name, text in about.items())


def _quoted(text: str) -> str:
    """As a literal of an expression."""
    return json.dumps(text, ensure_ascii=False)
