"""Plays a soak: clients at work, one fault after the other, and at the end what is wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.brokers.processes import wait_for
from tests.soak import judge
from tests.soak.clients import CONSUMERS, COPIES, ORDERS, PRODUCERS, SLACK_S
from tests.soak.faults import FAULTS, Fault
from tests.soak.ground import Ground, ground
from tests.soak.judge import Stored
from tests.soak.watching import Watch

PAUSE_S = (1.0, 5.0)  # between two faults
EARLY = (
    1 / 12
)  # of the time, at its beginning and at its end, is looked at for memory: five minutes of an hour
LONG_S = 600  # from so long a run on, memory must not grow
MIB = 1 << 20


def soak(folder: Path, seconds: float, random: Random) -> list[str]:
    """Gives a line for each mistake. Prints the faults, and numbers. `seconds`: so long clients work."""
    with ground(folder, seconds) as made:
        began = time.monotonic()
        with Watch(made) as watch:
            met = _suffer(made, random, began)
            wait_for(lambda: _ended(made), "the consumers", [made.klamm], SLACK_S)
            stored = made.stored(ORDERS)
            wait_for(lambda: _copied(made, watch, stored), "the copiers", [made.klamm], SLACK_S)
        made.clients.stop()
        copies = made.stored(COPIES)
        told, unread = judge.log(_lines(made))
        wrong = [*_wrong(made, watch, stored, copies), *unread]
    early, late = _memory(watch, seconds)
    if seconds >= LONG_S:
        wrong += judge.grown(early, late)
    sizes = f"{len(stored):,} records, {len(copies):,} copies in transactions"
    print(f"{(time.monotonic() - began) / 60:.1f} minutes, {met.total()} faults, {sizes}")
    for name, times in sorted(met.items()):
        print(f"  {times:4} x {name}")
    if made.clients.stuck:
        print(f"  {made.clients.stuck:4} x a copier began anew, since a call of librdkafka did not return")
    events = (f"{times} x {event}" for event, times in told.most_common())
    print(f"klamm's log: {', '.join(events) or 'nothing'}")
    print(f"klamm and its workers: {early / MIB:.0f} MiB at first, {late / MIB:.0f} MiB at the end")
    return wrong


def _suffer(made: Ground, random: Random, began: float) -> Counter[str]:
    """One fault after the other, as long as there are producers: each kind once before one comes again."""
    made.wait_until_all_work()
    met: Counter[str] = Counter()
    left: list[Fault] = []
    while made.clients.produce:
        left = left or random.sample(FAULTS, len(FAULTS))
        fault = left.pop()
        told = fault(made, random)
        met[fault.__name__.replace("_", " ")] += 1
        print(f"{time.monotonic() - began:7.1f} s  {told}", flush=True)
        made.wait_until_it_goes_on()
        made.clients.tend()
        time.sleep(random.uniform(*PAUSE_S))
    return met


def _ended(made: Ground) -> bool:
    made.clients.tend()
    return not made.clients.consume


def _copied(made: Ground, watch: Watch, stored: list[Stored]) -> bool:
    """Have the copiers committed all of it?"""
    made.clients.tend()
    ends: dict[str, int] = {}
    for record in stored:
        ends[f"{ORDERS}-{record.partition}"] = record.offset + 1
    return watch.committed() == ends


def _wrong(made: Ground, watch: Watch, stored: list[Stored], copies: list[Stored]) -> Iterator[str]:
    clients = made.clients
    for name in PRODUCERS:
        yield from judge.acknowledged(name, clients.count, clients.results(clients.producers[name]))
    yield from judge.produced(stored, clients.sent)
    marks = {mark for sent in clients.sent.values() for mark in sent}
    for name in CONSUMERS:
        yield from judge.consumed(name, marks, clients.results(clients.consumers[name]))
    yield from judge.copied(stored, copies)
    yield from judge.never_back(watch.commits)


def _lines(made: Ground) -> Iterator[str]:
    """Of the logs of all klamms that ran."""
    for log in made.folder.glob("klamm-*.log"):
        yield from log.read_text().splitlines()


def _memory(watch: Watch, seconds: float) -> tuple[int, int]:
    """The most bytes of klamm at the beginning and at the end; 0 where it was away."""
    early = max((size for at, size in watch.memory if at <= seconds * EARLY), default=0)
    late = max((size for at, size in watch.memory if at >= seconds * (1 - EARLY)), default=0)
    return early, late
