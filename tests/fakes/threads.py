"""Threads that do one thing together, in a process of their own: it may crash."""

import subprocess
import sys

TOGETHER = """
import importlib, sys, threading
sys.setswitchinterval(1e-6)
for turn in range(300):
    modules = [importlib.reload(importlib.import_module(name)) for name in {names!r}]
    barrier, done = threading.Barrier(3), []
    def one():
        barrier.wait()
        done.append({call})
    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 3 and all(each == done[0] for each in done), done
"""


def together(call: str, *names: str) -> None:
    """Three threads evaluate `call` at once, 300 times. `names` are those of the `modules` in it, which have
    just been imported each time. Fails where the process crashes, or a thread raises or gives another value.
    """
    script = TOGETHER.format(names=names, call=call)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"exit {ended.returncode}: {ended.stderr}"
