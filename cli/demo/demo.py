"""`klamm demo`: a cluster, klamm in front of it, clients, and the live view, each in a process of its own."""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from rich.console import Console

from klamm.cli.children import ending_with_parent
from klamm.cli.running.scalars import address
from klamm.dashboards.terminal.summary import line, summary
from klamm.dashboards.terminal.watch import NoAnswer, ask, watch
from klamm.dashboards.terminal.window import Counters
from klamm.proxy.config_types import Address
from klamm.settings.extras import installing

DESCRIPTION = """\
A three-broker cluster, klamm in front of it, producers and consumers, and what klamm sees, live. Nothing
outside this machine is touched, and everything ends with it. Ctrl-C ends it with a summary.
"""
EPILOG = """\
examples:
  klamm demo
  klamm demo --seconds 30
  klamm demo --bootstrap localhost:9092      the same on a cluster of yours: plain text, without SASL
  klamm demo --listen 127.0.0.1:29092 --admin 127.0.0.1:29091
  klamm demo --capture captured/             and then klamm analyze captured/
"""

NEEDS = "klamm demo needs librdkafka and its mock cluster"
WITHOUT_TERMINAL_S = 20.0
LINE_EVERY_S = 2.0
WIDTH = 100  # without a terminal
READY_S = 20.0
SILENT_S = 2.0  # a start that takes longer prints the reason
ASKED = ("cluster", "page")  # each tells where it listens once it does, in the first line of its output
PATIENCE_S = {"clients": 25.0}  # they remove their topics; the others have nothing to do
LISTEN = 19092
PORTS = 8  # bootstrap and some brokers; the admin address is just before them
LISTEN_HELP = f"bootstrap port, and those after it for brokers [127.0.0.1:{LISTEN}, or free ones above]"
ADMIN_HELP = "metrics and health [the port before --listen]"


