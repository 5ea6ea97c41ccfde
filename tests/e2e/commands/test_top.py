"""`klamm top` in a real terminal, tmux, in front of a real cluster and its clients; klamm dies under it."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.processes import children, wait_for
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of
from tests.e2e.light_traffic import BILLING, SHOP, shop_behind_klamm

pytestmark = pytest.mark.brokers


class Tmux:
    """A shell in a terminal of 100 columns and 30 lines."""

    def __init__(self, folder: Path) -> None:
        self._words = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self("new-session", "-d", "-x", "100", "-y", "30", "env PS1='ready> ' bash --norc --noprofile")
        self.sees("^ready>")

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*self._words, *words], check=True, capture_output=True, text=True)
        return done.stdout

    def keys(self, *keys: str) -> None:
        self("send-keys", *keys)

    @property
    def lines(self) -> list[str]:
        return self("capture-pane", "-p").splitlines()

    def sees(self, pattern: str) -> list[str]:
        """The screen, once it has this."""

        def found() -> list[str] | None:
            lines = self.lines
            return lines if re.search(pattern, "\n".join(lines), re.MULTILINE) else None

        try:
            return wait_for(found, f"{pattern!r} on the screen") or []
        except Exception as error:
            error.add_note("\n".join(self.lines))
            raise

    def until(self, holds: Callable[[list[str]], bool], what: str) -> None:
        wait_for(lambda: holds(self.lines), what)


@contextmanager
def terminal(folder: Path) -> Iterator[Tmux]:
    tmux = Tmux(folder)
    try:
        yield tmux
    finally:
        tmux("kill-server")


def youngest(pid: int) -> int:
    """The process at the end of a line of children."""
    found = children(pid)
    return youngest(found[0]) if found else pid


def test_keys_do_what_the_help_says(kafka: Cluster, tmp_path: Path) -> None:
    with shop_behind_klamm(kafka, tmp_path / "klamm.log") as (klamm, shop), terminal(tmp_path) as tmux:
        tmux.keys(f"{COMMAND} top --admin {klamm.admin} --interval 0.5; echo code $?", "Enter")
        tmux.sees(r"^API +req/s▼")
        tmux.sees(r"^Produce +[1-9]")
        tmux.keys("Right")
        tmux.sees(r"^API +req/s +in/s▼")
        tmux.keys("r")
        tmux.sees(r"^API +req/s +in/s▲")
        tmux.keys("3")
        tmux.sees(rf"^{shop.topic} +[1-9]")

        tmux.keys("2")
        tmux.sees(rf"^{SHOP} +[1-9]")
        tmux.keys("/", "BILL", "Enter")
        tmux.sees(rf"^{BILLING} ")
        tmux.until(lambda lines: not any(line.startswith(f"{SHOP} ") for line in lines), "the filter")
        tmux.keys("Enter")
        tmux.sees(rf"^client {BILLING}$")
        tmux.sees(r"^Fetch v\d+ +[1-9]")
        tmux.keys("x")
        tmux.sees(rf'filter: client_id == "{BILLING}"')
        tmux.sees(rf"^{BILLING} +\d\d:\d\d:\d\d\.\d\d\d Fetch v")
        tmux.keys("Escape")
        tmux.sees(rf"^client {BILLING}$")
        tmux.keys("Escape")
        tmux.sees(r"^CLIENT ")

        tmux.keys("7", "/", "acsk == 1", "Enter")
        tmux.sees("did you mean acks")

        tmux.keys("1", "Space")
        frozen = tmux.sees("FROZEN")
        tmux("resize-window", "-x", "80", "-y", "24")
        head = frozen[0].split()

        def stands_still(lines: list[str]) -> bool:
            """The head is the old one, its uptime too."""
            now = lines[0].split()
            return len(lines) == 24 and "q quit" in lines[-1] and (now[:2], now[-1:]) == (head[:2], head[-1:])

        tmux.until(stands_still, "a frozen screen of 80x24")
        tmux.keys("Space")
        tmux.until(lambda lines: "FROZEN" not in "\n".join(lines), "its end")
        assert max(map(len, tmux.lines)) <= 80

        tmux.keys("q")
        lines = tmux.sees("code 0")
        assert not any("Produce" in line for line in lines)
        tmux.keys("echo typed", "Enter")
        tmux.sees("^typed$")


def test_klamm_dies_and_comes_back(kafka: Cluster, tmp_path: Path) -> None:
    with terminal(tmp_path) as tmux:
        with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", tmp_path / "first.log") as klamm:
            admin, port = klamm.admin, klamm.port
            tmux.keys(f"{COMMAND} top --admin {admin} --interval 0.2; echo code $?", "Enter")
            tmux.sees(r"^API +req/s▼")
        tmux.sees(rf"no klamm answers at {admin}.*asking again")
        again = [str(COMMAND), "run", kafka.bootstrap(), "--admin", admin]
        again += ["--listen", f"127.0.0.1:{port}-{port + 99}"]
        with subprocess.Popen(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                tmux.until(lambda lines: lines[-1].startswith("enter open"), "an answer")
                tmux.sees(r"3 brokers")
            finally:
                process.send_signal(signal.SIGINT)
        tmux.sees("no klamm answers")
        os.kill(youngest(int(tmux("list-panes", "-F", "#{pane_pid}"))), signal.SIGTERM)
        tmux.sees("code 143")
        tmux.keys("echo typed", "Enter")
        tmux.sees("^typed$")
