"""A rule file: its text to rules, and everything that is wrong with it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path as FilePath
from typing import Any, cast

from klamm.decoders import API
from klamm.decoders.schema import Api
from klamm.rules.actions import ACTIONS
from klamm.rules.file import plugins
from klamm.rules.file.mistakes import doubts, faults, names_of
from klamm.rules.file.reach import Reach, reach, span
from klamm.rules.file.scalars import BLIND
from klamm.rules.file.written import file_type, scalars, steps
from klamm.rules.glob import Glob
from klamm.rules.rule import Action, Rule, When
from klamm.settings.mistakes import Mistake, Path, Place
from klamm.settings.typed_yaml import BROKEN, ENOUGH, MOST_MISTAKES, Document, read, read_file, read_json

PLAIN = frozenset({str, int, float, bool})
IN_TEXT = re.compile(r"(.*) \(column (\d+)\)(.*)", re.DOTALL)
AN_ACTION = "a rule has its action as a key, such as delay: 1s"
OF_TOXICS = {  # keys of Toxiproxy, which many know
    "latency": "Toxiproxy's latency is delay",
    "timeout": "Toxiproxy's timeout is blackhole: 5s; that of a pause is written pause: {timeout: 5s}",
    "reset_peer": "Toxiproxy's reset_peer is reset",
    "toxicity": "Toxiproxy's toxicity is chance, with event: connect",
    "stream": "Toxiproxy's stream is side, in an action such as bandwidth: {rate: 64kB, side: request}",
    "type": AN_ACTION,
    "attributes": AN_ACTION,
}


@dataclass
class RuleFile:
    """A file that was read. `rules` is empty if there are mistakes: a file is used whole or not at all.
    `apis` are, for each rule, the APIs and versions that it can apply to, `places` where it is written;
    `files` all that were read.
    """

    source: str
    rules: tuple[Rule, ...] = ()
    apis: tuple[Mapping[Api, Sequence[int]], ...] = ()
    places: tuple[Place, ...] = ()
    seed: int | None = None
    mistakes: list[Mistake] = field(default_factory=list)
    warnings: list[Mistake] = field(default_factory=list)
    files: tuple[str, ...] = ()
    texts: tuple[Mapping[str, Any], ...] = ()  # of the rules, as they are written
    actions: Mapping[str, type[Action]] = field(default_factory=lambda: ACTIONS)


def load(file: str, plugin_files: Sequence[str] = (), wall_ns: int | None = None) -> RuleFile:
    """Read a file, and the plugins that it or the caller names. Raises nothing: look at `mistakes`.

    `wall_ns`, in ns since 1970, shows which times are past.
    """
    found = RuleFile(file, files=(file,))
    _add(found, plugin_files)
    document = read_file(file, file_type(found.actions), scalars(found.actions))
    if document.value is not BROKEN and document.value.plugins:
        folder = FilePath(file).parent
        _add(found, [str(folder / path) for path in document.value.plugins if isinstance(path, str)])
        document = read_file(file, file_type(found.actions), scalars(found.actions))
    if found.mistakes:  # without the actions of a plugin, more would seem to be wrong than is
        return found
    found.mistakes += [_with_actions(mistake, found.actions) for mistake in document.mistakes]
    if document.value is not BROKEN:
        _resolve(found, document, wall_ns)
    return found


def read_text(
    text: str, source: str, actions: Mapping[str, type[Action]] = ACTIONS, known: Iterable[str] = ()
) -> RuleFile:
    """Reads rules that are no file's, with these actions, beside rules of these names. They may not compare
    secrets: their counts, which people see, would tell them letter by letter.
    """
    return _found(read(text, source, file_type(actions), scalars(actions) | BLIND), actions, known)


def read_rule(
    written: Mapping[str, Any], source: str, actions: Mapping[str, type[Action]], known: Iterable[str]
) -> RuleFile:
    """Reads one rule from JSON that was read already; it may not compare secrets either."""
    document = read_json({"rules": [written]}, source, file_type(actions), scalars(actions) | BLIND)
    return _found(document, actions, known)


def _found(document: Document, actions: Mapping[str, type[Action]], known: Iterable[str]) -> RuleFile:
    found = RuleFile(document.source, actions=actions)
    found.mistakes += [_with_actions(mistake, actions) for mistake in document.mistakes]
    if document.value is not BROKEN:
        _resolve(found, document, None, known)
    return found


def _add(found: RuleFile, files: Sequence[str]) -> None:
    for file in files:
        if file not in found.files:
            actions, mistakes = plugins.load(file, found.actions)
            found.actions = {**found.actions, **actions}
            found.mistakes += mistakes
            found.files += (file,)


def _resolve(found: RuleFile, document: Document, wall_ns: int | None, known: Iterable[str] = ()) -> None:
    written = document.value
    if isinstance(written.seed, int):
        found.seed = int(written.seed)
    if not isinstance(written.rules, tuple):
        return
    names = dict.fromkeys(known, -1) | names_of(written.rules)
    made: list[Rule] = []
    apis: list[Mapping[Api, Sequence[int]]] = []
    places: list[Place] = []
    misread = {mistake.path[:2] for mistake in document.mistakes}
    order = _keys_by_rule(document)
    taken = _Names(names)
    for index, rule in enumerate(written.rules):
        path: Path = ("rules", index)
        if _broken(rule):
            continue
        if len(found.mistakes) >= MOST_MISTAKES:
            found.mistakes.append(Mistake(document.place_of(path), path, ENOUGH))
            break
        acts = list(steps(rule, order[path]))
        reached = reach(rule, acts)
        wrong = [(path + at, reason) for at, reason in faults(rule, acts, reached, names, index)]
        if not acts and path in misread:  # the unreadable key is probably the action
            wrong = [(at, reason) for at, reason in wrong if at != path]
        found.mistakes += [_mistake(at, reason, document) for at, reason in wrong]
        if acts and not wrong:
            unsure = [(path + at, reason) for at, reason in doubts(rule, acts, reached, wall_ns)]
            found.warnings += [_mistake(at, reason, document) for at, reason in unsure]
            made.append(_rule(rule, [action for _, action in acts], reached, taken))
            apis.append(reached.apis)
            places.append(document.place_of(path))
    if not written.rules:
        found.warnings.append(Mistake(document.place_of(("rules",)), ("rules",), "there are no rules"))
    found.mistakes.sort()
    if not found.mistakes:
        found.rules, found.apis, found.places = tuple(made), tuple(apis), tuple(places)
        found.texts = document.written("rules")


def _keys_by_rule(document: Document) -> Mapping[Path, Sequence[str]]:
    """The keys of every rule, in the order of their lines."""
    found: defaultdict[Path, list[str]] = defaultdict(list)
    for path in document.places:
        if len(path) == 3 and path[0] == "rules":
            found[path[:2]].append(str(path[2]))
    return found


def _broken(rule: Any) -> bool:
    if rule is BROKEN:
        return True
    values = [getattr(rule, f.name) for f in dataclass_fields(rule)]
    return any(_is_broken(value) for value in values)


def _is_broken(value: Any) -> bool:
    if value is BROKEN:
        return True
    if value is None or type(value) in PLAIN:
        return False
    if isinstance(value, Mapping):
        return any(map(_is_broken, value.values())) or BROKEN in value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return any(map(_is_broken, value))
    if hasattr(value, "__dataclass_fields__"):
        return any(_is_broken(getattr(value, f.name, None)) for f in dataclass_fields(value))
    return False


def _with_actions(mistake: Mistake, actions: Mapping[str, type[Action]]) -> Mistake:
    """A key of a rule that is like no other was probably meant to be an action."""
    if len(mistake.path) != 3 or mistake.path[0] != "rules":
        return mistake
    toxic = OF_TOXICS.get(str(mistake.path[2]))
    if toxic is not None and mistake.reason.partition(";")[0] == "unknown key":
        return mistake._replace(reason=f"unknown key; {toxic}")
    if mistake.reason == "unknown key":
        return mistake._replace(reason=f"unknown key; the actions are {', '.join(actions)}")
    return mistake


def _mistake(path: Path, reason: str, document: Document) -> Mistake:
    """A reason that says at which column of a text it shows has its place there."""
    inside = IN_TEXT.fullmatch(reason)
    if inside is None or path not in document.texts:
        return Mistake(document.place_of(path), path, reason)
    return Mistake(document.place_of(path, int(inside[2])), path, inside[1] + inside[3])


def _rule(rule: Any, do: Sequence[Action], reached: Reach, taken: _Names) -> Rule:
    everything = len(reached.apis) in (0, len(API))  # connections have none
    begin, end = rule.from_, rule.until
    return Rule(
        name=rule.name or taken.of(rule, do, reached),
        do=tuple(do),
        event=reached.event,
        keys=frozenset() if everything else frozenset(a.key for a in reached.apis),
        versions=span(reached.apis, rule.versions),
        side=reached.side,
        topic=Glob(*rule.topic) if rule.topic else None,
        partition=frozenset(rule.partition),
        group=Glob(*rule.group) if rule.group else None,
        client=Glob(*rule.client) if rule.client else None,
        principal=Glob(*rule.principal) if rule.principal else None,
        broker=frozenset(rule.broker),
        cluster=Glob(*rule.cluster) if rule.cluster else None,
        where=cast(Any, rule.where),
        when=When(
            chance=rule.chance,
            times=rule.times,
            every=rule.every,
            nth=rule.nth,
            after=begin,
            until=end,
            lasting_ns=rule.for_,
            since=rule.since,
            per=rule.per,
            once_hit=rule.once_hit,
            until_hit=rule.until_hit,
        ),
        dry=rule.dry,
        enabled=rule.enabled,
    )


class _Names:
    """The names that are taken, and the numbers that rules without one got, by what stands before them."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.numbers: Counter[str] = Counter()

    def of(self, rule: Any, do: Sequence[Action], reached: Reach) -> str:
        """Produce-error-1: the API, the action, and a number that makes it unique."""
        exact = [API[key].name for pattern in rule.api if pattern.exact for key in pattern.keys]
        what = "connect" if reached.event == "connect" else exact[0] if len(exact) == 1 else "any"
        start = f"{what}-{do[0].name}"
        while True:
            self.numbers[start] += 1
            name = f"{start}-{self.numbers[start]}"
            if name not in self.taken:
                self.taken.add(name)
                return name
