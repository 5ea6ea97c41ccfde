"""Tells systemd how klamm is: ready, reloading, stopping, and alive. sd_notify(3) has the format."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping

from klamm.proxy.log.events import Events

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


class Notify:
    """To the socket NOTIFY_SOCKET of the environment; without it nothing is told. Never waits."""

    def __init__(self, environment: Mapping[str, str], log: Events) -> None:
        self.log = log
        name = environment.get("NOTIFY_SOCKET", "")
        self.address = "\0" + name[1:] if name.startswith("@") else name
        self.alive_s = int(environment.get("WATCHDOG_USEC", "0")) / 2e6  # systemd waits for twice as long

    def say(self, state: str, status: str = "") -> None:
        """`status` is for people: `systemctl status` shows it."""
        if not self.address:
            return
        lines = [state, f"STATUS={status}"] if status else [state]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self.address)
        except OSError as error:
            self.log.event("notify_failed", f"systemd cannot be told {state}: {error}", "warning", per=state)

    def reloading(self) -> None:
        """READY is due when it is over."""
        self.say(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}", "reads klamm.yaml again")

    async def follow(self) -> None:
        """Say so from this loop until cancelled: systemd starts klamm again if it hangs (WatchdogSec)."""
        while self.alive_s:
            self.say(ALIVE)
            await asyncio.sleep(self.alive_s)
