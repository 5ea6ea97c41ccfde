"""The findings of two reports, such as from before a change and from after it: gone, new, or still there.

A finding is the same one if detector, cluster, client id and subject are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from klamm.pipeline.detectors.finding import Finding, rank
from klamm.pipeline.report import wording
from klamm.pipeline.report.report import Report, as_read, finding_objects

STATES = GONE, ABSENT, NEW, STILL = "gone", "absent", "new", "still there"
Key = tuple[str, str, str | None, str | None]


class Pair(NamedTuple):
    """A finding of both reports, or of one of them."""

    state: str
    before: Finding | None
    now: Finding | None

    @property
    def finding(self) -> Finding:
        found = self.now or self.before
        assert found is not None
        return found

    def often(self) -> str:
        """`3 times, was 12`; of one that is gone `was 12 times`"""
        if self.now is None:
            return f"was {wording.count(self.finding.count, 'time')}"
        times = wording.count(self.now.count, "time")
        return times if self.before is None else f"{times}, was {self.before.count:,}"


@dataclass
class Comparison:
    """`pairs`: gone, those whose client made no exchange any more, new, still there. `untold`: detectors of
    which not all findings are known, so that none of theirs is called gone or new, with the reason.
    """

    before: Report
    now: Report
    pairs: list[Pair] = field(default_factory=list)
    untold: dict[str, str] = field(default_factory=dict)

    def of(self, state: str) -> list[Finding]:
        return [one.finding for one in self.pairs if one.state == state]

    def maybe_new(self) -> list[Finding]:
        """Findings of now that are new, or of which that is not known."""
        still = self.of(STILL)
        found = self.now.findings.found
        return self.of(NEW) + [one for one in found if one.detector in self.untold and one not in still]

    def counts(self) -> str:
        """`2 gone, 1 new, 5 still there`"""
        states = [one.state for one in self.pairs]
        parts = [f"{states.count(state):,} {state}" for state in STATES if state in states]
        return ", ".join(parts) or "no findings to compare"

    def about(self) -> str:
        """What was compared with, and when that was."""
        captures = ", ".join(map(wording.plain, self.before.captures))
        return f"{captures}, {self.before.span()}"

    def notes(self) -> list[str]:
        """Gaps in the captures of before, and what cannot be compared."""
        lines = [f"before: {line}" for line in self.before.gaps()]
        lines += [f"{name}: what is gone or new is not known: {why}" for name, why in self.untold.items()]
        if self.of(ABSENT):
            lines.append(f"{ABSENT}: the client made no exchange here, so that nothing is known of it")
        return lines


def compared(before: Report, now: Report) -> Comparison:
    """`now`: a report that was asked for the clients of the findings of `before`."""
    untold = dict(_untold(before, now))
    earlier, later = _by_key(before.findings.found), _by_key(now.findings.found)
    pairs: list[Pair] = []
    for key in earlier.keys() | later.keys():
        there, here = earlier[key], later[key]
        both = min(len(there), len(here))
        pairs += (Pair(STILL, *each) for each in zip(there[:both], here[:both], strict=True))
        if key[0] not in untold:
            pairs += (Pair(_end(one, now), one, None) for one in there[both:])
            pairs += (Pair(NEW, None, one) for one in here[both:])
    pairs.sort(key=lambda one: (STATES.index(one.state), rank(one.finding)))
    return Comparison(before, now, pairs, untold)


def as_object(comparison: Comparison) -> dict[str, Any]:
    """What `before` is in the JSON; docs/analyze.md lists the keys."""
    earlier = comparison.before
    return {
        "captures": list(earlier.captures),
        "read": as_read(earlier.traffic),
        **{state: finding_objects(earlier, comparison.of(state)) for state in (GONE, ABSENT)},
        "new": [_names(one.finding) for one in comparison.pairs if one.state == NEW],
        "still": [
            {**_names(now), "count": now.count, "was": before.count}
            for _, before, now in comparison.pairs
            if before is not None and now is not None
        ],
        "untold": comparison.untold,
    }


def _names(one: Finding) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("detector", "severity", "cluster", "client_id", "subject")}


def _by_key(findings: Iterable[Finding]) -> defaultdict[Key, list[Finding]]:
    found = defaultdict[Key, list[Finding]](list)
    for one in findings:
        found[one.detector, one.cluster, one.client_id, one.subject].append(one)
    return found


def _untold(before: Report, now: Report) -> Iterator[tuple[str, str]]:
    for report, when in ((before, "before"), (now, "now")):
        for name, more in report.findings.more.items():
            yield name, f"{more:,} more findings {when} than are listed"
        for name in report.findings.failed:
            yield name, f"it failed {when}"


def _end(one: Finding, now: Report) -> str:
    is_absent = one.client_id is not None and one.client_id not in now.present
    return ABSENT if is_absent else GONE
