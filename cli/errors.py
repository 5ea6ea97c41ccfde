"""`klamm errors`: what an error of Kafka means."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from klamm.cli.nearest import suggestion
from klamm.cli.wire import print_table
from klamm.decoders import ERRORS
from klamm.decoders.error_codes import KafkaError

DESCRIPTION = """\
Explain an error of Kafka by its code, its name, an older name, or a part of one. Without one, list them all.
"""

EXAMPLES = """\
examples:
  klamm errors 6
  klamm errors NOT_LEADER_FOR_PARTITION
  klamm errors leader
  klamm errors -1
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm errors [ERROR]"
    parser = subparsers.add_parser("errors", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("error", nargs="?", metavar="ERROR", help="a code, a name, or a part of a name")


def run(arguments: argparse.Namespace) -> int:
    """Print what is found. 2 if nothing is."""
    found = list(ERRORS) if arguments.error is None else find(arguments.error)
    if not found:
        names = [name for error in ERRORS for name in (error.name, *error.aliases)]
        guess = suggestion(arguments.error, names)
        print(f"klamm errors: unknown error {arguments.error!r}{guess}", file=sys.stderr)
        return 2
    if len(found) == 1:
        explain(found[0])
    else:
        print_table(("code", "error", "", "meaning"), map(_row, found))
    return 0


def find(text: str) -> list[KafkaError]:
    """The error of this code or name, else those whose names contain the text, in order of their codes."""
    if text.removeprefix("-").isdigit():
        return [error for error in ERRORS if error.code == int(text)]
    word = text.strip().upper().replace("-", "_").replace(" ", "_")
    exact = ERRORS.get(word)
    if exact is not None:
        return [exact]
    return [error for error in ERRORS if any(word in name for name in (error.name, *error.aliases))]


def explain(error: KafkaError) -> None:
    """One error in words."""
    print(f"{error.code} {error.name}: {error.meaning}")
    print("retriable: clients may send the request again" if error.retriable else "not retriable")
    if error.aliases:
        print(f"once called {', '.join(error.aliases)}")


def _row(error: KafkaError) -> tuple[str, ...]:
    return str(error.code), error.name, "retriable" if error.retriable else "", error.meaning
