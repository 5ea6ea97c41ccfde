"""Text from the wire as it is shown and written.

A string that is not UTF-8 is decoded with lone surrogates for its bytes (PEP 383), which no encoder takes.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable

from klamm.settings.printable import printable

__all__ = ["TopicName", "nameless", "printable", "uuid_text", "valid_text"]

TopicName = Callable[[bytes], str | None]  # the name of a topic id, where it is known


def nameless(topic_id: bytes) -> None:
    """The name of an id where none is known."""


def uuid_text(value: bytes | memoryview) -> str:
    """Kafka's own form: base64 for URLs, without padding."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def valid_text(text: str) -> str:
    """The text with each byte that is not UTF-8 as \\udc80 to \\udcff, six characters."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
