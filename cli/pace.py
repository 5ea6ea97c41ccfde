"""The speed of a replay."""

from __future__ import annotations

import argparse


def speed(text: str) -> float:
    """A factor of speed. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, up to 1000")
    return number
