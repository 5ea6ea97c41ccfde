"""`klamm wire`: the tables of the wire, as one version of one API or payload has them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from klamm.cli.tables import print_json, print_table
from klamm.decoders import API, compile, layout
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.interpret import Layout
from klamm.decoders.payloads import PAYLOADS, payload_layout
from klamm.decoders.payloads.declaration import Payload
from klamm.decoders.schema import NONE, Api, Field, Side, members, present
from klamm.settings.nearest import suggestion

DESCRIPTION = """\
Print the layout of one API at one version: its fields in wire order, and what klamm takes each for. The same
for what Kafka puts inside its fields and topics (ConsumerProtocolSubscription). Without a version it is the
newest; without a name, the list of them all.
"""

EXAMPLES = """\
examples:
  klamm wire
  klamm wire Metadata 12
  klamm wire Metadata 12 --diff 11
  klamm wire 1 --side response --json
  klamm wire Produce 9 --source
  klamm wire ConsumerProtocolSubscription
"""

SIDES: tuple[Side, ...] = ("request", "response")
COLUMNS = ("field", "type", "null", "tag", "default", "mark")


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm wire [API [VERSION]] [OPTION...]"
    parser = subparsers.add_parser("wire", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("api", nargs="?", metavar="API", help="its name, an older name, or its key")
    parser.add_argument("version", nargs="?", type=_version, metavar="VERSION", help="[the newest]")
    parser.add_argument("--side", choices=SIDES, help="request or response [both]")
    parser.add_argument("--diff", type=_version, metavar="VERSION", help="the differences from that version")
    parser.add_argument("--source", action="store_true", help="the Python that klamm made to read it")
    parser.add_argument("--json", action="store_true", help="one object a line for each layout")


def _version(text: str) -> int:
    """`12`, and `v12` as klamm prints it."""
    digits = text.removeprefix("v")
    if not (digits.isascii() and digits.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version: write 12")
    return int(digits)


def run(arguments: argparse.Namespace) -> int:
    """Print it. 2 for an API or version that there is not."""
    if arguments.api is None:
        _print_all(arguments.json)
        return 0
    found = _find(arguments.api)
    if found is None:
        guess = suggestion(arguments.api, [known.name for known in [*API, *PAYLOADS]], "klamm wire")
        print(f"klamm wire: unknown API {arguments.api!r}{guess}", file=sys.stderr)
        return 2
    newest = found.versions.last if arguments.version is None else arguments.version
    for version in (newest, newest if arguments.diff is None else arguments.diff):
        if version not in found.versions:
            print(f"klamm wire: {found.name} has versions {found.versions}, not {version}", file=sys.stderr)
            return 2
    for of in _layouts(found, newest, arguments.side):
        if arguments.diff is not None:
            _print_diff(found, _layouts(found, arguments.diff, of.side)[0], of, arguments.json)
        elif arguments.json:
            print_json(_layout_object(found, of))
        elif arguments.source:
            print(compile.read(of).__doc__)
        else:
            print(_title(found, of))
            print_table(COLUMNS, _rows(of.fields, of.version))
            print()
    return 0


def _find(name: str) -> Api | Payload | None:
    return API.get(int(name)) if name.isdigit() else API.get(name) or PAYLOADS.get(name)


def _layouts(found: Api | Payload, version: int, side: Side | None) -> list[Layout]:
    if isinstance(found, Payload):
        return [payload_layout(found.name, version)]
    return [layout(found.key, version, one) for one in ((side,) if side else SIDES)]


def _print_all(as_json: bool) -> None:
    if as_json:
        for api in API:
            print_json(_object(api))
        for payload in PAYLOADS:
            print_json(_object(payload))
        return
    print_table(("key", "API", "versions", "flexible", "older names"), map(_row, API))
    print()
    inside = [("", payload.name, str(payload.versions), str(payload.flexible)) for payload in PAYLOADS]
    print_table(("", "inside fields and topics", "versions", "flexible"), inside)


def _row(api: Api) -> tuple[str, ...]:
    return str(api.key), api.name, str(api.versions), str(api.flexible), ", ".join(api.aliases)


def _title(found: Api | Payload, of: Layout) -> str:
    notes = [f"versions {found.versions}"]
    if isinstance(found, Api):
        notes = [f"key {found.key}", *notes, f"header v{_header(found, of)}"]
        if of.version in found.unstable:
            notes.append("not released")
    if of.flexible:
        notes.append("compact, with tagged fields")
    return f"{found.name} v{of.version} {of.side} ({', '.join(notes)})"


def _header(api: Api, of: Layout) -> int:
    header = request_header_version if of.side == "request" else response_header_version
    return header(api, of.version)


def _rows(fields: tuple[Field, ...], version: int, depth: int = 0) -> Iterator[tuple[str, ...]]:
    for f in _present(fields, version):
        null = "null" if version in f.null else ""
        tag = "" if f.tag is None else f"tag {f.tag}"
        yield "  " * depth + f.name, _kind(f), null, tag, _default(f), f.mark or ""
        yield from _rows(members(f), version, depth + 1)


def _present(fields: tuple[Field, ...], version: int) -> list[Field]:
    in_place, tagged = present(fields, version)
    return in_place + tagged


def _kind(f: Field) -> str:
    return f"array of {f.of}" if f.kind == "array" and isinstance(f.of, str) else f.kind


def _default(f: Field) -> str:
    return "" if f.default in (0, "", (), None, bytes(16)) or f.kind == "struct" else str(f.default)


def _object(found: Api | Payload) -> dict[str, Any]:
    if isinstance(found, Payload):
        kind: dict[str, Any] = {"payload": found.name}
    else:
        kind = {"api": found.name, "key": found.key, "aliases": list(found.aliases)}
    flexible = None if found.flexible == NONE else str(found.flexible)
    return {**kind, "versions": str(found.versions), "flexible": flexible}


def _layout_object(found: Api | Payload, of: Layout) -> dict[str, Any]:
    kind = {"api": found.name, "key": found.key} if isinstance(found, Api) else {"payload": found.name}
    layout: dict[str, Any] = {**kind, "version": of.version, "side": of.side, "flexible": of.flexible}
    if isinstance(found, Api):
        layout |= {"header": _header(found, of), "released": of.version not in found.unstable}
    return {**layout, "fields": [_field_object(f, of.version) for f in _present(of.fields, of.version)]}


def _field_object(f: Field, version: int) -> dict[str, Any]:
    described: dict[str, Any] = {"name": f.name, "type": f.kind, "null": version in f.null}
    if f.kind == "array" and isinstance(f.of, str):
        described["of"] = f.of
    if f.tag is not None:
        described["tag"] = f.tag
    if isinstance(f.default, (bool, int, float, str)):
        described["default"] = f.default
    if f.mark is not None:
        described["mark"] = f.mark
    if members(f):
        described["fields"] = [_field_object(part, version) for part in _present(members(f), version)]
    return described


def _print_diff(found: Api | Payload, before: Layout, after: Layout, as_json: bool) -> None:
    from klamm.decoders.shown.layouts import SIGNS, changes

    changed = changes(before, after)
    whole = dict(_differences(found, before, after))
    if as_json:
        described = [change._asdict() for change in changed]
        versions = {"from": before.version, "to": after.version}
        print_json({"name": found.name, "side": after.side, **versions, **whole, "changes": described})
        return
    print(f"{found.name} v{before.version} -> v{after.version} {after.side}")
    for name, (was, now) in whole.items():
        print(f"  {name}: {_word(was)} -> {_word(now)}")
    rows = [
        (SIGNS[change.what], change.path, " -> ".join(filter(None, dict.fromkeys(change[2:]))))
        for change in changed
    ]
    if rows:
        print_table(("", "field", "type"), rows)
    elif not whole:
        print("  the same layout")
    print()


def _word(value: bool | int) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"v{value}"


def _differences(found: Api | Payload, before: Layout, after: Layout) -> Iterator[tuple[str, list[Any]]]:
    """Changes of the whole: its header, and whether it is compact with tagged fields."""
    if before.flexible != after.flexible:
        yield "flexible", [before.flexible, after.flexible]
    if isinstance(found, Api) and _header(found, before) != _header(found, after):
        yield "header", [_header(found, before), _header(found, after)]
