"""`klamm wire`: the tables of the wire, as one version of one API has them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from klamm.cli.nearest import suggestion
from klamm.decoders import API, compile, layout
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Api, Field, Side, members, present

DESCRIPTION = """\
Print the layout of one API at one version: its fields in wire order, and what klamm takes each for.
Without a version it is the newest; without an API, the list of them.
"""

EXAMPLES = """\
examples:
  klamm wire
  klamm wire Metadata 12
  klamm wire 1 --side response
  klamm wire Produce 9 --source
"""

SIDES: tuple[Side, ...] = ("request", "response")
COLUMNS = ("field", "type", "null", "tag", "default", "mark")


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm wire [API [VERSION]] [OPTION...]"
    parser = subparsers.add_parser("wire", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("api", nargs="?", metavar="API", help="its name, an older name, or its key")
    parser.add_argument("version", nargs="?", type=int, metavar="VERSION", help="[the newest]")
    parser.add_argument("--side", choices=SIDES, help="request or response [both]")
    parser.add_argument("--source", action="store_true", help="the Python that klamm made to read it")


def run(arguments: argparse.Namespace) -> int:
    """Print it. 2 for an API or version that there is not."""
    if arguments.api is None:
        print_table(("key", "API", "versions", "flexible", "older names"), map(_row, API))
        return 0
    api = API.get(int(arguments.api) if arguments.api.isdigit() else arguments.api)
    if api is None:
        guess = suggestion(arguments.api, [known.name for known in API])
        print(f"klamm wire: unknown API {arguments.api!r}{guess}", file=sys.stderr)
        return 2
    version = api.versions.last if arguments.version is None else arguments.version
    if version not in api.versions:
        print(f"klamm wire: {api.name} has versions {api.versions}, not {version}", file=sys.stderr)
        return 2
    for side in (arguments.side,) if arguments.side else SIDES:
        of = layout(api.key, version, side)
        if arguments.source:
            print(compile.read(of).__doc__)
        else:
            print(_title(api, of))
            print_table(COLUMNS, _rows(of.fields, version))
            print()
    return 0


def _row(api: Api) -> tuple[str, ...]:
    return str(api.key), api.name, str(api.versions), str(api.flexible), ", ".join(api.aliases)


def _title(api: Api, of: Layout) -> str:
    header = request_header_version if of.side == "request" else response_header_version
    notes = [f"key {api.key}", f"versions {api.versions}", f"header v{header(api, of.version)}"]
    if of.flexible:
        notes.append("compact, with tagged fields")
    if of.version in api.unstable:
        notes.append("not released")
    return f"{api.name} v{of.version} {of.side} ({', '.join(notes)})"


def _rows(fields: tuple[Field, ...], version: int, depth: int = 0) -> Iterator[tuple[str, ...]]:
    in_place, tagged = present(fields, version)
    for f in [*in_place, *tagged]:
        null = "null" if version in f.null else ""
        tag = "" if f.tag is None else f"tag {f.tag}"
        yield "  " * depth + f.name, _kind(f), null, tag, _default(f), f.mark or ""
        yield from _rows(members(f), version, depth + 1)


def _kind(f: Field) -> str:
    if f.kind == "array":
        return f"array of {f.of}" if isinstance(f.of, str) else "array"
    return f.kind


def _default(f: Field) -> str:
    return "" if f.default in (0, "", (), None, bytes(16)) or f.kind == "struct" else str(f.default)


def print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Columns as wide as their widest cell, without those that are empty."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
