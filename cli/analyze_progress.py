"""How far `klamm analyze` is, while Spark works: on a terminal, on the standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting Spark", total=None)

        def step(what: str, done: int, of: int) -> None:
            shown.update(task, description=what, completed=done, total=of)

        yield step
