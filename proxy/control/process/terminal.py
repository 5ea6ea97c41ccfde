"""The terminal that klamm was started in."""

from __future__ import annotations

import os


def has_terminal() -> bool:
    """Has this process a controlling terminal now?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
