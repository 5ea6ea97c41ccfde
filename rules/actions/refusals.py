"""Slows down clients that klamm refuses, so that one that asks again at once does not keep it busy."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.rules.frame import Frame
from klamm.rules.verdict import Answer, MuteChannel, Order

FREE = 5  # refusals in a row that cost nothing: most clients give up or back off by themselves
FIRST_NS, LONGEST_NS = 10_000_000, 5_000_000_000  # the wait doubles from one to the other
FORGOTTEN_NS = 60_000_000_000  # without a refusal
CLIENTS_KEPT = 10_000  # beyond it all are forgotten, and begin anew


class Refusals:
    """Counts the refusals of each client, which is a host and a client id."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str | None], tuple[int, int]] = {}  # -> (refusals, ns of the last one)

    def slowed(self, frame: Frame, orders: Iterable[Order]) -> list[Order]:
        """The orders that refuse a request, and from the sixth in a row on a wait before klamm reads the next
        request of the connection. A refusal of only some topics or groups of a request costs nothing.
        """
        asked = list(orders)
        if not any(isinstance(order, Answer) for order in asked):
            return asked
        ns = self._wait(frame)
        return [MuteChannel(ns), *asked] if ns else asked

    def _wait(self, frame: Frame) -> int:
        client, now = (frame.peer.client_address.rpartition(":")[0], frame.client_id), frame.arrived_ns
        count, last = self.clients.get(client, (0, now))
        if now - last > FORGOTTEN_NS:
            count = 0
        if len(self.clients) >= CLIENTS_KEPT and client not in self.clients:
            self.clients.clear()
        self.clients[client] = count + 1, now
        return 0 if count < FREE else min(LONGEST_NS, FIRST_NS << min(count - FREE, 32))
