"""What the commands that ask a running klamm share: where it is, and how they fail."""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from klamm.cli.running.scalars import listen_address
from klamm.cli.saying import WrongWord, say
from klamm.client import ApiError, Klamm, Refused

ADMIN = "127.0.0.1:19091"
USAGE = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where klamm is. KLAMM_ADMIN and KLAMM_TOKEN_FILE stand in for them."""
    text = f"where klamm answers [KLAMM_ADMIN, or {ADMIN}]"
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        type=_admin,
        default=os.environ.get("KLAMM_ADMIN") or ADMIN,
        help=text,
    )
    add_token(parser)


def _admin(text: str) -> str:
    try:
        listen_address(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return text


def add_token(parser: argparse.ArgumentParser) -> None:
    """The file with the admin token."""
    text = "file with the admin token [KLAMM_TOKEN_FILE]"
    default = os.environ.get("KLAMM_TOKEN_FILE") or None
    parser.add_argument("--token-file", metavar="FILE", default=default, help=text)


def klamm(arguments: argparse.Namespace) -> Klamm:
    """The one that is meant. Raises OSError for a token file that cannot be read."""
    token = None if arguments.token_file is None else Path(arguments.token_file).read_text().strip()
    return Klamm(arguments.admin, token, user())


def user() -> str:
    """Who changes something, for klamm's log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def telling(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What goes wrong becomes lines for people: 1 if klamm does not answer, 2 for what it refuses."""

    @wraps(command)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except (WrongWord, Refused) as problem:
            return say(str(problem), USAGE)
        except ApiError as problem:
            return say(str(problem), 1)
        except OSError as problem:
            if problem.filename is None:  # of what is printed
                raise
            return say(f"cannot read {problem.filename}: {problem.strerror}", USAGE)

    return run
