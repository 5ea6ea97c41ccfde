"""`klamm delay`: answers that come later, now."""

from __future__ import annotations

import argparse
from typing import Any

from klamm.cli.live.asking import telling
from klamm.cli.live.by_hand import add_selectors, make, selected

DESCRIPTION = """\
Let the answers of an API come so much later. The rule ends after 10 minutes, or as --for says.
"""

EXAMPLES = """\
examples:
  klamm delay Fetch 500ms --group billing --for 1m
  klamm delay Produce 2s --client 'orders-*' --chance 10%
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm delay API TIME [OPTION...]"
    parser = subparsers.add_parser("delay", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("api", metavar="API", help="an API, or a glob")
    parser.add_argument("time", metavar="TIME", help="500ms, 2s")
    add_selectors(parser)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    return make(arguments, {**selected(arguments), "delay": arguments.time})
