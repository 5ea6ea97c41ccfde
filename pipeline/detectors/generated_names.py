"""Names with a part that is new each time: a UUID, a timestamp, a random number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

UUID = r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"
HEX = r"\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b"
NUMBER = r"[0-9]{5,}"


def shape(name: Column) -> Column:
    """The name with `*` for such parts: `orders-*` of `orders-1732292400`. Any other name is as it is."""
    from pyspark.sql import functions as F

    return F.regexp_replace(name, f"{UUID}|{HEX}|{NUMBER}", "*")
