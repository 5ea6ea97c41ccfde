"""`klamm health`: whether a running klamm is alive, or ready; the health check of a container."""

from __future__ import annotations

import argparse
import http.client
import os
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from klamm.cli import Parser
from klamm.cli.live.asking import ADMIN
from klamm.cli.running import run as running
from klamm.cli.running.config_file import WILDCARDS, parse
from klamm.cli.running.scalars import listen_address
from klamm.cli.saying import say
from klamm.client.address import why
from klamm.proxy.config import Config
from klamm.proxy.config_types import Address
from klamm.settings.mistakes import ConfigError
from klamm.settings.printable import printable
from klamm.settings.typed_yaml import NOTHING

TIMEOUT_S = 2.0
HTTPS = "https://"
FIRST_PROCESS = Path("/proc/1/cmdline")  # in a container: `klamm run`, or an init with its words behind it

DESCRIPTION = f"""\
Ask a running klamm for /healthz, or with --ready for /readyz. The exit code is 0 if it answers 200, else 1.
Without --admin and KLAMM_ADMIN, the address is that of the `klamm run` that is the first process of this
container: its --metrics, or else its --admin, also where klamm.yaml has them. Elsewhere it is {ADMIN}.
klamm's certificate is not verified, as by the probes of Kubernetes: nothing secret is sent.
"""

EXAMPLES = """\
examples:
  klamm health
  klamm health --ready
"""


class Unknown(Exception):
    """There is no address to ask; the text says why, and what to do."""


class Where(NamedTuple):
    """`tls`: klamm speaks HTTPS there."""

    address: Address
    tls: bool

    def __str__(self) -> str:
        return f"{HTTPS if self.tls else ''}{self.address}"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm health [OPTION...]"
    parser = subparsers.add_parser("health", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--ready", action="store_true", help="ask whether it is ready, not only alive")
    text = "where klamm answers [KLAMM_ADMIN, or as above]"
    parser.add_argument("--admin", metavar="[https://]HOST:PORT", help=text)


def run(arguments: argparse.Namespace) -> int:
    """0 fine; 1 if klamm says no, or does not answer."""
    try:
        at = _given(arguments.admin or os.environ.get("KLAMM_ADMIN")) or address_of(_first_process())
        status, text = _ask(at, "/readyz" if arguments.ready else "/healthz")
    except (Unknown, ValueError) as problem:
        return say(str(problem), 1)
    except (OSError, http.client.HTTPException) as problem:
        return say(f"klamm does not answer at {at}: {why(problem)}", 1)
    print(printable(text.strip()))
    return 0 if status == 200 else 1


def _given(text: str | None) -> Where | None:
    if text is None:
        return None
    address = listen_address(text.removeprefix(HTTPS).removeprefix("http://").rstrip("/"))
    return Where(address, text.startswith(HTTPS))


def address_of(words: list[str]) -> Where:
    """Where the `klamm run` with this command line answers probes. Raises Unknown, or ValueError."""
    commands = [place for place, word in enumerate(words) if Path(word).name == "klamm"]
    if not commands or words[commands[0] + 1 : commands[0] + 2] != ["run"]:
        return Where(listen_address(ADMIN), False)
    parser = Parser(prog="klamm", add_help=False)
    running.add_parser(parser.add_subparsers())
    options = parser.parse_args(words[commands[0] + 1 :])
    written = _written(options.config)
    metrics = _chosen(options.metrics, written.metrics)
    found = metrics or _chosen(options.admin, written.admin)
    if found is None or not found.port:
        raise Unknown("klamm has no fixed address for probes: start it with --metrics 127.0.0.1:19090")
    loopback = "::1" if ":" in found.host else "127.0.0.1"
    encrypts = options.admin_tls_cert is not None or getattr(written.admin, "tls", None) is not None
    host = loopback if found.host in WILDCARDS else found.host
    return Where(Address(host, found.port), metrics is None and encrypts)


def _written(file: str | None) -> Config:
    """klamm.yaml as far as it can be read: a mistake made since the start does not make klamm unhealthy."""
    if file is None:
        return Config()
    try:
        value = parse(file).value
    except ConfigError as error:
        value, reason = None, f": {error.mistakes[0]}"
    else:
        reason = ""
    if not isinstance(value, Config):
        raise Unknown(f"cannot read klamm's address from {file}{reason}; name it with --admin or KLAMM_ADMIN")
    return value


def _chosen(option: str | None, written: Any) -> Address | None:
    """The option if it is given, else the address of a section of the file."""
    if option is not None:
        return None if option in NOTHING else listen_address(option)
    listen = getattr(written, "listen", None)  # the section is BROKEN where it has a mistake
    return listen if isinstance(listen, Address) else None


def _first_process() -> list[str]:
    try:
        return FIRST_PROCESS.read_bytes().decode(errors="surrogateescape").rstrip("\0").split("\0")
    except OSError:  # no Linux, or /proc hides the processes of others
        return []


def _ask(where: Where, path: str) -> tuple[int, str]:
    connection = _connection(*where)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(10_000).decode(errors="replace")
    finally:
        connection.close()


def _connection(at: Address, tls: bool) -> http.client.HTTPConnection:
    if not tls:
        return http.client.HTTPConnection(at.host, at.port, timeout=TIMEOUT_S)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(at.host, at.port, timeout=TIMEOUT_S, context=context)
