"""`klamm replay`: a capture played again, as the clients to a cluster, or as the broker to clients."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.captures.exports.exporting import Selection, seen_by
from klamm.cli.captures.capture_files import (
    FINE,
    LOST,
    USAGE,
    expression,
    reading,
    report_problems,
    telling,
    words,
)
from klamm.cli.captures.searching import Search
from klamm.cli.live.prefixes import api
from klamm.cli.pace import speed
from klamm.cli.running.scalars import address, listen_address
from klamm.cli.saying import WrongWord, say
from klamm.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from klamm.captures.captured import Captured
    from klamm.captures.storage.reading import Reading
    from klamm.replay.client_config import Access
    from klamm.replay.playing import Player
    from klamm.replay.survey import Survey
    from klamm.rules.expressions import Expression

DESCRIPTION = """\
Send the requests of a capture again, to another cluster, in their order and with their pauses; ids that the
cluster hands out are put in the place of those recorded. Then say where its answers differ. EXPR chooses, as
`where` in rules: docs/expressions.md.

With --serve the capture is the broker instead, and clients are answered as those in it were.
"""

EXAMPLES = """\
examples:
  klamm replay capture/ --to kafka-1:9092
  klamm replay capture/ 'client_id == "billing"' --to kafka-1:9093 --client-config client.properties --asap
  klamm replay capture/ --to kafka-1:9092 --without Produce,DeleteTopics --json
  klamm replay --serve capture/ --listen 127.0.0.1:9092

The exit code is 0 if the answers were the same, 1 if not, or if part of the capture could not be read, and 2
if nothing could be sent. docs/replay.md says what is put in the place of what, and what is compared.
"""

USAGE_LINE = """\
klamm replay CAPTURE... [EXPR] --to BOOTSTRAP[,...] [OPTION...]
       klamm replay --serve CAPTURE... [EXPR] [--listen HOST:PORT] [--strict]"""

LISTEN = "127.0.0.1:19092"
# `klamm run` has options for these; here they are client properties.
HINTS = {
    "start klamm with --upstream-tls": "set security.protocol to SSL or SASL_SSL in --client-config",
    "start klamm without --upstream-tls if it is a plain port": "or it is a plain port",
    "name the authority with --upstream-ca": "set ssl.truststore.location in --client-config",
}


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("replay", usage=USAGE_LINE, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument(
        "words", nargs="+", metavar="CAPTURE", help="files and folders; and which exchanges [all]"
    )
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--to", metavar="BOOTSTRAP", help="HOST:PORT of one broker or more of the cluster")
    side.add_argument("--serve", action="store_true", help="be the broker of the capture, for clients")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=speed, metavar="N", help="so many times as fast [1]")
    text = "no pauses: each as soon as the answers before it are there"
    pace.add_argument("--asap", action="store_true", help=text)
    text = "Kafka's client properties: how to connect, as whom [plain, as nobody]"
    parser.add_argument("--client-config", metavar="FILE", help=text)
    parser.add_argument("--without", metavar="API,...", help="leave these requests out [none]")
    parser.add_argument("--offsets", action="store_true", help="compare offsets too")
    text = f"with --serve: bootstrap port, and after it the other brokers'; 0: free ones [{LISTEN}]"
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=text)
    parser.add_argument("--strict", action="store_true", help="with --serve: recorded answers only")
    parser.add_argument("--json", action="store_true", help="one object, for programs")
    parser.set_defaults(asked="replay")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 the same answers, 1 other ones, 2 nothing was sent."""
    paths, text = words(arguments.words)
    where = expression(text)
    found = reading(paths)
    if arguments.serve:
        return _serve(arguments, found, where)
    return _play(arguments, found, where)


def _play(arguments: argparse.Namespace, found: Reading, where: Expression | None) -> int:
    import uvloop

    from klamm.proxy.cluster.conversation import Unanswered
    from klamm.replay.survey import survey

    bootstrap = tuple(_bootstrap(arguments.to))
    access = _access(arguments.client_config)
    without = frozenset(_apis(arguments.without or ""))
    rows = _rows(found, where)
    there = survey(rows(), without)
    lost = report_problems(found)
    if not there.requests:
        return say(f"no request of the capture can be sent{_because(there)}", USAGE)
    if there.blank_produces:
        blank = _counted(there.blank_produces, "Produce request")
        return say(
            f"the records of {blank} are blank in the capture: capture with --capture-records keep (klamm"
            " import: --records keep), or replay with --without Produce",
            USAGE,
        )
    try:
        player = uvloop.run(_played(arguments, rows, bootstrap, access, there, without))
    except Unanswered as problem:
        return say(f"nothing was sent: {_hinted(str(problem))}", USAGE)
    _report(arguments.json, player, there)
    return LOST if player.differences.found or lost else FINE


