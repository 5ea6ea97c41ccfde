"""`klamm intercept`: frames that rules have paused, looked at, edited, and let go."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from klamm.cli.live import prefixes
from klamm.cli.live.asking import add_options, klamm, telling
from klamm.cli.saying import WrongWord
from klamm.cli.tables import print_json, print_table
from klamm.client import Klamm, Refused
from klamm.client.types import PausedFrame
from klamm.decoders.text import printable
from klamm.proxy.log.lines import size

LOOK_S = 0.3
EDITOR = "vi"

DESCRIPTION = """\
List the frames that `klamm pause`, or a rule with `pause`, holds; show one as JSON; edit it in $EDITOR; let
it go on, drop it, or answer it with an error. Without an ID it is the oldest paused frame.
"""

EXAMPLES = """\
examples:
  klamm intercept
  klamm intercept edit --wait
  klamm intercept resume 3
  klamm intercept error 4 NOT_LEADER
  klamm intercept show 5 > frame.json; klamm intercept edit 5 --from frame.json
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm intercept [list|show|edit|resume|drop|error] [ID] [ERROR] [OPTION...]"
    parser = subparsers.add_parser("intercept", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("action", nargs="?", choices=tuple(DO), default="list", help="[list]")
    parser.add_argument("words", nargs="*", metavar="ID ERROR", help="which frame; for error, which error")
    parser.add_argument("--wait", action="store_true", help="wait until a frame is paused")
    parser.add_argument("--all", action="store_true", help="resume or drop all paused frames")
    parser.add_argument("--from", dest="source", metavar="FILE", help="edit: take this instead of $EDITOR")
    parser.add_argument("--json", action="store_true", help="list: one object a line")
    add_options(parser)


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 done, 1 no klamm, or no frame is paused, 2 refused."""
    to = klamm(arguments)
    words = list(arguments.words)
    code = _error(words) if arguments.action == "error" else None
    if len(words) > 1 or (words and not words[0].isdigit()):
        raise WrongWord(f"{words[-1]!r} is not the number of a paused frame: see klamm intercept list")
    found = to.paused()
    while arguments.wait and not found:
        time.sleep(LOOK_S)
        found = to.paused()
    if arguments.action == "list":
        return _list(found, arguments.json)
    if arguments.all:
        if words or arguments.action not in ("resume", "drop"):
            raise WrongWord("--all is for resume and drop, without an ID")
        numbers = [one.id for one in found]
    else:
        numbers = [int(words[0])] if words else [one.id for one in found[:1]]
    if not numbers:
        print("no frame is paused", file=sys.stderr)
        return 1
    for number in numbers:
        DO[arguments.action](to, to.paused_frame(number), code if code is not None else arguments.source)
    return 0


def _error(words: list[str]) -> str:
    """Taken from the end of the words."""
    if not words or (len(words) == 1 and words[0].isdigit()):
        raise WrongWord("say which error: klamm intercept error 4 NOT_LEADER_OR_FOLLOWER")
    return prefixes.error(words.pop())


def _list(found: list[PausedFrame], as_json: bool) -> int:
    if as_json:
        for one in found:
            print_json(msgspec.to_builtins(one))
        return 0
    head = ("id", "frame", "client id", "client", "broker", "size", "paused for", "goes on in", "rule")
    print_table(head, [_row(one) for one in found])
    if not found:
        print("no frame is paused; `klamm pause API` makes frames wait")
    return 0


def _row(one: PausedFrame) -> tuple[str, ...]:
    now = time.time()
    frame, client_id = f"{one.api} v{one.version} {one.side}", printable(one.client_id or "")
    waits = f"{max(0.0, now - one.since):.0f}s", f"{max(0.0, one.until - now):.0f}s"
    return str(one.id), frame, client_id, one.connection, one.broker, size(one.bytes), *waits, one.rule


def _show(to: Klamm, one: PausedFrame, _: str | None) -> None:
    print(_text(one))


def _resume(to: Klamm, one: PausedFrame, _: str | None) -> None:
    to.resolve(one.id)
    print(f"{one.id} goes on: {one.api} v{one.version} {one.side}")


def _drop(to: Klamm, one: PausedFrame, _: str | None) -> None:
    to.resolve(one.id, "drop")
    print(f"{one.id} is dropped: {one.api} v{one.version} {one.side}")


def _answer(to: Klamm, one: PausedFrame, code: str | None) -> None:
    to.resolve(one.id, "error", code=code)
    print(f"{one.id}: the client of {one.api} v{one.version} hears {code}")


def _edit(to: Klamm, one: PausedFrame, source: str | None) -> None:
    """Opens the editor again and again until klamm takes the frame, or the person gives up."""
    before = _text(one)
    if source is not None:
        _send(to, one, Path(source).read_text())
        return
    with tempfile.TemporaryDirectory(prefix="klamm-") as folder:
        file = Path(folder) / f"{one.api}-{one.side}.json"
        file.write_text(before)
        while True:
            _open(file)
            try:
                _send(to, one, file.read_text())
                return
            except (Refused, WrongWord) as wrong:
                print(f"klamm: {wrong}", file=sys.stderr)
                if not sys.stdin.isatty() or _has_enough():
                    raise WrongWord(f"{one.id} is still paused, unchanged") from None


def _has_enough() -> bool:
    try:
        return input("Enter to edit again, q to leave it: ").strip().lower() == "q"
    except EOFError:
        return True


def _send(to: Klamm, one: PausedFrame, text: str) -> None:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as wrong:
        raise WrongWord(f"line {wrong.lineno}, column {wrong.colno}: {wrong.msg}") from None
    if not isinstance(values, dict):
        raise WrongWord("the frame must be a JSON object")
    to.resolve(one.id, values=values)
    changed = list(_changes(one.values or {}, values, ""))
    print(f"{one.id} goes on: {one.api} v{one.version} {one.side}{', as it was' if not changed else ''}")
    for line in changed:
        print(f"  {line}")


def _changes(before: Any, after: Any, path: str) -> Any:
    """A line for each value that is another now."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            inner = f"{path}.{key}" if path else key
            yield from _changes(before.get(key, ABSENT), after.get(key, ABSENT), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changes(old, new, f"{path}[{index}]")
    elif before != after:
        yield printable(f"{path}: {_brief(before)} -> {_brief(after)}")


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def _brief(value: Any) -> str:
    text = repr(value) if value is ABSENT else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _text(one: PausedFrame) -> str:
    if one.values is None:
        raise WrongWord(f"{one.id} cannot be read: {one.reason}; resume or drop it")
    return json.dumps(one.values, indent=2) + "\n"


def _open(file: Path) -> None:
    """The editor, until it is closed."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or EDITOR
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except OSError as problem:
        raise WrongWord(f"the editor {command!r} does not start: {problem.strerror}; set EDITOR") from None
    if done.returncode:
        raise WrongWord(f"{command} ended with {done.returncode}: the frame is still paused, unchanged")


DO: dict[str, Callable[[Klamm, PausedFrame, str | None], None]] = {
    "list": _show,
    "show": _show,
    "edit": _edit,
    "resume": _resume,
    "drop": _drop,
    "error": _answer,
}
