"""All rules in force: those of the file, those made by hand beside them, and what watches for listeners."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from klamm.client.types import Mistake
from klamm.client.types import Rule as Told
from klamm.client.types import RuleFile as ToldFile
from klamm.proxy.metrics.snapshot import RuleCounts
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.file.presence import Known, unmet
from klamm.rules.file.rule_file import RuleFile, read_text
from klamm.rules.rule import Action, Rule
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import Mistake as FileMistake
from klamm.settings.typed_yaml import dotted

S = 1_000_000_000
LASTING_NS = 600 * S  # of a rule made by hand that does not say
LINGER_NS = 15 * S  # so long one that has ended is still told of
HAND = "hand-"
MOST = 1000  # rules by hand

Written = Mapping[str, Any]


class Refused(Exception):
    """What was asked for cannot be done: an HTTP status, a reason, and the mistakes in what was sent."""

    def __init__(self, status: int, reason: str, mistakes: Sequence[Mistake] = ()) -> None:
        super().__init__(reason)
        self.status, self.reason, self.mistakes = status, reason, list(mistakes)


@dataclass(slots=True)
class ByHand:
    """A rule that a person made, until `ends_ns`; None: for as long as klamm runs."""

    rule: Rule
    written: Written
    ends_ns: int | None
    made_by: str
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class RuleBook:
    """`engine` always holds what stands here. Times are monotonic ns."""

    engine: Engine
    clock: Callable[[], int] = time.monotonic_ns
    file: tuple[Rule, ...] = ()
    texts: tuple[Written, ...] = ()
    actions: Mapping[str, type[Action]] = field(default_factory=lambda: ACTIONS)
    hand: dict[str, ByHand] = field(default_factory=dict)
    listening: dict[str, Rule] = field(default_factory=dict)
    switched: dict[str, bool] = field(default_factory=dict)  # rules of the file, by their names
    loaded: Callable[[], None] = lambda: None  # called when the rules have changed
    known: Callable[[], Known] = dict  # the clusters, and their nodes as far as they are known
    doubts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # warnings, by rules of the file
    rule_file: ToldFile = ToldFile("", 0, 0.0)

    def of_file(self, found: RuleFile) -> list[str]:
        """The rules of a file, from now on. The names of those by hand that had to give way to them."""
        self.file, self.texts, self.actions = found.rules, found.texts, found.actions
        self.doubts = {
            rule.name: [_said(each) for each in found.warnings if each.path[:2] == ("rules", index)]
            for index, rule in enumerate(found.rules)
        }
        self.rule_file = ToldFile(found.source, len(found.rules), time.time())
        gone = [rule.name for rule in self.file if self.hand.pop(rule.name, None)]
        self._load()
        return gone

    def reject(self, found: RuleFile) -> None:
        """The file has mistakes: the rules stay as they are."""
        before, mistakes = self.rule_file, list(map(str, found.mistakes))
        self.rule_file = ToldFile(before.file, before.rules, before.loaded, time.time(), mistakes)

    def listed(self) -> Iterator[Told]:
        """Every rule but those that only watch, as it is told."""
        now, wall, known = self.clock(), time.time(), self.known()
        texts = dict(zip((rule.name for rule in self.file), self.texts, strict=False))
        for tally in self.engine.tallies:
            rule, by_hand = tally.rule, self.hand.get(tally.rule.name)
            if rule.name in self.listening:
                continue
            ends = by_hand.ends_ns if by_hand else None
            doubts = by_hand.warnings if by_hand else self.doubts.get(rule.name, ())
            yield Told(
                name=rule.name,
                origin="hand" if by_hand else "file",
                written=dict(by_hand.written if by_hand else texts.get(rule.name, {})),
                enabled=rule.enabled,
                dry=rule.dry,
                matches=tally.matches,
                hits=tally.hits,
                failures=tally.failures,
                over=tally.over(now),
                expires=None if ends is None else wall + (ends - now) / S,
                made_by=by_hand.made_by if by_hand else "",
                warnings=[*doubts, *(f"{at[0]}: {reason}" for at, reason in unmet(rule, known))],
            )

    def counts(self) -> RuleCounts:
        """Of the rules that act now."""
        now = self.clock()
        acting = [tally.rule for tally in self.engine.tallies if tally.rule.enabled and not tally.over(now)]
        names = [rule.name for rule in acting if not rule.dry and rule.name not in self.listening]
        by_hand = [self.hand[name] for name in names if name in self.hand]
        without_end = sum(made.ends_ns is None for made in by_hand)
        return RuleCounts(len(names) - len(by_hand), len(by_hand), without_end)

    def told(self, name: str) -> Told:
        """One of them. Raises Refused."""
        return next((told for told in self.listed() if told.name == name), None) or self._missing(name)

    def add(self, written: Written, made_by: str) -> Told:
        """A rule in the form of the file's; `for: forever` never ends. Raises Refused."""
        if len(self.hand) >= MOST:
            raise Refused(409, f"there are {MOST} rules made by hand: remove some")
        made = self._read(written, made_by, {rule.name for rule in self.engine_rules()})
        self.hand[made.rule.name] = made
        self._load()
        return self.told(made.rule.name)

    def change(self, name: str, written: Written, made_by: str) -> Told:
        """Another rule by hand in the place of one; it keeps the name. Raises Refused."""
        self._by_hand(name, "change")
        if written.get("name", name) != name:
            raise Refused(422, "another name", [Mistake("name", f"must be {name}: add a rule instead")])
        others = {rule.name for rule in self.engine_rules()} - {name}
        self.hand[name] = self._read({"name": name, **written}, made_by, others)
        self._load()
        return self.told(name)

    def switch(self, name: str, enabled: bool) -> Told:
        """On or off, with its counts. Raises Refused."""
        self.told(name)
        self._switch(name, enabled)
        self._load()
        return self.told(name)

    def remove(self, name: str) -> None:
        """One made by hand. Raises Refused."""
        self._by_hand(name, "remove")
        del self.hand[name]
        self._load()

    def reset(self, name: str) -> Told:
        """Its counts and times begin anew; one by hand ends when it would have. Raises Refused."""
        self.told(name)
        self.engine.by_name[name].reset(self.clock())
        return self.told(name)

    def off(self) -> list[str]:
        """Rules by hand go, those of the file are switched off: the names of what acted until now."""
        acted = [told.name for told in self.listed() if told.enabled]
        self.hand.clear()
        for rule in self.file:
            self._switch(rule.name, False)
        self._load()
        return acted

    def expire(self) -> list[str]:
        """Takes out what has ended; its names."""
        now = self.clock()
        ended = [name for name, made in self.hand.items() if made.ends_ns is not None and now >= made.ends_ns]
        for name in ended:
            del self.hand[name]
        if ended:
            self._load()
        return ended

    def listen(self, rule: Rule) -> None:
        """A rule that changes nothing; it sees frames before all others."""
        self.listening[rule.name] = rule
        self._load()

    def unlisten(self, name: str) -> None:
        if self.listening.pop(name, None) is not None:
            self._load()

    def engine_rules(self) -> list[Rule]:
        """In the order in which they are asked."""
        file = [replace(rule, enabled=self.switched.get(rule.name, rule.enabled)) for rule in self.file]
        return [*self.listening.values(), *file, *(made.rule for made in self.hand.values())]

    def _load(self) -> None:
        self.switched = {
            rule.name: self.switched[rule.name] for rule in self.file if rule.name in self.switched
        }
        self.engine.load(self.engine_rules(), self.clock())
        self.loaded()

    def acts(self, name: str) -> bool:
        """Is there such a rule, and is it switched on?"""
        tally = self.engine.by_name.get(name)
        return tally is not None and tally.rule.enabled

    def _switch(self, name: str, enabled: bool) -> None:
        tally = self.engine.by_name[name]
        tally.rule = replace(tally.rule, enabled=enabled)  # the same tally goes on for it
        if name in self.hand:
            self.hand[name].rule = tally.rule
        else:
            self.switched[name] = enabled

    def _by_hand(self, name: str, verb: str) -> None:
        if self.told(name).origin == "file":
            raise Refused(409, f"{name} is of the rule file: {verb} it there, or switch it off")

    def _missing(self, name: str) -> Told:

        raise Refused(
            404, f"there is no rule {name!r}{suggestion(name, [told.name for told in self.listed()])}"
        )

    def _read(self, written: Written, made_by: str, taken: set[str]) -> ByHand:
        plain = dict(written)
        forever = plain.get("for") == "forever" and plain.pop("for")
        known = taken if "name" in plain else {name.removeprefix(HAND) for name in taken} | taken
        text = msgspec.json.encode({"rules": [plain]}).decode()
        found = read_text(text, "the rule", self.actions, known)
        if found.mistakes:
            mistakes = [Mistake(dotted(one.path[2:]), one.reason) for one in found.mistakes]
            raise Refused(422, "the rule has mistakes", mistakes)
        rule = found.rules[0]
        lacking = [Mistake(str(at[0]), reason) for at, reason in unmet(rule, self.known())]
        if lacking:
            raise Refused(422, "the rule can act nowhere, or where it is not meant to", lacking)
        if "name" not in plain:
            rule = replace(rule, name=HAND + rule.name)
        if rule.name in taken:
            raise Refused(409, f"there is a rule {rule.name!r} already: choose another name")
        ends = None if forever else self.clock() + _lasting(rule)
        return ByHand(rule, written, ends, made_by, tuple(map(_said, found.warnings)))


def _said(warning: FileMistake) -> str:
    """A warning of a rule, without the rule's place in its file."""
    key = dotted(warning.path[2:])
    return f"{key}: {warning.reason}" if key else warning.reason


def _lasting(rule: Rule) -> int:
    """How long a rule is kept."""
    if rule.when.lasting_ns is None:
        return LASTING_NS
    begins = rule.when.after
    waits = LASTING_NS if rule.when.since == "first match" else LINGER_NS
    return rule.when.lasting_ns + waits + (begins.ns if begins is not None and not begins.absolute else 0)
