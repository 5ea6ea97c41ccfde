"""`klamm scenario`: faults in phases against a running klamm, and a verdict on how its clients take them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.cli.live.asking import ADMIN, add_options, klamm, where_from
from klamm.cli.pace import speed
from klamm.cli.tables import print_table
from klamm.settings.nearest import suggestion
from klamm.settings.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from klamm.client import ApiError, Klamm
    from klamm.scenarios.model import Scenario
    from klamm.scenarios.run import Faults, Report

DESCRIPTION = """\
Play a scenario against a klamm that runs: rules come and go in phases, and what clients do is held against
what is expected of them. Rules end with their phase, also when the scenario is broken off.
"""

EXAMPLES = """\
examples:
  klamm scenario list
  klamm scenario show rolling-restart
  klamm scenario run rolling-restart --set first=3 --json report.json
  klamm scenario check my-scenario.yaml
  klamm scenario run my-scenario.yaml --cluster eu --speed 10

The exit code of run is 0 if all expectations were met, 1 if not, 2 if it could not be played or was broken
off; that of check 0 if it can be played, 2 if not. Both ask the klamm of --admin HOST:PORT, or of
KLAMM_ADMIN.
docs/scenarios.md describes the files.
"""

USAGE = """\
klamm scenario list
       klamm scenario show NAME [--yaml]
       klamm scenario check FILE|NAME [--set KEY=VALUE]... [--cluster GLOB]
       klamm scenario run FILE|NAME [--set KEY=VALUE]... [--cluster GLOB] [--speed N] [--json FILE]"""

MET, NOT_MET, CANNOT = 0, 1, 2
CONFLICT = 409
LINE_EVERY_S = 5.0
LISTING = "klamm scenario list"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("scenario", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser("list", help="the scenarios that are ready to play", prog="klamm scenario list")
    show = commands.add_parser(
        "show",
        help="a ready scenario, and how a well-behaved client reacts",
        prog="klamm scenario show",
    )
    show.add_argument("name", metavar="NAME", help="of a ready scenario")
    show.add_argument("--yaml", action="store_true", help="its file alone, to make another from")
    play = commands.add_parser("run", help="play a file, or a ready scenario", prog="klamm scenario run")
    _add_scenario(play)
    check = commands.add_parser(
        "check", help="say whether a file can be played on the klamm that runs", prog="klamm scenario check"
    )
    _add_scenario(check)
    text = "so many times as fast: phases get shorter, limits stay [1]"
    play.add_argument("--speed", type=speed, default=1.0, metavar="N", help=text)
    play.add_argument("--json", metavar="FILE", help="write the report to FILE")


def _add_scenario(command: argparse.ArgumentParser) -> None:
    """The arguments for a scenario and for klamm's address."""
    command.add_argument("file", metavar="FILE|NAME", help="a scenario file, or the name of a ready one")
    text = "a parameter of the scenario; repeatable"
    command.add_argument("--set", action="append", default=[], type=_pair, metavar="KEY=VALUE", help=text)
    text = "the clusters it is about, where its rules and expectations do not say [all]"
    command.add_argument("--cluster", metavar="GLOB", help=text)
    add_options(command)


def run(arguments: argparse.Namespace) -> int:
    """0 met, 1 not met, 2 cannot be played, or was broken off."""
    from klamm.scenarios import ready

    if arguments.command == "list":
        print_table(("scenario", "events"), ((name, ready.about(name)) for name in ready.names()))
        return MET
    if arguments.command == "show":
        return _show(arguments.name, arguments.yaml)
    return _check(arguments) if arguments.command == "check" else _play(arguments)


def _show(name: str, yaml: bool) -> int:
    from klamm.scenarios import ready

    if name not in ready.names():
        return _cannot(f"there is no ready scenario {name!r}{suggestion(name, ready.names(), LISTING)}")
    print(
        ready.text(name) if yaml else f"{ready.page(name)}\n## {name}.yaml\n\n{ready.text(name)}",
        end="",
    )
    return MET


