"""What is said to people on the standard error, by commands that fail."""

from __future__ import annotations

import sys


class WrongWord(ValueError):
    """A word of the command line that cannot be meant; the text says what to write."""


def say(text: str, code: int) -> int:
    """Lines, and the exit code."""
    sys.stdout.flush()
    print("\n".join(f"klamm: {line}" for line in text.splitlines()), file=sys.stderr)
    return code
