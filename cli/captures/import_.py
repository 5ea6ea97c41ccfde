"""`klamm import`: packets that another tool recorded, as a capture."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.cli.captures.capture_files import FINE, LOST, telling
from klamm.cli.captures.import_summary import as_object, print_lines
from klamm.cli.running.scalars import port
from klamm.cli.saying import WrongWord, say
from klamm.cli.tables import print_json

if TYPE_CHECKING:
    from klamm.captures.packets.decrypting import Plain
    from klamm.captures.packets.importing import Import

DESCRIPTION = """\
Make a capture of packets: files of tcpdump, Wireshark and the like (pcap or pcapng, gzip or not). Connections
of Kafka are found by what they say, on any port. Several files are read as one, in the order of their times.
"""

EXAMPLES = """\
examples:
  tcpdump -i any -w kafka.pcap port 9092
  klamm import kafka.pcap -o capture/
  klamm show capture/

docs/import.md says more. The exit code is 1 where bytes are missing or a file could not be read; the rest is
imported.
"""

STANDARD_INPUT = "-"
OFTEN = 1000  # packets between two looks at the progress
BUFFER_BYTES = 1 << 20


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm import FILE... -o DIR [OPTION...]"
    parser = subparsers.add_parser("import", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="pcap or pcapng; - is standard input")
    parser.add_argument("--output", "-o", metavar="DIR", required=True, help="the folder of the capture")
    text = "add to the capture that is in DIR already"
    parser.add_argument("--append", action="store_true", help=text)
    text = "a port of brokers, if only these are meant; several with commas [any]"
    parser.add_argument("--port", action="append", default=[], metavar="PORT", help=text)
    text = "the part of records that is kept: blank, keep, hash [blank]"
    parser.add_argument(
        "--records", choices=("blank", "keep", "hash"), default="blank", metavar="HOW", help=text
    )
    text = "secrets of TLS, as SSLKEYLOGFILE names them, for tshark"
    parser.add_argument("--keys", metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="the summary as one object")
    parser.set_defaults(asked="import")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 something was lost or could not be read, 2 wrong usage."""
    ports = _ports(arguments.port)
    keys = _keys(arguments)
    from klamm.captures.packets.importing import Import
    from klamm.captures.storage.segments import origin
    from klamm.captures.storage.writing import Writer
    from klamm.captures.streams.blanking import Keeping

    output = Path(arguments.output)
    if output.exists() and not output.is_dir():
        raise WrongWord(f"-o {output}: a capture is a folder, and this is a file")
    if output.is_dir() and any(output.iterdir()) and not arguments.append:
        raise WrongWord(f"{output} is there already: name a new folder, or say --append to add to it")
    made = origin(arguments.records)
    writer = Writer(output, made)
    importing = Import(made.capture, Keeping(arguments.records, os.urandom(32)), writer.write, ports)
    problems: list[str] = []
    with ExitStack() as stack:
        files = [(name, stack.enter_context(_opened(name))) for name in arguments.files]
        progress = stack.enter_context(_Progress([file for _, file in files]))
        try:
            _read(importing, files, keys, progress, problems)
            importing.end()
            writer.seal()
        except OSError as error:  # of a full disk, without a name
            writer.abandon()
            raise OSError(error.errno, error.strerror, error.filename or str(output)) from None
    if arguments.json:
        print_json(as_object(importing.found, problems, arguments.output))
    else:
        if importing.found.packets or not problems:
            print_lines(importing.found, arguments.output)
        for problem in problems:
            say(problem, LOST)
    return FINE if importing.found.whole and not problems else LOST


def _ports(texts: Iterable[str]) -> list[int]:
    """Raises WrongWord."""
    try:
        return [port(part.strip()) for text in texts for part in text.split(",")]
    except ValueError as problem:
        raise WrongWord(f"--port: {problem}") from None


def _keys(arguments: argparse.Namespace) -> Path | None:
    """Raises WrongWord."""
    if arguments.keys is None:
        return None
    from shutil import which

    if STANDARD_INPUT in arguments.files:
        raise WrongWord("--keys: tshark reads files, not the standard input")
    if which("tshark") is None:
        raise WrongWord("--keys needs tshark: it is a package of Debian and others, and a part of Wireshark")
    if not os.path.isfile(arguments.keys):
        raise WrongWord(f"--keys: there is no file {arguments.keys}")
    return Path(arguments.keys)


def _opened(name: str) -> BufferedReader:
    if name == STANDARD_INPUT:
        return BufferedReader(FileIO(sys.stdin.fileno(), closefd=False), BUFFER_BYTES)
    try:
        return BufferedReader(FileIO(name), BUFFER_BYTES)
    except (OSError, ValueError) as problem:
        raise WrongWord(f"cannot read {name}: {getattr(problem, 'strerror', problem)}") from None


def _read(
    importing: Import,
    files: list[tuple[str, BufferedReader]],
    keys: Path | None,
    progress: _Progress,
    problems: list[str],
) -> None:
    from klamm.captures.packets.packet_files import in_order

    for name, packets in in_order(files, problems):
        hidden = iter(()) if keys is None else _hidden(name, keys, problems)
        coming = next(hidden, None)
        for number, packet in enumerate(packets, 1):
            plain = b""
            while coming is not None and coming.number <= number:
                plain += coming.data if coming.number == number else b""
                coming = next(hidden, None)
            importing.take(packet, plain)
            if number % OFTEN == 0:
                progress.show()


def _hidden(name: str, keys: Path, problems: list[str]) -> Iterator[Plain]:
    from klamm.captures.packets.decrypting import NotDecrypted, decrypted

    try:
        yield from decrypted(Path(name), keys)
    except NotDecrypted as why:
        problems.append(f"{name}: tshark: {why}")


class _Progress:
    """A bar on a terminal, for files whose size is known."""

    def __init__(self, files: list[BufferedReader]) -> None:
        self.files = files
        self.bar: Any = None

    def __enter__(self) -> _Progress:
        if sys.stderr.isatty() and all(file.seekable() for file in self.files):
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

            columns = BarColumn(), DownloadColumn(), TimeRemainingColumn()
            total = sum(os.fstat(file.fileno()).st_size for file in self.files)
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bar.add_task("", total=total)
            self.bar.start()
        return self

    def show(self) -> None:
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=sum(file.tell() for file in self.files))

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
