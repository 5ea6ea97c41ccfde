"""The keys of a rule file as dataclasses: a rule's keys are their fields, and the names of all actions. A
docstring below a field is its line in the reference and in the schema.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, make_dataclass
from functools import lru_cache
from itertools import pairwise
from textwrap import dedent
from types import NoneType
from typing import Any, Literal, NewType, get_args, get_origin

from klamm.decoders.schema import Side, Versions
from klamm.rules.file.scalars import SCALARS, ApiPattern
from klamm.rules.quantities import (
    BrokerLabel,
    Duration,
    NamePattern,
    Number,
    Ordinal,
    PrincipalPattern,
    Share,
    TopicPattern,
    Where,
)
from klamm.rules.rule import Action, Event, Moment, Per
from klamm.settings.typed_yaml import BUILTIN, Scalar, choose, keys, shape


@dataclass(frozen=True)
class Selectors:
    """Selects frames, or connections. A missing key selects all."""

    name: str | None = None
    """The rule's name in metrics, logs and other rules; by default made of its API and action."""
    api: tuple[ApiPattern, ...] = ()
    """Names of APIs, older names too, or globs."""
    versions: Versions | None = None
    """Versions of these APIs."""
    side: Side | None = None
    """The frames it selects; by default requests, or the side whose fields `where` reads."""
    event: Event | None = None
    """`connect` for connections as they open; by default frames, if the actions are for any."""
    topic: tuple[TopicPattern, ...] = ()
    """Topics, also where only their ids are on the wire; `!name` for all but this."""
    partition: tuple[Number, ...] = ()
    """Partitions."""
    group: tuple[NamePattern, ...] = ()
    """Groups; also the key of FindCoordinator where it is one. Of APIs that carry none, that of the client.
    """
    client: tuple[NamePattern, ...] = ()
    """Client ids, client instance ids, or addresses of clients without a port; of connections as they open,
    addresses only.
    """
    principal: tuple[PrincipalPattern, ...] = ()
    """Principals of clients with a certificate (`listen_tls.ca`), as Kafka writes them, or of users of SASL
    with klamm (`listen_sasl`), such as `User:alice`; several are a list, as they have commas; `!name` for
    all others, also for clients without one.
    """
    broker: tuple[BrokerLabel, ...] = ()
    """Node ids, `bootstrap`, or `controller 1`."""
    cluster: tuple[NamePattern, ...] = ()
    """Clusters, by their names in klamm.yaml; a node id may be in several."""
    where: Where | None = None
    """An expression over the fields of the frame that must be true; of connections as they open, over
    `cluster`, `broker`, `client` (the address), `client_port`, `connection` and `principal`.
    """
    chance: Share = Share(1.0)
    """The share of matches that are hits, decided by the seed."""
    times: Number | None = None
    """The largest number of hits."""
    every: Ordinal = Ordinal(1)
    """Only every third match, or every tenth, and so on."""
    nth: tuple[Ordinal, ...] = ()
    """Only these matches, counted from 1."""
    from_: Moment | None = None
    """The earliest time: a duration from the rule's start, or a time with its zone."""
    until: Moment | None = None
    """The latest time, in the same form."""
    for_: Duration | None = None
    """So long, from `from` or from the start."""
    since: Literal["start", "first match"] = "start"
    """The start of durations: when the rule was loaded, or its first match."""
    per: Per = "rule"
    """Matches and hits are counted for each of these by itself."""
    once_hit: str = ""
    """Only after this rule has had a hit."""
    until_hit: str = ""
    """Only until this rule has had a hit."""
    dry: bool = False
    """Count, and do nothing."""
    enabled: bool = True
    """false leaves the rule out."""


WHEN = (
    "chance", "times", "every", "nth", "from", "until", "for", "since", "per", "once_hit", "until_hit", "dry",
    "enabled",
)  # fmt: skip
"""The keys that say when; those before them say which frames."""

Actions = Mapping[str, type[Action]]


def file_type(actions: Actions) -> Any:
    """The dataclass of a rule file in which these actions may stand."""
    return _file_type(tuple(actions.items()))


@lru_cache(8)  # a class takes 50 KiB and 10 ms, and `keys` remembers it: not one for each rule by hand
def _file_type(actions: tuple[tuple[str, type[Action]], ...]) -> Any:
    acts = [(name, kind | None, None) for name, kind in actions]
    step = make_dataclass("Step", acts, frozen=True)
    do = ("do", tuple[step, ...], ())  # type: ignore[valid-type]
    rule = make_dataclass("WrittenRule", [do, *acts], bases=(Selectors,), frozen=True)
    rules = ("rules", tuple[rule, ...], ())  # type: ignore[valid-type]
    return make_dataclass(
        "WrittenFile", [rules, ("seed", Number | None, None), ("plugins", tuple[str, ...], ())], frozen=True
    )


def scalars(actions: Actions) -> dict[Any, Scalar]:
    """Everything in a rule file that can be written as one text."""
    return SCALARS | {kind: _short(kind) for kind in actions.values()}


def _short(kind: Any) -> Scalar:
    """An action in its short form: `true` for its defaults, or the value of its first field."""
    hints = keys(kind)
    needed = [
        f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING
    ]
    first = next(iter(hints), "")

    def parse(text: str) -> Any:
        if not needed and text == "true":
            return kind()
        if not hints or hints[first] is bool:
            raise ValueError(f"write true, or leave it out, not {text!r}")
        if any(name != first for name in needed):
            raise ValueError(f"needs {' and '.join(needed)}: write {{{needed[0]}: ..., {needed[1]}: ...}}")
        return kind(_one(hints[first], text))

    alone = not hints or hints[first] is bool
    return Scalar(parse, "true" if alone else shape(hints[first], SCALARS))


def _one(hint: Any, text: str) -> Any:
    """A text as a value of the type of a field."""
    options = [option for option in get_args(hint) if option is not NoneType]
    if get_origin(hint) is Literal:
        return choose(text, get_args(hint))
    if get_origin(hint) is tuple:
        return tuple(_one(options[0], part.strip()) for part in text.split(","))
    if isinstance(hint, NewType) and hint not in SCALARS:
        hint = hint.__supertype__
    elif NoneType in get_args(hint):
        return _one(options[0], text)
    found = SCALARS.get(hint) or BUILTIN.get(hint)
    if found is None:
        raise ValueError("must be a mapping, not one value")
    return found.parse(text)


def steps(rule: Any, order: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """(path in the rule, action) of each; those without `do` in the order of the rule's keys."""
    for key in order:
        if key not in _SELECTING and getattr(rule, key, None) is not None:
            yield (key,), getattr(rule, key)
    for index, step in enumerate(rule.do):
        for f in fields(step):
            if getattr(step, f.name) is not None:
                yield ("do", index, f.name), getattr(step, f.name)


def reserved() -> frozenset[str]:
    """The keys of a rule that are no actions."""
    return frozenset({*keys(Selectors), "do"})


SIDES_BY_DEFAULT = ("request", "response")  # of a plugin's action that does not say

_SELECTING = reserved()


@lru_cache(256)
def described(kind: Any) -> dict[str, str]:
    """The docstrings below the fields of a dataclass, by their keys; those of classes above it too."""
    found: dict[str, str] = {}
    for above in reversed(kind.__mro__):
        try:
            (tree,) = ast.parse(dedent(inspect.getsource(above))).body
        except (OSError, TypeError, SyntaxError, ValueError):  # built in, or made
            continue
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for item, below in pairwise(body):
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                text = (
                    below.value.value
                    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                    else ""
                )
                found[item.target.id.removesuffix("_")] = " ".join(str(text).split())
    return found
