"""Counts of one rule so far, which decide about its next match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from klamm.decoders import DecodeError
from klamm.rules.expressions.work import OverLimit
from klamm.rules.rule import Moment, Rule

HITS = "hits"  # of all keys together
KEYS_KEPT = 10_000  # of a rule that counts per something; beyond it all are forgotten and counted anew


class SharedCounts(Protocol):
    """Counts of one rule that several processes share. Keys are hashed: `hash` of one has to be the same in
    all of them.
    """

    def add(self, what: Hashable, more: int) -> int:
        """Add to a count; gives it as it is then. With 0 it is read."""

    def first(self, now: int) -> int:
        """The time of the first match (ns): this one, if there was none before."""


@dataclass(slots=True)
class CountedRule:
    """A rule and its counts. Times are monotonic ns, but for `wall_offset_ns`, which added to one gives the
    time since 1970.
    """

    rule: Rule
    started_ns: int
    wall_offset_ns: int = 0
    first_match_ns: int | None = None
    matches: int = 0
    hits: int = 0
    failures: int = 0  # actions that raised, conditions that took too much work
    limited: bool = False  # it was said that the condition takes too much work
    place: int = 0  # among all rules, in the order in which they are asked
    matches_per: Counter[Hashable] = field(default_factory=Counter)
    hits_per: Counter[Hashable] = field(default_factory=Counter)
    shared: SharedCounts | None = None  # decides, where processes count together
    spent: bool = False  # as `shared` said, the rule has hit as often as it may
    timed: bool = field(init=False)  # has it times at all,
    conditional: bool = field(init=False)  # on times, or on other rules,
    reads: bool = field(init=False)  # more than headers,
    counts: bool = field(init=False)  # and do matches have to be counted per something?
    interferes: bool = field(init=False)  # does it do more than to look at frames?

    def __post_init__(self) -> None:
        when = self.rule.when
        self.timed = any(moment is not None for moment in (when.after, when.until, when.lasting_ns))
        self.conditional = self.timed or bool(when.once_hit or when.until_hit)
        self.reads = self.rule.reads
        self.interferes = not all(getattr(action, "observes", False) for action in self.rule.do)
        self.counts = self.timed or when.times is not None or bool(when.nth) or when.every > 1

    def over(self, now: int) -> bool:
        """Will it never hit again?"""
        when = self.rule.when
        end = self.end()
        return (end is not None and now >= end) or (
            when.times is not None and when.per == "rule" and self.hits >= when.times
        )

    def used_up(self) -> bool:
        """Has it hit as often as it may? Only for a rule whose matches the header and the count decide."""
        when = self.rule.when
        if self.reads or self.conditional or when.times is None or when.per != "rule":
            return False
        return self.spent or self.hits >= when.times

    def has_hit(self) -> bool:
        """Has it hit ever, in any of the processes?"""
        return self.hits > 0 or (self.shared is not None and self.shared.add(HITS, 0) > 0)

    def open(self, now: int) -> bool:
        """Whether now is within the rule's times. Before its first match a rule that counts from there is
        open.
        """
        when = self.rule.when
        begin, end = self._at(when.after), self.end()
        return (begin is None or now >= begin) and (end is None or now < end)

    def count(self, key: Hashable, now: int) -> bool:
        """Counts one more match: may it be a hit, but for its chance?"""
        self.matches += 1
        if self.first_match_ns is None:
            self.first_match_ns = now if self.shared is None else self.shared.first(now)
        if not self.counts:
            return True
        when = self.rule.when
        if (shared := self._together()) is not None:
            nth = shared.add(("match", key), 1)
            return self.open(now) and (not when.nth or nth in when.nth) and nth % when.every == 0
        if len(self.matches_per) > KEYS_KEPT:
            self.matches_per.clear()
            self.hits_per.clear()
        self.matches_per[key] += 1
        nth = self.matches_per[key]
        if not self.open(now):  # its time counts from the first match, and has not begun
            return False
        if when.times is not None and self.hits_per[key] >= when.times:
            return False
        return (not when.nth or nth in when.nth) and nth % when.every == 0

    def hit(self, key: Hashable) -> bool:
        """Counts a hit. False if another process had the last one that the rule may have."""
        when, together = self.rule.when, self._together()
        if together is not None and when.times is not None and together.add(("hit", key), 1) > when.times:
            together.add(("hit", key), -1)
            self.spent = when.per == "rule"
            return False
        self._add_hit(key, 1)
        return True

    def give_back(self, key: Hashable) -> None:
        """A hit that came to nothing, since a rule before this one has ended the frame; it was a match."""
        together = self._together()
        if together is not None and self.rule.when.times is not None:
            together.add(("hit", key), -1)
        self._add_hit(key, -1)

    def _add_hit(self, key: Hashable, more: int) -> None:
        self.hits += more
        if self.shared is not None:
            self.shared.add(HITS, more)
        if self.counts and self._together() is None:
            self.hits_per[key] += more

    def _together(self) -> SharedCounts | None:
        """Where matches are counted with other processes; a connection is of one process."""
        return None if self.rule.when.per == "connection" else self.shared

    def unread(self, reason: DecodeError) -> Iterator[str]:
        """Counts a frame that does not match since the condition takes too much work on it. Gives a sentence
        about that, once.
        """
        if not isinstance(reason, OverLimit):
            return
        self.failures += 1
        if not self.limited:
            self.limited = True
            yield f"its condition does not match where it {reason.reason}, as on a {reason.api} {reason.side}"

    def reset(self, now: int) -> None:
        self.started_ns, self.first_match_ns = now, None
        self.matches = self.hits = self.failures = 0
        self.spent = False
        self.matches_per.clear()
        self.hits_per.clear()

    def _start(self) -> int | None:
        return self.started_ns if self.rule.when.since == "start" else self.first_match_ns

    def _at(self, moment: Moment | None) -> int | None:
        if moment is None:
            return None
        if moment.absolute:
            return moment.ns - self.wall_offset_ns
        start = self._start()
        return None if start is None else start + moment.ns

    def end(self) -> int | None:
        """When its time ends; None where it has no end, or none is known before its first match."""
        when = self.rule.when
        end = self._at(when.until)
        if when.lasting_ns is not None:
            begin = self._at(when.after)
            start = self._start() if begin is None else begin
            last = None if start is None else start + when.lasting_ns
            end = last if end is None else end if last is None else min(end, last)
        return end
