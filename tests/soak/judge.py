"""Compares the records that are stored, and the results of the clients, with those that a run must have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.soak.copier import ABORTED

GROWTH = 1.1  # of memory, at most
SHOWN = 5  # of what went wrong, by name
UNREAD = frozenset({"undecodable", "undecodable_header", "unrewritable"})  # events: klamm knows all of this
Mark = str  # a record's fingerprint, by records.py


class Stored(NamedTuple):
    """A record as a broker has it. `value`: that of a copy; else a fingerprint."""

    partition: int
    offset: int
    value: str


Result = Mapping[str, Any]  # of a client program, by actions.py


def produced(stored: Sequence[Stored], sent: Mapping[str, Sequence[Mark]]) -> Iterator[str]:
    """Each record of each producer is there once, and those of a partition in the order in which they were
    sent. `sent`: by producer.
    """
    times = Counter(record.value for record in stored)
    for name, marks in sent.items():
        yield from _once(f"records of {name}", marks, times)
        number = {mark: at for at, mark in enumerate(marks)}
        last: dict[int, int] = {}
        for record in stored:
            at = number.get(record.value)
            if at is not None:
                if at < last.get(record.partition, -1):
                    yield f"record {at} of {name} stands behind a later one in partition {record.partition}"
                last[record.partition] = at
    strange = times.keys() - {mark for marks in sent.values() for mark in marks}
    if strange:
        yield f"{len(strange)} records that nobody sent: {_some(strange)}"


def acknowledged(name: str, count: int, results: Sequence[Result]) -> Iterator[str]:
    """The result of a producer: all its records are acknowledged."""
    said = [(result.get("acknowledged"), result.get("failed")) for result in results]
    if said != [(count, [])]:
        yield f"producer {name}: {said or 'it said nothing'}, in place of {count} records and none failed"


def consumed(name: str, marks: set[Mark], results: Sequence[Result]) -> Iterator[str]:
    """The result of a consumer: it read each record, at least once."""
    if len(results) != 1 or "fingerprints" not in results[0]:
        yield f"consumer {name}: it said no result"
        return
    missing = marks - set(results[0]["fingerprints"])
    strange = set(results[0]["fingerprints"]) - marks
    if missing or strange:
        yield f"consumer {name}: {len(missing)} records missing, {len(strange)} that nobody sent"


def copied(source: Iterable[Stored], copies: Sequence[Stored]) -> Iterator[str]:
    """Each record has one copy, and nothing is read of what was given up."""
    times = Counter(record.value for record in copies)
    given_up = times.pop(ABORTED, 0)
    if given_up:
        yield f"{given_up} records of aborted transactions can be read"
    places = [f"{record.partition}/{record.offset}" for record in source]
    yield from _once("copies", places, times)
    if strange := times.keys() - set(places):
        yield f"{len(strange)} copies of nothing: {_some(strange)}"


def never_back(samples: Iterable[tuple[float, Mapping[str, int]]]) -> Iterator[str]:
    """Commits, as they were at each time (s), never go back."""
    latest: dict[str, int] = {}
    for time, commits in samples:
        for place, offset in commits.items():
            if offset < latest.get(place, -1):
                yield f"the commit of {place} went back from {latest[place]} to {offset} after {time:.0f} s"
            latest[place] = offset


def grown(early: int, late: int) -> Iterator[str]:
    """Memory (bytes), at the beginning and at the end."""
    if late > GROWTH * early:
        yield f"klamm's memory grew from {early:,} to {late:,} bytes"


def log(lines: Iterable[str]) -> tuple[Counter[str], list[str]]:
    """The warnings and errors in klamm's log, counted by event; and lines that must not be in it."""
    told: Counter[str] = Counter()
    wrong = []
    for line in lines:
        if not line.startswith("{"):
            wrong += [line] if line.startswith("Traceback") else []
            continue
        entry = json.loads(line)
        if entry["level"] != "info":
            told[entry["event"]] += 1
        if entry["event"] in UNREAD:
            wrong.append(line)
    return told, wrong


def _once(what: str, wanted: Sequence[str], times: Mapping[str, int]) -> Iterator[str]:
    lost = [one for one in wanted if not times.get(one, 0)]
    several = [one for one in wanted if times.get(one, 0) > 1]
    if lost:
        yield f"{what}: {len(lost)} of {len(wanted)} are lost: {_some(lost)}"
    if several:
        yield f"{what}: {len(several)} of {len(wanted)} are there more than once: {_some(several)}"


def _some(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
