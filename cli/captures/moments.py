"""Times of a capture, as people write them."""

from __future__ import annotations

from datetime import datetime, time

from klamm.cli.saying import WrongWord


def moment(option: str, text: str | None, first_ns: int) -> int | None:
    """2026-11-21T15:30:12.5, or 15:30 on the day of `first_ns`, as ns since 1970; local time where the text
    names no other. Raises WrongWord.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = datetime.combine(datetime.fromtimestamp(first_ns / 1e9), time.fromisoformat(text))
        except ValueError:
            raise WrongWord(f"{option} {text}: write it as 15:30:12.5, or 2026-11-21T15:30:12.5") from None
    return round(found.replace(microsecond=0).timestamp()) * 10**9 + found.microsecond * 1000
