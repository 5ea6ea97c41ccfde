"""`klamm tail`: exchanges of a running klamm, as they happen."""

from __future__ import annotations

import argparse
import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

import msgspec

from klamm.cli.live.asking import add_options, klamm, telling
from klamm.cli.tables import print_json
from klamm.client.types import Body, Exchange
from klamm.decoders import API
from klamm.decoders.error_codes import error_name
from klamm.decoders.headers import request_frame, response_frame
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line, printable

DESCRIPTION = """\
Print a line for each request and its answer that go through klamm. EXPR chooses, as `where` in rules:
docs/expressions.md. What is printed too slowly is left out, and counted.
"""

EXAMPLES = """\
examples:
  klamm tail
  klamm tail 'topic == "orders" and latency_ms > 100'
  klamm tail 'connection == 12'
  klamm tail -v 'api == Metadata'
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm tail [EXPR] [OPTION...]"
    parser = subparsers.add_parser("tail", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("where", nargs="?", metavar="EXPR", help="which exchanges [all]")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("-v", "--values", action="store_true", help="with their fields")
    shown.add_argument("-x", "--hex", action="store_true", help="with their bytes, and what these mean")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--count", "-n", metavar="N", type=_count, help="end after so many")
    add_options(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


@telling
def run(arguments: argparse.Namespace) -> int:
    """Until klamm ends, or Ctrl-C. 1 no klamm, 2 a wrong expression."""
    bodies = "values" if arguments.values else "raw" if arguments.hex else "none"
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    told = 0
    with klamm(arguments).live(arguments.where, bodies) as lines:
        for line in lines:
            if line.exchange is None:
                _lost(line.dropped, arguments.json)
                continue
            if arguments.json:
                print_json(msgspec.to_builtins(line.exchange))
            else:
                print("\n".join(text(line.exchange, colour, arguments.hex)))
            sys.stdout.flush()
            told += 1
            if told == arguments.count:
                break
    return 0


def text(one: Exchange, colour: bool, in_hex: bool) -> Iterator[str]:
    """The line of an exchange, and below it what was asked for of its bodies."""
    entry = Entry(one.time, EXCHANGE, "info", "", msgspec.to_builtins(one))
    yield console_line(entry, colour).decode().rstrip("\n")
    if in_hex and (one.request is not None or one.response is not None):
        yield from _marked(one)
        return
    for side, body in (("request", one.request), ("response", one.response)):
        if body is not None:
            yield f"  {side}, {body.bytes} bytes{f': {body.reason}' if body.reason else ''}"
            yield from _tree(body.values or {}, "    ")


def _lost(count: int, as_json: bool) -> None:
    if as_json:
        print_json({"dropped": count})
    else:
        print(f"... {count} exchanges left out: they came faster than they could be printed")


def _tree(value: Any, indent: str) -> Iterator[str]:
    """One field a line."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        name = f"[{key}]" if isinstance(key, int) else key
        if isinstance(inner, dict | list) and inner:
            plain = isinstance(inner, list) and not any(isinstance(each, dict | list) for each in inner)
            if plain:
                yield f"{indent}{name}: {printable(', '.join(map(str, inner)))}"
            else:
                yield f"{indent}{name}:"
                yield from _tree(inner, indent + "  ")
        else:
            yield f"{indent}{name}: {printable(_said(key, inner))}"


def _said(key: str | int, value: Any) -> str:
    """An error code has its name beside it."""
    is_error = isinstance(key, str) and key.endswith("error_code") and isinstance(value, int)
    return f"{value} {error_name(value)}" if is_error and value else str(value)


def _marked(one: Exchange) -> Iterator[str]:
    """The bodies as `klamm decode` shows them; the headers are not klamm's to tell."""
    from klamm.cli.decode.frames import Conversation, Told, pieces
    from klamm.cli.decode.tree import Shown, lines

    api, bodies = API[one.api], []
    for side, body in (("request", one.request), ("response", one.response)):
        if body is None:
            continue
        if body.raw is None:
            yield f"  {side}, {body.bytes} bytes: {body.reason}"
        bodies.append((side, body))
    for side, data in ((side, _bytes(body)) for side, body in bodies if body.raw is not None):
        if side == "request":
            frame = request_frame(api, one.version, 0, one.client_id, data)
        else:
            frame = response_frame(api, one.version, 0, data)
        told = Told(api, one.version, "request" if side == "request" else "response")
        yield f"  {side}"
        for piece in pieces(frame, told):
            message = Conversation(told).read(piece)
            if message is not None:
                rows = ("".join(words for words, _ in line).rstrip() for line in lines(message, Shown()))
                yield from ("  " + row for row in dropwhile(lambda row: not row.endswith(" body"), rows))


def _bytes(body: Body) -> bytes:
    return b64decode(body.raw or "")
