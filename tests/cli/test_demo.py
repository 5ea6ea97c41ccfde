"""`klamm demo`, as a user runs it: with a terminal, without one, and when things go wrong."""

import argparse
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from klamm.cli import main
from klamm.cli.demo import demo as klamm_demo
from klamm.settings.extras import installing
from tests.brokers.processes import free_block, free_ports, wait_for

COMMAND = [sys.executable, "-m", "klamm.cli", "demo"]
PATIENCE_S = 60
CODES = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")
ERRORS = {
    "UNKNOWN_TOPIC_OR_PARTITION": "Metadata of reporting",
    "OFFSET_OUT_OF_RANGE": "Fetch of restore-job",
    "UNSUPPORTED_VERSION": "ApiVersions of ",
}
# A fault of the mock cluster: SyncGroup where a rebalance has begun again meanwhile.
MOCKED = r"Problems met: (none|undecodable \d+ \(SyncGroup\))\.$"


def addresses(output: str) -> set[tuple[str, int]]:
    """Every address that the demo said it listens on."""
    found = re.findall(r"(127\.0\.0\.1):(\d+)", output.split("\n 0:")[0])
    return {(host, int(port)) for host, port in found}


def listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def on_a_terminal(width: int, height: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The demo with a terminal as its output; the descriptor reads what it writes."""
    import fcntl
    import pty
    import termios

    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    for size in ("COLUMNS", "LINES"):
        environment.pop(size, None)
    demo = subprocess.Popen(COMMAND, stdin=there, stdout=there, stderr=there, env=environment)
    os.close(there)
    try:
        yield demo, here
    finally:
        demo.kill()
        demo.wait()
        os.close(here)


def read_until(terminal: int, wanted: str) -> str:
    seen = b""
    ends_at = time.monotonic() + PATIENCE_S
    while wanted.encode() not in seen:
        assert time.monotonic() < ends_at, seen[-2000:].decode(errors="replace")
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
    text = seen.decode(errors="replace")
    assert wanted in text, text[-2000:]
    return text


def test_without_a_terminal_it_prints_lines_and_a_summary_and_leaves_nothing_behind() -> None:
    demo = subprocess.run(
        [*COMMAND, "--seconds", "4"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (demo.returncode, demo.stderr) == (0, "")
    assert "\x1b" not in demo.stdout
    assert re.search(
        r"^ 0:\d\d  [\d,.]+ req/s  .* in/s  .* out/s  p99 .* connections", demo.stdout, re.MULTILINE
    )
    passed = re.search(r"klamm passed on ([\d,]+) requests of 9 clients on 5 topics", demo.stdout)
    assert passed
    assert int(passed[1].replace(",", "")) > 100
    assert re.search(r"^Produce +[\d,]+ +[\d.,]+ [kM]?B ", demo.stdout, re.MULTILINE), demo.stdout
    assert re.search(MOCKED, demo.stdout)
    assert len(addresses(demo.stdout)) == 6  # three brokers, klamm, its metrics, and the page
    assert not [address for address in addresses(demo.stdout) if listens(address)]


def test_what_it_captures_can_be_read_by_the_other_commands(tmp_path: Path) -> None:
    folder = tmp_path / "captured"
    demo = subprocess.run(
        [*COMMAND, "--seconds", "2", "--capture", str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (demo.returncode, demo.stderr) == (0, "")
    assert f"\ncapture  {folder}\n" in demo.stdout
    asked = [sys.executable, "-m", "klamm.cli", "show", str(folder), 'api == "Produce"', "--json"]
    shown = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert {json.loads(line)["client_id"] for line in shown.stdout.splitlines()} >= {"orders-service"}


def test_its_records_can_be_read_and_a_producer_that_an_error_ends_begins_again(tmp_path: Path) -> None:
    listen, admin, folder = free_block(), f"127.0.0.1:{free_ports()}", tmp_path / "captured"
    words = ["--listen", f"127.0.0.1:{listen}", "--admin", admin, "--capture", str(folder)]

    def klamm(*words: str) -> str:
        command = [sys.executable, "-m", "klamm.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout

    def starts() -> int:
        return len(klamm("show", str(folder), "api == InitProducerId", "--json").splitlines())

    with subprocess.Popen([*COMMAND, *words, "--seconds", "60"], stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout
            assert next(line for line in demo.stdout if line.startswith("page "))
            assert klamm("tail", "json(record.value).items is not None", "-n", "1", "--admin", admin)
            wait_for(lambda: [*folder.glob("[!.]*")], "a segment of the capture")
            wait_for(lambda: starts() == 1, "the start of the producer with a number")
            client = ("--client", "orders-service")
            klamm(
                "inject",
                "Produce",
                "OUT_OF_ORDER_SEQUENCE",
                *client,
                "--times",
                "1",
                "--follow",
                "0",
                "--admin",
                admin,
            )
            wait_for(lambda: starts() == 2, "its next start")
        finally:
            demo.send_signal(signal.SIGINT)


def test_leaders_of_its_cluster_move() -> None:
    program = (
        "from klamm.cli.demo import cluster; cluster.LEADER_MOVES_EVERY_S = 0.05; "
        "raise SystemExit(cluster.main())"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as kafka:
        try:
            assert kafka.stdout
            admin = AdminClient({"bootstrap.servers": kafka.stdout.readline().strip()})
            wait_for(lambda: len({leaders(admin) for _ in range(5)}) > 1, "a leader that moves")
        finally:
            kafka.kill()


def leaders(admin: AdminClient) -> tuple[int, ...]:
    found = admin.list_topics("klamm-demo-orders", timeout=PATIENCE_S).topics["klamm-demo-orders"]
    return tuple(partition.leader for partition in found.partitions.values())


def test_on_a_terminal_it_draws_until_interrupted_and_then_sums_up() -> None:
    with on_a_terminal(140, 50) as (demo, terminal):
        start = read_until(terminal, "orders-service")
        assert "page     http://127.0.0.1:" in start
        assert re.search(r"http://127.0.0.1:\d+/  Ctrl-C ends", start)
        for error in ERRORS:
            read_until(terminal, error)
        demo.send_signal(signal.SIGINT)
        summary = CODES.sub("", read_until(terminal, "klamm's own time"))
        assert demo.wait(PATIENCE_S) == 0
    for error, where in ERRORS.items():
        assert re.search(rf"^{error} +\d+  {where}", summary, re.MULTILINE), summary
    assert not [address for address in addresses(start) if listens(address)]


def test_the_page_answers_once_its_address_is_told() -> None:
    with on_a_terminal(80, 24) as (_, terminal):
        start = read_until(terminal, "page     http://")
        [(host, port)] = re.findall(r"page     http://(127\.0\.0\.1):(\d+)/", start)
        assert listens((host, int(port)))


def test_a_demo_that_is_killed_leaves_nothing_behind() -> None:
    with on_a_terminal(80, 24) as (demo, terminal):
        start = read_until(terminal, "req/s")
        demo.kill()
        demo.wait()
        left = addresses(start)
        assert len(left) >= 5
        ends_at = time.monotonic() + PATIENCE_S
        while any(listens(address) for address in left):
            assert time.monotonic() < ends_at
            time.sleep(0.1)


def test_a_cluster_that_cannot_be_reached_is_said_and_the_demo_gives_up() -> None:
    code = (
        "import sys; from klamm.cli import main; from klamm.cli.demo import demo; "
        "demo.READY_S = 15.0; sys.exit(main(sys.argv[1:]))"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    demo = subprocess.run(
        [sys.executable, "-c", code, "demo", "--bootstrap", closed],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert demo.returncode == 1
    assert demo.stderr.startswith("klamm demo: klamm is not ready after 15 s: ")
    assert closed in demo.stderr
    assert f"waiting  no bootstrap server answers: {closed}" in demo.stdout
    assert demo.stderr.count("\n") == 1


def test_a_mistake_in_the_address_is_what_klamm_run_says_of_it() -> None:
    demo = subprocess.run(
        [*COMMAND, "--bootstrap", "nowhere:x"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert demo.returncode == 1
    assert "the demo's klamm ended with exit code 2" in demo.stderr
    assert "'x' is not a port number" in demo.stderr


def test_another_klamm_that_is_ready_is_not_taken_for_the_demos_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(admin: str) -> dict[str, Any]:
        return {"pid": 1, "clusters": [{"ready": True, "reason": ""}]}

    monkeypatch.setattr(klamm_demo, "ask", ask)
    monkeypatch.setattr(klamm_demo, "READY_S", 0.3)
    with klamm_demo._children() as start:
        own = start("klamm", "timeit", "-n1", "-r1", "import time; time.sleep(30)")
        with pytest.raises(klamm_demo.Failed, match=r"not ready .*: another klamm, pid 1, answers at here:1"):
            klamm_demo._ready("here:1", own, [own])


def test_without_confluent_kafka_it_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("klamm.cli.demo.demo.find_spec", lambda name: None)
    assert main(["demo"]) == 1
    errors = capsys.readouterr().err
    assert installing("demo") in errors
    assert errors.count("\n") == 1


def test_it_listens_where_it_is_told_to() -> None:
    listen, admin = free_block(), free_ports()
    words = ["--seconds", "2", "--listen", f"127.0.0.1:{listen}", "--admin", f"127.0.0.1:{admin}"]
    demo = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (demo.returncode, demo.stderr) == (0, "")
    assert f"klamm    127.0.0.1:{listen}\nmetrics  http://127.0.0.1:{admin}/metrics\n" in demo.stdout
    assert re.search(r"^page     http://127.0.0.1:\d+/$", demo.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], ("127.0.0.1:19092", "127.0.0.1:19091", "127.0.0.1:19090")),
        (["--admin", "127.0.0.1:7"], ("127.0.0.1:19092", "127.0.0.1:7", "127.0.0.1:19090")),
        (["--listen", "0.0.0.0:29092"], ("0.0.0.0:29092", "0.0.0.0:29091", "127.0.0.1:29090")),
    ],
)
def test_what_is_not_told_is_what_klamm_run_has(
    words: list[str], wanted: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(klamm_demo, "_is_free", lambda port: True)
    parser = argparse.ArgumentParser()
    klamm_demo.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["demo", *words])
    assert klamm_demo._ports(arguments.listen, arguments.admin) == wanted


def test_an_address_that_is_none_is_said_with_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--listen", "nowhere"]) == 2
    assert "argument --listen: 'nowhere' has no port" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan"])
def test_seconds_must_be_a_positive_number(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", f"--seconds={seconds}"]) == 2
    assert "--seconds" in capsys.readouterr().err
