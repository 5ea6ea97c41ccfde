"""Shared by the commands that ask a running klamm: its address, and how they fail."""

from __future__ import annotations

import argparse
import errno
import getpass
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from shlex import quote

from klamm.cli.running.scalars import listen_address
from klamm.cli.saying import WrongWord, say
from klamm.client import ApiError, AsyncKlamm, Klamm, Refused, Unusable

ADMIN = "127.0.0.1:19091"
USAGE = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options for klamm's address, with variables of the environment in their place."""
    text = f"where klamm answers [KLAMM_ADMIN, or {ADMIN}]"
    parser.add_argument(
        "--admin",
        metavar="[https://]HOST:PORT",
        type=_admin,
        default=os.environ.get("KLAMM_ADMIN") or ADMIN,
        help=text,
    )
    add_credentials(parser)


def _admin(text: str) -> str:
    try:
        listen_address(text.removeprefix("https://").removeprefix("http://").rstrip("/"))
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return text


CREDENTIALS = [  # option, variable of the environment, help
    (
        "--token-file",
        "KLAMM_TOKEN_FILE",
        "file with the admin token [KLAMM_TOKEN_FILE, or KLAMM_TOKEN has it]",
    ),
    (
        "--admin-ca",
        "KLAMM_ADMIN_CA",
        "authorities to trust, for klamm's TLS [KLAMM_ADMIN_CA, or the system's]",
    ),
    ("--admin-cert", "KLAMM_ADMIN_CERT", "your certificate, for klamm's TLS [KLAMM_ADMIN_CERT]"),
    ("--admin-key", "KLAMM_ADMIN_KEY", "its private key [KLAMM_ADMIN_KEY, or in the same file]"),
]


def add_credentials(parser: argparse.ArgumentParser) -> None:
    """The options with which a caller shows who it is, and trusts klamm."""
    for option, variable, text in CREDENTIALS:
        default = os.environ.get(variable) or None
        parser.add_argument(option, metavar="FILE", default=default, help=text)


def same(arguments: argparse.Namespace) -> str:
    """The options that lead another command to this klamm, each with a space before it; none for klamm at its
    usual address.
    """
    given = [("--admin", arguments.admin)] if arguments.admin != ADMIN else []
    files = [(option, getattr(arguments, option[2:].replace("-", "_"))) for option, _, _ in CREDENTIALS]
    return "".join(f" {option} {quote(value)}" for option, value in [*given, *files] if value)


def klamm(arguments: argparse.Namespace, name: str | None = None) -> Klamm:
    """The one that is meant; `name` stands in its log. Raises Unusable, and OSError for a token file that
    cannot be read.
    """
    ca, cert, key = arguments.admin_ca, arguments.admin_cert, arguments.admin_key
    return Klamm(arguments.admin, _token(arguments), name or user(), ca=ca, cert=cert, key=key)


def klamm_of_a_loop(arguments: argparse.Namespace, timeout_s: float) -> AsyncKlamm:
    """The same for an event loop."""
    ca, cert, key = arguments.admin_ca, arguments.admin_cert, arguments.admin_key
    token = _token(arguments)
    return AsyncKlamm(arguments.admin, token, user(), timeout_s, ca=ca, cert=cert, key=key)


def _token(arguments: argparse.Namespace) -> str | None:
    file = arguments.token_file
    token = os.environ.get("KLAMM_TOKEN") if file is None else Path(file).read_text()
    return None if token is None else token.strip()


def user() -> str:
    """The name for changes in klamm's log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def where_from(problem: ApiError, arguments: argparse.Namespace) -> str:
    """The text of the problem; where nobody listens at an address that was not given, also whose it is."""
    if not isinstance(problem.__cause__, OSError) or problem.__cause__.errno != errno.ECONNREFUSED:
        return str(problem)
    sources = {
        ADMIN: "that is the default address: name another with --admin HOST:PORT, or KLAMM_ADMIN",
        os.environ.get("KLAMM_ADMIN"): "KLAMM_ADMIN names that address: --admin HOST:PORT names another",
    }
    source = sources.get(getattr(arguments, "admin", None))
    return f"{problem}; {source}" if source else str(problem)


def telling(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Turns errors into lines for people: 1 if klamm does not answer, 2 if it refuses."""

    @wraps(command)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except (WrongWord, Refused, Unusable) as problem:
            return say(str(problem), USAGE)
        except ApiError as problem:
            return say(where_from(problem, arguments), 1)
        except OSError as problem:
            if problem.filename is None:  # of what is printed
                raise
            return say(f"cannot read {problem.filename}: {problem.strerror}", USAGE)

    return run
