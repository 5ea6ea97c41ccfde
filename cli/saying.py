"""Messages of failing commands, on the standard error."""

from __future__ import annotations

import sys

from klamm.settings.printable import printable


class WrongWord(ValueError):
    """A word of the command line that cannot be meant; the text says what to write."""


def say(text: str, code: int) -> int:
    """Prints lines, in which names of others are printable, and gives the exit code."""
    sys.stdout.flush()
    print("\n".join(f"klamm: {printable(line)}" for line in text.rstrip("\n").split("\n")), file=sys.stderr)
    return code
