"""`klamm top`: tables of a running klamm, in a terminal, with keys."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

from rich.console import Console

from klamm.cli.live.asking import USAGE, add_options, klamm_of_a_loop, same, telling
from klamm.cli.saying import say
from klamm.dashboards.top.app import frames, top
from klamm.dashboards.top.data import Data
from klamm.dashboards.top.drawing import whole
from klamm.dashboards.top.state import API, BROKER, CLIENT, CONNECTION, ERROR, TOPIC, State

DESCRIPTION = """\
Watch a running klamm in a terminal: requests, bytes, errors and latencies by API, client, topic and broker,
the connections, and exchanges as they happen. ? lists the keys, q quits.
"""

EXAMPLES = """\
examples:
  klamm top
  klamm top --admin 10.0.0.7:19091 --table clients
  klamm top --once --table topics        once, to standard output
"""

INTERVAL_S = 1.0
SHORTEST_S, LONGEST_S = 0.1, 3600.0
TIMEOUT_S = 5.0
TABLES = {
    "apis": API,
    "clients": CLIENT,
    "topics": TOPIC,
    "brokers": BROKER,
    "connections": CONNECTION,
    "errors": ERROR,
}
NO_TERMINAL = """\
klamm top needs a terminal for its screen and its keys. In scripts use `klamm top --once{options}`,
`klamm tail{options}`, or the metrics at http://{admin}/metrics"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm top [OPTION...]"
    parser = subparsers.add_parser("top", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_interval,
        default=INTERVAL_S,
        help=f"between two questions to klamm [{INTERVAL_S:g}]",
    )
    parser.add_argument("--once", action="store_true", help="print one interval, and end")
    parser.add_argument(
        "--table",
        metavar="NAME",
        choices=TABLES,
        default="apis",
        help=f"the first one: {', '.join(TABLES)} [apis]",
    )
    parser.add_argument("--no-color", action="store_true", help="no colours [set where NO_COLOR is]")
    add_options(parser)


def _interval(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if SHORTEST_S <= seconds <= LONGEST_S:
            return seconds
    raise argparse.ArgumentTypeError(
        f"{text!r} is no number of seconds from {SHORTEST_S:g} to {LONGEST_S:g}: write 2"
    )


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 after q, 1 no klamm, 2 no terminal; 128 and its number after a signal."""
    table = TABLES[arguments.table]
    console = Console(highlight=False, markup=False, no_color=True if arguments.no_color else None)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not (on_terminal or arguments.once):
        return say(
            NO_TERMINAL.format(admin=arguments.admin.rpartition("://")[2], options=same(arguments)), USAGE
        )
    to = klamm_of_a_loop(arguments, TIMEOUT_S)

    def write(data: Data) -> None:
        console.print(whole(State(table), data, console))
        sys.stdout.flush()

    if arguments.once or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        most = 1 if arguments.once else None
        return asyncio.run(frames(to, arguments.interval, table, write, most))
    return asyncio.run(top(to, console, arguments.interval, table, same(arguments)))
