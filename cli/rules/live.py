"""`klamm rules list|add|on|off|rm|reset`: the rules of a running klamm."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import msgspec
import yaml

from klamm.cli.live.asking import add_options, klamm, telling
from klamm.cli.live.by_hand import ending, warn
from klamm.cli.saying import WrongWord
from klamm.cli.tables import print_json, print_table
from klamm.client import Klamm
from klamm.client.types import Rule, RuleFile
from klamm.decoders.text import printable
from klamm.settings.yaml_line import flow

COMMANDS = {
    "list": "the rules in force, with their matches and hits",
    "add": "add a rule, as it would stand in a file",
    "on": "let rules act",
    "off": "let rules act no more; --all ends everything",
    "rm": "remove rules made by hand",
    "reset": "begin counts and times anew",
}

ALL = {
    "off": "all rules; those made by hand are removed",
    "rm": "all rules made by hand",
    "reset": "all rules",
}


def add_commands(commands: Any) -> None:
    """Declare them."""
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, prog=f"klamm rules {name}")
        if name == "add":
            command.add_argument("rule", metavar="RULE", help="{api: Produce, error: NOT_LEADER_OR_FOLLOWER}")
        elif name == "list":
            command.add_argument("--json", action="store_true", help="one object a line")
        else:
            command.add_argument("names", nargs="*" if name in ALL else "+", metavar="NAME")
        if name in ALL:
            command.add_argument("--all", action="store_true", help=ALL[name])
        add_options(command)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 no klamm, 2 refused."""
    return DO[arguments.command](klamm(arguments), arguments)


def _list(to: Klamm, arguments: argparse.Namespace) -> int:
    found, file = to.rules(), to.rule_file()
    if arguments.json:
        for rule in found:
            print_json(msgspec.to_builtins(rule))
        _rejected(file, sys.stderr)
        return 0
    headings = ("rule", "of", "state", "matches", "hits", "failed", "by", "written")
    print_table(headings, [_row(rule) for rule in found])
    if not found:
        print("no rules")
    for rule in found:
        for warning in rule.warnings:
            print(f"warning: {printable(rule.name)}: {printable(warning)}")
    _rejected(file, sys.stdout)
    return 0


def _rejected(file: RuleFile, to: TextIO) -> None:
    """Why the rules are not those of the file as it is now."""
    if file.rejected is None:
        return
    at = time.strftime("%H:%M:%S", time.localtime(file.rejected))
    since = time.strftime("%H:%M:%S", time.localtime(file.loaded))
    count = f"{len(file.mistakes)} mistake{'s' * (len(file.mistakes) != 1)}"
    print(f"{file.file} was rejected at {at}: {count}; the file's rules are those of {since}", file=to)
    for mistake in file.mistakes:
        print(f"  {printable(mistake)}", file=to)


def _row(rule: Rule) -> tuple[str, ...]:
    state = "off" if not rule.enabled else "over" if rule.over else "dry" if rule.dry else "on"
    written = {key: value for key, value in rule.written.items() if key != "name"}
    failed = str(rule.failures) if rule.failures else ""
    counts = str(rule.matches), str(rule.hits), failed
    by = printable(rule.made_by)
    return printable(rule.name), rule.origin, state, *counts, by, printable(flow(written)) + ending(rule)


def _add(to: Klamm, arguments: argparse.Namespace) -> int:
    try:
        written = yaml.load(arguments.rule, yaml.BaseLoader)
    except yaml.YAMLError:
        written = None
    if not isinstance(written, dict):
        raise WrongWord("write the rule as {api: Produce, error: NOT_LEADER_OR_FOLLOWER}")
    rule = to.add_rule(written)
    print(f"{rule.name}: {flow(rule.written)}{ending(rule)}")
    warn(rule)
    return 0


def _off(to: Klamm, arguments: argparse.Namespace) -> int:
    _check_names(arguments)
    for name in to.rules_off() if arguments.all else arguments.names:
        if not arguments.all:
            to.switch_rule(name, False)
        print(f"{name} is off")
    return 0


def _rm(to: Klamm, arguments: argparse.Namespace) -> int:
    _check_names(arguments)
    names = [rule.name for rule in to.rules() if rule.origin == "hand"] if arguments.all else arguments.names
    for name in names:
        to.remove_rule(name)
        print(f"{name} is removed")
    if not names:
        print("no rules made by hand")
    return 0


def _reset(to: Klamm, arguments: argparse.Namespace) -> int:
    _check_names(arguments)
    names = [rule.name for rule in to.rules()] if arguments.all else arguments.names
    for name in names:
        to.reset_rule(name)
        print(f"{name} begins anew")
    if not names:
        print("no rules")
    return 0


def _check_names(arguments: argparse.Namespace) -> None:
    """Raises WrongWord unless there are either names or --all."""
    if bool(arguments.names) == arguments.all:
        raise WrongWord("name the rules, or say --all")


def _on(to: Klamm, arguments: argparse.Namespace) -> int:
    for name in arguments.names:
        to.switch_rule(name, True)
        print(f"{name} is on")
    return 0


DO: dict[str, Callable[[Klamm, argparse.Namespace], int]] = {
    "list": _list,
    "add": _add,
    "off": _off,
    "on": _on,
    "rm": _rm,
    "reset": _reset,
}
