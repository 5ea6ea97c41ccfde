"""`klamm down`: a broker that is not there, now."""

from __future__ import annotations

import argparse
from typing import Any

from klamm.cli.asking import telling
from klamm.cli.by_hand import add_selectors, make, selected

DESCRIPTION = """\
Let a broker seem gone: its connections are reset when they are used, and no new one opens. The rules end
after 10 minutes, or as --for says.
"""

EXAMPLES = """\
examples:
  klamm down --broker 2 --for 30s
  klamm down --broker 2 --client 'orders-*'
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm down --broker N [OPTION...]"
    parser = subparsers.add_parser("down", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    add_selectors(parser, ("broker", "client", "for", "name"), "broker")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    said = selected(arguments)
    named = {"name": f"{said['name']}-connect"} if "name" in said else {}
    return make(
        arguments,
        {**said, "event": "connect", "down": "true", **named},
        {**said, "event": "frame", "down": "true"},
    )
