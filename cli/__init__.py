"""The command line: one file per command, imported only when it is asked for."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from klamm.settings.nearest import suggestion

FINE, FAILED, USAGE = 0, 1, 2  # exit codes
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Command(NamedTuple):
    """`module`: below klamm.cli; it has `add_parser` and `run`. `help`: its line in `klamm help`."""

    module: str
    help: str


COMMANDS = {
    "run": Command("running.run", "stand between Kafka clients and a cluster"),
    "config": Command("running.config", "report all mistakes in klamm.yaml, and what it would run"),
    "users": Command("running.users", "write the file of users that authenticate with klamm"),
    "demo": Command("demo.demo", "watch it work: a cluster, clients and klamm in one command"),
    "decode": Command("decode", "read frames, and print each as a tree of its fields"),
    "wire": Command("wire.wire", "print the layout of one API at one version"),
    "web": Command("web", "look at exchanges in a browser: of a running klamm, or of captures"),
    "tail": Command("live.tail", "print requests and answers of a running klamm as they happen"),
    "top": Command("live.top", "watch a running klamm in a terminal, with keys"),
    "health": Command("live.health", "say whether a running klamm is alive, or ready"),
    "connections": Command("live.connections", "list or close connections of clients"),
    "inject": Command("live.inject", "answer requests of a running klamm with an error"),
    "delay": Command("live.delay", "let answers come later"),
    "block": Command("live.block", "refuse requests of clients"),
    "down": Command("live.down", "let a broker seem gone"),
    "pause": Command("live.pause", "let frames wait for `klamm intercept`"),
    "intercept": Command(
        "live.intercept", "look at paused frames; edit, resume or drop them, or answer with an error"
    ),
    "rules": Command("rules.rules", "list, add and end rules; check or explain a file of them"),
    "show": Command("captures.show", "print, sum up, cut and merge captures"),
    "diff": Command("captures.diff", "compare two captures of the same work"),
    "analyze": Command(
        "analyze.analyze", "find problems in captures, and the settings to change, with Spark"
    ),
    "replay": Command("captures.replay", "send the requests of a capture again, or answer clients from it"),
    "scenario": Command(
        "live.scenario", "play faults in phases on a running klamm, and judge how clients take them"
    ),
    "import": Command("captures.import_", "make a capture of packets that tcpdump or Wireshark recorded"),
    "export": Command("captures.export", "write captures as packets, JSON Lines or Parquet"),
    "dashboards": Command("dashboards", "write dashboards for Grafana, and alerts for Prometheus"),
    "errors": Command("wire.errors", "explain an error of Kafka by its code or name"),
}

HELP = f"""\
klamm: a transparent Kafka proxy that shows what clients and brokers say to each other.

usage: klamm COMMAND [OPTION...]
       klamm help [COMMAND | PAGE]

commands:
{chr(10).join(f"  {name:<13}{command.help}" for name, command in COMMANDS.items())}

options:
  -h, --help     this text; `klamm COMMAND --help`, or `klamm help COMMAND`, is about one command
  --version      the version of klamm

examples:
  klamm demo
  klamm run kafka-1:9092,kafka-2:9092 --log Produce,Fetch

