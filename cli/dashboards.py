"""`klamm dashboards`: dashboards for Grafana, and rules and alerts for Prometheus, as files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from klamm.cli.saying import say
from klamm.cli.tables import print_table
from klamm.dashboards.files import described, text_of
from klamm.settings.nearest import suggestion

USAGE = "klamm dashboards [FILE] [--out DIR]"

DESCRIPTION = """\
Write the dashboards of Grafana, and the recording and alert rules of Prometheus, as files. Without a word
this lists them; with FILE, one is printed; with --out DIR, all of them are written below DIR, over those
that an older klamm wrote.
"""

EXAMPLES = """\
examples:
  klamm dashboards
  klamm dashboards --out klamm-dashboards
  klamm dashboards grafana/overview.json > overview.json

docs/dashboards.md tells how Grafana and Prometheus take them.
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("dashboards", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("file", nargs="?", metavar="FILE", help="the one to print, as the list names it")
    parser.add_argument("--out", metavar="DIR", help="write all files below this folder, which may be new")


def run(arguments: argparse.Namespace) -> int:
    """0 done; 1 where a file cannot be written; 2 where there is no such file."""
    if arguments.out is not None and arguments.file is not None:
        return say("give either FILE, to print it, or --out DIR, to write all files", 2)
    if arguments.out is not None:
        return _write(Path(arguments.out))
    if arguments.file is None:
        print_table(("file", "what it is for"), described().items())
        return 0
    if arguments.file not in described():
        near = suggestion(arguments.file, described())
        return say(f"there is no file {arguments.file!r}{near}", 2)
    print(text_of(arguments.file), end="")
    return 0


def _write(folder: Path) -> int:
    try:
        for name in described():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(name), encoding="utf-8")
            print(path)
    except OSError as problem:
        return say(f"cannot write {problem.filename or path}: {problem.strerror}", 1)
    return 0
