"""What a rule has seen and done so far, and what follows from that for the next match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from klamm.rules.rule import Moment, Rule

KEYS_KEPT = 10_000  # of a rule that counts per something; beyond it all are forgotten and counted anew


@dataclass(slots=True)
class Tally:
    """Counts of one rule. Times are monotonic ns, but for `wall_offset_ns`, which added to one gives the time
    since 1970.
    """

    rule: Rule
    started_ns: int
    wall_offset_ns: int = 0
    first_match_ns: int | None = None
    matches: int = 0
    hits: int = 0
    failures: int = 0  # actions that raised
    matches_per: Counter[Hashable] = field(default_factory=Counter)
    hits_per: Counter[Hashable] = field(default_factory=Counter)
    timed: bool = field(init=False)  # has it times at all,
    conditional: bool = field(init=False)  # on times, or on other rules,
    reads: bool = field(init=False)  # more than headers,
    counts: bool = field(init=False)  # and do matches have to be counted per something?

    def __post_init__(self) -> None:
        when = self.rule.when
        self.timed = any(moment is not None for moment in (when.after, when.until, when.lasting_ns))
        self.conditional = self.timed or bool(when.once_hit or when.until_hit)
        self.reads = self.rule.reads
        self.counts = self.timed or when.times is not None or bool(when.nth) or when.every > 1

    def over(self, now: int) -> bool:
        """Will it never hit again?"""
        when = self.rule.when
        end = self._end()
        return (end is not None and now >= end) or (
            when.times is not None and when.per == "rule" and self.hits >= when.times
        )

    def open(self, now: int) -> bool:
        """Is this its time? Before its first match a rule that counts from there is open."""
        when = self.rule.when
        begin, end = self._at(when.after), self._end()
        return (begin is None or now >= begin) and (end is None or now < end)

    def count(self, key: Hashable, now: int) -> bool:
        """One more match: may it be a hit, but for its chance?"""
        self.matches += 1
        if self.first_match_ns is None:
            self.first_match_ns = now
        if not self.counts:
            return True
        when = self.rule.when
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

    def hit(self, key: Hashable) -> None:
        self.hits += 1
        if self.counts:
            self.hits_per[key] += 1

    def give_back(self, key: Hashable) -> None:
        """A hit that came to nothing, since a rule before this one has ended the frame; it was a match."""
        self.hits -= 1
        if self.counts:
            self.hits_per[key] -= 1

    def reset(self, now: int) -> None:
        self.started_ns, self.first_match_ns = now, None
        self.matches = self.hits = self.failures = 0
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

    def _end(self) -> int | None:
        when = self.rule.when
        end = self._at(when.until)
        if when.lasting_ns is not None:
            begin = self._at(when.after)
            start = self._start() if begin is None else begin
            last = None if start is None else start + when.lasting_ns
            end = last if end is None else end if last is None else min(end, last)
        return end
