"""How JSON becomes the types of the admin API."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

import msgspec

# msgspec builds what it knows of a type at its first use, which crashes where two threads have it together.
ONE = Lock()


def reader(kind: Any) -> msgspec.json.Decoder[Any]:
    """Of this type, or of a list of it. It may be had, and used, in several threads at once."""
    with ONE:
        return _reader(kind)


@cache
def _reader(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
