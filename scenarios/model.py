"""Reads scenario files: every mistake is reported, with its place.

A docstring below a field says what the key means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from string import Template
from typing import Any

from klamm.rules.actions import ACTIONS
from klamm.rules.file.rule_file import read_text
from klamm.rules.file.written import file_type
from klamm.rules.file.written import scalars as rule_scalars
from klamm.rules.quantities import Duration
from klamm.scenarios.expectations import KINDS, Expectation
from klamm.settings.mistakes import Mistake, Path
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import BROKEN, Document, read

STEP = make_dataclass("Expected", [(name, kind | None, None) for name, kind in KINDS.items()], frozen=True)
SCALARS = rule_scalars(ACTIONS)
RULES = next(f.type for f in fields(file_type(ACTIONS)) if f.name == "rules")


@dataclass(frozen=True)
class Written:
    """The part of a phase that has one type in the file and in the program."""

    name: str
    """Its name in the report."""
    for_: Duration
    """Its length; shorter where the scenario runs faster."""
    flap: Duration | None = None
    """The rules go on and off, so long each; without it they are on throughout."""


WRITTEN_PHASE = make_dataclass(
    "WrittenPhase",
    [("rules", RULES, ()), ("expect", tuple[STEP, ...], ())],  # type: ignore[valid-type]
    bases=(Written,),
    frozen=True,
)
WRITTEN_FILE = make_dataclass(
    "WrittenScenario",
    [
        ("about", str, ""),
        ("parameters", Mapping[str, str], field(default_factory=dict)),
        ("phases", tuple[WRITTEN_PHASE, ...], ()),  # type: ignore[valid-type]
        ("expect", tuple[STEP, ...], ()),  # type: ignore[valid-type]
    ],
    frozen=True,
)


@dataclass(frozen=True)
class Phase:
    """A part of a scenario. `rules` are as they are written in rule files, each with a name."""

    name: str
    lasts_s: float
    rules: tuple[Mapping[str, Any], ...] = ()
    flap_s: float | None = None
    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """`expect` is judged over all phases together. `parameters` are what `$name` stands for in the file."""

    name: str
    about: str
    phases: tuple[Phase, ...]
    expect: tuple[Expectation, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def lasts_s(self) -> float:
        return sum(phase.lasts_s for phase in self.phases)

    def on(self, cluster: str) -> Scenario:
        """The same for these clusters (a glob), where its rules and expectations do not say for which."""
        phases = tuple(
            replace(
                phase,
                rules=tuple({"cluster": cluster, **rule} for rule in phase.rules),
                expect=_on(cluster, phase.expect),
            )
            for phase in self.phases
        )
        return replace(self, phases=phases, expect=_on(cluster, self.expect))


def _on(cluster: str, expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    return tuple(
        replace(each, cluster=cluster) if getattr(each, "cluster", "") == "*" else each  # type: ignore[type-var]
        for each in expectations
    )


def read_scenario(
    text: str, source: str, name: str, given: Mapping[str, str] | None = None
) -> tuple[Scenario | None, list[Mistake]]:
    """A scenario, or None and its mistakes. `given` are parameters in place of those of the file."""
    first = read(text, source, WRITTEN_FILE, SCALARS)
    if first.value is BROKEN:
        return None, first.mistakes
    known = first.value.parameters if isinstance(first.value.parameters, Mapping) else {}
    parameters = {**known, **(given or {})}
    unknown = [word for word in given or {} if word not in known]
    if unknown:
        reason = f"there is no parameter {unknown[0]!r}{suggestion(unknown[0], known)}"
        return None, [Mistake(first.place_of(("parameters",)), ("parameters",), reason)]
    document = read(_filled(text, parameters), source, WRITTEN_FILE, SCALARS)
    if document.value is BROKEN or BROKEN in (document.value.phases, document.value.about):
        return None, document.mistakes
    mistakes = _unfilled(document, parameters)
    paths = {mistake.path for mistake in mistakes}
    mistakes += [mistake for mistake in document.mistakes if mistake.path not in paths]
    if not document.value.phases and not mistakes:
        mistakes.append(Mistake(document.place_of(("phases",)), ("phases",), "a scenario needs phases"))
    plain = document.written("phases")
    phases: list[Phase] = []
    named: dict[str, None] = {}
    for index, written in enumerate(document.value.phases):
        path: Path = ("phases", index)
        if written is BROKEN or any(mistake.path[:2] == path for mistake in mistakes):
            continue
        rules = tuple(
            _named(rule, written.name, at) for at, rule in enumerate(plain[index].get("rules") or ())
        )
        mistakes += _rule_mistakes(rules, document, (*path, "rules"))
        mistakes += _time_mistakes(written, document, path, {phase.name for phase in phases})
        named |= dict.fromkeys(str(rule["name"]) for rule in rules)
        expect = _expected(written.expect, document, (*path, "expect"), named, mistakes)
        flap_s = None if written.flap is None else written.flap / 1e9
        phases.append(Phase(written.name, written.for_ / 1e9, rules, flap_s, expect))
    expect = _expected(document.value.expect, document, ("expect",), named, mistakes)
    if mistakes:
        return None, sorted(set(mistakes))
    return Scenario(name, document.value.about.strip(), tuple(phases), expect, parameters), []


def _filled(text: str, parameters: Mapping[str, str]) -> str:
    return Template(text).safe_substitute(parameters)


def _unfilled(document: Document, parameters: Mapping[str, str]) -> list[Mistake]:
    """The words that begin with $ and are no parameter."""
    found: list[Mistake] = []

    def look(value: Any, path: Path) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                look(inner, (*path, key))
        elif isinstance(value, list | tuple):
            for index, inner in enumerate(value):
                look(inner, (*path, index))
        elif isinstance(value, str):
            for match in Template.pattern.finditer(value):
                word = match["named"] or match["braced"]
                if word:
                    reason = f"there is no parameter {word!r}{suggestion(word, parameters)}"
                    found.append(Mistake(document.place_of(path), path, reason))

    look(document.written("phases"), ("phases",))
    return found


def _named(rule: Mapping[str, Any], phase: str, index: int) -> Mapping[str, Any]:
    """The rule with a name for the report."""
    return {"name": f"{phase} {index + 1}", **rule}


def _rule_mistakes(rules: tuple[Mapping[str, Any], ...], document: Document, path: Path) -> list[Mistake]:
    """The mistakes that a rule file would have."""
    from json import dumps

    found = read_text(dumps({"rules": rules}), document.source)
    places = ((*path, *mistake.path[1:]) for mistake in found.mistakes)
    return [
        Mistake(document.place_of(at), at, mistake.reason)
        for at, mistake in zip(places, found.mistakes, strict=True)
    ]


def _time_mistakes(written: Any, document: Document, path: Path, before: set[str]) -> list[Mistake]:
    wrong: list[tuple[str, str]] = []
    if written.name in before:
        wrong.append(("name", f"there is a phase {written.name!r} already"))
    if written.for_ <= 0:
        wrong.append(("for", "a phase takes time"))
    if written.flap is not None and not 0 < written.flap <= written.for_:
        wrong.append(("flap", "must be more than 0, and no longer than the phase"))
    for index, step in enumerate(written.expect):
        for name in KINDS:
            expectation = getattr(step, name, None)
            if expectation not in (None, BROKEN) and expectation.after >= written.for_:
                reason = "must be less than the phase lasts, else there is nothing to judge"
                wrong.append((f"expect {index} {name} after", reason))
    found = []
    for key, reason in wrong:
        at: Path = (*path, *(int(word) if word.isdigit() else word for word in key.split()))
        found.append(Mistake(document.place_of(at), at, reason))
    return found


def _expected(
    steps: Any, document: Document, path: Path, rules: Mapping[str, None], mistakes: list[Mistake]
) -> tuple[Expectation, ...]:
    """The expectations of a list; their mistakes are added to `mistakes`."""
    found: list[Expectation] = []
    for index, step in enumerate(steps if isinstance(steps, tuple) else ()):
        at: Path = (*path, index)
        if step is BROKEN or any(mistake.path[: len(at)] == at for mistake in mistakes):
            continue
        kinds = {name: value for name in KINDS if (value := getattr(step, name)) is not None}
        if len(kinds) != 1:
            reason = f"must be one of {', '.join(KINDS)}" + (": several in one entry" if kinds else "")
            mistakes.append(Mistake(document.place_of(at), at, reason))
            continue
        ((name, expectation),) = kinds.items()
        bounds = [key for key in ("below", "above", "at_least", "at_most") if hasattr(expectation, key)]
        if len(bounds) == 2 and all(getattr(expectation, key) is None for key in bounds):
            reason = f"needs {' or '.join(bounds)}"
            mistakes.append(Mistake(document.place_of((*at, name)), (*at, name), reason))
        rule = getattr(expectation, "rule", None)
        if rule is not None and rule not in rules:
            place: Path = (*at, name, "rule")
            reason = f"no rule until then is called {rule!r}{suggestion(rule, rules)}"
            mistakes.append(Mistake(document.place_of(place), place, reason))
        found.append(expectation)
    return tuple(found)
