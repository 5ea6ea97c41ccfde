"""Orders of rules, as data. An order that ends a frame is the last one: later rules of the file are not
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from klamm.rules.frame import Frame

How = Literal["fin", "rst"]
Direction = Literal["request", "response"]
FOREVER = 2**63 - 1  # ns


class Delay(NamedTuple):
    """The frame goes on `ns` after it came; the bytes behind it on its side wait."""

    ns: int


class Pause(NamedTuple):
    """The frame waits until somebody resolves it, at most so long; what later rules say of it is done before.
    What follows it on its side waits behind it. `rule`: on whose behalf; the engine says it.
    """

    timeout_ns: int
    rule: str = ""


class Edit(NamedTuple):
    """The frame goes on with these values, in the wire table's names. Later rules see them."""

    values: dict[str, Any]


class Raw(NamedTuple):
    """The frame goes on with this body, whatever it means; the size field follows."""

    body: bytes


class Answer(NamedTuple):
    """The broker does not see the request; klamm answers with these values (None: not at all). Ends it."""

    values: dict[str, Any] | None


class OnAnswer(NamedTuple):
    """When the answer to this request comes, this function gives the orders for it. Without `needs_request`
    the answer may have no `request`: then its bytes are not kept until the answer comes. `never` is called
    where no answer comes: with the reason for which the connection ended (None: it had so many requests that
    this one is only counted), and how long the request had waited (ns); with "" and 0 where rules see to it.
    """

    act: Callable[[Frame], Iterable[Order]]
    needs_request: bool = True
    never: Callable[[str | None, int], None] | None = None


class Afterwards(NamedTuple):
    """This function sees the answer once more, as all rules have left it. It changes nothing."""

    see: Callable[[Frame], None]


class Drop(NamedTuple):
    """The frame goes nowhere. No answer ever comes, and the connection's later ones wait for it. Ends it."""


class Cut(NamedTuple):
    """The connection ends: both sides, after `sent` bytes of this frame (None: all of it). Ends it."""

    how: How = "rst"
    sent: int | None = 0


class MuteChannel(NamedTuple):
    """The next request of the connection is read `ns` after this frame came: brokers mute a channel like this
    for the throttle time (KIP-219).
    """

    ns: int


class Silence(NamedTuple):
    """The client gets no more bytes on this connection, and its bytes are not read any more. Ends the frame.
    The connection is closed after so long; 0: never.
    """

    close_after_ns: int = 0


class Twice(NamedTuple):
    """The broker gets the request twice; its second answer is swallowed."""


class Shape(NamedTuple):
    """The way in which the bytes of one direction flow from here on. 0 leaves a trait as it is."""

    direction: Direction
    bytes_per_s: int = 0
    slice_bytes: int = 0  # on average,
    slice_spread: int = 0  # plus or minus this,
    slice_gap_ns: int = 0  # with so much between two slices
    limit_bytes: int = 0  # then the connection is closed
    close_after_ns: int = 0  # the other end is closed this much later
    loss: float = 0.0  # the share of segments that stall for a retransmission
    loss_ns: int = 0  # which takes so long, doubled for each further loss in a row
    loss_correlation: float = 0.0  # how much each chance of a loss is that of the one before


class Keep(NamedTuple):
    """A capture that runs keeps the exchange."""


class Log(NamedTuple):
    """An event for the log. `each`: a line for each of them, up to some in a second; else it is a warning, of
    which the log has one a minute for each rule. `rule`: on whose behalf; the engine says it.
    """

    message: str
    fields: dict[str, Any]
    each: bool = True
    rule: str = ""


Reply = Answer | OnAnswer
Ending = Drop | Cut | Silence
Order = Delay | Pause | Edit | Raw | Reply | Ending | MuteChannel | Twice | Shape | Log | Keep | Afterwards
ENDING = (Answer, Drop, Cut, Silence)


def edited_by(orders: Iterable[Order]) -> dict[str, Any] | None:
    """The values as the last edit left them. The body may have been corrupted after it."""
    edits = [order.values for order in orders if isinstance(order, Edit)]
    return edits[-1] if edits else None


def pause_of(orders: Iterable[Order]) -> Pause | None:
    """The first order that pauses the frame."""
    return next((order for order in orders if isinstance(order, Pause)), None)
