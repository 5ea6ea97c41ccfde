"""`klamm analyze`: what goes wrong between the clients and brokers of captures, found by Spark."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.cli.analyze.progress import progress, without_chatter
from klamm.cli.analyze.tables import REMOTE, check_captures, make_folder, told, write_tables
from klamm.cli.analyze.window import window_s
from klamm.cli.captures.capture_files import captures, expression, telling, words
from klamm.cli.saying import WrongWord, say
from klamm.cli.tables import print_json
from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import SEVERITIES, Finding, Findings, Thresholds
from klamm.pipeline.spark import SparkMissing
from klamm.pipeline.sql import sql
from klamm.rules.expressions import Expression, ExpressionError
from klamm.settings.extras import installing
from klamm.settings.listing import named
from klamm.settings.nearest import suggestion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from klamm.pipeline.report.comparison import Comparison
    from klamm.pipeline.report.report import Report

DESCRIPTION = """\
Say what goes wrong between the clients and brokers of captures: who, how often, when, and what to change.
EXPR chooses exchanges, as `where` in rules: docs/expressions.md. Several captures are read as one. It runs on
Spark, on this machine or on a cluster that sees the captures.
"""

EXAMPLES = """\
examples:
  klamm analyze capture/
  klamm analyze capture/ --html report.html
  klamm analyze capture/ --tables tables/
  klamm analyze capture/ 'client_id == "billing"' --only rebalance_storm,slow_polling
  klamm analyze s3a://captures/monday --spark spark://master:7077 --json

docs/analyze.md describes the report. The exit code is 1 for findings at or above --fail-on, for new ones at
or above --fail-on-new, and where something could not be read or a detector failed; 2 for wrong usage.
"""

FINE, FAILED = 0, 1


class Outcome(NamedTuple):
    """The findings that decide about the exit code. `new`: those that an earlier capture has not, or of which
    that is not known. `unread`: some part of the captures could not be read.
    """

    found: Findings
    new: Sequence[Finding] = ()
    unread: bool = False


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm analyze CAPTURE... [EXPR] [OPTION...]"
    parser = subparsers.add_parser("analyze", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    text = "files, folders and URLs that Spark can read; and which exchanges [all]"
    parser.add_argument("words", nargs="+", metavar="CAPTURE", help=text)
    text = "compare with the findings of this one, such as from before a change"
    parser.add_argument("--before", metavar="CAPTURE", help=text)
    parser.add_argument("--html", metavar="FILE", help="write a page with plots too")
    text = "with --html: where `klamm web` shows the capture, for links of the page [http://127.0.0.1:19090/]"
    parser.add_argument("--inspector", metavar="URL", type=_inspector, help=text)
    text = "write the tables too, as Parquet; again, what is new"
    parser.add_argument("--tables", metavar="DIR", help=text)
    parser.add_argument("--json", action="store_true", help="one object with all of it instead")
    text = "tell the progress on the standard error, as one object a line"
    parser.add_argument("--progress", action="store_true", help=text)
    text = "exit with 1 for findings of this severity or a higher one"
    parser.add_argument("--fail-on", metavar="|".join(SEVERITIES), help=text)
    text = "the same for findings that the capture of --before has not"
    parser.add_argument("--fail-on-new", metavar="|".join(SEVERITIES), help=text)
    parser.add_argument("--only", metavar="DETECTOR,...", help="look for these only")
    parser.add_argument(
        "--thresholds", metavar="FILE", help="YAML with other thresholds than the detectors have"
    )
    text = "the master, or sc://HOST for Spark Connect [all cores of this machine]"
    parser.add_argument("--spark", metavar="URL", help=text)
    parser.add_argument("--follow", "-f", action="store_true", help="tell findings while the capture grows")
    text = "with --follow: look at so much of the latest traffic [10m]"
    parser.add_argument("--window", metavar="TIME", help=text)
    text = "with --follow: the folder for its progress, to go on there after a restart"
    parser.add_argument("--checkpoint", metavar="DIR", help=text)
    parser.set_defaults(asked="analyze")


def _inspector(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} is no address of a page: write http://{text}")
    return text if text.endswith("/") else f"{text}/"


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 findings at or above --fail-on or --fail-on-new, or something failed; 2 wrong usage."""
    paths, where = _captures(arguments.words)
    _check(arguments, paths, where)
    try:
        _need(("pyspark",), "klamm analyze")
        _need(("jinja2", "vl_convert") if arguments.html is not None else (), "klamm analyze --html")
        detectors, thresholds = _detectors(arguments.only), _thresholds(arguments.thresholds)
        outcome = _outcome(paths, where, detectors, thresholds, arguments)
    except SparkMissing as wrong:
        return say(str(wrong), FAILED)
    grave = _is_grave(outcome.found.found, arguments.fail_on) or _is_grave(outcome.new, arguments.fail_on_new)
    return FAILED if outcome.unread or outcome.found.failed or grave else FINE


