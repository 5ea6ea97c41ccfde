"""The healthy clients report in whole lines: four threads of one process write to one log."""

import os
import subprocess
import sys

from tests.brokers.jars import ROOT

SAYING = """
import sys, threading
from tests.pipeline.healthy_clients.work import say
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=lambda: [say("c", n=n) for n in range(1000)]) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_reports_of_threads_are_whole_lines_without_buffering() -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    said = subprocess.run([sys.executable, "-c", SAYING], cwd=ROOT, env=env, capture_output=True, text=True)
    lines = said.stdout.splitlines()
    assert len(lines) == 4000, said.stderr
    assert all(line.startswith('{"client_id"') and line.count("{") == 1 for line in lines)