`klamm help docs/rules.md` prints a page of the documentation; `klamm help docs` lists them.
Clients then use bootstrap.servers=127.0.0.1:19092, and metrics are at http://127.0.0.1:19091/metrics.
"""


INSTEAD = {"up": "; `klamm rules rm NAME` ends what `klamm down` began"}  # of words that are no commands
NEGATIVE = re.compile(r"-\.?\d")  # -1, and -5ms too, is no option
WANTED: Mapping[Any, str] = {int: "a whole number", float: "a number"}
PAGE = re.compile(r"docs/[\w-]+\.md")


class _Layout(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


class Parser(argparse.ArgumentParser):
    """argparse that names the nearest option and takes no abbreviations. `advice`: what to write instead of
    commands that are not there.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=_Layout, allow_abbrev=False, **settings)
        self._negative_number_matcher = NEGATIVE
        self.advice: Mapping[str, str] = {}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Words that no command takes are reported by the innermost command: only it knows the nearest
        ones.
        """
        self._check_place(args or ())
        found, rest = super().parse_known_args(args, namespace)
        options = [word.partition("=")[0] for word in rest if word.startswith("-")]
        if options:
            self.error(f"unknown option {options[0]}{suggestion(options[0], self._options())}")
        if "words" in found:  # of a command that takes any number of them, between its options too
            found.words += rest
        elif rest:
            option = f"--{rest[0]}"
            near = f"; did you mean {option}?" if option in self._options() else ""
            self.error(f"one word too many: {rest[0]!r}{near}")
        return found, []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the nearest choice, where argparse lists them all."""
        if action.choices is not None and value not in action.choices:
            near = suggestion(str(value), map(str, action.choices))
            near = f"; {self.advice[value]}" if value in self.advice else near
            raise argparse.ArgumentError(action, f"unknown {value!r}{near}")

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """Says what is wanted in words, where argparse names Python's type."""
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError:
            if action.type in WANTED:
                raise argparse.ArgumentError(action, f"{text!r} is not {WANTED[action.type]}") from None
            raise

    def format_help(self) -> str:
        """Adds how to read the pages that it names."""
        text = super().format_help()
        pages = dict.fromkeys(PAGE.findall(text))
        return text + (f"\n`klamm help PAGE` prints {', '.join(pages)}.\n" if pages else "")

    def _check_place(self, words: Sequence[str]) -> None:
        """Reports an option of the commands that stands before the command."""
        option = words[0].partition("=")[0] if words and words[0].startswith("--") else ""
        if not option or option in self._option_string_actions:
            return
        groups = (each.choices for each in self._actions if isinstance(each, argparse._SubParsersAction))
        commands = [
            name
            for group in groups
            for name, parser in group.items()
            if option in parser._option_string_actions
        ]
        if commands:
            command = next((word for word in words if word in commands), "COMMAND")
            self.error(f"{option} comes after the command: {self.prog} {command} {option} ...")

    def _options(self) -> list[str]:
        return [option for option in self._option_string_actions if option.startswith("--")]

    def _print_message(self, message: str, file: Any = None) -> None:
        """Argparse's own hides that a disk is full, or a pipe closed."""
        print(message, end="", file=file)

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}", f"see {self.prog} --help", sep="\n", file=sys.stderr)
        raise SystemExit(USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 fine, 1 failed, 2 wrong usage or configuration."""
    _open_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _printed(_answer(words))
    except BrokenPipeError:  # `klamm wire | head`
        _print_no_more()
        return FINE
    except OSError as problem:  # `klamm wire > file` on a full disk
        if problem.errno not in FULL:
            raise
        _print_no_more()
        print(f"klamm: cannot write: {problem.strerror}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130


def _answer(words: list[str]) -> int:
    command = words[0] if words else ""
    if command == "help":
        return _help(words[1:])
    if command in ("-h", "--help"):
        print(HELP, end="")
        return FINE
    if command == "--version":
        from klamm.cli import version  # slow to load

        print(version.line())
        return FINE
    return _run(command, words) if command in COMMANDS else _unknown(command)


def _open_standard_streams() -> None:
    """Where one is closed (`<&-`), a socket would get its number, and libuv aborts when it closes that."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _help(words: list[str]) -> int:
    """Help about klamm or a command, or a page of the documentation."""
    from klamm.cli import pages

    if not words:
        print(HELP, end="")
        return FINE
    if words[0] in COMMANDS:
        return _run(words[0], [*words, "--help"])
    return pages.show(words[0], COMMANDS)


def _unknown(word: str) -> int:
    if not word:
        print(HELP, end="", file=sys.stderr)
    elif word.startswith("-"):
        print(f"klamm: unknown option {word}{suggestion(word, ('--help', '--version'))}", file=sys.stderr)
    else:
        hint = INSTEAD.get(word) or suggestion(word, COMMANDS)
        print(f"klamm: unknown command {word!r}{hint}", file=sys.stderr)
    return USAGE


def _run(command: str, words: list[str]) -> int:
    module = import_module(f"klamm.cli.{COMMANDS[command].module}")
    parser = Parser(prog="klamm", add_help=False)
    subparsers = parser.add_subparsers()
    module.add_parser(subparsers)
    try:
        code: int = module.run(parser.parse_args(words))
    except SystemExit as end:  # argparse: 0 after --help, else 2
        return end.code if isinstance(end.code, int) else FAILED
    return code


def _printed(code: int) -> int:
    """The exit code, once all that was printed is out."""
    if sys.stdout is not None:  # it is None after `>&-`
        sys.stdout.flush()
    return code


def _print_no_more() -> None:
    """Python flushes standard output once more as it ends: that must not fail again."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
