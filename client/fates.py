"""What klamm did to the sides of an exchange, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def fate_words(fates: Mapping[str, str]) -> Iterable[str]:
    """Of `fates`; not of an answer where the origin tells it, and not of a request that klamm answered."""
    for side, fate in fates.items():
        if side == "response":
            told = fate != "withheld"
        else:
            told = fate == "withheld" and fates.get("response") == "made"
        if not told:
            yield f"{side} {fate} by klamm"
