"""The rows of a capture: one for each frame, and one for each other event of its connection.

Frames have no size field, and `size` is the length of the whole frame without it. Blanked bytes are zeros at
the same places, so layouts stay valid. A frame of which only the size is known has no bytes at all.

These zeros are not stored. `ConnectionReader` gives, and segments hold, frames that are *cut*: without their
blanked bytes. `storage.reading` gives them *filled* again (`cutting.cut`, `cutting.filled`). `blanks`
count from the start of the filled frame in both.

`time_ns` of a frame is when its first byte came. Its row comes when the frame is whole and it is known how
klamm forwarded it. Rows keep the order of each direction; times can go back between two directions or
connections.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Literal, NamedTuple

from klamm.decoders import API
from klamm.decoders.schema import Side

Kind = Literal["frame", "token", "opened", "closed", "lost"]
Fate = Literal["passed", "rewritten", "withheld", "made"]
Blanks = tuple[tuple[int, int], ...]  # (offset in the frame, bytes)

# The text of a `closed` row where an end of the connection closed it, in live and in imported captures.
CLOSED_BY_CLIENT, RESET_BY_CLIENT = ENDED_BY_CLIENT = ("closed by client", "reset by client")
CLOSED_BY_BROKER, RESET_BY_BROKER = ENDED_BY_BROKER = ("closed by broker", "reset by broker")

# An answer whose request was not seen: nobody knows its API, so its key and version are -1.
WITHOUT_REQUEST = "answer without its request"
NO_REQUEST = "frame that is no request"  # of a client, the same: too short for one, or text


def api_name(key: int, side: Side | None = None) -> str:
    """The name of an API; its number where klamm does not know it; WITHOUT_REQUEST where a frame has none, or
    NO_REQUEST if the frame is known to be a client's.
    """
    if key >= 0:
        return API.any(key).name
    return NO_REQUEST if side == "request" else WITHOUT_REQUEST


class CapturedConnection(NamedTuple):
    """A client's connection. `capture` names the run that saw it, `number` the connection within that run."""

    capture: str
    number: int
    cluster: str
    broker: str  # "2", "controller 1", "bootstrap"; "host:port" where nobody knows more
    client: str  # host:port
    principal: str | None = None  # of the client's certificate


class Captured(NamedTuple):
    """`kind`: a frame, a raw SASL token, the beginning or end of a connection, or a gap in the capture.

    `exchange` numbers the requests of a connection from 0; a response has the number of its request, -1 where
    that was not seen. `frame` None: only its size was kept. `fate`: passed as it came; rewritten, and
    `forwarded` is what went on; withheld: nothing went on; made by klamm, in the place of the other end: its
    answer has the number of the request, its request a number of its own.
    """

    time_ns: int  # since 1970
    kind: Kind
    connection: CapturedConnection | None = None  # None: of the capture as a whole
    side: Side | None = None
    api_key: int = -1
    api_version: int = -1
    correlation_id: int = -1
    client_id: str | None = None  # of the request, on its response too
    exchange: int = -1
    size: int = 0  # of the whole frame; of a gap, its bytes, 0 where that is not known
    frame: bytes | None = None
    blanks: Blanks = ()
    fate: Fate = "passed"
    forwarded: bytes | None = None
    forwarded_blanks: Blanks = ()
    awaits: bool = True  # a request: an answer is due (not with acks=0)
    lost: int = 0  # frames that are missing here, as far as that is known
    text: str = ""  # why a connection ended, which bytes are missing and why, or more about a fate


TIME: Callable[[Captured], int] = attrgetter("time_ns")
