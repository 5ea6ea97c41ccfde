"""Shows answers as they go on to those who want to see them, and tells the exchanges of paused ones then."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.proxy.session.connection import Connection
from klamm.proxy.session.paused import Exchanged, Paused
from klamm.rules.frame import Frame
from klamm.rules.orders import Afterwards, Order


def see(connection: Connection, orders: Iterable[Order], frame: Frame) -> None:
    """Show an answer, as it goes on, to the orders that want to see it."""
    before = frame.work
    for order in orders:
        if isinstance(order, Afterwards):
            order.see(frame)
    connection.work += frame.work - before


def tell_later(connection: Connection, paused: Paused, exchange: Exchanged) -> None:
    """Keep the exchange of a paused answer until `tell_decided`."""
    paused.exchange, connection.treatment = exchange, None


def tell_decided(connection: Connection, paused: Paused, codes: list[int] | None = None) -> None:
    """Give the exchange of an answer that was paused to the log and to listeners: it goes on, or never does.
    `codes`: those of its errors where a decision has changed it.
    """
    if paused.frame.side == "response":
        connection.undecided.remove(paused)
    see(connection, paused.afterwards, paused.frame)
    if paused.exchange is None:
        return
    connection.treatment = paused.frame.treatment
    memory, run, correlation, summary, length, elapsed, origin, shown = paused.exchange
    if codes is not None:
        summary, origin = summary.changed(codes), "klamm"
    connection.exchange(memory, run, correlation, summary, length, elapsed, origin, shown)


def tell_undecided(connection: Connection) -> None:
    """The connection has ended: its paused answers never go on."""
    for paused in connection.undecided.copy():
        paused.frame.treatment.withheld = True
        tell_decided(connection, paused)
