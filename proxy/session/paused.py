"""A paused frame: it waits in its line until a person decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from klamm.proxy.session.line import PausedPlace
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.observing.summaries import ResponseSummary
from klamm.rules.frame import Frame
from klamm.rules.orders import Afterwards, OnAnswer, Pause


class Resume(NamedTuple):
    """Let the frame go on, as it is or with these values."""

    values: dict[str, Any] | None = None


class Withhold(NamedTuple):
    """Drop the frame. No answer to it comes, and the later answers of the connection wait for ever."""


class Refuse(NamedTuple):
    """Answer the client with this error: instead of the broker's answer, or in it."""

    code: int


Decision = Resume | Withhold | Refuse


class Undecidable(ValueError):
    """This decision cannot be made about this frame; the text says why."""


# Of Connection.exchange: memory, pending requests, correlation id, summary, length, ns, origin, answer.
Exchanged = tuple[ApiMemory, Any, int, ResponseSummary, int, int, str, Frame | None]


@dataclass(slots=True, eq=False)
class Paused:
    """`frame` is the frame as rules have changed it; `head` is its bytes before the body. A request is sent
    `times` times; `pending` are its pending requests; `acts` are applied to the answer that the client gets.
    Of an answer, `afterwards` see it as it goes on, and its `exchange` is told then, if somebody wants it.
    """

    pause: Pause
    memory: ApiMemory
    frame: Frame
    head: bytes
    correlation_id: int
    place: PausedPlace
    times: int = 1
    answered: bool = True
    pending: Sequence[Any] = ()  # PendingRequests
    acts: tuple[OnAnswer, ...] = ()
    afterwards: Sequence[Afterwards] = ()
    exchange: Exchanged | None = None

    @property
    def size(self) -> int:
        """Bytes, the size field included."""
        return len(self.head) + len(self.frame.body)
