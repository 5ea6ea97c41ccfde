"""`klamm inject`: an error for requests, now."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from klamm.cli.live import prefixes
from klamm.cli.live.asking import telling
from klamm.cli.live.by_hand import add_selectors, make, selected
from klamm.cli.saying import WrongWord

DESCRIPTION = """\
Answer requests with an error of Kafka's, in the place of the broker. Beginnings of names are enough. The rule
ends after 10 minutes, or as --for says; `klamm rules list` and `klamm rules rm` are for those in force.
"""

EXAMPLES = """\
examples:
  klamm inject Produce NOT_LEADER --topic orders --times 3
  klamm inject Heartb REBALANCE --group billing --for 30s
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm inject API ERROR [OPTION...]"
    parser = subparsers.add_parser("inject", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("api", metavar="API", help="an API, or a glob")
    parser.add_argument("error", metavar="ERROR", help="an error by its name or code")
    add_selectors(parser)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 made, 1 no klamm, 2 refused."""
    if _is(prefixes.error, arguments.api) and _is(prefixes.api, arguments.error):
        order = f"klamm inject {arguments.error} {arguments.api}"
        raise WrongWord(f"the API comes first, then the error: {order}")
    return make(arguments, {**selected(arguments), "error": prefixes.error(arguments.error)})


def _is(kind: Callable[[str], str], word: str) -> bool:
    try:
        kind(word)
    except WrongWord:
        return False
    return True
