"""Tells the progress of `klamm analyze` on the standard error: as a bar on a terminal, or for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

Step = Callable[[str, int, int], None]  # the step, how much of it is done, and of how much


STARTING = "starting Spark"


@contextmanager
def progress(for_programs: bool = False) -> Iterator[Step]:
    """For programs JSON, a line for each step; else a bar, and nothing without a terminal."""
    if for_programs:
        yield from _as_lines()
        return
    if not sys.stderr.isatty():
        yield lambda what, done, of: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    own = os.fdopen(os.dup(sys.stderr.fileno()), "w")  # Spark's own output goes elsewhere
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=own, force_terminal=True), transient=True) as bar:
        task = bar.add_task(STARTING, total=None)

        def step(what: str, done: int, of: int) -> None:
            bar.update(task, description=what, completed=done, total=of or None)

        yield step


def _as_lines() -> Iterator[Step]:
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1) as own:

        def step(what: str, done: int, of: int) -> None:
            own.write(json.dumps({"step": what, "done": done, "of": of}) + "\n")

        step(STARTING, 0, 0)
        yield step


@contextmanager
def without_chatter() -> Iterator[None]:
    """Hides the standard error, and shows it only if this fails. A Java that is started here writes there as
    long as it runs.
    """
    try:
        place = sys.stderr.fileno()
    except (AttributeError, OSError):  # a test's
        yield
        return
    with TemporaryFile() as chatter:
        sys.stderr.flush()
        before = os.dup(place)
        os.dup2(chatter.fileno(), place)
        failed = True
        try:
            yield
            failed = False
        except KeyboardInterrupt:
            failed = False
            raise
        finally:
            os.dup2(before, place)
            os.close(before)
            if failed:
                chatter.seek(0)
                sys.stderr.write(chatter.read().decode(errors="replace"))
