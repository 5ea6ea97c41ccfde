"""`klamm decode`: bytes from anywhere, as the fields they are."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from klamm.cli.decode.as_json import as_object, unknown_object
from klamm.cli.decode.frames import FrameReader, Hints, Message, Piece, pieces, request_of
from klamm.cli.decode.guess import fits
from klamm.cli.decode.input import NoBytes, bytes_of, spelled
from klamm.cli.decode.payload import show, show_json
from klamm.cli.decode.tree import DIM, TITLE, Line, View, lines, secrets
from klamm.cli.tables import print_json
from klamm.decoders import API
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.payloads import PAYLOADS
from klamm.decoders.schema import Api
from klamm.decoders.shown.records import wrongs
from klamm.settings.nearest import suggestion
from klamm.settings.printable import printable

DESCRIPTION = """\
Decode frames of Kafka's protocol, and print each as a tree of its fields with their offsets and bytes.

INPUT is hex (plain, or as xxd, hexdump, od, tcpdump -X or Wireshark write it), base64, a bytes literal, an
array as in C, Java or Go, or the name of a file with one of these or with the raw bytes; - is the standard
input. The size in front of a frame may be missing. A request tells what it is. A response does not: put its
request before it, or say --api and --version.
"""

EXAMPLES = """\
examples:
  klamm decode 00000013 0003000c 00000007 00047465 73740000 000000
  klamm decode frames.bin --json
  xxd -p answer.bin | klamm decode --api Metadata --version 12
  klamm decode --payload OffsetCommitKey 0001000473686f7000066f726465727300000002