async def _played(
    arguments: argparse.Namespace,
    rows: Callable[[], Iterable[Captured]],
    bootstrap: tuple[Any, ...],
    access: Access,
    there: Survey,
    without: frozenset[str],
) -> Player:
    """Raises Unanswered before anything is sent."""
    from klamm.replay.cluster import Cluster
    from klamm.replay.comparing import Differences
    from klamm.replay.playing import Pace, Player

    cluster = Cluster(bootstrap, access)
    try:
        await cluster.open()
        with _progress(there.requests) as tell:
            pace = Pace(None if arguments.asap else arguments.speed or 1.0)
            player = Player(cluster, there, Differences(arguments.offsets), pace, without, tell)
            await player.play(rows())
        return player
    finally:
        cluster.close()


def _serve(arguments: argparse.Namespace, found: Reading, where: Expression | None) -> int:
    """Serves until a signal. 0 if every request could be answered, 1 if not, 2 if nothing could be served."""
    from klamm.replay.serving.serving import CannotServe, Serving, load, serve, warnings

    def announce(serving: Serving) -> None:
        print(f"bootstrap.servers={serving.bootstrap}", flush=True)

    first, mark, _ = arguments.listen.partition("-")
    if mark and first[-1:].isdigit():
        behind = "the other brokers of the capture get the ports behind it"
        raise WrongWord(f"--listen: write the first port alone, as {first}: {behind}")
    try:
        listen = listen_address(arguments.listen)
    except ValueError as wrong:
        raise WrongWord(f"--listen: {wrong}") from None
    try:
        recording = load(found, where)
        lost = max(report_problems(found), Search(where).say_unjudged())
        for line in warnings(recording):
            say(line, FINE)
        served = serve(
            recording, listen, lambda line: print(line, file=sys.stderr), announce, arguments.strict
        )
    except CannotServe as problem:
        report_problems(found)
        return say(str(problem), USAGE)
    print(f"{served.answered.total()} requests answered, {served.unanswered.total()} not")
    for name, count in served.unanswered.most_common():
        print(f"  {name} {count}")
    return LOST if served.unanswered or lost else FINE


def _rows(found: Reading, where: Expression | None) -> Callable[[], Iterable[Captured]]:
    """The capture as the brokers saw it, each time from its beginning."""
    if where is None:
        return lambda: seen_by("broker", found)
    search = Search(where)
    selection = Selection(search.of(found))
    search.say_nothing_found(found)
    search.say_unjudged()
    return lambda: seen_by("broker", selection.of(found))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """On a terminal only."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("requests"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.update(task, completed=count)


def _report(as_json: bool, player: Player, there: Survey) -> None:
    found = sorted(player.differences.found.values(), key=lambda one: (one.api, one.path))
    passed = sorted(player.differences.passed.items())
    if as_json:
        print_json(
            {
                "requests": player.sent,
                "answers": player.answered,
                "connections": len(there.connections),
                "left_out": dict(there.left_out),
                "lost": there.lost,
                "passed": [{"api": name, "error": error, "count": count} for (name, error), count in passed],
                "differences": [asdict(one) for one in found],
            }
        )
        return
    requests, of = _counted(player.sent, "request"), _counted(len(there.connections), "connection")
    print(f"{requests} of {of} sent, {player.answered} answered")
    for reason, count in there.left_out.items():
        print(f"left out: {count}, {reason}")
    if there.lost:
        print(f"missing in the capture: {_counted(there.lost, 'frame')}")
    if passed:
        differences = ", ".join(f"{name} {error} {count}" for (name, error), count in passed)
        print(f"the recording told clients to ask again, and this cluster did not: {differences}")
    if not found:
        print("no differences")
        return
    head = "API", "field", "times", "recorded", "now", "first"
    print_table(
        head,
        [
            (
                one.api,
                one.path,
                str(one.count),
                one.recorded,
                one.now,
                f"v{one.version}, connection {one.connection}, request {one.exchange}",
            )
            for one in found
        ],
    )


def _hinted(text: str) -> str:
    for option, properties in HINTS.items():
        text = text.replace(option, properties)
    return text


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _because(there: Survey) -> str:
    reasons = [f"{count} are left out: {reason}" for reason, count in there.left_out.items()]
    return f" ({'; '.join(reasons)})" if reasons else ""


def _bootstrap(text: str) -> Iterator[Any]:
    for word in text.split(","):
        try:
            yield address(word.strip())
        except ValueError as wrong:
            raise WrongWord(f"--to: {wrong}") from None


def _apis(text: str) -> Iterator[str]:
    for word in filter(None, text.split(",")):
        try:
            yield api(word.strip())
        except ValueError as wrong:
            raise WrongWord(f"--without: {wrong}") from None


def _access(file: str | None) -> Access:
    from klamm.replay.client_config import WrongProperty, access, properties

    try:
        return access({} if file is None else properties(Path(file).read_text()))
    except UnicodeDecodeError:
        raise WrongWord(f"--client-config: {file} is not UTF-8") from None
    except OSError as wrong:
        raise WrongWord(f"--client-config: {file}: {wrong.strerror}") from None
    except WrongProperty as wrong:
        raise WrongWord(f"--client-config: {wrong}") from None
