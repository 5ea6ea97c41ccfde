"""`klamm diff`: what changed between two captures of the same work."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from klamm.captures.summaries.diff import ASPECTS, STARTING, Difference, differences
from klamm.captures.summaries.diff_measures import Work, measure
from klamm.cli.captures.capture_files import captures, reading, report_problems, telling
from klamm.cli.saying import WrongWord
from klamm.cli.tables import print_json, print_table
from klamm.decoders.text import printable
from klamm.settings.listing import named
from klamm.settings.nearest import suggestion

DESCRIPTION = """\
Say what changed between two captures of the same work, such as before and after an upgrade of a client or
the brokers: clients, APIs, errors, versions, settings that show on the wire, counts, latencies and sizes, for
each client id. The gravest comes first, how connections begin last. An amount has changed if it did by
--factor, and not by chance.
"""

START_UP = "start-up"
IGNORED = (*ASPECTS, START_UP)

EXAMPLES = f"""\
examples:
  klamm diff before/ after/
  klamm diff before/ after/ --ignore latency,counts
  klamm diff before/ after/ --together --json

What can be ignored: {", ".join(IGNORED)}.
The exit code is 0 if they are the same, 1 if not, or if something of them could not be read, and 2 for wrong
usage.
"""

SAME, DIFFERENT = 0, 1


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm diff A B [OPTION...]"
    parser = subparsers.add_parser("diff", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("captures", nargs=2, metavar="CAPTURE", help="files or folders")
    parser.add_argument("--ignore", metavar="WHAT,...", default="", help="say nothing of these")
    text = "how much of a change of an amount is one [1.5]"
    parser.add_argument("--factor", metavar="N", type=float, default=1.5, help=text)
    parser.add_argument("--together", action="store_true", help="do not tell clients apart")
    parser.add_argument("--json", action="store_true", help="one object a line for each difference")
    parser.set_defaults(asked="diff")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 the same, 1 different or damaged, 2 wrong usage."""
    ignored = _ignored(arguments.ignore)
    if arguments.factor < 1:
        raise WrongWord(f"--factor {arguments.factor:g}: must be at least 1")
    paths = captures(arguments.captures)
    read = [reading([path]) for path in paths]
    works = [measure(each, arguments.together) for each in read]
    found = [
        one
        for one in differences(works[0], works[1], arguments.factor)
        if one.aspect not in ignored and not (one.at_start and START_UP in ignored)
    ]
    if arguments.json:
        for one in found:
            print_json(one._asdict())
    else:
        for name, path, work in zip("AB", paths, works, strict=True):
            print(f"{name}  {printable(path)}: {_about(work)}")
        print()
        _print(found)
    damaged = max([report_problems(each) for each in read])
    return damaged or (DIFFERENT if found else SAME)


def _ignored(text: str) -> set[str]:
    words = set(named(text))
    for word in sorted(words.difference(IGNORED)):
        raise WrongWord(
            f"--ignore {word}: there is no such thing{suggestion(word, IGNORED)}; {', '.join(IGNORED)}"
        )
    return words


def _about(work: Work) -> str:
    if not work.exchanges:
        return "no exchanges"
    seconds = (work.last_ns - work.first_ns) / 1e9
    began = datetime.fromtimestamp(work.first_ns / 1e9).strftime("%Y-%m-%d %H:%M:%S")
    clients = f"{len(work.clients)} client{'s' * (len(work.clients) != 1)}"
    missing = f"; {work.lost:,} frames are missing in it" if work.lost else ""
    return f"{work.exchanges:,} exchanges of {clients} in {seconds:,.1f} s from {began} on{missing}"


def _print(found: list[Difference]) -> None:
    begin = [one for one in found if one.at_start]
    if len(begin) < len(found) or not found:
        _table([one for one in found if not one.at_start])
    if begin:
        if len(begin) < len(found):
            print()
        print(f"as connections begin ({', '.join(sorted(STARTING))})")
        _table(begin)


def _table(found: list[Difference]) -> None:
    if not found:
        print("no difference")
        return
    rows = [
        (one.aspect, printable(one.client), *map(_cell, (one.what, one.before, one.after))) for one in found
    ]
    print_table(("", "client", "what", "A", "B"), rows)


def _cell(text: str | None) -> str:
    return "-" if text is None else printable(text)