def _outcome(
    paths: list[str],
    where: Expression | None,
    detectors: Sequence[Detector],
    thresholds: Thresholds,
    arguments: argparse.Namespace,
) -> Outcome:
    """Print what was found."""
    if arguments.follow:
        from klamm.cli.analyze.follow import follow

        with ExitStack() as stack:
            with progress(arguments.progress):
                spark = stack.enter_context(_spark(arguments.spark, paths))
            return Outcome(follow(spark, paths, detectors, thresholds, arguments))
    from klamm.pipeline.report.comparison import compared
    from klamm.pipeline.report.reporting import reported

    earlier = [] if arguments.before is None else [arguments.before]
    with progress(arguments.progress) as step, _spark(arguments.spark, [*paths, *earlier]) as spark:
        written = None if arguments.tables is None else write_tables(spark, paths, arguments.tables, step)
        before = reported(spark, earlier, detectors, thresholds, where, False, step) if earlier else None
        asked = () if before is None else {one.client_id for one in before.findings.found if one.client_id}
        with_plots = arguments.html is not None
        report = reported(spark, paths, detectors, thresholds, where, with_plots, step, asked)
    comparison = None if before is None else compared(before, report)
    _print(report, comparison, arguments)
    if written is not None and not arguments.json:
        print(f"tables: {arguments.tables}, {told(written)}")
    if where is not None and not report.traffic.exchanges:
        say(f"0 exchanges matched: {where}", FINE)
    reports = [report] if before is None else [before, report]
    unread = any(one.traffic.damaged or one.findings.failed for one in reports)
    return Outcome(report.findings, [] if comparison is None else comparison.maybe_new(), unread)


def _captures(found: Sequence[str]) -> tuple[list[str], Expression | None]:
    """Raises WrongWord. What has the form of a URL is Spark's to read."""
    remote = [word for word in found if REMOTE.match(word)]
    here = [word for word in found if not REMOTE.match(word)]
    if not remote:
        paths, text = words(here)
    elif len(here) == 1 and not os.path.exists(here[0]):
        paths, text = [], here[0]
    else:
        paths, text = captures(here), None
    return [*remote, *paths], expression(text)


def _detectors(text: str | None) -> Sequence[Detector]:
    from klamm.pipeline.detectors.registry import DETECTORS

    if text is None:
        return DETECTORS
    by_name = {one.name: one for one in DETECTORS}
    names = list(dict.fromkeys(named(text)))
    if not names:
        raise WrongWord("--only needs the name of a detector")
    for name in names:
        if name not in by_name:
            near = suggestion(name, by_name) or f"; there are {', '.join(by_name)}"
            raise WrongWord(f"--only {name}: there is no such detector{near}")
    return [by_name[name] for name in names]


