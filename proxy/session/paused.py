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
    """Let it go on, as it is or with these values."""

    values: dict[str, Any] | None = None


class Withhold(NamedTuple):
    """Drop it. Its answer never comes, and later answers of the connection wait for it."""


class Refuse(NamedTuple):
    """Answer the client with this error: instead of the broker's answer, or in it."""

    code: int


Decision = Resume | Withhold | Refuse


class Undecidable(ValueError):
    """This decision cannot be made about this frame; the text says why."""


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
