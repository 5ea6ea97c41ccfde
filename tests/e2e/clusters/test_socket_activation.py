"""systemd opens klamm's ports and keeps them over a restart: clients wait meanwhile, and none is refused."""

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import free_block, free_ports, wait_for
from tests.e2e.conversation import Conversation
from tests.e2e.klamm_process import COMMAND, get

pytestmark = pytest.mark.brokers

FIRST = 3  # sd_listen_fds(3)
PASS = """
import os, sys
given, command = [int(file) for file in sys.argv[1].split(",")], sys.argv[2:]
for number, file in enumerate(given):
    os.dup2(file, 3 + number, inheritable=True)
os.environ |= {"LISTEN_FDS": str(len(given)), "LISTEN_PID": str(os.getpid())}
os.execv(command[0], command)
"""


def started(
    sockets: Sequence[socket.socket], command: list[str], log: Path, python: str
) -> subprocess.Popen[bytes]:
    """klamm with these sockets, as systemd starts it."""
    files = [os.dup(each.fileno()) for each in sockets]
    high = [os.fdopen(os.dup2(file, 100 + number), closefd=False) for number, file in enumerate(files)]
    given = [each.fileno() for each in high]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [python, "-c", PASS, ",".join(map(str, given)), *command],
            pass_fds=given,
            stdout=output,
            stderr=output,
        )
    for file in (*files, *given):
        os.close(file)
    return process


@pytest.mark.parametrize("workers", [1, 2])
def test_clients_wait_while_klamm_is_restarted(workers: int, kafka: Cluster, tmp_path: Path) -> None:
    first, admin, log = free_block(), f"127.0.0.1:{free_ports()}", tmp_path / "klamm.log"
    ports = [first, first + 2]  # bootstrap, and broker 1
    sockets = [socket.create_server(("127.0.0.1", port), backlog=100) for port in ports]
    command = [str(COMMAND), "run", kafka.bootstrap(), "--listen", f"127.0.0.1:{first}-{first + 99}"]
    command += ["--admin", admin, "--state", "none", "--workers", str(workers)]
    python = str(COMMAND.parent / "python")

    def ready() -> bool:
        return bool(get(f"http://{admin}/readyz"))

    process = started(sockets, command, log, python)
    try:
        wait_for(ready, "klamm")
        for port in ports:
            with Conversation(("127.0.0.1", port)) as conversation:
                assert len(conversation.ask("Metadata", 12, {"topics": []})["brokers"]) == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        with Conversation(("127.0.0.1", ports[1])) as waiting:  # nobody accepts it yet
            process = started(sockets, command, log, python)
            assert len(waiting.ask("Metadata", 12, {"topics": []})["brokers"]) == 3
        text = log.read_text()
        assert "unused_sockets" not in text, text
    finally:
        process.kill()
        process.wait()
        for each in sockets:
            each.close()


def test_a_socket_that_no_cluster_uses_is_told(kafka: Cluster, tmp_path: Path) -> None:
    other = socket.create_server(("127.0.0.1", 0))
    admin, log = f"127.0.0.1:{free_ports()}", tmp_path / "klamm.log"
    command = [str(COMMAND), "run", kafka.bootstrap(), "--listen", "127.0.0.1:0", "--admin", admin]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    process = started([other, udp], [*command, "--state", "none"], log, str(COMMAND.parent / "python"))
    try:
        told = f"systemd listens at 127.0.0.1:{other.getsockname()[1]}, which no cluster uses"
        wait_for(lambda: told in log.read_text(), "the line about the socket")
        assert "socket 4 of systemd is left alone" in log.read_text()
    finally:
        process.kill()
        process.wait()
        other.close()
        udp.close()
