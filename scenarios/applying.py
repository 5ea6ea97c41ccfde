"""Whether a scenario can apply to a running klamm: said before its first phase, not after its last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from json import dumps
from shlex import quote
from typing import Any, NamedTuple, Protocol

from klamm.client.known import known
from klamm.client.types import Cluster, Node
from klamm.client.types import Rule as RuleState
from klamm.rules.file.presence import Known, unmet
from klamm.rules.file.rule_file import read_text
from klamm.rules.rule import Rule
from klamm.scenarios.expectations import Expectation
from klamm.scenarios.model import Scenario
from klamm.settings.listing import some

SASL = ("SaslHandshake", "SaslAuthenticate")
MAKER = "scenario "  # made_by of their rules begins so
NAMED = 6  # rules in the warning
WITH_TRAFFIC = ("errors", "answered", "resumes", "pause")  # met by requests or answers only


class Running(Protocol):
    """The calls of a running klamm that are used here, as klamm.client.Klamm has them."""

    def clusters(self) -> list[Cluster]: ...
    def brokers(self) -> list[Node]: ...
    def rules(self) -> list[RuleState]: ...
    def counters(self) -> dict[str, Any]: ...
    def config(self) -> dict[str, Any]: ...


class Ground(NamedTuple):
    """The facts that decide whether a scenario can apply. `apis`, `clients` and `topics` are those seen so
    far.
    """

    known: Known
    sasl: Mapping[str, bool | None]
    waiting: Mapping[str, str] = {}  # clusters that are not ready, and why
    rules: tuple[RuleState, ...] = ()
    apis: frozenset[str] = frozenset()
    clients: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    read_only: bool = False


def look(klamm: Running) -> Ground:
    """Ask a running klamm. Raises ApiError."""
    clusters, counters = klamm.clusters(), klamm.counters()
    return Ground(
        known(clusters, klamm.brokers()),
        {cluster.name: cluster.sasl for cluster in clusters},
        {cluster.name: cluster.reason for cluster in clusters if not cluster.ready},
        tuple(klamm.rules()),
        frozenset(row["api"] for row in counters["requests"]),
        frozenset(row["client_id"] for row in counters["requests"]),
        frozenset(row["topic"] for row in counters["topics"]),
        bool(klamm.config()["admin"]["read_only"]),
    )


def refusals(scenario: Scenario, ground: Ground) -> list[str]:
    """Why it cannot apply; empty if nothing is known to speak against it."""
    found = list(_refusals(scenario, ground))
    if found and scenario.parameters:
        given = ", ".join(f"{key}={value}" for key, value in scenario.parameters.items())
        found.append(f"its parameters are {given}: others are given with --set KEY=VALUE")
    return found


def _refusals(scenario: Scenario, ground: Ground) -> Iterator[str]:
    if ground.read_only:
        yield "klamm runs with --read-only: no rule can be added"
    reasons: set[str] = set()
    yield from clashes(scenario, ground.rules)
    for phase, rule in _rules(scenario):
        for _, reason in unmet(rule, ground.known):
            if reason not in reasons:
                reasons.add(reason)
                yield f"the rule {rule.name!r} of the phase {phase!r}: {reason}"
    for where, each in _expectations(scenario):
        api, broker = getattr(each, "api", None), getattr(each, "broker", "*")
        if api in SASL and _needs_traffic(each) and _no_sasl(each, ground):
            yield f"{where} expects {api} requests, and brokers here want no SASL"
        if broker != "*" and _needs_traffic(each) and not _is_there(broker, each, ground.known):
            yield f"{where} expects requests at broker {broker}, which is not there"


def clashes(scenario: Scenario, rules: Iterable[RuleState]) -> Iterator[str]:
    """Each rule in force that has the name of one of the scenario's."""
    names = {rule.name for _, rule in _rules(scenario)}
    yield from (_taken(rule) for rule in rules if rule.name in names)


def _taken(rule: RuleState) -> str:
    """Tells who made the rule that has the name already, and how to end it."""
    if rule.origin == "file":
        return f"klamm's rule file has a rule {rule.name!r} already: one of them needs another name"
    made = f"there is a rule {rule.name!r} already, made by {_whose(rule)}"
    ends = f"end the rule with `klamm rules rm {quote(rule.name)}`"
    if _of_scenario(rule):
        return f"{made}, which may be playing: wait until it has ended, or {ends}"
    return f"{made}: {ends}"


def _of_scenario(rule: RuleState) -> bool:
    return rule.made_by.startswith(MAKER)


def doubts(scenario: Scenario, ground: Ground) -> list[str]:
    """The other rules in force, which may decide what clients do; and the APIs, clients and topics of a
    scenario that klamm has not seen so far: expectations about them fail unless that changes.
    """
    found: list[str] = [f"cluster {name} is not ready: {reason}" for name, reason in ground.waiting.items()]
    if others := [f"{rule.name!r} of {_whose(rule)}" for rule in ground.rules if _acts(rule)]:
        text = "expectations may fail because of them"
        found.append(f"other rules are in force: {some(others, NAMED)}; {text}")
    apis = {api for _, each in _expectations(scenario) if _needs_traffic(each) and (api := _api(each))}
    unseen = sorted(apis - ground.apis)
    if unseen:
        found.append(f"no client has sent {' or '.join(unseen)} so far, and the scenario expects it")
    for _, rule in _rules(scenario):
        for what, wanted, seen in (
            ("topic", rule.topic, ground.topics),
            ("client id", rule.client, ground.clients),
        ):
            if wanted is not None and not any(map(wanted, seen)):
                there = f": there are {', '.join(sorted(seen)[:6])}" if seen else ""
                found.append(
                    f"the rule {rule.name!r} is for the {what} {wanted}, of which nothing was seen{there}"
                )
    return found


def _acts(rule: RuleState) -> bool:
    """Whether it changes what clients see; those of a scenario go off and on."""
    return (rule.enabled or _of_scenario(rule)) and not rule.dry and not rule.over


def _whose(rule: RuleState) -> str:
    return "the rule file" if rule.origin == "file" else rule.made_by or "hand"


def _rules(scenario: Scenario) -> Iterator[tuple[str, Rule]]:
    """Each with its phase."""
    for phase in scenario.phases:
        for rule in read_text(dumps({"rules": phase.rules}), scenario.name).rules:
            yield phase.name, rule


def _expectations(scenario: Scenario) -> Iterator[tuple[str, Expectation]]:
    for phase in scenario.phases:
        for each in phase.expect:
            yield f"the phase {phase.name!r}", each
    for each in scenario.expect:
        yield "the scenario", each


def _needs_traffic(each: Expectation) -> bool:
    return each.kind in WITH_TRAFFIC or (each.kind != "hits" and bool(getattr(each, "at_least", None)))


def _api(each: Expectation) -> str | None:
    return getattr(each, "api", None)


def _no_sasl(each: Expectation, ground: Ground) -> bool:
    """Whether it is known that none of these clusters wants SASL."""
    asks = [sasl for name, sasl in ground.sasl.items() if fnmatchcase(name, getattr(each, "cluster", "*"))]
    return bool(asks) and all(sasl is False for sasl in asks)


def _is_there(broker: str, each: Expectation, known: Known) -> bool:
    """May there be such a broker, as far as is known?"""
    nodes = [nodes for name, nodes in known.items() if fnmatchcase(name, getattr(each, "cluster", "*"))]
    labels = {"bootstrap"}.union(*nodes)
    return not all(nodes) or any(fnmatchcase(label, broker) for label in labels)
