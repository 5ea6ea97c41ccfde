"""`klamm connections`: who is connected, and an end to it."""

from __future__ import annotations

import argparse
import time
from typing import Any

import msgspec

from klamm.cli.live.asking import add_options, klamm, telling
from klamm.cli.tables import print_json, print_table
from klamm.client.types import Connection
from klamm.decoders.text import printable
from klamm.proxy.log.lines import size

DESCRIPTION = """\
List the connections of clients through klamm; --close resets one.
"""

EXAMPLES = """\
examples:
  klamm connections
  klamm connections --close 17
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm connections [OPTION...]"
    parser = subparsers.add_parser("connections", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--close", metavar="ID", type=int, help="reset this one")
    parser.add_argument("--json", action="store_true", help="one object a line")
    add_options(parser)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 no klamm, 2 no such connection."""
    to = klamm(arguments)
    if arguments.close is not None:
        to.close_connection(arguments.close)
        print(f"connection {arguments.close} is closed")
        return 0
    found = to.connections()
    if arguments.json:
        for connection in found:
            print_json(msgspec.to_builtins(connection))
        return 0
    named = any(connection.principal is not None for connection in found)
    head = ("id", "client", "client id", "cluster", "broker", "for", "in flight", "sent", "received")
    rows = [(*_row(one), *[printable(one.principal or "")] * named) for one in found]
    print_table((*head, *["principal"] * named), rows)
    if not found:
        print("no client is connected")
    return 0


def _row(one: Connection) -> tuple[str, ...]:
    sizes = ("" if count is None else size(count) for count in (one.from_client_bytes, one.to_client_bytes))
    seconds = max(0, round(time.time() - one.since))
    client_id = printable(one.client_id or "")
    open_for = f"{seconds // 60}m{seconds % 60:02}s" if seconds >= 60 else f"{seconds}s"
    return str(one.id), one.client, client_id, one.cluster, one.broker, open_for, str(one.in_flight), *sizes
