"""Rules from one line of the command line: made, shown, and followed for some seconds."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

from klamm.cli.live import prefixes
from klamm.cli.live.asking import add_options, klamm, same
from klamm.cli.live.missed import NEWEST, groups_of, missed
from klamm.client import Klamm, Refused
from klamm.client.types import Rule
from klamm.decoders.text import printable
from klamm.settings.listing import some
from klamm.settings.yaml_line import flow

LOOK_S = 0.5
FOLLOW_S = 10.0

SELECTORS = [  # option, its value, help
    ("--topic", "GLOB,...", "topics"),
    ("--partition", "N,...", "partitions"),
    ("--group", "GLOB,...", "consumer groups"),
    ("--client", "GLOB,...", "client ids, or client addresses"),
    ("--principal", "GLOB", "the client's principal, such as User:alice, or User:CN=orders of a certificate"),
    ("--broker", "N,...", "node ids, or bootstrap"),
    ("--cluster", "GLOB,...", "clusters, by their names in klamm.yaml"),
    ("--where", "EXPR", "an expression over the frame: docs/expressions.md"),
    ("--chance", "SHARE", "the share of frames that are hit [100%%]"),
    ("--times", "N", "at most so many hits"),
    ("--for", "TIME", "for so long, or forever [10m]"),
    ("--name", "NAME", "the rule's name [made of its action]"),
]
KEYS = [option.removeprefix("--") for option, _, _ in SELECTORS]


def add_selectors(parser: argparse.ArgumentParser, only: Sequence[str] = KEYS, needed: str = "") -> None:
    """The options of a rule; `needed` has to be given."""
    for option, value, text in SELECTORS:
        key = option.removeprefix("--")
        if key in only:
            parser.add_argument(option, metavar=value, help=text, required=key == needed)
    parser.add_argument("--dry", action="store_true", help="count the hits, and do nothing")
    text = f"print its hits for so long [{FOLLOW_S:.0f}]; 0 prints none"
    parser.add_argument("--follow", metavar="SECONDS", type=float, default=FOLLOW_S, help=text)
    add_options(parser)


def selected(arguments: argparse.Namespace) -> dict[str, Any]:
    """The selectors that were given."""
    given = {key: getattr(arguments, key, None) for key in KEYS}
    selectors = {key: value for key, value in given.items() if value is not None}
    if "api" in arguments:
        selectors = {"api": prefixes.api(arguments.api), **selectors}
    return selectors | ({"dry": "true"} if arguments.dry else {})


def make(arguments: argparse.Namespace, *rules: Mapping[str, Any]) -> int:
    """Add them, all or none, and follow the last."""
    to = klamm(arguments)
    before = to.counters()
    by_group = "group" in rules[-1]
    if by_group and arguments.follow > 0:
        to.exchanges(limit=1)  # klamm keeps exchanges from now on, which have the groups
    made: list[Rule] = []
    try:
        for written in rules:
            made.append(to.add_rule(written))
    except Refused:
        for rule in made:
            to.remove_rule(rule.name)
        raise
    for rule in made:
        print(f"{rule.name}: {flow(rule.written)}{ending(rule)}", flush=True)
        warn(rule)
    if arguments.follow > 0:
        try:
            matched = follow(to, [rule.name for rule in made], arguments.follow)
            if not matched:
                groups = groups_of(to.exchanges(limit=NEWEST).exchanges) if by_group else ()
                print(f"0 hits; {instead(before, to.counters(), rules[-1], groups)}")
        except KeyboardInterrupt:
            print(f"\nthe rule stays; `klamm rules rm {quote(made[-1].name)}{same(arguments)}` ends it")
    return 0


def warn(rule: Rule) -> None:
    """Prints the warnings about a rule: mistakes that klamm permits."""
    for warning in rule.warnings:
        print(f"klamm: warning: {printable(warning)}", file=sys.stderr, flush=True)


def ending(rule: Rule) -> str:
    """The time at which it ends, if it does."""
    if rule.expires is None or "for" in rule.written:
        return ""
    return f"   ends in {max(0, round((rule.expires - time.time()) / 60))} minutes"


def follow(to: Klamm, names: Sequence[str], seconds: float) -> bool:
    """Prints its hits as they come, and at the end a summary. False: there was no hit, and no summary."""
    ends, printed = time.monotonic() + seconds, 0
    found: list[Rule] = []
    while time.monotonic() < ends:
        time.sleep(min(LOOK_S, max(0.0, ends - time.monotonic())))
        rules = [rule for rule in to.rules() if rule.name in names]
        found = rules or found
        hits = sum(rule.hits for rule in found)
        if hits > printed and sys.stdout.isatty():
            print(f"\r{hits} hit{'s' * (hits != 1)}", end="", flush=True)
        printed = hits
        if not rules or all(rule.over for rule in found):
            break
    if printed and sys.stdout.isatty():
        print("\r", end="")
    matches = sum(rule.matches for rule in found)
    if printed:
        print(f"{printed} hit{'s' * (printed != 1)} of {matches} match{'es' * (matches != 1)}")
    for rule in found:
        if rule.failures:
            print(f"{rule.name} failed {rule.failures} times: klamm's log says why", file=sys.stderr)
    return bool(printed)


def instead(
    before: dict[str, Any], after: dict[str, Any], selectors: Mapping[str, Any], groups: Iterable[str] = ()
) -> str:
    """The requests that came while the rule had no hit: those of its API, if any, else those of all others;
    and the selectors that fit none of their names.
    """
    api = selectors.get("api")
    requests = _grown(
        before["requests"], after["requests"], ("api", "version", "client_id", "broker", "cluster")
    )
    wanted = {row["api"] for row in requests if api is None or row["api"] == api}
    if not wanted:
        others = sorted({row["api"] for row in requests})
        return f"no {api or 'request'} seen" + (f", but {', '.join(others[:6])}" if others else "")
    clients = {row["client_id"] for row in requests if row["api"] in wanted}
    topics = _grown(before["topics"], after["topics"], ("api", "topic", "cluster"))
    names = sorted({row["topic"] for row in topics if row["api"] in wanted})
    on = f" on {some(names)}" if names else ""
    seen = f"{some(sorted(wanted))} seen{on} from {len(clients)} client{'s' * (len(clients) != 1)}"
    return "; ".join([seen, *missed(selectors, {"topic": names, "client": clients, "group": groups})])


def _grown(
    before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]], key: tuple[str, ...]
) -> list[dict[str, Any]]:
    known = {tuple(row[name] for name in key): row["requests"] for row in before}
    return [row for row in after if row["requests"] > known.get(tuple(row[name] for name in key), 0)]
