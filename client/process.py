"""`klamm run` as a child process, on ports that are free."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

READY_S = 30.0
STOPPED_S = 10.0
LOOK_S = 0.02
SAID = re.compile(r"bootstrap\.\w+=(\S+)[\s\S]*https?://(\S+?)/\s")

# Even a parent that is killed leaves no klamm behind (Linux: PR_SET_PDEATHSIG is 1, SIGTERM 15).
RUN = """\
import ctypes, sys
ctypes.CDLL(None).prctl(1, 15)
from klamm.cli import main
sys.exit(main())
"""


class NotStarted(Exception):
    """klamm does not run; the text says why, and how it ended."""


class Process:
    """A running klamm in front of `cluster` ("host:port", several with commas).

    `bootstrap` is where clients find it, `admin` where its admin API is; "host:port" both. `options` are
    those of `klamm run`. Raises NotStarted.
    """

    def __init__(self, cluster: str, options: Sequence[str] = (), seed: int = 0) -> None:
        self.cluster, self.options = cluster, tuple(options)
        self.folder = tempfile.TemporaryDirectory(prefix="klamm-")
        self.log = Path(self.folder.name) / "log"
        rules = Path(self.folder.name) / "rules.yaml"
        rules.write_text(f"seed: {seed}\nrules: []\n")
        command = [
            sys.executable,
            "-c",
            RUN,
            "run",
            cluster,
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ]
        with self.log.open("wb") as output:
            self.child = subprocess.Popen(
                [*command, "--log-format", "console", "--rules", str(rules), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self.bootstrap, self.admin = self._addresses()
        except BaseException:
            self.stop()
            raise

    @property
    def running(self) -> bool:
        """Has it not ended?"""
        return self.child.poll() is None

    def log_tail(self, lines: int = 20) -> str:
        """The end of its output: its start message, and its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Ends it, and takes its files away. Once more does nothing."""
        if self.running:
            self.child.terminate()
        try:
            self.child.wait(STOPPED_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.folder.cleanup()

    def _addresses(self) -> tuple[str, str]:
        """The addresses for clients and of the admin API, once klamm has printed them."""
        ends = time.monotonic() + READY_S
        while time.monotonic() < ends:
            running = self.running
            found = SAID.search(self.log.read_text(errors="replace"))
            if found:
                return found[1], found[2]
            if not running:
                raise NotStarted(f"klamm ended with exit code {self.child.returncode}:\n{self.log_tail()}")
            time.sleep(LOOK_S)
        reason = f"klamm does not reach the cluster at {self.cluster} within {READY_S:.0f} s"
        raise NotStarted(f"{reason}:\n{self.log_tail() or '(it said nothing)'}")
