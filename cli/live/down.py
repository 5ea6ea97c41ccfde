"""`klamm down`: a broker that is not there, now."""

from __future__ import annotations

import argparse
from typing import Any

from klamm.cli.live.asking import telling
from klamm.cli.live.by_hand import add_selectors, make, selected
from klamm.client.faults import down

DESCRIPTION = """\
Let a broker seem gone: its connections are reset when they are used, and no new one opens. A client says
its id no earlier than in its first request: with ids in --client its connection opens, and is reset at that
request. The rules end after 10 minutes, or as --for says.
"""

EXAMPLES = """\
examples:
  klamm down --broker 2 --for 30s
  klamm down --broker 2 --client 'orders-*'
  klamm down --broker 2 --cluster eu
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm down --broker N [OPTION...]"
    parser = subparsers.add_parser("down", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    add_selectors(parser, ("broker", "cluster", "client", "principal", "for", "name"), "broker")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    return make(arguments, *map(_named, down(selected(arguments))))


def _named(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule on connections has a name of its own."""
    own = "name" in rule and rule["event"] == "connect"
    return {**rule, "name": f"{rule['name']}-connect"} if own else rule
