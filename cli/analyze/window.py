"""`--window` of `klamm analyze --follow`; it is read before Spark is imported."""

from __future__ import annotations

from klamm.cli.saying import WrongWord
from klamm.rules.file.scalars import duration

WINDOW_S = 600.0
NS = 1e9


def window_s(text: str | None) -> float:
    """Raises WrongWord."""
    if text is None:
        return WINDOW_S
    try:
        found = duration(text) / NS
    except ValueError as wrong:
        raise WrongWord(f"--window {text}: {wrong}") from None
    if not found:
        raise WrongWord(f"--window {text}: must be more than 0")
    return found
