"""`klamm pause`: frames that wait for `klamm intercept`, now."""

from __future__ import annotations

import argparse
from typing import Any

from klamm.cli.live.asking import telling
from klamm.cli.live.by_hand import add_selectors, make, selected

DESCRIPTION = """\
Hold frames until `klamm intercept` resumes, edits or drops them, or answers with an error. What follows on
the same connection waits too. The rule ends after 10 minutes, or as --for says; what it holds goes on then.
"""

EXAMPLES = """\
examples:
  klamm pause Metadata --side response --times 1
  klamm pause Produce --topic orders --timeout 5m --follow 0
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm pause API [OPTION...]"
    parser = subparsers.add_parser("pause", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("api", metavar="API", help="an API, or a glob")
    parser.add_argument("--side", choices=("request", "response"), help="which frames [request]")
    parser.add_argument("--timeout", metavar="TIME", default="1m", help="then a frame goes on by itself [1m]")
    add_selectors(parser)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    side = {} if arguments.side is None else {"side": arguments.side}
    return make(arguments, {**selected(arguments), **side, "pause": arguments.timeout})
