"""`klamm rules`: a rule file checked, explained, and its schema for editors."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from klamm.cli.live.asking import add_credentials, klamm, telling
from klamm.cli.rules import live as rules_live
from klamm.cli.rules import test as rules_test
from klamm.cli.rules.live import add_commands
from klamm.cli.tables import print_json
from klamm.client.known import known
from klamm.rules.file.presence import Known, unmet
from klamm.rules.file.rule_file import RuleFile, load
from klamm.settings.mistakes import Mistake, dotted
from klamm.settings.printable import printable

DESCRIPTION = """\
Look at rule files without running them; list, add, switch and remove the rules of a running klamm.
"""

EXAMPLES = """\
examples:
  klamm rules check rules.yaml
  klamm rules explain rules.yaml
  klamm rules test rules.yaml capture/
  klamm rules add '{api: Fetch, topic: orders, delay: 200ms, for: 1m}'
  klamm rules off --all
  klamm rules schema > rules.schema.json      then, as the first line of a file:
                                              # yaml-language-server: $schema=rules.schema.json

The exit code of check is 0 if the files can be used, 1 if there are mistakes. With --admin it asks a running
klamm for its clusters and brokers, and warns of rules for others. docs/rules.md describes rules.
"""

USAGE = """\
klamm rules check FILE... [--plugin FILE]... [--json] [--admin HOST:PORT]
       klamm rules explain FILE... [--plugin FILE]...
       klamm rules test RULES CAPTURE... [--seed N] [--json]
       klamm rules schema
       klamm rules list [--json]
       klamm rules add RULE
       klamm rules on|off|rm|reset NAME...
       klamm rules off|rm|reset --all"""

ENDS = "`klamm rules rm NAME` removes a rule made by hand, `klamm rules off NAME` ends one of a file"
ADVICE = {
    **dict.fromkeys(("end", "remove", "delete", "stop", "clear"), ENDS),
    **dict.fromkeys(("show", "get", "ls"), "`klamm rules list` shows the rules in force"),
    "disable": "`klamm rules off NAME` ends a rule",
    "enable": "`klamm rules on NAME` lets a rule act",
}

COMMANDS = {
    "check": "report all mistakes in rule files, and doubtful rules",
    "explain": "explain each rule in words: its frames, its times, its actions, and its cost",
    "schema": "print the JSON Schema of rule files, for editors",
}


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("rules", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    parser.advice = ADVICE
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, prog=f"klamm rules {name}")
        if name != "schema":
            command.add_argument("files", nargs="+", metavar="FILE", help="rule files")
            text = "a Python file with actions; repeatable"
            command.add_argument("--plugin", action="append", default=[], metavar="FILE", help=text)
        if name == "check":
            command.add_argument("--json", action="store_true", help="one object a line for each mistake")
            text = "look too whether the klamm there has the clusters and brokers that rules name"
            command.add_argument("--admin", metavar="[https://]HOST:PORT", help=text)
            add_credentials(command)
    add_commands(commands)
    rules_test.add_command(commands)


def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 mistakes."""
    if arguments.command in rules_live.COMMANDS:
        return rules_live.run(arguments)
    if arguments.command == "test":
        return rules_test.run(arguments)
    if arguments.command == "schema":
        from klamm.rules.file.json_schema import json_schema

        print_json(json_schema())
        return 0
    if arguments.command == "check":
        return _check(arguments)
    found = _loaded(arguments)
    for each in found:
        if each.mistakes:
            _print_lines(each)
        else:
            _explain(each)
    return int(any(each.mistakes for each in found))


def _loaded(arguments: argparse.Namespace) -> list[RuleFile]:
    return [load(file, arguments.plugin, time.time_ns()) for file in arguments.files]


@telling
def _check(arguments: argparse.Namespace) -> int:
    found = _loaded(arguments)
    if arguments.admin is not None:
        to = klamm(arguments)
        there = known(to.clusters(), to.brokers())
        for each in found:
            each.warnings += _unmet(each, there)
    for each in found:
        if arguments.json:
            _print_objects(each)
        else:
            _print_lines(each)
    return int(any(each.mistakes for each in found))


def _unmet(found: RuleFile, there: Known) -> Iterator[Mistake]:
    """Clusters and brokers that a running klamm does not have."""
    for index, (rule, place) in enumerate(zip(found.rules, found.places, strict=True)):
        for path, reason in unmet(rule, there):
            yield Mistake(place, ("rules", index, *path), reason)


def _explain(found: RuleFile) -> None:
    from klamm.rules.file.explain import explain

    for line in explain(found):
        print(printable(line))


def _print_lines(found: RuleFile) -> None:
    for mistake in found.mistakes:
        print(mistake)
    for doubt in found.warnings:
        print(doubt._replace(reason=f"warning: {doubt.reason}"))
    rules, mistakes, doubts = len(found.rules), len(found.mistakes), len(found.warnings)
    warned = f", {doubts} warning{'s' * (doubts > 1)}" if doubts else ""
    if mistakes:
        print(f"{found.source}: {mistakes} mistake{'s' * (mistakes > 1)}{warned}")
    else:
        print(f"{found.source}: {rules} rule{'s' * (rules != 1)}{warned}, ready to use")


def _print_objects(found: RuleFile) -> None:
    for severity, mistakes in (("error", found.mistakes), ("warning", found.warnings)):
        for mistake in mistakes:
            print_json(_object(severity, mistake))


def _object(severity: str, mistake: Mistake) -> dict[str, Any]:
    place = mistake.place
    return {
        "file": place.source,
        "line": place.line,
        "column": place.column,
        "key": dotted(mistake.path),
        "severity": severity,
        "reason": mistake.reason,
    }
