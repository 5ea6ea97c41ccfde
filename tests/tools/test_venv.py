"""tools/venv.sh: whoever waits for it is told what it does."""

import errno
import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path

import pytest

from tests.brokers.jars import ROOT

PIP = """#!/bin/sh
case "$*" in "-m pip "*) ;; *) exit 0 ;; esac
[ -z "$BROKEN" ] || { echo "ERROR: no network" >&2; exit 1; }
echo "Obtaining file:///somewhere"
echo "Collecting aiohttp>=3.9.5 (from klamm==0.1.0)"
echo "  Downloading aiohttp-3.14.whl (1.8 MB)"
echo "Collecting rich>=13.7 (from klamm==0.1.0)"
echo "Installing collected packages: rich, aiohttp, klamm"
echo "Successfully installed aiohttp-3.14 klamm-0.1.0 rich-15.0"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script, and a .venv whose Python only says what pip would say."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(PIP)
        program.chmod(0o755)
    return tmp_path


def until_closed(terminal: RawIOBase) -> Iterator[bytes]:
    """All that was written to it: Linux ends a terminal that nobody writes to with EIO."""
    try:
        while data := terminal.read(4096):
            yield data
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def test_it_says_first_what_it_does_and_last_what_came_of_it(checkout: Path) -> None:
    done = subprocess.run(
        ["tools/venv.sh", "demo"], cwd=checkout, capture_output=True, text=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr.splitlines()) == (
        "",
        [
            "installing klamm and what make needs for 'demo' into .venv: half a minute or more, once",
            "installed 3 packages",
        ],
    )
    assert (checkout / ".venv" / "demo.installed").exists()


def test_on_a_terminal_it_names_each_package_on_one_line(checkout: Path) -> None:
    ours, theirs = pty.openpty()
    subprocess.run(["tools/venv.sh", "demo"], cwd=checkout, stderr=theirs, timeout=30, check=True)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:
        terminal_output = b"".join(until_closed(terminal)).decode()
    drawn = [
        line.strip()
        for line in terminal_output.replace("\x1b[K", "").replace("\n", "\r").split("\r")
        if line.strip()
    ]
    assert drawn[1:] == [
        "1  Collecting aiohttp>=3.9.5",
        "2  Collecting rich>=13.7",
        "unpacking 2 packages",
        "installed 3 packages",
    ]


def test_what_pip_says_when_it_fails_is_shown_and_nothing_counts_as_installed(checkout: Path) -> None:
    done = subprocess.run(
        ["tools/venv.sh", "demo"],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "BROKEN": "yes"},
    )
    assert done.returncode == 1
    assert "ERROR: no network" in done.stderr
    assert not (checkout / ".venv" / "demo.installed").exists()
