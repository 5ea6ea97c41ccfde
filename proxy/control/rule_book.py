"""All rules in force: those of the file, those made by hand, and those that serve listeners."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from klamm.client.types import Mistake
from klamm.client.types import Rule as RuleState
from klamm.client.types import RuleFile as RuleFileState
from klamm.proxy.metrics.snapshot import RuleCounts
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.file.presence import Known, unmet
from klamm.rules.file.rule_file import RuleFile, read_rule
from klamm.rules.rule import Action, Rule
from klamm.rules.state import CountedRule
from klamm.settings.mistakes import Mistake as FileMistake
from klamm.settings.mistakes import dotted
from klamm.settings.nearest import suggestion

S = 1_000_000_000
LASTING_NS = 600 * S  # duration of a rule made by hand that gives none
LINGER_NS = 15 * S  # a rule made by hand is still listed so long after its end
HAND = "hand-"
MOST = 1000  # rules by hand

Written = Mapping[str, Any]


class Refused(Exception):
    """A request cannot be carried out. Has an HTTP status, a reason, and the mistakes in the request."""

    def __init__(self, status: int, reason: str, mistakes: Sequence[Mistake] = ()) -> None:
        super().__init__(reason)
        self.status, self.reason, self.mistakes = status, reason, list(mistakes)

    def __reduce__(self) -> tuple[type[Refused], tuple[int, str, list[Mistake]]]:
        return Refused, (self.status, self.reason, self.mistakes)


@dataclass(slots=True)
class ByHand:
    """A rule that a person made. It ends at `ends_ns`; None: with klamm."""

    rule: Rule
    written: Written
    ends_ns: int | None
    made_by: str
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class RuleBook:
    """`engine` always has the rules of the book. Times are monotonic ns."""

    engine: Engine
    clock: Callable[[], int] = time.monotonic_ns
    file: tuple[Rule, ...] = ()
    texts: Mapping[str, Written] = field(default_factory=dict)  # as the file has them, by name
    actions: Mapping[str, type[Action]] = field(default_factory=lambda: ACTIONS)
    hand: dict[str, ByHand] = field(default_factory=dict)
    listening: dict[str, Rule] = field(default_factory=dict)
    switched: dict[str, bool] = field(default_factory=dict)  # rules of the file, by name
    loaded: Callable[[], None] = lambda: None  # called when the rules have changed
    known: Callable[[], Known] = dict  # the clusters, and their nodes as far as they are known
    doubts: dict[str, list[str]] = field(default_factory=dict)  # warnings, by rules of the file
    rule_file: RuleFileState = RuleFileState("", 0, 0.0)

    def of_file(self, found: RuleFile) -> list[str]:
        """Take the rules of a file. Gives the names of rules by hand that ended because the file has them."""
        self.file, self.actions = found.rules, found.actions
        names = [rule.name for rule in found.rules]
        self.texts = dict(zip(names, found.texts, strict=False))
        self.doubts = {name: [] for name in names}
        for each in found.warnings:
            if len(each.path) > 1 and isinstance(each.path[1], int):
                self.doubts[names[each.path[1]]].append(_warning_text(each))
        self.rule_file = RuleFileState(found.source, len(found.rules), time.time())
        gone = [rule.name for rule in self.file if self.hand.pop(rule.name, None)]
        self._load()
        return gone

    def take(self, rules: Sequence[tuple[Rule, int]]) -> None:
        """The rules of another process, each with the start of its counts (monotonic ns). One that was only
        switched, or is as it was, goes on counting.
        """
        self.file = tuple(rule for rule, _ in rules)
        for rule, started_ns in rules:
            before = self.engine.by_name.get(rule.name)
            if before is not None and replace(before.rule, enabled=rule.enabled) == rule:
                before.rule = rule
                if before.started_ns != started_ns:
                    before.reset(started_ns)
        self._load()
        for rule, started_ns in rules:
            self.engine.by_name[rule.name].started_ns = started_ns

    def reject(self, found: RuleFile) -> None:
        """The file has mistakes: the rules stay as they are."""
        before, mistakes = self.rule_file, list(map(str, found.mistakes))
        self.rule_file = RuleFileState(before.file, before.rules, before.loaded, time.time(), mistakes)

    def listed(self) -> Iterator[RuleState]:
        """The state of every rule, without those of listeners. The loop may do something else between two."""
        state = self._stating()
        for counted in self.engine.counted_rules:
            if (
                counted.rule.name not in self.listening
                and self.engine.by_name.get(counted.rule.name) is counted
            ):
                yield state(counted)

    def _stating(self) -> Callable[[CountedRule], RuleState]:
        now, wall, known = self.clock(), time.time(), self.known()

        def state(counted: CountedRule) -> RuleState:
            rule, by_hand = counted.rule, self.hand.get(counted.rule.name)
            removed = by_hand.ends_ns if by_hand else None
            ends = min((at for at in (removed, counted.end()) if at is not None), default=None)
            doubts = by_hand.warnings if by_hand else self.doubts.get(rule.name, ())
            return RuleState(
                name=rule.name,
                origin="hand" if by_hand else "file",
                written=dict(by_hand.written if by_hand else self.texts.get(rule.name, {})),
                enabled=rule.enabled,
                dry=rule.dry,
                matches=counted.matches,
                hits=counted.hits,
                failures=counted.failures,
                over=counted.over(now),
                expires=None if removed is None else wall + (removed - now) / S,
                made_by=by_hand.made_by if by_hand else "",
                warnings=[*doubts, *(f"{at[0]}: {reason}" for at, reason in unmet(rule, known))],
                ends=None if ends is None else wall + (ends - now) / S,
            )

        return state

    def counts(self) -> RuleCounts:
        """The numbers of rules that act now."""
        now = self.clock()
        acting = [
            counted.rule
            for counted in self.engine.counted_rules
            if counted.rule.enabled and not counted.over(now)
        ]
        names = [rule.name for rule in acting if not rule.dry and rule.name not in self.listening]
        by_hand = [self.hand[name] for name in names if name in self.hand]
        without_end = sum(made.ends_ns is None for made in by_hand)
        return RuleCounts(len(names) - len(by_hand), len(by_hand), without_end)

    def state_of(self, name: str) -> RuleState:
        """The state of one rule. Raises Refused."""
        counted = None if name in self.listening else self.engine.by_name.get(name)
        if counted is None:
            known = [each for each in self.engine.by_name if each not in self.listening]
            raise Refused(404, f"there is no rule {name!r}{suggestion(name, known)}")
        return self._stating()(counted)

    def added(self, written: Written, made_by: str) -> Callable[[], ByHand]:
        """A function for any thread that reads a rule in the form of the file's, to be `put` then.
        `for: forever` never ends. Both raise Refused.
        """
        if len(self.hand) >= MOST:
            raise Refused(409, f"there are {MOST} rules made by hand: remove some")
        return partial(self._read, written, made_by, {rule.name for rule in self.engine_rules()})

    def changed(self, name: str, written: Written, made_by: str) -> Callable[[], ByHand]:
        """The same for another rule by hand in the place of one; it keeps the name."""
        self._by_hand(name, "change")
        if written.get("name", name) != name:
            raise Refused(422, "another name", [Mistake("name", f"must be {name}: add a rule instead")])
        others = {rule.name for rule in self.engine_rules()} - {name}
        return partial(self._read, {"name": name, **written}, made_by, others)

    def put(self, made: ByHand, instead: str | None = None) -> RuleState:
        """A rule that was read, from now on; `instead` of the one with its name."""
        name = made.rule.name
        if name != instead and name in self.engine.by_name:
            raise Refused(409, f"there is a rule {name!r} already: choose another name")
        if instead is not None:
            self._by_hand(instead, "change")
        lacking = [Mistake(str(at[0]), reason) for at, reason in unmet(made.rule, self.known())]
        if lacking:
            raise Refused(422, "the rule can act nowhere, or where it is not meant to", lacking)
        self.hand[name] = made
        self._load()
        return self.state_of(name)

    def switch(self, name: str, enabled: bool) -> RuleState:
        """Switch a rule on or off; it keeps its counts. Raises Refused."""
        self.state_of(name)
        self._switch(name, enabled)
        self._load()
        return self.state_of(name)

    def remove(self, name: str) -> None:
        """Remove a rule made by hand. Raises Refused."""
        self._by_hand(name, "remove")
        del self.hand[name]
        self._load()

    def reset(self, name: str) -> RuleState:
        """Begin a rule's counts and times anew; the end of one made by hand stays. Raises Refused."""
        self.state_of(name)
        self.engine.by_name[name].reset(self.clock())
        self.loaded()
        return self.state_of(name)

    def off(self) -> list[str]:
        """Remove the rules made by hand, switch off the file's. Gives the names of rules that acted."""
        acted = [
            rule.name for rule in self.engine_rules() if rule.enabled and rule.name not in self.listening
        ]
        self.hand.clear()
        for rule in self.file:
            self._switch(rule.name, False)
        self._load()
        return acted

    def expire(self) -> list[str]:
        """Remove the rules made by hand that have ended. Gives their names."""
        now = self.clock()
        ended = [name for name, made in self.hand.items() if made.ends_ns is not None and now >= made.ends_ns]
        for name in ended:
            del self.hand[name]
        if ended:
            self._load()
        return ended

    def listen(self, rule: Rule) -> None:
        """Add a listener's rule, which changes nothing; it sees frames before all others."""
        self.listening[rule.name] = rule
        self._load()

    def unlisten(self, name: str) -> None:
        if self.listening.pop(name, None) is not None:
            self._load()

    def engine_rules(self) -> list[Rule]:
        """All rules, in the order in which they are asked."""
        file = [
            replace(rule, enabled=self.switched[rule.name]) if rule.name in self.switched else rule
            for rule in self.file
        ]
        return [*self.listening.values(), *file, *(made.rule for made in self.hand.values())]

    def _load(self) -> None:
        self.switched = {
            rule.name: self.switched[rule.name] for rule in self.file if rule.name in self.switched
        }
        self.engine.load(self.engine_rules(), self.clock())
        self.loaded()

    def acts(self, name: str) -> bool:
        """Is there such a rule, and is it switched on?"""
        counted = self.engine.by_name.get(name)
        return counted is not None and counted.rule.enabled

    def _switch(self, name: str, enabled: bool) -> None:
        counted = self.engine.by_name[name]
        counted.rule = replace(counted.rule, enabled=enabled)  # the same counted goes on for it
        if name in self.hand:
            self.hand[name].rule = counted.rule
        else:
            self.switched[name] = enabled

    def _by_hand(self, name: str, verb: str) -> None:
        if self.state_of(name).origin == "file":
            raise Refused(409, f"{name} is of the rule file: {verb} it there, or switch it off")

    def _read(self, written: Written, made_by: str, taken: set[str]) -> ByHand:
        plain = dict(written)
        forever = plain.get("for") == "forever" and plain.pop("for")
        known = taken if "name" in plain else {name.removeprefix(HAND) for name in taken} | taken
        found = read_rule(plain, "the rule", self.actions, known)
        if found.mistakes:
            mistakes = [Mistake(dotted(one.path[2:]), one.reason) for one in found.mistakes]
            raise Refused(422, "the rule has mistakes", mistakes)
        rule = found.rules[0]
        if "name" not in plain:
            rule = replace(rule, name=HAND + rule.name)
        ends = None if forever else self.clock() + _lasting(rule)
        return ByHand(rule, written, ends, made_by, tuple(map(_warning_text, found.warnings)))


def _warning_text(warning: FileMistake) -> str:
    """A warning of a rule, without the rule's place in its file."""
    key = dotted(warning.path[2:])
    return f"{key}: {warning.reason}" if key else warning.reason


def _lasting(rule: Rule) -> int:
    """How long a rule made by hand is kept (ns)."""
    if rule.when.lasting_ns is None:
        return LASTING_NS
    begins = rule.when.after
    waits = LASTING_NS if rule.when.since == "first match" else LINGER_NS
    return rule.when.lasting_ns + waits + (begins.ns if begins is not None and not begins.absolute else 0)
