"""A paused frame: it waits in its line until a person decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from klamm.proxy.session.line import PausedPlace
from klamm.proxy.session.memory import ApiMemory
from klamm.rules.frame import Frame
from klamm.rules.orders import Order, Pause


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
class Paused:
    """`frame` is as rules have left it; `head` its bytes from the size field to the body. A request is sent
    `times` times, waits for its answers in `pending`, and what `acts`
    say is done to the answer that the client gets.
    """

    pause: Pause
    memory: ApiMemory
    frame: Frame
    head: bytes
    correlation_id: int
    place: PausedPlace
    times: int = 1
    answered: bool = True
    pending: Sequence[object] = ()  # its entries in Connection.pending, told by identity
    acts: tuple[Callable[[Frame], Iterable[Order]], ...] = ()

    @property
    def size(self) -> int:
        """Bytes, the size field included."""
        return len(self.head) + len(self.frame.body)
