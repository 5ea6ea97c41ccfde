"""The interface of the log."""

from __future__ import annotations

from typing import Any, Literal, Protocol

Level = Literal["info", "warning", "error"]


class Events(Protocol):
    """The log: an EventLog, or one of a test."""

    def event(
        self,
        kind: str,
        message: object,
        level: Level = ...,
        *,
        per: Any = ...,
        each: bool = ...,
        most: int = ...,
        ends: str = ...,
        **fields: object,
    ) -> None: ...

    def settle(self) -> None: ...
