"""Rules as a form: the actions with their parameters, and what klamm reads out of a rule that was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import yaml
from msgspec import Struct, field

from klamm.client.types import Mistake
from klamm.rules.actions import ACTIONS
from klamm.rules.file.explain import explain
from klamm.rules.file.rule_file import RuleFile, read_rule
from klamm.rules.file.scalars import SCALARS
from klamm.rules.file.written import described
from klamm.rules.quantities import ApiName, ErrorCode
from klamm.settings.mistakes import dotted
from klamm.settings.typed_yaml import keys, shape

SOURCE = "the rule"
LISTS: dict[Any, str] = {ErrorCode: "errors", ApiName: "apis"}  # of words that a page has


class Parameter(Struct, frozen=True):
    """`shape` says what may be written; one of `choices`, if there are any; `list`: a list of the page's that
    has the words. `needed`: it has no default.
    """

    name: str
    text: str
    shape: str
    choices: list[str]
    list: str
    needed: bool


class ActionForm(Struct, frozen=True):
    """`entries`: it is written as keys and values of its own, without parameters. `sides`: where it acts."""

    name: str
    text: str
    sides: list[str]
    entries: bool
    parameters: list[Parameter]


class Checked(Struct, frozen=True):
    """A rule as klamm reads it. `yaml` is a rule file with it; `words` (title and text) explain which frames
    it selects and how it acts; both are empty where it has `mistakes`. `warnings`: allowed, but probably not
    meant.
    """

    yaml: str
    words: list[tuple[str, str]] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    warnings: list[Mistake] = field(default_factory=list)


@cache
def action_forms() -> list[ActionForm]:
    """One for each action, in the order of docs/rules.md."""
    return [_form(name, kind) for name, kind in ACTIONS.items()]


def _form(name: str, kind: Any) -> ActionForm:
    entries = bool(getattr(kind, "entries", ""))
    texts, hints = described(kind), keys(kind)
    defaults = {f.name.removesuffix("_"): _has_default(f) for f in fields(kind) if f.init}
    parameters = [] if entries else [
        Parameter(
            key, texts.get(key, ""), shape(hint, SCALARS), _choices(hint),
            LISTS.get(hint, ""), not defaults[key],
        )
        for key, hint in hints.items()
    ]  # fmt: skip
    return ActionForm(name, " ".join((kind.__doc__ or "").split()), list(kind.sides), entries, parameters)


def _has_default(f: Any) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _choices(hint: Any) -> list[str]:
    if hint is bool:
        return ["true", "false"]
    inner = [one for one in get_args(hint) if one is not NoneType]
    if get_origin(hint) is Literal:
        return [str(one) for one in inner]
    return _choices(inner[0]) if len(inner) == 1 and get_origin(hint) is not tuple else []


def read(written: Mapping[str, Any]) -> RuleFile:
    """The rule as klamm reads it by hand, but for its name, and for `for: forever`."""
    plain = {key: value for key, value in written.items() if (key, value) != ("for", "forever")}
    return read_rule(plain, SOURCE, ACTIONS, ())


def checked(written: Mapping[str, Any]) -> Checked:
    """The rule as klamm reads it, with its explanation or its mistakes."""
    found = read(written)
    if found.mistakes:
        return Checked("", mistakes=_told(found.mistakes), warnings=_told(found.warnings))
    lines = (line.strip().partition(" ") for line in explain(found) if line.startswith("  "))
    words = [(title, text.strip()) for title, _, text in lines]
    return Checked(as_yaml(written), words, warnings=_told(found.warnings))


def as_yaml(written: Mapping[str, Any]) -> str:
    """A rule file with this rule."""
    lasting = {key: value for key, value in written.items() if (key, value) != ("for", "forever")}
    one = yaml.safe_dump(lasting, default_flow_style=True, sort_keys=False, width=1000, allow_unicode=True)
    return f"rules:\n  - {one}"


def _told(mistakes: list[Any]) -> list[Mistake]:
    return [Mistake(dotted(one.path[2:]), one.reason) for one in mistakes]
