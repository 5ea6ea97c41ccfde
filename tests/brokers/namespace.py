"""A network namespace from which one address of the host can be reached, and nothing else.

Brokers listen on the host's loopback, which a namespace does not share: a client in it that is given a
broker's own address fails by itself.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers.processes import Process

PREFIX = "klamm-test-"
TOLD = 60_000  # characters of standard error, in a failure


class Namespace(NamedTuple):
    """`host` and `host_v6` are the host's ends of the link: where klamm listens. `hosts`: a file that
    commands inside see in the place of /etc/hosts.
    """

    name: str
    host: str
    host_v6: str
    hosts: Path | None = None

    def command(self, *arguments: str) -> list[str]:
        """`arguments` as a command that runs inside."""
        mount = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(self.hosts)]
        return ["ip", "netns", "exec", self.name, *(mount if self.hosts else []), *arguments]

    def run(self, *arguments: str, timeout_s: float = 60.0, env: dict[str, str] | None = None) -> str:
        """Run a command inside; its output. AssertionError, with all it wrote, where it fails or hangs. What
        it wrote to standard error is written there, too.
        """
        try:
            done = subprocess.run(
                ["setpriv", "--pdeathsig", "KILL", *self.command(*arguments)],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env={**os.environ, **(env or {})},
            )
        except subprocess.TimeoutExpired as hung:
            output = b"".join(part for part in (hung.stdout, hung.stderr) if isinstance(part, bytes))
            raise AssertionError(
                f"not done in {timeout_s:.0f} s: {arguments}\n{output.decode(errors='replace')}"
            ) from None
        if done.returncode:
            raise AssertionError(f"exit {done.returncode}: {arguments}\n{done.stdout}\n{done.stderr[-TOLD:]}")
        sys.stderr.write(done.stderr)
        return done.stdout

    def start(self, log: Path, *arguments: str) -> Process:
        """Start a command inside that runs beside the test."""
        return Process(self.command(*arguments), log)


def need_namespaces() -> None:
    """Skip the test where this machine permits no namespaces; in CI that is a failure."""
    if reason := _why_not():
        if os.environ.get("CI"):
            pytest.fail(f"CI must permit namespaces: {reason}")
        pytest.skip(reason)


def _why_not() -> str | None:
    """Why this machine permits no namespaces; None where it does."""
    if os.geteuid():
        return "network namespaces need root"
    name = f"{PREFIX}{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not permitted here: {made.stderr.strip()}"
    _ip("netns", "del", name)
    return None


@contextmanager
def namespace(number: int = 0) -> Iterator[Namespace]:
    """A new namespace with one link to the host. `number` tells those of one process apart (0-3)."""
    _remove_orphans()
    pid = os.getpid()
    name = f"{PREFIX}{pid}-{number}"
    link = f"kt{pid}.{number}"
    # 198.18.0.0/15 is set aside for tests of network devices (RFC 2544), fd00::/8 for private use (RFC 4193).
    first = (pid * 4 + number) % (1 << 15) * 4
    host, peer = (f"198.{18 + (first >> 16)}.{first >> 8 & 255}.{(first & 255) + last}" for last in (1, 2))
    host_v6, peer_v6 = (f"fd6b:6c61:{first >> 16:x}:{first & 0xFFFF:x}::{last}" for last in (1, 2))
    _ip("netns", "add", name)
    try:
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", f"{host}/30", "dev", link)
        _ip("address", "add", f"{host_v6}/64", "dev", link, "nodad")
        _ip("link", "set", link, "up")
        _ip("-n", name, "address", "add", f"{peer}/30", "dev", "eth0")
        _ip("-n", name, "address", "add", f"{peer_v6}/64", "dev", "eth0", "nodad")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield Namespace(name, host, host_v6)
    finally:
        _ip("netns", "del", name)


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True, timeout=10).stdout


def _remove_orphans() -> None:
    """Remove the namespaces of test runs that were killed."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(PREFIX):
            pid = name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                _ip("netns", "del", name)
