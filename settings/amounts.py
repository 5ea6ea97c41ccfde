"""Numbers with units, as people write them in rules and in the configuration. ValueError says why not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from klamm.settings.nearest import suggestion

SIZES = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""Units of bytes."""
MOST = 2**63 - 1  # of the smallest unit: beyond it nothing keeps or waits for so much


def amount(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    """A number and its unit, as a number of the smallest."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text)
    if match is None:
        raise ValueError(f"{text!r} is not {what}: write it as {example}")
    number, unit = match.groups()
    if unit not in units:
        raise ValueError(f"unknown unit {unit!r}{suggestion(unit, [word for word in units if word])}")
    found = float(number) * units[unit]
    if found > MOST:
        raise ValueError(f"{what} of {number[:9]}{'...' * (len(number) > 9)}{unit} is too large")
    return found


def whole(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a whole number from 0 on")
    return int(text)
