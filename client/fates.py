"""Words for klamm's changes of an exchange, and for an answer that did not come, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def fate_words(fates: Mapping[str, str]) -> Iterable[str]:
    """A phrase for each side in `fates` of an Exchange. There is none for an answer that klamm made or
    rewrote, which the origin tells, and none for a request that klamm answered.
    """
    for side, fate in fates.items():
        if side == "response":
            told = fate != "withheld"
        else:
            told = fate == "withheld" and fates.get("response") == "made"
        if not told:
            yield f"{side} {fate} by klamm"


def unanswered_words(reason: str, waited_ms: float) -> str:
    """`reason`: why the connection ended before the answer came, "" where it came, or none was due."""
    return f"no answer in {waited_ms:,.1f} ms: {reason}" if reason else ""
