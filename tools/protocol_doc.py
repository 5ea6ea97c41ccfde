"""Write docs/protocol.md from the tables: python -m tools.protocol_doc"""

from collections.abc import Callable, Iterator
from pathlib import Path

from klamm.decoders import API, ERRORS
from klamm.decoders.headers import request_header_version, response_header_version
from klamm.decoders.schema import ALL, NONE, Api, Field, Versions, members

PAGE = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"

HEAD = """\
# The protocol

Every API, version, field and error that klamm knows. `make docs` writes this page from the tables in
`decoders/apis/`.

A line is a field, in the order of the wire: its name, type, and versions (all, if none are given); `null`
with the versions in which it may be null, if those are not all of its own; `tag` with its number if it is a
tagged field, which goes at the end of its struct; `=` with its default if that is not zero, empty or false;
last, in capitals, what klamm takes it for. The fields of a struct, or of an array's structs, are below it.
Compact encodings follow from *flexible*.

`klamm wire Metadata 12` prints one version, and [notes](protocol-notes.md) tell what tables cannot.
A few layouts of [early access](early-access.md) changed under one version.
"""


_BLANK = ("", "", "")


def page() -> str:
    """The whole document."""
    parts = [HEAD, *_overview(), *(_section(api) for api in API), *_errors()]
    return "\n".join(parts)


def _overview() -> Iterator[str]:
    count = sum(2 * (api.versions.last - api.versions.first + 1) for api in API)
    yield f"## APIs\n\n{len(API)} APIs, {count} layouts of requests and responses.\n"
    yield "| key | API | versions | flexible | older names |\n|---|---|---|---|---|"
    for api in API:
        name = f"[{api.name}](#{api.key}-{api.name.lower()})"
        yield f"| {api.key} | {name} | {api.versions} | {api.flexible} | {', '.join(api.aliases)} |"
    yield ""


def _section(api: Api) -> str:
    facts = [f"versions {api.versions}", _flexible(api)]
    if api.unstable != NONE:
        facts.append(f"**{api.unstable} not released**")
    facts.append(f"request header {_headers(api, request_header_version)}")
    facts.append(f"response header {_headers(api, response_header_version)}")
    lines = [f"### {api.key} {api.name}\n", "; ".join(facts) + ".\n"]
    if api.aliases:
        lines.append(f"Once called {', '.join(api.aliases)}.\n")
    rows = [("request", *_BLANK), *_rows(api.request, api), ("response", *_BLANK), *_rows(api.response, api)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "```", *table, "```\n"])


def _flexible(api: Api) -> str:
    first = max(api.flexible.first, api.versions.first)
    last = min(api.flexible.last, api.versions.last)
    return f"flexible from {first} on" if first <= last else "never flexible"


def _headers(api: Api, version_of: Callable[[Api, int], int]) -> str:
    """'v1, from 9 on v2'."""
    found: list[tuple[int, int]] = []
    for version in range(api.versions.first, api.versions.last + 1):
        header = version_of(api, version)
        if not found or found[-1][1] != header:
            found.append((version, header))
    (_, first), *later = found
    return f"v{first}" + "".join(f", from {version} on v{header}" for version, header in later)


def _rows(fields: tuple[Field, ...], api: Api, depth: int = 1) -> Iterator[tuple[str, str, str, str]]:
    for f in fields:
        versions = "" if f.versions == ALL else str(f.versions)
        yield "  " * depth + f.name, _kind(f), versions, "  ".join(_words(f, api))
        yield from _rows(members(f), api, depth + 1)


def _kind(f: Field) -> str:
    if f.kind != "array":
        return f.kind
    return f"{f.of}[]" if isinstance(f.of, str) else "struct[]"


def _words(f: Field, api: Api) -> Iterator[str]:
    if f.null != NONE:
        yield "null" if _covers(f.null, f.versions, api) else f"null {f.null}"
    if f.tag is not None:
        yield f"tag {f.tag}"
    if f.default not in (0, "", b"", (), bytes(16), None):
        yield f"= {str(f.default).lower()}"
    if f.default is None and f.kind != "records":
        yield "= null"
    if f.mark:
        yield f.mark if f.only is None else f"{f.mark} where {f.only[0]} is {f.only[1]}"


def _covers(null: Versions, versions: Versions, api: Api) -> bool:
    first, last = max(versions.first, api.versions.first), min(versions.last, api.versions.last)
    return null.first <= first and null.last >= last


def _errors() -> Iterator[str]:
    yield f"## Errors\n\n{len(ERRORS)} codes. `klamm errors 6` explains one.\n"
    yield "| code | error | retriable | meaning | older names |\n|---|---|---|---|---|"
    for error in ERRORS:
        retriable = "yes" if error.retriable else ""
        yield f"| {error.code} | {error.name} | {retriable} | {error.meaning} | {', '.join(error.aliases)} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page())
