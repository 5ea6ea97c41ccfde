"""`klamm export`: captures as files of other tools."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from klamm.captures.captured import Captured
from klamm.cli.captures.capture_files import expression, reading, report_problems, telling, words
from klamm.cli.captures.searching import Search
from klamm.cli.saying import WrongWord

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Reading

DESCRIPTION = """\
Write captures to a file that other tools read: packets for Wireshark and tshark, JSON Lines, or Parquet. EXPR
chooses exchanges, as `where` in rules: docs/expressions.md. Several captures are read as one.
"""

EXAMPLES = """\
examples:
  klamm export capture/ -o capture.pcapng
  klamm export capture/ 'api == Produce and error != NONE' -o - | jq .errors
  klamm export monday/ tuesday/ -o exchanges.parquet

docs/export.md says what is in the files. The exit code is 1 where something of a capture could not be read;
the rest is written.
"""

FORMS = ("pcapng", "jsonl", "parquet")
SUFFIXES = {f".{form}": form for form in FORMS}
STANDARD_OUTPUT = "-"
ROWS_PER_MOVE = 1000  # of the bar


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm export CAPTURE... [EXPR] -o FILE [OPTION...]"
    parser = subparsers.add_parser("export", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument(
        "words", nargs="+", metavar="CAPTURE", help="files and folders; and which exchanges [all]"
    )
    text = "where to: its suffix says which form; - is standard output"
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help=text)
    parser.add_argument("--format", choices=FORMS, help="the form, whatever the suffix [jsonl for -]")
    parser.add_argument(
        "--bodies", choices=("none", "values", "raw"), help="[values] raw: base64, in jsonl only"
    )
    parser.add_argument(
        "--seen-by", choices=("client", "broker"), help="in pcapng: whose connections [client]"
    )
    parser.set_defaults(asked="export")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 something of the captures was lost, 2 wrong usage."""
    form = _form(arguments)
    paths, text = words(arguments.words)
    search = Search(expression(text))
    found = reading(paths, search.where)
    with _written(arguments.output) as file:
        summary = WRITERS[form](lambda: _with_progress(found, arguments.output), search, file, arguments)
    if arguments.output != STANDARD_OUTPUT:
        print(f"{arguments.output}: {summary}")
    code = report_problems(found)
    search.say_nothing_found(found)
    return max(code, search.say_unjudged())


def _form(arguments: argparse.Namespace) -> str:
    """Raises WrongWord."""
    suffix = Path(arguments.output).suffix
    form = arguments.format or ("jsonl" if arguments.output == STANDARD_OUTPUT else SUFFIXES.get(suffix))
    if form is None:
        raise WrongWord(f"-o {arguments.output}: end it in {', '.join(SUFFIXES)}, or say --format")
    if form == "parquet" and arguments.output == STANDARD_OUTPUT:
        raise WrongWord("-o -: Parquet needs a file")
    if form == "pcapng" and arguments.output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise WrongWord("-o -: packets are not for a terminal")
    if arguments.bodies == "raw" and form != "jsonl":
        raise WrongWord(f"--bodies raw is for jsonl, not for {form}")
    if arguments.seen_by is not None and form != "pcapng":
        raise WrongWord(f"--seen-by is for pcapng, not for {form}")
    return str(form)


Rows = Callable[[], Iterator[Captured]]


def _packets(rows: Rows, search: Search, file: IO[bytes], arguments: argparse.Namespace) -> str:
    from importlib.metadata import version  # slow to load

    from klamm.captures.exports.exporting import SeenBy, Selection
    from klamm.captures.exports.packet_file import PacketFile

    selection = None if search.where is None else Selection(search.of(rows()))
    some = rows() if selection is None else selection.of(rows())
    who: SeenBy = arguments.seen_by or "client"
    packets = PacketFile(f"klamm {version('klamm')}", who, arguments.bodies != "none")
    for block in packets.blocks(some):
        file.write(block)
    return "; ".join(filter(None, (_count(packets.frames, "frame"), packets.hint())))


def _json_lines(rows: Rows, search: Search, file: IO[bytes], arguments: argparse.Namespace) -> str:
    import msgspec

    from klamm.cli.captures.show_exchange import as_object

    count = 0
    for one in search.of(rows()):
        file.write(msgspec.json.encode(as_object(one, arguments.bodies or "values")) + b"\n")
        count += 1
    return _count(count, "exchange")


def _parquet(rows: Rows, search: Search, file: IO[bytes], arguments: argparse.Namespace) -> str:
    from klamm.captures.exports.parquet import write

    return _count(write(search.of(rows()), file, arguments.bodies != "none"), "exchange")


WRITERS = {"pcapng": _packets, "jsonl": _json_lines, "parquet": _parquet}


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@contextmanager
def _written(path: str) -> Iterator[IO[bytes]]:
    """A file that has its name only when it is whole."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    file = Path(path)
    whole = file.exists() and not file.is_file()  # a pipe
    part = file if whole else file.with_name(f".{file.name}.part")
    try:
        with open(part, "wb") as opened:
            yield opened
        if not whole:
            os.replace(part, file)
    except BaseException as problem:
        if not whole:
            part.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.filename in (None, str(part)):
            raise OSError(problem.errno, problem.strerror or str(problem), path) from None
        raise


def _with_progress(found: Reading, output: str) -> Iterator[Captured]:
    """Its rows, with a bar on a terminal that says how much of the time of the capture is read."""
    if not sys.stderr.isatty() or (output == STANDARD_OUTPUT and sys.stdout.isatty()):
        yield from found
        return
    from rich.console import Console
    from rich.progress import Progress

    segments = found.segments()
    first_ns = min((one.first_ns for one in segments), default=0)
    last_ns = max((one.last_ns for one in segments), default=1)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=last_ns - first_ns)
        for number, row in enumerate(found):
            if not number % ROWS_PER_MOVE:
                bar.update(task, completed=row.time_ns - first_ns)
            yield row