class Failed(Exception):
    """The demo cannot go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process of the demo and the file that its standard error goes to."""

    name: str
    process: subprocess.Popen[str]
    errors: IO[str]

    def last_words(self) -> str:
        """The end of its output."""
        self.errors.seek(0)
        return "\n".join(self.errors.read().splitlines()[-5:])

    def check(self) -> None:
        """Raises Failed when it has ended."""
        if self.process.poll() is not None:
            raise Failed(
                f"the demo's {self.name} ended with exit code {self.process.returncode}:\n{self.last_words()}"
            )


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm demo [OPTION...]"
    parser = subparsers.add_parser("demo", usage=usage, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="a cluster of yours; topics klamm-demo-* are made and removed",
    )
    parser.add_argument("--listen", metavar="HOST:FIRST", type=_address, help=LISTEN_HELP)
    parser.add_argument("--admin", metavar="HOST:PORT", type=_address, help=ADMIN_HELP)
    parser.add_argument(
        "--seconds", metavar="N", type=_seconds, help="end after N seconds [20 without a terminal]"
    )
    text = "capture the traffic, for klamm show, analyze and replay [nothing is kept]"
    parser.add_argument("--capture", metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Runs until Ctrl-C, or for the given time. 1 if a part of it does not start or ends on its own."""
    if find_spec("confluent_kafka") is None:
        print(f"{NEEDS}: {installing('demo')}", file=sys.stderr)
        return 1
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    seconds = arguments.seconds or (None if console.is_terminal else WITHOUT_TERMINAL_S)
    ended = _end_by_signals()
    try:
        with _children() as start:
            ports = _ports(arguments.listen, arguments.admin)
            _show(console, start, arguments, seconds, ports, ended)
    except Failed as failure:
        print(f"klamm demo: {failure}", file=sys.stderr)
        return 1
    except NoAnswer as silence:
        print(f"klamm demo: klamm does not answer: {silence}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _end_by_signals() -> Callable[[], bool]:
    """Have them raise KeyboardInterrupt, and give a function that tells whether one has come: Python drops an
    exception that is raised in a finalizer.
    """
    came: list[int] = []

    def end(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    return lambda: bool(came)


Start = Callable[..., Child]


class Ports(NamedTuple):
    """Addresses, "host:port": of klamm for clients, of its admin API, and of the inspector's page."""

    listen: str
    admin: str
    web: str


def _show(
    console: Console,
    start: Start,
    arguments: argparse.Namespace,
    seconds: float | None,
    ports: Ports,
    ended: Callable[[], bool],
) -> None:
    bootstrap, folder = arguments.bootstrap, arguments.capture
    own_cluster = bootstrap is None
    children = []
    if bootstrap is None:
        children.append(start("cluster", "klamm.cli.demo.cluster"))
        bootstrap = _first_line(children[0])
    listen, admin, web = ports
    where = ("--listen", listen, "--admin", admin, "--state", "none")
    kept = () if folder is None else ("--capture", folder)
    klamm = start("klamm", "klamm.cli", "run", bootstrap, *where, *kept)
    page = start("page", "klamm.cli", "web", "--admin", admin, "--listen", web)
    children += [klamm, page]
    first = _ready(admin, klamm, children)
    listening = first["clusters"][0]["listening"]
    print(f"cluster  {bootstrap}" + ("  (three brokers: librdkafka's mock cluster)" if own_cluster else ""))
    print(f"klamm    {listening}")
    print(f"metrics  http://{admin}/metrics")
    if folder is not None:
        print(f"capture  {folder}")
    _first_line(page)  # it listens then
    print(f"page     http://{web}/", flush=True)
    clients = start("clients", "klamm.cli.demo.traffic", listening, *([] if own_cluster else ["--create"]))
    children.append(clients)

    ends_at = None if seconds is None else time.monotonic() + seconds

    def over() -> bool:
        for child in children:
            child.check()
        return ended() or (ends_at is not None and time.monotonic() >= ends_at)

    try:
        if console.is_terminal:
            watch(admin, console, over, page=f"http://{web}/")
        else:
            _print_lines(admin, over, first)
    except KeyboardInterrupt:
        pass  # the way to end it
    print("\nending the clients" + ("" if own_cluster else ", removing their topics"), flush=True)
    _stop(clients)
    if not own_cluster and clients.process.returncode:
        print(clients.last_words(), file=sys.stderr)
    print(flush=True)
    console.print(summary(ask(admin)))


def _print_lines(admin: str, over: Callable[[], bool], first: Counters) -> None:
    previous = first
    while not over():
        time.sleep(LINE_EVERY_S)
        current = ask(admin)
        print(line(previous, current), flush=True)
        previous = current


def _ready(admin: str, klamm: Child, children: list[Child]) -> Counters:
    """klamm's counters, once it knows the cluster."""
    started = time.monotonic()
    reason = printed = ""
    while (waited_s := time.monotonic() - started) < READY_S:
        for child in children:
            child.check()
        try:
            counters = ask(admin)
            (cluster,) = counters["clusters"]
            if counters["pid"] != klamm.process.pid:
                reason = f"another klamm, pid {counters['pid']}, answers at {admin}"
            elif cluster["ready"]:
                return counters
            else:
                reason = cluster["reason"]
            if waited_s > SILENT_S and reason != printed:
                printed = reason
                print(f"waiting  {printed}", flush=True)
        except NoAnswer as error:
            reason = str(error)
        time.sleep(0.1)
    raise Failed(f"klamm is not ready after {READY_S:.0f} s: {reason}")


def _ports(listen: Address | None, admin: Address | None) -> Ports:
    """As given, else those of `klamm run` and `klamm web`, or some hundreds above."""
    if listen is not None:
        page = next(port for port in range(listen.port - 2, 1024, -1) if _is_free(port))
        return Ports(str(listen), str(admin or Address(listen.host, listen.port - 1)), f"127.0.0.1:{page}")
    for first in range(LISTEN, 60_000, 100):
        if all(_is_free(port) for port in range(first - 2, first + PORTS)):
            admin = admin or Address("127.0.0.1", first - 1)
            return Ports(f"127.0.0.1:{first}", str(admin), f"127.0.0.1:{first - 2}")
    raise Failed(f"no {PORTS} free ports in a row from {LISTEN} on")


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _first_line(child: Child) -> str:
    assert child.process.stdout is not None
    text = child.process.stdout.readline().strip()
    if not text:
        child.process.wait()
        child.check()
    return text


@contextmanager
def _children() -> Iterator[Start]:
    """Starts modules as processes, and ends each of them, in whatever way the block ends, last one first."""
    started: list[Child] = []
    files = ExitStack()

    def start(name: str, module: str, *arguments: str) -> Child:
        errors = files.enter_context(TemporaryFile("w+", errors="replace"))  # noqa: SIM115
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if name in ASKED else errors,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which ends them in order
            preexec_fn=ending_with_parent(),  # even a killed demo leaves nothing behind
        )
        started.append(Child(name, process, errors))
        return started[-1]

    try:
        yield start
    finally:
        for child in reversed(started):
            with suppress(KeyboardInterrupt):  # one more kills this child, and the next still ends
                _stop(child)
            if child.process.stdout is not None:
                child.process.stdout.close()
        files.close()


def _stop(child: Child) -> None:
    if child.process.poll() is not None:
        return
    child.process.terminate()
    try:
        child.process.wait(PATIENCE_S.get(child.name, 5.0))
    except subprocess.TimeoutExpired:
        pass
    finally:
        child.process.kill()
        child.process.wait()


def _address(text: str) -> Address:
    first, mark, last = text.rpartition("-")
    if mark and last.isdigit() and (number := first.rpartition(":")[2]).isdigit():
        reason = f"the demo takes the ports from {number} on: write {first}"
        raise argparse.ArgumentTypeError(reason)
    try:
        return address(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def _seconds(text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if 0 < number < 1e6:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds: write 30")
