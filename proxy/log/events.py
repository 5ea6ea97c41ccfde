"""The calls that others make of the log."""

from __future__ import annotations

from typing import Any, Literal, Protocol

Level = Literal["info", "warning", "error"]


class Events(Protocol):
    """EventLog, and logs of tests."""

    def event(
        self,
        kind: str,
        message: str,
        level: Level = ...,
        *,
        per: Any = ...,
        each: bool = ...,
        **fields: object,
    ) -> None: ...

    def settle(self) -> None: ...
