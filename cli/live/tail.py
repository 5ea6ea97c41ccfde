"""`klamm tail`: exchanges of a running klamm, as they happen."""

from __future__ import annotations

import argparse
import os
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile
from typing import Any

import msgspec

from klamm.cli.live.asking import add_options, klamm, telling
from klamm.cli.live.missed import missed
from klamm.cli.saying import WrongWord
from klamm.cli.tables import print_json
from klamm.client import NoAnswer, Refused
from klamm.client.types import Body, Exchange, Line, Payload
from klamm.decoders import API
from klamm.decoders.error_codes import error_name
from klamm.decoders.headers import answered_version, request_frame, response_frame
from klamm.decoders.shown.records import below
from klamm.decoders.text import printable
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line
from klamm.settings.listing import named

DESCRIPTION = """\
Print a line for each request and its answer that go through klamm. EXPR chooses, as `where` in rules:
docs/expressions.md. What is printed too slowly is left out, and counted.
"""

EXAMPLES = """\
examples:
  klamm tail
  klamm tail 'topic == "orders" and latency_ms > 100'
  klamm tail 'connection == 12'
  klamm tail --rule 'slow-*'
  klamm tail -v 'api == Metadata'
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm tail [EXPR] [OPTION...]"
    parser = subparsers.add_parser("tail", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("where", nargs="?", metavar="EXPR", help="which exchanges [all]")
    parser.add_argument(
        "--rule",
        action="append",
        metavar="GLOB,...",
        type=_globs,
        help="those on which one of these rules acted",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-v", "--values", action="store_true", help="with their fields")
    group.add_argument("-x", "--hex", action="store_true", help="with their bytes, field by field")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--count", "-n", metavar="N", type=_count, help="end after so many")
    add_options(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _globs(text: str) -> str:
    if not named(text):
        raise argparse.ArgumentTypeError(f"{text!r} names no rule: write --rule 'NAME,GLOB', or leave it out")
    return text


@telling
def run(arguments: argparse.Namespace) -> int:
    """Runs until Ctrl-C. 0 it has all exchanges that it was to print, 1 no klamm, or klamm has ended, 2 wrong
    usage.
    """
    try:
        return _print(arguments)
    except Refused as problem:  # the admin API names its parameter, which is no option here
        raise WrongWord(str(problem).removeprefix("where: ")) from None


def _print(arguments: argparse.Namespace) -> int:
    bodies = "values" if arguments.values else "raw" if arguments.hex else "none"
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    printed, api = 0, klamm(arguments)
    rules = None if arguments.rule is None else ",".join(arguments.rule)
    if rules is not None:
        for doubt in _doubts(rules, [rule.name for rule in api.rules()]):
            print(f"klamm: warning: {printable(doubt)}", file=sys.stderr, flush=True)
    with api.live(arguments.where, bodies, rules) as lines:
        for line in _unended(lines):
            if line.exchange is None:
                _besides(line, arguments.json)
                continue
            if arguments.json:
                print_json(msgspec.to_builtins(line.exchange))
            else:
                print("\n".join(text(line.exchange, colour, arguments.hex)))
            sys.stdout.flush()
            printed += 1
            if printed == arguments.count:
                break
    return 0


def _unended(lines: Iterator[Line]) -> Iterator[Line]:
    try:
        yield from lines
    except NoAnswer as ended:
        raise NoAnswer(f"{ended}: run it again once klamm answers") from ended


def _doubts(rules: str, there: Sequence[str]) -> Iterable[str]:
    """Each glob that no rule fits; where there are none of these, that no rule fits all of them together."""
    each = [missed({"rule": glob.removeprefix("!")}, {"rule": there}) for glob in named(rules)]
    return dict.fromkeys(chain(*each)) or missed({"rule": rules}, {"rule": there})


def text(one: Exchange, colour: bool, in_hex: bool) -> Iterator[str]:
    """The line of an exchange, and below it the wanted parts of its bodies."""
    entry = Entry(one.time, EXCHANGE, "info", "", msgspec.to_builtins(one))
    yield console_line(entry, colour).decode().rstrip("\n")
    if in_hex and (one.request is not None or one.response is not None):
        yield from _marked(one)
        return
    for side, body in (("request", one.request), ("response", one.response)):
        if body is not None:
            yield f"  {side}, {body.bytes} bytes{f': {body.reason}' if body.reason else ''}"
            yield from _tree(body.values or {}, "    ", "", body.payloads)


def _besides(line: Line, as_json: bool) -> None:
    """The exchanges that are missing, and why."""
    told = {"dropped": line.dropped, "unjudged": line.unjudged}
    if as_json:
        print_json({name: count for name, count in told.items() if count})
    if line.dropped and not as_json:
        print(f"... {line.dropped} exchanges left out: they came faster than they could be printed")
    if line.unjudged and not as_json:
        print(f"... {line.unjudged} frames left out: the expression takes too much work on them")


def _tree(value: Any, indent: str, path: str, payloads: Mapping[str, Payload]) -> Iterator[str]:
    """One line for each field, and those of the payload inside it."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        name = f"[{key}]" if isinstance(key, int) else key
        at = below(path, name)
        if at in payloads:
            yield from _payload(name, payloads[at], indent, at, payloads)
        elif isinstance(inner, dict | list) and inner:
            plain = isinstance(inner, list) and not any(isinstance(each, dict | list) for each in inner)
            if plain:
                yield f"{indent}{name}: {printable(', '.join(map(str, inner)))}"
            else:
                yield f"{indent}{name}:"
                yield from _tree(inner, indent + "  ", at, payloads)
        else:
            yield f"{indent}{name}: {printable(_text(key, inner))}"


def _payload(
    name: str, one: Payload, indent: str, path: str, payloads: Mapping[str, Payload]
) -> Iterator[str]:
    yield f"{indent}{name}: {one.payload} v{one.version}"
    yield from _tree(one.values, indent + "  ", path, payloads)
    if one.reason:
        yield f"{indent}  {printable(one.reason)}"


def _text(key: str | int, value: Any) -> str:
    """An error code has its name beside it."""
    is_error = isinstance(key, str) and key.endswith("error_code") and isinstance(value, int)
    return f"{value} {error_name(value)}" if is_error and value else str(value)


def _marked(one: Exchange) -> Iterator[str]:
    """The bodies as `klamm decode` shows them; the headers are not klamm's to tell."""
    from klamm.cli.decode.frames import FrameReader, Hints, pieces
    from klamm.cli.decode.tree import View, lines

    api, bodies = API.get(one.api), []
    for side, body in (("request", one.request), ("response", one.response)):
        if body is None:
            continue
        data, version = _bytes(body), one.version
        if api is not None and side == "response":
            version = answered_version(api.key, version, data)
        if api is None or body.raw is None or version not in api.versions:
            yield f"  {side}, {body.bytes} bytes: {body.reason or one.undecodable.get(side, '')}"
        else:
            bodies.append((api, side, version, data))
    for api, side, version, data in bodies:
        if side == "request":
            frame = request_frame(api, version, 0, one.client_id, data)
        else:
            frame = response_frame(api, version, 0, data)
        hints = Hints(api, version, "request" if side == "request" else "response")
        yield f"  {side}"
        for piece in pieces(frame, hints):
            message = FrameReader(hints).read(piece)
            if message is not None:
                rows = ("".join(words for words, _ in line).rstrip() for line in lines(message, View()))
                yield from ("  " + row for row in dropwhile(lambda row: not row.endswith(" body"), rows))


def _bytes(body: Body) -> bytes:
    return b64decode(body.raw or "")
