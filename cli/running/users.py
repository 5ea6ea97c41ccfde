"""`klamm users`: the file of users that authenticate with klamm. It has hashes, and no password."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from base64 import b64encode
from getpass import getpass
from pathlib import Path
from typing import Any

from klamm.proxy.sasl.scram import DIGESTS, MOST_ITERATIONS
from klamm.proxy.sasl.users import (
    FEWEST,
    ITERATIONS,
    UNKNOWN_USERS,
    credential_of,
    line_of,
    load_users,
    parse_users,
    why_no_name,
)

DESCRIPTION = """\
Write the file of users that clients authenticate as (clusters[].listen_sasl.users). `set` adds a user, or
gives it another password; klamm takes the file as it changes. The password is asked for, or is the first
line of standard input; it is in no file and no argument. Each user has a line for each mechanism, in the
form of Kafka's own SCRAM credentials; PLAIN is checked against the same.
"""

EXAMPLES = """\
examples:
  klamm users set users alice
  klamm users set users billing < password
  klamm users list users
  klamm users remove users alice

docs/sasl.md tells how clients use it.
"""

USAGE = """\
klamm users set FILE NAME [--mechanism MECHANISM]... [--iterations N]
       klamm users remove FILE NAME
       klamm users list FILE"""

SALT_BYTES = 16
HEAD = "# Users that authenticate with klamm, as hashes. `klamm users` writes it.\n"


class Unusable(Exception):
    """The command cannot do its work; the text says why."""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("users", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in (
        ("set", "add a user, or change its password"),
        ("remove", "remove a user"),
        ("list", "list users and their mechanisms"),
    ):
        command = commands.add_parser(name, help=text, prog=f"klamm users {name}")
        command.add_argument("file", metavar="FILE", help="the file; `set` makes it if it is not there")
        if name != "list":
            command.add_argument("name", metavar="NAME", help="the user, without `User:`")
        if name == "set":
            text = f"{' or '.join(DIGESTS)}; repeatable [both]"
            command.add_argument("--mechanism", action="append", choices=list(DIGESTS), help=text)
            text = f"of the hash, {FEWEST} to {MOST_ITERATIONS} [{ITERATIONS}]"
            command.add_argument("--iterations", type=int, default=ITERATIONS, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """0 done, 1 not."""
    commands = {"set": _set, "remove": _remove, "list": _list}
    try:
        commands[arguments.command](arguments)
    except (Unusable, OSError) as error:
        print(f"klamm users: {error}", file=sys.stderr)
        return 1
    return 0


def _set(arguments: argparse.Namespace) -> None:
    file, name = Path(arguments.file), str(arguments.name)
    why = why_no_name(name)
    if why is not None:
        raise Unusable(f"the name of the user {why}")
    if not FEWEST <= arguments.iterations <= MOST_ITERATIONS:
        raise Unusable(f"--iterations: {arguments.iterations} is not {FEWEST} to {MOST_ITERATIONS}")
    if file.exists():
        text = _text(file)
    else:
        text = f"{HEAD}{UNKNOWN_USERS} {b64encode(secrets.token_bytes(32)).decode()}\n"
    password = _password(name)
    mechanisms = arguments.mechanism or list(DIGESTS)
    lines = []
    for each in dict.fromkeys(mechanisms):
        salt = secrets.token_bytes(SALT_BYTES)
        lines.append(line_of(name, each, credential_of(each, password, salt, arguments.iterations)))
    _write(file, [*_others(text, name), *lines])
    print(f"{name} authenticates with {', '.join(dict.fromkeys(mechanisms))}, or PLAIN: {file}")


def _remove(arguments: argparse.Namespace) -> None:
    file, name = Path(arguments.file), str(arguments.name)
    text = _text(file)
    others = _others(text, name)
    if len(others) == len(text.splitlines()):
        raise Unusable(f"there is no user {name!r} in {file}")
    _write(file, others)
    print(f"{name} is no user any more: {file}")


def _list(arguments: argparse.Namespace) -> None:
    users = load_users(arguments.file)
    for name in users.names():
        found = {key[1]: each for key, each in users.credentials.items() if key[0] == name}
        told = (f"{each} ({credential.iterations} iterations)" for each, credential in found.items())
        print(f"{name}  {', '.join(told)}")


def _text(file: Path) -> str:
    """The text of a file that can be used, or has no user yet. Raises OSError."""
    text = file.read_text("utf-8")
    if any(line.split() and line.split()[0] != UNKNOWN_USERS for line in _lines(text)):
        parse_users(text, str(file))
    return text


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def _others(text: str, name: str) -> list[str]:
    """The lines without those of this user."""
    return [line for line in text.splitlines() if line.split()[:1] != [name]]


def _password(name: str) -> str:
    """Raises Unusable."""
    if sys.stdin is not None and sys.stdin.isatty():
        password = getpass(f"password of {name}: ")
        if getpass("once more: ") != password:
            raise Unusable("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise Unusable("the password is empty")
    if "\0" in password:
        raise Unusable("the password has a zero byte, which PLAIN cannot send")
    return password


def _write(file: Path, lines: list[str]) -> None:
    """Whole or not at all; a new file can be read by its owner only. Raises OSError."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(opened, "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)
        stream.flush()
        os.fsync(opened)
    new.replace(file)
