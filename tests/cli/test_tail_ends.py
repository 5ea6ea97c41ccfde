"""How `klamm tail` ends: where klamm does, and at Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from klamm.cli import main
from tests.cli.test_live_commands import Beating
from tests.fakes.cut_stream import CUT, ending_behind
from tests.proxy.admin.admin_api import Api, in_thread

ENDED = "klamm at {admin} has ended, or its stream was not read for 30 s: run it again once klamm answers"


def tailing(it: Api) -> subprocess.Popen[str]:
    """Once it has printed an exchange."""
    command = [sys.executable, "-m", "klamm.cli", "tail", "--json", "--admin", it.klamm.admin]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with Beating(it):
        assert json.loads(child.stdout.readline())["api"] == "Heartbeat"
    return child


def test_it_says_that_klamm_has_ended_with_exit_code_1() -> None:
    with in_thread() as it:
        child, admin = tailing(it), it.klamm.admin
    errors = child.communicate(timeout=20)[1]
    assert (child.returncode, errors) == (1, f"klamm: {ENDED.format(admin=admin)}\n")


def test_it_ends_without_a_word_at_ctrl_c() -> None:
    with in_thread() as it:
        child = tailing(it)
        child.send_signal(signal.SIGINT)
        assert (child.communicate(timeout=20)[1], child.returncode) == ("", 130)


@pytest.mark.parametrize("came", CUT.values(), ids=CUT)
def test_it_says_so_wherever_the_stream_is_cut(came: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with ending_behind(came) as admin:
        code = main(["tail", "--json", "--admin", admin])
    out, errors = capsys.readouterr()
    assert (code, out, errors) == (1, '{"dropped": 1}\n', f"klamm: {ENDED.format(admin=admin)}\n")
