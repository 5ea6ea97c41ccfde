"""The defaults that help texts have in brackets are those that commands use."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, _SubParsersAction
from collections.abc import Iterator
from importlib import import_module

import pytest

from klamm.cli import COMMANDS, Parser
from klamm.cli.analyze.window import window_s
from klamm.cli.demo import demo
from klamm.cli.running import run
from klamm.proxy.config_types import ROOM
from klamm.proxy.control.rule_book import LASTING_NS
from klamm.rules.file.scalars import duration

BRACKETS = re.compile(r"\[([^\]]+)\]")
OF_RUN = {"--listen", "--admin", "--log-format", "--metering", "--capture-records", "--state"}


def options() -> Iterator[tuple[str, Action]]:
    """Each option and argument of each command, with the command."""
    parser = Parser(prog="klamm", add_help=False)
    subparsers = parser.add_subparsers()
    for command in COMMANDS.values():
        import_module(f"klamm.cli.{command.module}").add_parser(subparsers)
    yield from _of(parser)


def _of(parser: Parser) -> Iterator[tuple[str, Action]]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                yield from _of(inner)
        else:
            yield parser.prog, action


def test_a_default_of_the_parser_is_what_the_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KLAMM_ADMIN", raising=False)
    monkeypatch.delenv("KLAMM_TOKEN_FILE", raising=False)
    looked = 0
    for command, action in options():
        if action.default in (None, False, SUPPRESS, "") or action.default == []:
            continue
        (default_text,) = BRACKETS.findall(action.help or "") or [""]
        default = action.default
        text = f"{default:g}" if isinstance(default, float) else str(default)
        assert text in default_text.replace(",", "").split(), (command, action.option_strings, default_text)
        looked += 1
    assert looked > 10


def helped(option: str, command: str) -> set[str]:
    """The defaults that the help of an option has, in all forms of the command."""
    return {
        default
        for prog, action in options()
        if prog.split()[1] == command and option in action.option_strings
        for default in BRACKETS.findall(action.help or "")
    }


def test_a_default_that_a_command_fills_in_is_what_the_help_says() -> None:
    (window,) = helped("--window", "analyze")
    assert duration(window) / 1e9 == window_s(None)
    for command in ("inject", "delay", "block", "down", "pause"):
        (lasting,) = helped("--for", command)
        assert duration(lasting) == LASTING_NS
    assert helped("--seconds", "demo") == {f"{demo.WITHOUT_TERMINAL_S:g} without a terminal"}


def test_klamm_run_does_the_same_with_the_defaults_of_its_help_as_without() -> None:
    def configured(*words: str) -> object:
        parser = Parser()
        run.add_parser(parser.add_subparsers())
        return run.configure(parser.parse_args(["run", "kafka:1", *words]))

    for option, _, text in run.OPTIONS:
        more = ("--capture", "folder") if option == "--capture-records" else ()
        if option in OF_RUN:
            (default,) = BRACKETS.findall(text)
            assert configured(option, default.partition(": ")[0], *more) == configured(*more), option
    assert f" {ROOM} without LAST" in run.OPTIONS[0][2]
