"""Text that others wrote, as it is safe to print."""

from __future__ import annotations

import re

# Letters to Python, and nothing to the eye: fillers and variation selectors make two names look like one.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """The text on one line, with an escape for each character that moves a cursor, hides others, ends a
    line or cannot be seen, and for each byte that is not UTF-8.
    """
    if text.isprintable() and (text.isascii() or not INVISIBLE.search(text)):
        return text
    return "".join(c if _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and not INVISIBLE.match(character)
