"""Globs, and patterns of RE2, as Spark has them: with LIKE, and as java.util.regex.

RE2 needs time in proportion to the text. Java tries one way after another, so what could be tried in ever
more ways is refused: a repeated group must be of one length. Groups capture nothing, and all repeats are
greedy: that changes where a match lies, not whether there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import NamedTuple

from klamm.pipeline.sql.values import TRUE, conjunction, disjunction, literal, negation

Ranges = list[tuple[int, int]]

LAST, ASCII = 0x10FFFF, 0x7F
PERL: dict[str, Ranges] = {
    "d": [(48, 57)],
    "s": [(9, 10), (12, 13), (32, 32)],
    "w": [(48, 57), (65, 90), (95, 95), (97, 122)],
}
POSIX: dict[str, Ranges] = {
    "alnum": [(48, 57), (65, 90), (97, 122)], "alpha": [(65, 90), (97, 122)], "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)], "cntrl": [(0, 31), (127, 127)], "digit": [(48, 57)], "graph": [(33, 126)],
    "lower": [(97, 122)], "print": [(32, 126)], "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)], "upper": [(65, 90)], "word": PERL["w"],
    "xdigit": [(48, 57), (65, 70), (97, 102)],
}  # fmt: skip
ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
FOLDED = {"k": 0x212A, "s": 0x17F}  # letters beyond ASCII that are the same but for their case
START, END = r"\A", r"\z"
WORD, ANY, NONE = "[0-9A-Z_a-z]", "(?s:.)", "(?!)"
EDGE = f"(?:(?<={WORD})(?!{WORD})|(?<!{WORD})(?={WORD}))"
REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])")
NAMED = re.compile(r"\?P?<\w+>")


def globbed(text: str, *patterns: str) -> str:
    """A condition for a pattern of rules.glob.Glob."""
    wanted = [_glob(text, one) for one in patterns if not one.startswith("!")]
    others = [_glob(text, one[1:]) for one in patterns if one.startswith("!")]
    return conjunction([disjunction(wanted) if wanted else TRUE, *map(negation, others)])


def matched(text: str, pattern: str) -> str:
    """A condition for a search with RE2. Raises ValueError for patterns that Java reads differently."""
    return f"rlike({text}, {literal(_Pattern(pattern).java())})"


def _glob(text: str, pattern: str) -> str:
    pieces = list(_pieces(pattern))
    if any(len(piece) > 1 for piece in pieces):
        java = "".join({"*": f"{ANY}*", "?": ANY}.get(piece) or _class_or_letter(piece) for piece in pieces)
        return f"rlike({text}, {literal(START + java + END)})"
    if "*" not in pieces and "?" not in pieces:
        return f"({text} = {literal(pattern)})"
    like = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": "\\\\"}
    return f"({text} LIKE {literal(''.join(like.get(piece, piece) for piece in pieces))})"


def _pieces(pattern: str) -> Iterable[str]:
    """Single characters, and [classes]."""
    at = 0
    while at < len(pattern):
        end = at
        if pattern[at] == "[":
            first = at + 1 + pattern.startswith("!", at + 1)
            end = pattern.find("]", first + pattern.startswith("]", first))
        yield pattern[at : max(at, end) + 1]
        at = max(at, end) + 1


def _class_or_letter(piece: str) -> str:
    """A class of fnmatch as a class of Python's, without shorthands."""
    if len(piece) == 1:
        return _letter(ord(piece))
    made = translate(piece).removeprefix("(?s:").rpartition(")")[0]
    if made in (".", NONE):
        return ANY if made == "." else NONE
    inside = made[1:-1]
    negated = inside.startswith("^")
    letters = [(one[-1], len(one) > 1) for one in re.findall(r"\\.|.", inside[negated:], re.DOTALL)]
    ranges: Ranges = []
    while letters:
        low = high = letters.pop(0)[0]
        if len(letters) > 1 and letters[0] == ("-", False):
            high = letters[1][0]
            del letters[:2]
        ranges.append((ord(low), ord(high)))
    return _class(ranges, negated)


def _class(ranges: Ranges, negated: bool = False) -> str:
    if not ranges:
        return ANY if negated else NONE
    inside = "".join(
        _letter(low) if low == high else f"{_letter(low)}-{_letter(high)}" for low, high in ranges
    )
    return f"[{'^' * negated}{inside}]"


