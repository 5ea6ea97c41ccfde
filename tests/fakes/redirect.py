"""A network namespace for the thread of a test, in which the kernel redirects connections as a rule says."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.processes import wait_for

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int) -> None:
    if getattr(LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


@contextmanager
def own_network() -> Iterator[None]:
    """Sockets and processes that this thread makes meanwhile are in a network of their own, with a loopback.

    A machine that permits no namespaces skips the test, as for all of them; CI has to permit them.
    """
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        try:
            _call("unshare", CLONE_NEWNET)
        except PermissionError as refused:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"network namespaces need root: {refused}")
        try:
            _ip("link", "set", "lo", "up")
            yield
        finally:
            _call("setns", here, CLONE_NEWNET)
    finally:
        os.close(here)


def iptables(*rule: str, v6: bool = False) -> None:
    """Add a rule to the table `nat`. AssertionError says what the kernel or the machine lacks."""
    name = "ip6tables" if v6 else "iptables"
    program = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    assert program is not None, f"this test needs {name} (Debian package iptables)"
    command = [program, "-w", "-t", "nat", *rule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    loaded = Path("/proc/modules").read_text() if Path("/proc/modules").exists() else ""
    lacks = (
        f"{' '.join(command)}: {done.stderr}\nit needs nf_nat, nf_conntrack, xt_REDIRECT; loaded: {loaded}"
    )
    assert done.returncode == 0, lacks


@contextmanager
def another_machine(host: str) -> Iterator[int]:
    """A process in a network of its own, by its id: from there the way to `host`, an address of the network
    of this thread, leads over a link. Call it within `own_network`.
    """
    here = os.stat("/proc/thread-self/ns/net").st_ino
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sleep", "infinity"]
    with subprocess.Popen(command) as machine:
        there = machine.pid
        try:
            wait_for(lambda: os.stat(f"/proc/{there}/ns/net").st_ino != here, "unshare")
            _ip("link", "add", "gateway", "type", "veth", "peer", "name", "eth0", "netns", str(there))
            _ip("address", "add", "10.77.0.1/24", "dev", "gateway")
            _ip("link", "set", "gateway", "up")
            _ip("address", "add", f"{host}/32", "dev", "lo")
            _ip("address", "add", "10.77.0.2/24", "dev", "eth0", inside=there)
            _ip("link", "set", "eth0", "up", inside=there)
            _ip("route", "add", f"{host}/32", "via", "10.77.0.1", inside=there)
            yield there
        finally:
            machine.kill()


def _ip(*words: str, inside: int | None = None) -> None:
    """Run ip here, or in the network of a process."""
    there = [] if inside is None else ["nsenter", "-t", str(inside), "-n"]
    subprocess.run([*there, "ip", *words], check=True, timeout=10)