"""

FINE, FAILED, USAGE = 0, 1, 2
SHORT_WORD = re.compile(r"(0x)?[0-9a-fA-F]{1,8}[:,]?")  # several of them are one dump
FILE_NAME = re.compile(r"[./~].*|.*\.\w{1,5}")


class Source(NamedTuple):
    """One input, as bytes."""

    name: str
    form: str
    data: bytes


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm decode [INPUT...] [OPTION...]"
    parser = subparsers.add_parser("decode", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("input", nargs="*", metavar="INPUT", help="hex, base64, a file, or - [-]")
    parser.add_argument("--api", metavar="API", help="the API that a response answers: a name or a key")
    parser.add_argument("--version", type=int, metavar="N", help="and its version")
    text = (
        "each input is no frame, but this: a record's value, say GroupMetadataValue; `klamm wire` lists them"
    )
    parser.add_argument("--payload", metavar="NAME", help=text)
    parser.add_argument("--side", choices=("request", "response"), help="[found in the bytes]")
    parser.add_argument("--bare", action="store_true", help="one frame, without its size")
    parser.add_argument("--full", action="store_true", help="cut nothing short")
    parser.add_argument("--secrets", action="store_true", help="show secrets too")
    parser.add_argument("--json", action="store_true", help="one object a line for each frame")
    parser.add_argument("--places", action="store_true", help="with --json: offset and size of each field")


def run(arguments: argparse.Namespace) -> int:
    """0: all was read. 1: a frame is malformed. 2: wrong usage, no bytes, or a frame that may be anything."""
    try:
        hints, payload = _hints(arguments), _payload(arguments)
        sources = list(_sources(arguments.input))
    except (NoBytes, _Wrong) as problem:
        print(f"klamm decode: {printable(str(problem))}", file=sys.stderr)
        return USAGE
    except OSError as problem:
        print(f"klamm decode: {printable(str(problem.filename))}: {problem.strerror}", file=sys.stderr)
        return USAGE
    if payload is None:
        return _Decoding(arguments, hints).run(sources)
    if arguments.json:
        fine = [show_json(payload, source.data, arguments.places) for source in sources]
    else:
        view, show_lines = View(arguments.full), _printer()
        fine = [show(payload, source.form, source.data, view, show_lines) for source in sources]
    return FINE if all(fine) else FAILED


class _Wrong(Exception):
    """Options or words that cannot be meant."""


def _hints(arguments: argparse.Namespace) -> Hints:
    if arguments.api is None:
        if arguments.version is not None:
            raise _Wrong("--version is of --api: say both")
        return Hints(side=arguments.side, bare=arguments.bare)
    api = API.get(int(arguments.api) if arguments.api.isdigit() else arguments.api)
    if api is None:
        guess = suggestion(arguments.api, [known.name for known in API])
        raise _Wrong(f"unknown API {arguments.api!r}{guess}")
    if arguments.version is not None and arguments.version not in api.versions:
        raise _Wrong(f"{api.name} has versions {api.versions}, not {arguments.version}")
    return Hints(api, arguments.version, arguments.side, arguments.bare)


def _payload(arguments: argparse.Namespace) -> str | None:
    """The name of the payload that the inputs are."""
    name = arguments.payload
    if name is None:
        return None
    for option in ("api", "side", "bare"):
        if getattr(arguments, option):
            raise _Wrong(f"--{option} is of frames, and --payload of what is in them: leave one out")
    found = PAYLOADS.get(name)
    if found is None:
        guess = suggestion(name, [known.name for known in PAYLOADS], "klamm wire")
        raise _Wrong(f"unknown payload {name!r}{guess}")
    return found.name


def _sources(words: list[str]) -> Iterator[Source]:
    """Files by their names, all else as text; words of a dump that the shell has split are one."""
    if not words and sys.stdin.isatty():
        raise _Wrong("no input: give hex, base64 or a file, or - for the standard input")
    if len(words) > 1 and all(SHORT_WORD.fullmatch(word) for word in words):
        words = [" ".join(words)]
    for word in words or ["-"]:
        if word == "-":
            yield Source("standard input", *_of("standard input", sys.stdin.buffer.read()))
        elif _is_file(word):
            yield Source(word, *_of(word, Path(word).read_bytes()))
        else:
            if FILE_NAME.fullmatch(word):
                raise _Wrong(f"{word}: no such file")
            yield Source("", *spelled(word))


def _is_file(word: str) -> bool:
    try:
        return os.path.exists(word)
    except ValueError:
        return False


def _of(name: str, data: bytes) -> tuple[str, bytes]:
    try:
        return bytes_of(data)
    except NoBytes as problem:
        raise NoBytes(f"{name}: {problem}") from None


class _Decoding:
    """One run over all frames of all inputs."""

    def __init__(self, arguments: argparse.Namespace, hints: Hints) -> None:
        self.arguments, self.hints = arguments, hints
        self.view = View(arguments.full, arguments.secrets)
        self.reader = FrameReader(hints)
        self.print = _printer()
        self.numbers: dict[int, int] = {}  # of requests, by identity
        self.hiding = False

    def run(self, sources: list[Source]) -> int:
        code = FINE
        number = 0
        for source in sources:
            found = pieces(source.data, self.hints)
            if not self.arguments.json:
                self.print([_about(source, found)])
            if not found:
                print("klamm decode: no bytes, so no frames", file=sys.stderr)
                code = USAGE
            for piece in found:
                number += 1
                code = max(code, self.frame(piece, number))
        if self.hiding and not self.arguments.json:
            self.print([[], [("secrets are hidden; --secrets shows them", DIM)]])
        return code

    def frame(self, piece: Piece, number: int) -> int:
        message = self.reader.read(piece)
        if message is None:
            return self.unknown(piece, number)
        self.numbers[id(message)] = number
        if self.arguments.json:
            found = as_object(message, self.view.secrets, self.arguments.places)
            if message.asked_by is not None:
                found["answers"] = self.numbers[id(message.asked_by)]
            print_json({"frame": number, **found})
        else:
            self.hiding = self.hiding or (not self.view.secrets and bool(secrets(message)))
            self.print([[], self.title(message, number), *([(f"  {note}", DIM)] for note in message.notes)])
            self.print(lines(message, self.view))
        fine = message.failure is None and not any(wrongs(message.body))
        return FINE if fine else FAILED

    def title(self, message: Message, number: int) -> Line:
        header = request_header_version if message.side == "request" else response_header_version
        details = f"frame {number}, key {message.api.key}, header v{header(message.api, message.version)}"
        if message.asked_by is not None:
            details += f", answers frame {self.numbers[id(message.asked_by)]}"
        return [(str(message), TITLE), (f"  ({details})", DIM)]

    def unknown(self, piece: Piece, number: int) -> int:
        """Says why it cannot be read, and what the frame may be."""
        size = piece.end - piece.first
        guessing = (
            size >= 4 and piece.end > piece.start and self.hints.side != "request" and not piece.missing
        )
        found = fits(piece.data, piece.start, piece.end, self.hints.api) if guessing else []
        reason = _lacking(piece, self.hints)
        if self.arguments.json:
            print_json({"frame": number, **unknown_object(piece.first, size, reason, found)})
        sys.stdout.flush()
        lines = [f"klamm decode: frame {number} (at byte {piece.first}, {size} bytes): {reason}"]
        likely, others = [fit for fit in found if fit.likely], [fit for fit in found if not fit.likely]
        if likely:
            lines.append(f"  fits: {', '.join(map(str, likely))}")
        if others:
            how = "less likely" if likely else "fits in length, though hardly in its values"
            lines.append(f"  {how}: {', '.join(map(str, others))}")
        if guessing and not found:
            lines.append("  no response that klamm knows fits")
        print("\n".join(lines), file=sys.stderr)
        return USAGE


def _lacking(piece: Piece, hints: Hints) -> str:
    if piece.end - piece.start < 4:
        return "too short for a frame"
    if piece.missing and not piece.sized:
        return "no frame begins here"
    if hints.side == "request":
        return f"not a request that klamm knows: {_first_words(piece)}"
    if hints.api is not None:
        return "add --version N"
    request = "" if request_of(piece) else f"; as a request it would be {_first_words(piece)}"
    return f"a response does not name its API: add --api NAME --version N, or its request{request}"


def _first_words(piece: Piece) -> str:
    key = int.from_bytes(piece.data[piece.start : piece.start + 2], "big")
    version = int.from_bytes(piece.data[piece.start + 2 : piece.start + 4], "big")
    api: Api | None = API.get(key)
    if api is None:
        return f"API key {key}, which klamm does not know"
    return f"{api.name} v{version}, of which klamm knows {api.versions}"


def _about(source: Source, found: list[Piece]) -> Line:
    name = f"{source.name}: " if source.name else ""
    count = f"{len(found)} frame{'' if len(found) == 1 else 's'}"
    sizes = "" if not found else ", size in front" if found[0].sized else ", no size in front"
    return [(f"{name}{source.form}, {len(source.data)} bytes, {count}{sizes}", DIM)]


def _printer() -> Callable[[Iterable[Line]], None]:
    """Prints lines: in colours and cut at its width on a terminal, else as they are."""
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=False)

        def show(found: Iterable[Line]) -> None:
            for line in found:
                text = Text.assemble(*[(words, style) for words, style in line])
                a_row = bool(line) and line[0][1] == DIM  # prose is never cut
                console.print(text, no_wrap=a_row, overflow="ellipsis" if a_row else "fold")

        return show

    def write(found: Iterable[Line]) -> None:
        for line in found:
            print("".join(words for words, _ in line).rstrip())

    return write
