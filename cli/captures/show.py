"""`klamm show`: what a capture holds."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from klamm.captures.captured import Captured
from klamm.captures.period import Period
from klamm.cli.captures.capture_files import expression, reading, report_problems, telling, words
from klamm.cli.captures.moments import moment
from klamm.cli.captures.searching import Search
from klamm.cli.saying import WrongWord
from klamm.cli.tables import print_json
from klamm.decoders.text import printable

if TYPE_CHECKING:
    from klamm.captures.ended import Ended
    from klamm.captures.frames import Framed
    from klamm.captures.storage.following import Following
    from klamm.captures.storage.reading import Reading

LOOK_S = 0.5  # between two looks at a capture that is followed

DESCRIPTION = """\
Print a line for each request and its answer in captures, in the order of their ends. EXPR chooses, as `where`
in rules: docs/expressions.md. Several captures are read as one.
"""

EXAMPLES = """\
examples:
  klamm show capture/
  klamm show capture/ 'error != NONE and topic == "orders"' -v
  klamm show capture/ 'connection == 12'
  klamm show capture/ --stats
  klamm show monday/ tuesday/ 'client_id == "billing"' -o billing/

The exit code is 1 where something of a capture could not be read; the rest is shown.
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm show CAPTURE... [EXPR] [OPTION...]"
    parser = subparsers.add_parser("show", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument(
        "words", nargs="+", metavar="CAPTURE", help="files and folders; and which exchanges [all]"
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-v", "--values", action="store_true", help="with their fields")
    group.add_argument("-x", "--hex", action="store_true", help="with their bytes, field by field")
    group.add_argument("--stats", action="store_true", help="sum up instead")
    parser.add_argument(
        "--headers", action="store_true", help="with --stats: read no bodies; faster, without errors"
    )
    group.add_argument("--output", "-o", metavar="DIR", help="write them as a capture instead")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--count", "-n", metavar="N", type=int, help="end after so many")
    parser.add_argument("--follow", "-f", action="store_true", help="go on with new exchanges")
    text = "from this time on, such as 15:30:12.5 or 2026-11-21T15:30"
    parser.add_argument("--since", metavar="TIME", help=text)
    parser.add_argument("--until", metavar="TIME", help="up to before this time")
    parser.add_argument("--utc", action="store_true", help="times in UTC [local]")
    parser.set_defaults(asked="show")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 something of the captures was lost, 2 wrong usage."""
    paths, text = words(arguments.words)
    where = expression(text)
    _check(arguments, where is not None)
    if arguments.utc:
        os.environ["TZ"] = "UTC"
        time.tzset()
    missing: list[Captured] = []
    if arguments.follow:
        following = _following(paths)
        search = Search(where)
        _list(search.of(_noting(following, missing)), missing, arguments)
        return max(report_problems(following), search.say_unjudged())
    found = reading(paths, where)
    search = Search(where, _period(found, arguments))
    read_from: Reading | Ended = found
    if arguments.stats:
        from klamm.cli.captures.show_statistics import sum_up

        sum_up(found, arguments.headers, arguments.json)
    elif arguments.output is not None:
        from klamm.cli.captures.show_output import write

        print(write(found, search, arguments.output))
    elif search.period == Period():
        _list(search.of(_noting(found, missing)), missing, arguments)
    else:
        read_from, some = _of_period(paths, found, search, missing)
        _list(some, missing, arguments)
    code = report_problems(read_from)
    if not arguments.stats:
        search.say_nothing_found(found)
    return max(code, search.say_unjudged())


def _period(found: Reading, arguments: argparse.Namespace) -> Period:
    first_ns = min((segment.first_ns for segment in found.segments()), default=0)
    since = moment("--since", arguments.since, first_ns)
    return Period(since, moment("--until", arguments.until, first_ns))


def _of_period(
    paths: list[str], found: Reading, search: Search, missing: list[Captured]
) -> tuple[Ended, Iterator[Framed]]:
    """The exchanges of a time, read without the rest of the captures."""
    from klamm.captures.ended import Ended
    from klamm.captures.headers import keeping
    from klamm.captures.topic_names import topic_names

    some = Ended(paths, search.period, keeping(search.where), partial(_noting, missing=missing))
    return some, search.among(some, topic_names(found))


def _check(arguments: argparse.Namespace, filtered: bool) -> None:
    """Raises WrongWord for options that do not go together."""
    timed = arguments.since is not None or arguments.until is not None
    if arguments.stats and (filtered or timed):
        raise WrongWord("--stats is of whole captures: cut a part with -o first")
    if arguments.headers and not arguments.stats:
        raise WrongWord("--headers is of --stats: say both")
    if arguments.follow and (arguments.stats or timed or arguments.output is not None):
        raise WrongWord("--follow lists exchanges as they come: leave out --stats, -o, --since and --until")
    if arguments.count is not None and arguments.count < 1:
        raise WrongWord(f"--count {arguments.count}: must be at least 1")


def _following(paths: list[str]) -> Following:
    from klamm.captures.storage.following import Following

    def wait() -> bool:
        sys.stdout.flush()
        time.sleep(LOOK_S)
        return True

    return Following(paths, wait)


def _list(found: Iterator[Framed], missing: list[Captured], arguments: argparse.Namespace) -> None:
    """`missing` is filled while `found` is read."""
    from klamm.cli.captures.show_exchange import as_object, as_text
    from klamm.cli.captures.show_records import as_objects

    bodies = "values" if arguments.values else "raw" if arguments.hex else "none"
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    day = ""
    for one in islice(found, arguments.count):
        _tell(missing, arguments.json)
        if arguments.json:
            print_json(as_object(one, bodies, as_objects))
            continue
        now = datetime.fromtimestamp(one.exchange.last.time_ns // 10**9).strftime("%Y-%m-%d")
        if now != day:
            day = now
            print(now)
        print("\n".join(as_text(one, colour, bodies)))
    _tell(missing, arguments.json)


def _noting(rows: Iterable[Captured], missing: list[Captured]) -> Iterator[Captured]:
    """The rows; those that report missing frames are also collected."""
    for row in rows:
        if row.kind == "lost":
            missing.append(row)
        yield row


def _tell(missing: list[Captured], as_json: bool) -> None:
    for row in missing:
        of = row.connection
        if as_json:
            fields = {"lost": row.lost, "time": round(row.time_ns / 1e9, 6), "text": row.text}
            print_json(
                fields if of is None else {**fields, "connection": of.client, "connection_id": of.number}
            )
        else:
            when = datetime.fromtimestamp(row.time_ns / 1e9).strftime("%H:%M:%S.%f")[:-3]
            where = "" if of is None else f"{when} connection={of.number}"
            count = f"{row.lost} frame{'s are' if row.lost != 1 else ' is'} missing here" if row.lost else ""
            print(f"... {': '.join(filter(None, (where, count, printable(row.text))))}")
    missing.clear()
