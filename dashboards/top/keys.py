"""Bytes of a terminal as names of keys: "up", "enter", "esc"; a character is its own name."""

from __future__ import annotations

from codecs import getincrementaldecoder

ESCAPE = "\x1b"

NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\t": "tab",
    "\x15": "clear",  # Ctrl-U
    "\x0c": "redraw",  # Ctrl-L
}

# The characters that terminals send after ESC for a key, in their normal and application modes.
SEQUENCES = {
    "[A": "up",
    "OA": "up",
    "[B": "down",
    "OB": "down",
    "[C": "right",
    "OC": "right",
    "[D": "left",
    "OD": "left",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[7~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
    "[8~": "end",
    "[5~": "page up",
    "[6~": "page down",
    "[Z": "back tab",
}


class Keys:
    """Reads pieces as they come. What may be the beginning of a sequence waits for its rest."""

    def __init__(self) -> None:
        self._characters = getincrementaldecoder("utf-8")("replace")
        self._waiting = ""

    @property
    def waits(self) -> bool:
        """Whether the last piece ended within a sequence, or with the key Esc itself."""
        return bool(self._waiting)

    def read(self, piece: bytes) -> list[str]:
        """The keys in it."""
        text = self._waiting + self._characters.decode(piece)
        self._waiting, found = "", []
        while text:
            if text[0] != ESCAPE:
                found += self._plain(text[0])
                text = text[1:]
                continue
            end = _end(text)
            if end is None:
                self._waiting = text
                break
            if name := "esc" if end == 1 else SEQUENCES.get(text[1:end], ""):
                found.append(name)
            text = text[end:]
        return found

    def end(self) -> list[str]:
        """Nothing came after what waits: an ESC is the key Esc, and a sequence that has no end is none."""
        waiting, self._waiting = self._waiting, ""
        return ["esc"] if waiting == ESCAPE else []

    def _plain(self, character: str) -> list[str]:
        if name := NAMES.get(character):
            return [name]
        return [character] if character.isprintable() else []


def _end(text: str) -> int | None:
    """The length of the sequence at the beginning; 1 for Esc before something else; None: it is not whole."""
    if len(text) == 1:
        return None
    if text[1] == "O":
        return 3 if len(text) > 2 else None
    if text[1] != "[":
        return 1
    for place in range(2, len(text)):
        if "@" <= text[place] <= "~":
            return place + 1
    return None
