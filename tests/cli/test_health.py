"""`klamm health`: it finds the klamm of its container, and its exit code is that of a health check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.live import health
from klamm.proxy.config import Admin, AdminTls
from klamm.proxy.config_types import InputFile
from tests.brokers.processes import free_ports
from tests.e2e.klamm_process import COMMAND
from tests.fakes import tls
from tests.proxy.admin.admin_api import Api, in_thread

PYTHON = ["/klamm/bin/python", "/klamm/bin/klamm"]


@pytest.fixture
def it() -> Iterator[Api]:
    with in_thread() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KLAMM_ADMIN", raising=False)


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Says which words the first process of the container was started with."""
    file = tmp_path / "cmdline"
    monkeypatch.setattr(health, "FIRST_PROCESS", file)
    return lambda *words: file.write_text("".join(f"{word}\0" for word in words))


def test_a_klamm_that_runs_is_healthy_and_ready(it: Api, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--admin", it.klamm.admin]) == 0
    assert main(["health", "--ready", "--admin", it.klamm.admin]) == 0
    assert capsys.readouterr().out == "ok\nready\n"


def test_a_klamm_that_drains_is_healthy_and_not_ready(
    it: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(it.control.state, "draining", lambda: True)
    assert main(["health", "--admin", it.klamm.admin]) == 0
    assert main(["health", "--ready", "--admin", it.klamm.admin]) == 1
    assert capsys.readouterr().out == "ok\ndraining\n"


def test_the_environment_names_the_address(it: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLAMM_ADMIN", it.klamm.admin)
    assert main(["health"]) == 0


def test_without_an_answer_it_fails_and_names_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = f"127.0.0.1:{free_ports()}"
    assert main(["health", "--admin", nobody]) == 1
    assert f"klamm does not answer at {nobody}: connection refused\n" in capsys.readouterr().err


@pytest.mark.parametrize("before", [[], ["/sbin/docker-init", "--"]], ids=["alone", "behind an init"])
def test_it_asks_the_first_process_of_its_container(
    it: Api, container: Callable[..., int], before: list[str]
) -> None:
    container(*before, *PYTHON, "run", "kafka-1:9092", "--admin", it.klamm.admin)
    assert main(["health"]) == 0


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ([], "127.0.0.1:19091"),
        (["/bin/sh"], "127.0.0.1:19091"),
        ([str(COMMAND), "demo"], "127.0.0.1:19091"),
        ([*PYTHON, "run", "kafka-1:9092"], "127.0.0.1:19091"),
        ([*PYTHON, "run", "kafka-1:9092", "--admin=10.0.0.7:8080"], "10.0.0.7:8080"),
        ([*PYTHON, "run", "kafka-1:9092", "--admin", "0.0.0.0:8080"], "127.0.0.1:8080"),
        ([*PYTHON, "run", "kafka-1:9092", "--admin", "[::]:8080"], "[::1]:8080"),
        (
            [*PYTHON, "run", "kafka-1:9092", "--admin", "none", "--metrics", "0.0.0.0:9090"],
            "127.0.0.1:9090",
        ),
        (
            [*PYTHON, "run", "kafka-1:9092", "--admin", "0.0.0.0:8080", "--admin-tls-cert", "klamm.pem"],
            "https://127.0.0.1:8080",
        ),
        (
            [*PYTHON, "run", "kafka-1:9092", "--metrics", "0.0.0.0:9090", "--admin-tls-cert", "klamm.pem"],
            "127.0.0.1:9090",
        ),
    ],
)
def test_the_address_follows_from_the_command_line(words: list[str], address: str) -> None:
    assert str(health.address_of(words)) == address


def test_the_address_follows_from_the_file_and_options_override_it(tmp_path: Path) -> None:
    file = tmp_path / "klamm.yaml"
    file.write_text("clusters: [{bootstrap: kafka-1:9092}]\nadmin: 10.0.0.7:8080\n")
    words = [*PYTHON, "run", "--config", str(file)]
    assert str(health.address_of(words)) == "10.0.0.7:8080"
    assert str(health.address_of([*words, "--admin", "10.0.0.8:81"])) == "10.0.0.8:81"
    file.write_text("admin: {listen: 10.0.0.7:8080, tls: {cert: klamm.pem}}\n")
    assert str(health.address_of(words)) == "https://10.0.0.7:8080"
    file.write_text("clusters: [{bootstrap: kafka-1:9092}]\nmetrics: {listen: 0.0.0.0:9090}\n")
    assert str(health.address_of(words)) == "127.0.0.1:9090"


def test_a_mistake_elsewhere_in_the_file_does_not_make_klamm_unhealthy(tmp_path: Path) -> None:
    file = tmp_path / "klamm.yaml"
    file.write_text("clusters: [{bootstrap: kafka-1}]\nadmin: 10.0.0.7:8080\nlimits: {drain_s: never}\n")
    assert str(health.address_of([*PYTHON, "run", "--config", str(file)])) == "10.0.0.7:8080"


def test_klamm_is_asked_over_tls_where_its_admin_api_speaks_tls(
    tmp_path: Path, container: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    tls.make(tmp_path)
    cert = tmp_path / "broker.pem"
    settings = Admin(tls=AdminTls(InputFile(str(cert))))
    with in_thread(settings=settings, ca=str(tmp_path / "ca.pem")) as it:
        at = it.klamm.admin.removeprefix("https://")
        container(*PYTHON, "run", "kafka-1:9092", "--admin", at, "--admin-tls-cert", str(cert))
        assert main(["health"]) == 0
        assert main(["health", "--admin", f"https://{at}"]) == 0
        assert main(["health", "--admin", at]) == 1
    assert "this port speaks TLS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("admin: none\n", "start it with --metrics"),
        ("admin: 127.0.0.1:0\n", "start it with --metrics"),
        ("admin: [\n", "name it with --admin or KLAMM_ADMIN"),
        (None, "name it with --admin or KLAMM_ADMIN"),
    ],
)
def test_an_address_that_cannot_be_found_is_a_failure_with_what_to_do(
    text: str | None,
    reason: str,
    tmp_path: Path,
    container: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "klamm.yaml"
    if text is not None:
        file.write_text(text)
    container(*PYTHON, "run", "--config", str(file))
    assert main(["health"]) == 1
    assert reason in capsys.readouterr().err