def _check(arguments: argparse.Namespace, paths: Sequence[str], where: Expression | None) -> None:
    """Raises WrongWord for options that do not go together, OSError for what cannot be written."""
    if where is not None:
        try:
            sql(where, {})
        except (ExpressionError, ValueError) as wrong:
            raise WrongWord(f"{str(where)!r} cannot be asked of tables: {wrong}") from None
    for option in ("fail_on", "fail_on_new"):
        severity = getattr(arguments, option)
        if severity not in (None, *SEVERITIES):
            near = suggestion(severity, SEVERITIES)
            raise WrongWord(
                f"--{option.replace('_', '-')} {severity}: must be {' or '.join(SEVERITIES)}{near}"
            )
    if arguments.fail_on_new is not None and arguments.before is None:
        raise WrongWord("--fail-on-new: new to what? say --before CAPTURE too")
    if arguments.follow and (arguments.html is not None or where is not None):
        raise WrongWord("--follow looks at all that comes, and tells it: leave out EXPR and --html")
    if arguments.follow and arguments.before is not None:
        raise WrongWord("--follow compares nothing: leave out --before")
    if arguments.follow and (arguments.spark or "").startswith("sc://"):
        raise WrongWord("--follow needs Spark in this process: give a master to --spark, not sc://")
    if arguments.inspector is not None and arguments.html is None:
        raise WrongWord("--inspector is of the links of --html: say both")
    for option in ("window", "checkpoint"):
        if getattr(arguments, option) is not None and not arguments.follow:
            raise WrongWord(f"--{option} is of --follow: say both")
    if arguments.follow and arguments.tables is not None:
        raise WrongWord("--follow writes no tables: leave out --tables")
    if where is not None and arguments.tables is not None:
        raise WrongWord("--tables writes all exchanges: leave out EXPR, or run it for each of both")
    window_s(arguments.window)
    before = arguments.before
    if before is not None and not REMOTE.match(before) and not os.path.exists(before):
        raise WrongWord(f"--before {before}: there is no such file or folder")
    if arguments.html is not None:
        with open(arguments.html, "ab"):
            pass
    if arguments.tables is not None:
        check_captures(paths)
        make_folder(arguments.tables)


def _thresholds(file: str | None) -> Thresholds:
    """Raises WrongWord with all mistakes of the file."""
    from klamm.pipeline.detectors.registry import DETECTORS
    from klamm.pipeline.detectors.thresholds import load
    from klamm.settings.mistakes import ConfigError

    try:
        return {} if file is None else load(file, DETECTORS)
    except ConfigError as wrong:
        raise WrongWord(str(wrong)) from None


def _need(modules: Sequence[str], what: str) -> None:
    """Raises SparkMissing if one of these is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise SparkMissing(f"{what} needs {' and '.join(missing)}: {installing('spark')}")


@contextmanager
def _spark(master: str | None, paths: list[str]) -> Iterator[SparkSession]:
    """A session that ends here, if it began here. Raises SparkMissing if Spark cannot be had."""
    from pyspark.sql import SparkSession

    from klamm.pipeline.spark import start
    from klamm.pipeline.tables.quick import jvm

    running = SparkSession.getActiveSession()
    local = master is None or master.startswith("local")
    with without_chatter():
        spark = start(master, **(jvm(paths) if local else {}))
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def _print(report: Report, comparison: Comparison | None, arguments: argparse.Namespace) -> None:
    from importlib.metadata import version  # slow to load

    if arguments.html is not None:
        from klamm.pipeline.report.page import INSPECTOR, page

        made = page(report, version("klamm"), comparison, arguments.inspector or INSPECTOR)
        Path(arguments.html).write_text(made, encoding="utf-8")
    if arguments.json:
        from klamm.pipeline.report import comparison as comparing
        from klamm.pipeline.report.report import as_object

        before = None if comparison is None else comparing.as_object(comparison)
        print_json({**as_object(report, version("klamm")), "before": before})
        return
    from rich.console import Console

    from klamm.cli.analyze.summary import print_summary

    print_summary(report, Console(highlight=False), comparison)
    if arguments.html is not None:
        print(f"page: {arguments.html}")


def _is_grave(found: Sequence[Finding], fail_on: str | None) -> bool:
    """Is one of them of this severity or a higher one?"""
    if fail_on is None:
        return False
    grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return any(one.severity in grave for one in found)
