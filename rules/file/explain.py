"""Rules in words: what each matches, when it acts, what it does, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Api, Versions
from klamm.rules.file.reach import version_list
from klamm.rules.file.rule_file import RuleFile
from klamm.rules.file.scalars import TIMES
from klamm.rules.glob import Glob
from klamm.rules.quantities import Duration, ErrorCode
from klamm.rules.rule import Moment, Rule
from klamm.settings.typed_yaml import keys

LISTED = 6  # APIs; of more, their number
PER = {
    "connection": "each connection", "client": "each client id", "topic": "each set of topics and partitions",
    "group": "each group",
}  # fmt: skip


def explain(found: RuleFile) -> Iterator[str]:
    """Lines about every rule of a file without mistakes."""
    for rule, apis, place in zip(found.rules, found.apis, found.places, strict=True):
        yield f"{rule.name} ({place})"
        for title, text in (
            ("for", ", ".join(_frames(rule, apis))),
            ("when", _when(rule)),
            ("does", "; ".join(map(in_words, rule.do)) if not rule.dry else "nothing but count: it is dry"),
            ("cost", _cost(rule)),
        ):
            yield f"  {title:<6}{text}"
        yield ""


def _frames(rule: Rule, apis: Mapping[Api, Sequence[int]]) -> Iterator[str]:
    if rule.event == "connect":
        yield "connections as they open"
    else:
        yield f"{rule.side}s of {_apis(apis)}"
    for what, wanted in (("topic", rule.topic), ("group", rule.group)):
        if wanted is not None:
            yield f"about the {what} {_either(wanted)}"
    if rule.partition:
        yield f"about the partition {_or(map(str, sorted(rule.partition)))}"
    if rule.client is not None:
        yield f"from the client {_either(rule.client)}"
    if rule.principal is not None:
        yield f"of the principal {_either(rule.principal)}"
    if rule.broker:
        yield f"to the broker {_or(sorted(rule.broker))}"
    if rule.cluster is not None:
        yield f"of the cluster {_either(rule.cluster)}"
    if rule.where is not None:
        yield f"where {rule.where}"


def _apis(apis: Mapping[Api, Sequence[int]]) -> str:
    if len(apis) == len(API):
        return "every API and version"
    if len(apis) > LISTED:
        return f"{len(apis)} APIs ({', '.join(api.name for api in list(apis)[:LISTED])}, ...)"
    return _and(f"{api.name} ({version_list(versions)})" for api, versions in apis.items())


def _when(rule: Rule) -> str:
    when = rule.when
    if not rule.enabled:
        return "never: it is not enabled"
    words = []
    if when.nth:
        words.append(f"matches {_and(map(str, when.nth))}")
    if when.every > 1:
        words.append(f"one match in {when.every}")
    if when.chance < 1:
        words.append(f"{when.chance:.4g} of the matches by chance")
    if when.times is not None:
        words.append(f"at most {when.times} {'time' if when.times == 1 else 'times'}")
    if words and when.per != "rule":
        words.append(f"counted for {PER[when.per]}")
    after = "the rule's first match" if when.since == "first match" else "the rule was loaded"
    if when.after is not None:
        words.append(f"from {_moment(when.after, after)}")
    if when.until is not None:
        words.append(f"until {_moment(when.until, after)}")
    if when.lasting_ns is not None:
        begin = "from then on" if when.after is not None else f"after {after}"
        words.append(f"for {time(when.lasting_ns)} {begin}")
    if when.once_hit:
        words.append(f"once {when.once_hit} has acted")
    if when.until_hit:
        words.append(f"until {when.until_hit} has acted")
    return ", ".join(words) or "always"


def _moment(moment: Moment, after: str) -> str:
    if moment.absolute:
        return datetime.fromtimestamp(moment.ns / 1e9, UTC).isoformat().replace("+00:00", "Z")
    return f"{time(moment.ns)} after {after}"


def in_words(action: Any) -> str:
    """An action written in full, and its meaning."""
    hints = keys(action.__class__)
    values = ((f.name, getattr(action, f.name), f.default) for f in fields(action) if f.init)
    given = [f"{name}={_value(value, hints[name])}" for name, value, preset in values if value != preset]
    meaning = " ".join((type(action).__doc__ or "").split()).partition(". ")[0].rstrip(".")
    how = f" ({', '.join(given)})" if given else ""
    return f"{action.name}{how}: {meaning}"


def _value(value: Any, hint: Any) -> str:
    if hint is ErrorCode:
        return ERRORS[value].name
    if hint is Duration:
        return time(value)
    if isinstance(value, tuple) and not isinstance(value, Versions):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {inner}" for key, inner in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cost(rule: Rule) -> str:
    if not rule.enabled:
        return "none"
    if rule.event == "connect":
        return "none for frames: it is decided as connections open"
    if rule.reads:
        what = [key for key in ("topic", "partition", "group", "where") if getattr(rule, key)]
        return f"every such frame is held until it is whole: {_and(what)} can only be judged then"
    return "only the frames on which it acts are held; the others are judged by their headers, and pass"


def time(ns: int) -> str:
    """The time in the largest unit that divides it."""
    unit, size = next(((u, n) for u, n in reversed(TIMES.items()) if ns and ns % n == 0), ("us", 1000))
    return f"{ns / size:g}{unit}" if ns else "0"


def _either(glob: Glob) -> str:
    yes = [pattern for pattern in glob.patterns if not pattern.startswith("!")]
    no = [pattern[1:] for pattern in glob.patterns if pattern.startswith("!")]
    return " ".join([_or(yes) or "any", *([f"but not {_or(no)}"] if no else [])])


def _or(words: Iterable[str]) -> str:
    return " or ".join(words)


def _and(words: Iterable[str]) -> str:
    *first, last = list(words)
    return f"{', '.join(first)} and {last}" if first else last
