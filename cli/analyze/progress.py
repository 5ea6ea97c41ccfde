"""How far `klamm analyze` is, while Spark works: on a terminal, on the standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

Step = Callable[[str, int, int], None]  # what is done, how much of it is done, and of how much


@contextmanager
def progress() -> Iterator[Step]:
    """Nothing is shown where there is no terminal."""
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

    own = os.fdopen(os.dup(sys.stderr.fileno()), "w")  # what Spark says meanwhile goes elsewhere
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=own, force_terminal=True), transient=True) as shown:
        task = shown.add_task("starting Spark", total=None)

        def step(what: str, done: int, of: int) -> None:
            shown.update(task, description=what, completed=done, total=of)

        yield step


@contextmanager
def without_chatter() -> Iterator[None]:
    """What is written to the standard error meanwhile is shown if this fails only. A Java that is started
    here writes there as long as it runs.
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
