"""Signals to the process: what ends klamm, what drains it, and what has it read its settings again."""

from __future__ import annotations

import asyncio
import signal

from klamm.proxy.control.config_file import ConfigFile
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.control.process.notify import STOPPING, Notify
from klamm.proxy.control.process.terminal import has_terminal
from klamm.proxy.log.events import Events


class Signals:
    """`stop` is set by one that ends klamm."""

    def __init__(self, drain: Drain, config_file: ConfigFile, notify: Notify, log: Events) -> None:
        self.drain, self.config_file, self.notify, self.log = drain, config_file, notify, log
        self.stop = asyncio.Event()
        self.began_in_terminal = has_terminal()

    def handle(self) -> None:
        """Handle them from now on, but SIGHUP where it is ignored, as under nohup."""
        loop = asyncio.get_running_loop()
        hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
        for number in (signal.SIGINT, signal.SIGTERM, *hangup):
            loop.add_signal_handler(number, self._stopping, number)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, self._unmeant, number)

    def _stopping(self, number: int) -> None:
        """SIGTERM drains; a second one, or another signal, stops at once."""
        if number == signal.SIGTERM and not self.drain.under_way:
            self.drain.begin("SIGTERM")
            return
        links, waiting = self.drain.left()
        message = (
            f"{signal.Signals(number).name}: klamm stops; connections: {links}, requests under way: {waiting}"
        )
        hung_up = self.began_in_terminal and not has_terminal()
        if number == signal.SIGHUP and self.config_file.source is not None and not hung_up:
            self.config_file.soon("SIGHUP")
            return
        if not self.stop.is_set():
            self.notify.say(STOPPING)
            self.log.event("stopping", message, connections=links, requests=waiting)
        self.stop.set()

    def _unmeant(self, number: int) -> None:
        """Other programs reopen their log at it, or dump their state."""
        name = signal.Signals(number).name
        self.log.event("signal", f"{name} means nothing to klamm: it goes on", "warning", per=name)