def _letter(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code <= ASCII else f"\\x{{{code:x}}}"


def _others(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return [*found, (start, LAST)] if start <= LAST else found


class Piece(NamedTuple):
    """`steady`: it is of one length, and fits in one way, so that it may be repeated."""

    text: str
    steady: bool = True


class _Pattern:
    """A pattern of RE2, read once."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.flags = pattern, 0, frozenset[str]()

    def java(self) -> str:
        return self._alternatives().text

    def _takes(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def _next(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def _alternatives(self) -> Piece:
        pieces = [self._sequence()]
        while self._takes("|"):
            pieces.append(self._sequence())
        return pieces[0] if len(pieces) == 1 else Piece("|".join(one.text for one in pieces), False)

    def _sequence(self) -> Piece:
        pieces: list[Piece] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            pieces.append(self._repeated(self._atom()))
        return Piece("".join(one.text for one in pieces), all(one.steady for one in pieces))

    def _repeated(self, one: Piece) -> Piece:
        for sign, many in (("*", True), ("+", True), ("?", False)):
            if self._takes(sign):
                return self._times(one, sign, many, False)
        found = REPEAT.match(self.pattern, self.at)
        if found is None:
            return one
        self.at = found.end()
        most = int(found[1]) if not found[2] else int(found[3] or 1000)
        return self._times(one, found[0], most > 1, not found[2])

    def _times(self, one: Piece, sign: str, many: bool, exactly: bool) -> Piece:
        if many and not one.steady:
            raise ValueError(
                f"the pattern repeats ({one.text[:40]}), which is not of one length, or has alternatives"
            )
        self._takes("?")
        return Piece(f"(?:{one.text}){sign}", one.steady and exactly)

    def _atom(self) -> Piece:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return Piece(self._bracketed())
            case ".":
                return Piece(ANY if "s" in self.flags else r"[^\n]")
            case "^":
                return Piece(r"(?<![^\n])" if "m" in self.flags else r"\A")
            case "$":
                return Piece(r"(?![^\n])" if "m" in self.flags else r"\z")
            case "\\":
                return Piece(self._escaped())
        return Piece(self._one(ord(letter)))

    def _group(self) -> Piece:
        outer = self.flags
        flags, name = FLAGS.match(self.pattern, self.at), NAMED.match(self.pattern, self.at)
        if flags:
            self.at = flags.end()
            self.flags = (outer | set(flags[1])) - set(flags[2] or "")
            if flags[3] == ")":
                return self._nothing(flags[0])
        elif name:
            self.at = name.end()
        inside = self._alternatives()
        self._next()
        self.flags = outer
        return Piece(f"(?:{inside.text})", inside.steady)

    def _nothing(self, flags: str) -> Piece:
        if self.pattern.startswith(("*", "+", "?"), self.at) or REPEAT.match(self.pattern, self.at):
            raise ValueError(f"the pattern repeats what stands before ({flags}")
        return Piece("")

    def _escaped(self) -> str:
        letter = self._next()
        if letter in "Az":
            return f"\\{letter}"
        if letter == "b":
            return EDGE
        if letter.lower() in PERL:
            return _class(self._folded(PERL[letter.lower()]), letter.isupper())
        return self._one(self._code(letter))

    def _code(self, letter: str) -> int:
        """The code point of an escaped letter; the backslash and the first letter are already read."""
        if letter == "x":
            if self._takes("{"):
                digits, _, _ = self.pattern[self.at :].partition("}")
                self.at += len(digits) + 1
            else:
                digits = self._next() + self._next()
            return int(digits, 16)
        if letter.isalnum() and letter not in ESCAPES:
            raise ValueError(f"the pattern has \\{letter}, which columns do not know")
        return ESCAPES.get(letter, ord(letter))

    def _one(self, code: int) -> str:
        ranges = self._folded([(code, code)])
        return _letter(code) if len(ranges) == 1 else _class(ranges)

    def _bracketed(self) -> str:
        negated, found, first = self._takes("^"), Ranges(), True
        while first or not self._takes("]"):
            first = False
            found += self._ranges()
        return _class(found, negated)

    def _ranges(self) -> Ranges:
        """One item of a class."""
        posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.at)
        if posix:
            self.at = posix.end()
            ranges = self._folded(POSIX[posix[2]])
            return _others(ranges) if posix[1] else ranges
        letter = self._next()
        if letter == "\\" and self.pattern[self.at].lower() in PERL:
            kind = self._next()
            ranges = self._folded(PERL[kind.lower()])
            return _others(ranges) if kind.isupper() else ranges
        low = high = self._code(self._next()) if letter == "\\" else ord(letter)
        if self.pattern.startswith("-", self.at) and not self.pattern.startswith("-]", self.at):
            self.at += 1
            letter = self._next()
            high = self._code(self._next()) if letter == "\\" else ord(letter)
        return self._folded([(low, high)])

    def _folded(self, ranges: Ranges) -> Ranges:
        """The ranges with the other case of their letters, after (?i)."""
        if "i" not in self.flags:
            return ranges
        if any(high > ASCII for _, high in ranges):
            raise ValueError(
                "the pattern has letters beyond ASCII after (?i), which columns fold in another way"
            )
        letters = {chr(code) for low, high in ranges for code in range(low, high + 1) if chr(code).isalpha()}
        more = {ord(one.swapcase()) for one in letters} | {
            FOLDED[one.lower()] for one in letters & set("kKsS")
        }
        return [*ranges, *((code, code) for code in sorted(more))]
