"""`klamm run --web`: the page beside klamm, and the settings with which there is none."""

from __future__ import annotations

import os
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.running.web_page import command, fault
from klamm.proxy.config import Admin, AdminTls, Config
from klamm.proxy.config_types import Address, InputFile, OutputFile, Text
from tests.brokers.processes import Process, free_ports, wait_for

LISTEN = Address("127.0.0.1", 19091)
TLS = AdminTls(InputFile("klamm.pem"))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (Config(admin=Admin(None)), "leave out --admin none"),
        (Config(admin=Admin(Address("127.0.0.1", 0))), "name it with --admin"),
        (Config(admin=Admin(LISTEN, tls=TLS)), "with --admin and --admin-ca"),
        (Config(handover=OutputFile("klamm.sock")), "when the next takes its place"),
        (Config(admin=Admin(LISTEN, read_only_token_file=InputFile("t"))), "who may do everything"),
    ],
)
def test_settings_without_a_page_are_told(config: Config, reason: str) -> None:
    assert reason in (fault(config) or "")


def test_the_page_asks_klamm_where_it_listens_and_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fault(Config()) is None
    assert command(Admin()) == (["web", "--admin", "127.0.0.1:19091"], {})
    everywhere = Admin(Address("0.0.0.0", 8000), token_file=InputFile("/t"))
    assert command(everywhere).words == ["web", "--admin", "127.0.0.1:8000", "--token-file", "/t"]
    assert command(Admin(Address("::", 8000))).words[2] == "[::1]:8000"
    monkeypatch.setenv("TOKEN_OF_KLAMM", "a token")
    assert command(Admin(token_env=Text("TOKEN_OF_KLAMM"))).environment == {"KLAMM_TOKEN": "a token"}


def test_a_wrong_combination_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "127.0.0.1:1", "--admin", "none", "--web"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("--web: the page asks the admin API, and there is none")
    assert "1 mistake, nothing was started" in errors


def test_the_page_is_there_while_klamm_runs_and_ends_with_it(tmp_path: Path) -> None:
    listen, admin, page = free_ports(3), free_ports(), free_ports()
    where = ["--listen", f"127.0.0.1:{listen}-{listen + 2}", "--admin", f"127.0.0.1:{admin}"]
    nobody = f"127.0.0.1:{free_ports()}"
    words = [sys.executable, "-m", "klamm.cli", "run", nobody, *where, "--web-listen", f"127.0.0.1:{page}"]
    klamm = Process(words, tmp_path / "log")
    try:
        said = f"klamm web: http://127.0.0.1:{page}/"
        wait_for(lambda: said in klamm.log.read_text(), "the page", [klamm])
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/healthz", timeout=20) as answer:
            assert answer.read() == b"ok\n"
        (child,) = children(klamm.child.pid)
        klamm.child.send_signal(signal.SIGINT)
        assert klamm.child.wait(60) == 0
        assert not Path(f"/proc/{child}").exists()
    finally:
        klamm.kill()


def test_a_page_that_cannot_be_there_says_why_and_klamm_goes_on(tmp_path: Path) -> None:
    listen, admin = free_ports(3), free_ports()
    where = ["--listen", f"127.0.0.1:{listen}-{listen + 2}", "--admin", f"127.0.0.1:{admin}"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        page = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ["run", f"127.0.0.1:{free_ports()}", *where, "--web-listen", page]
        klamm = Process([sys.executable, "-m", "klamm.cli", *words], tmp_path / "log")
        try:
            wait_for(lambda: "choose another with --listen" in klamm.log.read_text(), "why", [klamm])
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/healthz", timeout=20) as answer:
                assert answer.status == 200
        finally:
            klamm.kill()


def children(parent: int) -> list[int]:
    """The processes that it started."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                status = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            if int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(name))
    return found
