"""The cost of starting: the import of klamm.decoders, and functions made for one layout."""

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from klamm.decoders import API, compile, layout
from klamm.decoders.interpret import Layout

IMPORT_TARGET_MS, COMPILE_TARGET_MS = 60.0, 3.0
IMPORT = """
import time
begun = time.perf_counter()
import klamm.decoders
took = time.perf_counter() - begun
import linecache
made = [name for name in linecache.cache if name.startswith("<klamm ")]
print(took * 1e3, len(made))
"""


def measured(rounds: int) -> dict[str, Any]:
    """Milliseconds, the least of some rounds; an import that makes a function is an error."""
    took = [(goal, *slowest(goal, rounds)) for goal in ("read", "write")]
    return {
        "import_ms": import_ms(rounds),
        "import_target_ms": IMPORT_TARGET_MS,
        "compile": [{"goal": goal, "layout": name, "ms": ms} for goal, name, ms in took],
        "compile_target_ms": COMPILE_TARGET_MS,
    }


def import_ms(rounds: int) -> float:
    """In fresh processes, with bytecode at hand as where klamm is installed."""
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder:
        settings = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        settings["PYTHONPYCACHEPREFIX"] = folder
        taken = []
        for _ in range(rounds + 1):  # the first writes the bytecode
            done = subprocess.run(
                [sys.executable, "-c", IMPORT], env=settings, capture_output=True, text=True, check=True
            )
            ms, made = done.stdout.split()
            if int(made):
                raise AssertionError(f"the import made {made} functions")
            taken.append(float(ms))
    return min(taken[1:])


def slowest(goal: str, rounds: int) -> tuple[str, float]:
    """The layout for which a function of this goal takes longest to make, and how long that is."""
    took = {of: _compile_ms(goal, of) for of in _layouts()}
    looked_at: set[Layout] = set()
    while (most := max(took, key=lambda of: took[of])) not in looked_at:
        took[most] = min(_compile_ms(goal, most) for _ in range(rounds))
        looked_at.add(most)
    return str(most), took[most]


def _layouts() -> list[Layout]:
    """The newest of every API; no older version has much more in it."""
    return [layout(api.key, api.versions.last, side) for api in API for side in ("request", "response")]


def _compile_ms(goal: str, of: Layout) -> float:
    make = getattr(compile, goal)
    begun = time.process_time()
    make(of)
    return (time.process_time() - begun) * 1e3
