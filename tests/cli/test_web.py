"""`klamm web`: what it refuses before it serves anything."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.settings.extras import installing
from tests.captures.rows import Talk, written


def test_other_machines_need_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KLAMM_TOKEN", raising=False)
    assert main(["web", "--listen", "0.0.0.0:0"]) == 2
    refused = "klamm: --listen 0.0.0.0:0: other machines reach it, so callers must show a token: "
    assert capsys.readouterr().err == refused + "add --token-file FILE\n"


def test_a_capture_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "nosuch/"]) == 2
    assert capsys.readouterr().err == "klamm: 'nosuch/' is no file or folder\n"


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["web", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"klamm: klamm web CAPTURE needs pyarrow: {installing('capture')}\n"


def test_a_port_in_use_is_told_with_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = written(tmp_path / "a.arrow", Talk().opened().metadata().rows)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["web", str(capture), "--listen", at]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"klamm: cannot listen on {at}: ")
    assert error.endswith("choose another with --listen HOST:PORT\n")
