"""`klamm block`: a client that is let do nothing, now."""

from __future__ import annotations

import argparse
from typing import Any

from klamm.cli.live.asking import telling
from klamm.cli.live.by_hand import add_selectors, make, selected

DESCRIPTION = """\
Refuse a client's requests: with the authorization error of each, or silently, or by a reset. The rule ends
after 10 minutes, or as --for says.
"""

EXAMPLES = """\
examples:
  klamm block --client legacy-app
  klamm block --client '10.0.0.7' --how reset --for forever
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm block --client NAME [OPTION...]"
    parser = subparsers.add_parser("block", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--how", choices=("error", "reset", "silent"), default="error", help="[error]")
    add_selectors(parser, ("client", "principal", "broker", "cluster", "for", "name"), "client")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    return make(arguments, {**selected(arguments), "block": arguments.how})
