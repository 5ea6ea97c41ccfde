"""The terminal: its keyboard one key at a time, its screen, and all of it as it was before."""

from __future__ import annotations

import os
import sys
import termios
import tty
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live

MOST = 1024  # bytes read at once


class Terminal:
    """`enter` takes the screen and the keyboard, `leave` gives them back; both may be called again."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._keyboard = sys.stdin.fileno()
        self._before: list[Any] | None = None
        self._live: Live | None = None

    def enter(self) -> None:
        """Keys come one by one, and are not printed; Ctrl-C and Ctrl-Z are still signals."""
        self._before = termios.tcgetattr(self._keyboard)
        tty.setcbreak(self._keyboard, termios.TCSADRAIN)
        self._live = Live(console=self.console, screen=True, auto_refresh=False, redirect_stderr=False)
        self._live.start()

    def leave(self) -> None:
        """The screen and the keyboard as they were."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._before is not None:
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._before)
            self._before = None

    def draw(self, picture: RenderableType) -> None:
        """As large as the terminal is."""
        if self._live is not None:
            self._live.update(picture, refresh=True)

    def measure(self) -> None:
        """The terminal's size now, whatever COLUMNS and LINES say."""
        size = os.get_terminal_size(sys.stdout.fileno())
        if size.columns and size.lines:
            self.console.size = (size.columns, size.lines)

    def read(self) -> bytes:
        """The bytes that were typed; empty when the terminal has gone."""
        try:
            return os.read(self._keyboard, MOST)
        except OSError:
            return b""
