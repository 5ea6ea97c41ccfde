"""Write the reference in docs/rules.md from what reads rule files: python -m tools.rules_doc"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from klamm.rules.actions import ACTIONS
from klamm.rules.file.scalars import SAMPLES, SCALARS
from klamm.rules.file.written import WHEN, Selectors, described
from klamm.settings.typed_yaml import keys, shape

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
BEGIN, END = "<!-- made by tools/rules_doc.py -->", "<!-- end -->"

EXAMPLES = {  # of selectors and conditions
    "name": "leaderless", "api": "[Produce, '*Offset*']", "versions": "3+", "side": "response",
    "event": "connect", "topic": "[orders-*, '!orders-dlq']", "partition": "0, 2", "group": "billing",
    "client": "legacy-*, 10.0.0.7", "principal": "'User:CN=billing,O=Example'",
    "broker": "2", "cluster": "eu-*", "where": "size > 1000 and acks == -1",
    "chance": "20%", "times": "3", "every": "10", "nth": "[3, 7]", "from": "30s",
    "until": "2030-01-31T09:30:00Z", "for": "1m", "since": "first match", "per": "client",
    "once_hit": "leaderless", "until_hit": "leaderless", "dry": "true",
    "enabled": "false",
}  # fmt: skip


def reference() -> str:
    """The generated part of the page."""
    hints, lines = keys(Selectors), described(Selectors)
    parts = ["\n### Selectors\n", *_table(k for k in hints if k not in WHEN), "\n### When\n", *_table(WHEN)]
    assert lines
    parts.append("\n### Actions\n")
    for name, kind in ACTIONS.items():
        parts += _action(name, kind)
    return "\n".join(parts) + "\n"


def _table(names: Any) -> Iterator[str]:
    hints, lines = keys(Selectors), described(Selectors)
    yield "| key | value | example | |\n|---|---|---|---|"
    for name in names:
        yield f"| `{name}` | {_shape(hints[name])} | `{name}: {EXAMPLES[name]}` | {lines[name]} |"


def _shape(hint: Any) -> str:
    return shape(hint, SCALARS)


def _action(name: str, kind: Any) -> Iterator[str]:
    hints, lines = keys(kind), described(kind)
    sides = " and ".join("connections" if side == "connect" else f"{side}s" for side in kind.sides)
    apis = f" Only {' and '.join(kind.apis)}." if getattr(kind, "apis", ()) else ""
    meaning = " ".join((kind.__doc__ or "").split())
    yield f"#### {name}\n\n{meaning} On {sides}.{apis}\n\n    {example(kind)}\n"
    defaults = {f.name.removesuffix("_"): f for f in fields(kind) if f.init}
    if [key for key in hints if key != name]:
        yield "| key | value | default | |\n|---|---|---|---|"
        for key, hint in hints.items():
            if key != name:
                yield f"| `{key}` | {_shape(hint)} | {_default(defaults[key], hint)} | {lines[key]} |"
        yield ""


def _default(field: Any, hint: Any) -> str:
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is MISSING:
        return "required"
    if value in (None, (), ""):
        return "none"
    if str(getattr(hint, "__name__", "")) == "Duration":
        from klamm.rules.file.explain import time

        return f"`{time(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def example(kind: Any) -> str:
    """An action with what it needs, in its short form where it can be."""
    hints = keys(kind)
    needed = [
        f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING
    ]
    if getattr(kind, "entries", ""):
        key, value = get_args(hints[kind.entries])
        return f"{kind.name}: {{{_sample(key)}: {_sample(value)}}}"
    if not needed:
        return f"{kind.name}: true"
    first = next(iter(hints))
    if needed == [first]:
        return f"{kind.name}: {_sample(hints[first])}"
    return f"{kind.name}: {{{', '.join(f'{key}: {_sample(hints[key])}' for key in needed)}}}"


def _sample(hint: Any) -> str:
    options = [option for option in get_args(hint) if option is not NoneType]
    if hint in SAMPLES:
        return SAMPLES[hint]
    if get_origin(hint) is Literal:
        return str(options[0])
    if get_origin(hint) is tuple:
        return f"[{_sample(options[0])}]"
    return _sample(options[0]) if options else _sample(hint.__supertype__)


def page(before: str) -> str:
    """The page with its reference made anew."""
    head, _, rest = before.partition(BEGIN)
    return f"{head}{BEGIN}\n{reference()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