def _play(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from klamm.client import ApiError
    from klamm.scenarios.report import as_json, lines, verdict

    scenario = _read(arguments)
    if scenario is None:
        return CANNOT
    try:
        to = _klamm(arguments, scenario)
        if arguments.json not in (None, "-"):
            Path(arguments.json).touch()
    except OSError as problem:
        return _cannot(f"cannot use {problem.filename}: {problem.strerror}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    started_at, reports, broken = time.time(), list["Report"](), ""
    out = sys.stderr if arguments.json == "-" else sys.stdout
    try:
        if not _applies(scenario, to):
            return CANNOT
        _played(scenario, to, Console(file=out), arguments.speed, reports)
    except ApiError as problem:
        broken = _clash(problem, scenario, to) or where_from(problem, arguments)
    except KeyboardInterrupt:
        broken = "interrupted"
    if not reports:
        return _cannot(broken)
    (report,) = reports[-1:]
    if arguments.json:
        _write(arguments.json, as_json(report, started_at))
    for line in (*lines(report), "", verdict(report)):
        print(printable(line), file=out)
    if broken:
        return _cannot(broken)
    return MET if report.met else NOT_MET


def _check(arguments: argparse.Namespace) -> int:
    """Whether a file can be read, and played on the klamm that runs."""
    from klamm.client import ApiError, NoAnswer

    scenario = _read(arguments)
    if scenario is None:
        return CANNOT
    phases = f"{len(scenario.phases)} phases" if len(scenario.phases) != 1 else "1 phase"
    text = f"{scenario.name}: {phases}, {scenario.lasts_s:g} s"
    try:
        if not _applies(scenario, _klamm(arguments, scenario)):
            return CANNOT
    except OSError as problem:
        return _cannot(f"cannot use {problem.filename}: {problem.strerror}")
    except NoAnswer as problem:
        if arguments.admin != ADMIN or os.environ.get("KLAMM_ADMIN"):
            return _cannot(where_from(problem, arguments))
        print(f"{text}; the file is right, and {problem}: its clusters and brokers were not looked at")
        return MET
    except ApiError as problem:
        return _cannot(where_from(problem, arguments))
    print(f"{text}, ready to play")
    return MET


def _klamm(arguments: argparse.Namespace, scenario: Scenario) -> Klamm:
    """The klamm that is meant. Raises as `klamm` does."""
    return klamm(arguments, f"scenario {scenario.name}")


def _applies(scenario: Scenario, klamm: Klamm) -> bool:
    """Whether it can apply; else the reasons are printed. Raises ApiError."""
    from klamm.scenarios.applying import doubts, look, refusals

    ground = look(klamm)
    reasons = refusals(scenario, ground)
    for reason in reasons:
        _cannot(f"{scenario.name} cannot be played: {reason}" if reason is reasons[0] else reason)
    if not reasons:
        for doubt in doubts(scenario, ground):
            _cannot(f"warning: {doubt}")
    return not reasons


def _clash(problem: ApiError, scenario: Scenario, klamm: Klamm) -> str:
    """If klamm refused a rule because its name is taken: the rule that has it, and who made that; else ""."""
    from klamm.client import ApiError
    from klamm.scenarios.applying import clashes

    if getattr(problem, "status", None) == CONFLICT:
        with suppress(ApiError):
            return next(clashes(scenario, klamm.rules()), "")
    return ""


def _played(scenario: Scenario, klamm: Faults, console: Console, speed: float, reports: list[Report]) -> None:
    """The report of a run is put into `reports` as soon as there is one."""
    from rich.live import Live

    from klamm.scenarios.report import table
    from klamm.scenarios.run import play

    spoken_s = 0.0

    def show(report: Report) -> None:
        nonlocal spoken_s
        if live is not None:
            live.update(table(report), refresh=True)
        elif (now_s := report.whole.samples[-1].at_s) - spoken_s >= LINE_EVERY_S:
            spoken_s = now_s
            print(f"{now_s:.0f} s  {printable(report.phases[-1].name)}", file=sys.stderr, flush=True)

    screen = (
        Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else nullcontext()
    )
    with screen as live:
        play(scenario, klamm, time.monotonic, time.sleep, speed, show, reports.append)


def _read(arguments: argparse.Namespace) -> Scenario | None:
    """The scenario; None, with every mistake printed, where it cannot be played."""
    from klamm.scenarios import ready
    from klamm.scenarios.model import read_scenario

    word = arguments.file
    try:
        name, source, text = ready.find(word)
    except UnicodeDecodeError:
        _cannot(f"{word} is not UTF-8")
        return None
    except OSError as problem:
        if isinstance(problem, FileNotFoundError) and "/" not in word and "." not in word:
            near = suggestion(word, ready.names(), LISTING)
            _cannot(f"there is no file and no ready scenario {word!r}{near}")
        else:
            _cannot(f"cannot read {word}: {problem.strerror}")
        return None
    scenario, mistakes = read_scenario(text, source, name, dict(arguments.set))
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    if scenario is None or arguments.cluster is None:
        return scenario
    return scenario.on(arguments.cluster)


def _write(file: str, report: dict[str, Any]) -> None:
    text = json.dumps(report, indent=1) + "\n"
    if file == "-":
        print(text, end="")
    else:
        Path(file).write_text(text)


def _cannot(reason: str) -> int:
    print(f"klamm scenario: {printable(reason)}", file=sys.stderr)
    return CANNOT


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no KEY=VALUE")
    return key, value
