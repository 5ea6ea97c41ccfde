"""A frame that waits in its line for somebody's decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from klamm.proxy.connection import Flow, Run
from klamm.proxy.line import Gap
from klamm.rules.frame import Frame
from klamm.rules.verdict import Order, Pause


class Resume(NamedTuple):
    """It goes on: as it is, or with these values."""

    values: dict[str, Any] | None = None


class Withhold(NamedTuple):
    """It never does. An answer to it never comes, and the connection's later ones wait."""


class Refuse(NamedTuple):
    """The client hears this error: in the place of the broker's answer, or in it."""

    code: int


Decision = Resume | Withhold | Refuse


class Undecidable(ValueError):
    """A decision that this frame cannot have; the text says why."""


@dataclass(slots=True, eq=False)
class Held:
    """`frame` is as rules have left it; `head` its bytes from the size field to the body. A request is sent
    `times` times, waits for its answers in `runs`, and what `acts` say is done to the answer that is heard.
    """

    pause: Pause
    flow: Flow
    frame: Frame
    head: bytes
    correlation_id: int
    gap: Gap
    times: int = 1
    answered: bool = True
    runs: list[Run] = field(default_factory=list)
    acts: tuple[Callable[[Frame], Iterable[Order]], ...] = ()

    @property
    def size(self) -> int:
        """Bytes, the size field included."""
        return len(self.head) + len(self.frame.body)
