"""deploy/systemd: systemd takes the unit, klamm its settings; klamm does nothing that the unit forbids."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer

from klamm.cli import USAGE
from klamm.cli.running.run import CUT_OFF
from klamm.proxy.config_types import AUTO
from tests.brokers.jars import ROOT
from tests.brokers.processes import Process, children, free_block, free_ports, wait_for
from tests.client.mock_cluster import mock_cluster
from tests.deploy.given import DEPLOY, configured
from tests.e2e.klamm_process import COMMAND, get

UNIT = DEPLOY / "systemd" / "klamm.service"
SOCKETS = DEPLOY / "systemd" / "klamm.socket"
INSTALLED = "/opt/klamm/bin/klamm"
SETTINGS = "/etc/klamm/klamm.yaml"
MOST_EXPOSED = 15  # in tenths, by systemd-analyze security, as docs/deploy.md says
MADE_BEFORE = {"execve"}  # by strace itself, to start klamm


def values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.MULTILINE)


def value(key: str) -> str:
    (found,) = values(key)
    return found


def analysed(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with the klamm of this environment."""
    file = tmp_path / "klamm.service"
    file.write_text(UNIT.read_text().replace(INSTALLED, str(COMMAND)))
    return file


def test_systemd_takes_the_unit(unit: Path) -> None:
    done = analysed("verify", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_takes_the_sockets(unit: Path) -> None:
    """They are ports of klamm.yaml: bootstrap, and brokers 1 to 3."""
    file = unit.parent / "klamm.socket"
    file.write_text(SOCKETS.read_text())
    done = analysed("verify", file)
    assert (done.returncode, done.stderr) == (0, "")
    ports = [
        int(port)
        for port in re.findall(r"^ListenStream=0\.0\.0\.0:(\d+)$", SOCKETS.read_text(), re.MULTILINE)
    ]
    (listen,) = re.findall(r"listen: 0\.0\.0\.0:(\d+)-", (DEPLOY / "systemd" / "klamm.yaml").read_text())
    first = int(listen)
    assert ports == [first, *(first + 1 + node for node in (1, 2, 3))]


def test_a_setting_that_systemd_does_not_know_is_found(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("ProtectSystem=", "ProtectSytem="))
    assert "ProtectSytem" in analysed("verify", unit).stderr


def test_the_unit_gives_klamm_few_rights(unit: Path) -> None:
    done = analysed("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit)
    assert done.returncode == 0, done.stdout
    assert f"less than {MOST_EXPOSED / 10} of 10" in (ROOT / "docs" / "deploy.md").read_text()


def test_klamm_takes_the_arguments_and_the_file(tmp_path: Path) -> None:
    program, command, *arguments = shlex.split(value("ExecStart"))
    assert (program, command) == (INSTALLED, "run")
    files = [(SETTINGS, (DEPLOY / "systemd" / "klamm.yaml").read_text())]
    config = configured(arguments, files, tmp_path)
    assert float(value("TimeoutStopSec").removesuffix("s")) >= config.limits.drain_s + 5
    assert config.state.folder == AUTO
    assert value("StateDirectory") == "klamm"


def test_exit_codes_are_those_of_klamm() -> None:
    assert value("RestartPreventExitStatus") == str(USAGE)
    assert value("SuccessExitStatus") == str(CUT_OFF)


def allowed() -> set[str]:
    """The system calls that the unit allows: @system-service without the sets behind ~."""
    kept, taken = values("SystemCallFilter")
    return _calls(kept) - {call for name in taken.removeprefix("~").split() for call in _calls(name)}


def _calls(name: str) -> set[str]:
    if not name.startswith("@"):
        return {name}
    lines = analysed("syscall-filter", name).stdout.splitlines()[1:]
    names = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return {call for each in names for call in _calls(each)}


def test_klamm_makes_no_system_call_that_the_unit_forbids(tmp_path: Path) -> None:
    """strace sees what a klamm asks of the kernel while a producer sends, metrics are read, and it drains."""
    admin, first, trace = f"127.0.0.1:{free_ports()}", free_block(), tmp_path / "trace"
    with mock_cluster() as bootstrap:
        command = [str(COMMAND), "run", bootstrap, "--admin", admin]
        command += ["--listen", f"127.0.0.1:{first}-{first + 99}", "--state", str(tmp_path / "state")]
        process = Process(["strace", "-f", "-o", str(trace), *command], tmp_path / "log")
        try:
            wait_for(lambda: get(f"http://{admin}/readyz"), "klamm", [process])
            producer = Producer({"bootstrap.servers": f"127.0.0.1:{first}"})
            producer.produce("orders", b"one")
            assert producer.flush(30) == 0
            assert get(f"http://{admin}/metrics")
        finally:
            _end(process)
    assert process.child.returncode == 0, process.tail()
    lines = re.findall(r"^\d+ +(\w+)\((.*)$", trace.read_text(), re.MULTILINE)
    assert {"socket", "mmap", "epoll_ctl"} <= {call for call, _ in lines}
    assert {call for call, _ in lines} - allowed() - MADE_BEFORE == set()
    families = {arguments.partition(",")[0] for call, arguments in lines if call == "socket"}
    assert families <= set(value("RestrictAddressFamilies").split())
    assert value("MemoryDenyWriteExecute") == "yes"
    mapped = [arguments for call, arguments in lines if call in ("mmap", "mprotect", "pkey_mprotect")]
    assert [text for text in mapped if "PROT_EXEC" in text and ("PROT_WRITE" in text or "ANON" in text)] == []
    assert [text for call, text in lines if call == "mprotect" and "PROT_EXEC" in text] == []


def _end(process: Process) -> None:
    """SIGTERM to klamm, which strace does not pass on."""
    for child in children(process.child.pid):
        os.kill(child, signal.SIGTERM)
    process.child.wait(timeout=60)
