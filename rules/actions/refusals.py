"""Refusals by policies: an error that clients understand, more slowly each time."""

from __future__ import annotations

from collections.abc import Iterable

from klamm.rules.actions.error import Error
from klamm.rules.errors.answers import error_answer
from klamm.rules.frame import Frame
from klamm.rules.orders import Answer, Edit, MuteChannel, OnAnswer, Order
from klamm.rules.quantities import ErrorCode

FREE = 5  # refusals in a row that cost nothing: most clients give up or back off by themselves
FIRST_NS, LONGEST_NS = 10_000_000, 5_000_000_000  # the wait doubles from one to the other
FORGOTTEN_NS = 60_000_000_000  # without a refusal
CLIENTS_KEPT = 10_000  # beyond it all are forgotten, and begin anew


class Refusals:
    """Counts the refusals of each client, which is a host and a client id."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str | None], tuple[int, int]] = {}  # -> (refusals, ns of the last one)

    def refuse(self, frame: Frame, code: ErrorCode) -> list[Order]:
        """The orders that refuse a request, and from the sixth refusal in a row on a wait before klamm reads
        the next request of the connection. A refusal of only some topics or groups costs nothing.
        """
        metadata = frame.api.name == "Metadata" and frame.version > 0 and frame.only is None
        orders = _metadata(frame, code) if metadata else list(Error(code).act(frame, float))
        if not any(isinstance(order, Answer) for order in orders) and not (metadata and len(orders) > 1):
            return orders
        ns = self._wait(frame)
        return [MuteChannel(ns), *orders] if ns else orders

    def _wait(self, frame: Frame) -> int:
        client, now = (frame.peer.client_host, frame.client_id), frame.arrived_ns
        count, last = self.clients.get(client, (0, now))
        if now - last > FORGOTTEN_NS:
            count = 0
        if len(self.clients) >= CLIENTS_KEPT and client not in self.clients:
            self.clients.clear()
        self.clients[client] = count + 1, now
        return 0 if count < FREE else min(LONGEST_NS, FIRST_NS << min(count - FREE, 32))


def _metadata(frame: Frame, code: ErrorCode) -> list[Order]:
    """The client hears of the brokers, as one without any permission does: without them it would take the
    cluster for gone, and never hear of its error. The broker is asked for no topic, so that it creates none.
    """
    asked = frame.values
    no_topics = Edit({**asked, "topics": []})
    if not asked["topics"]:
        return [] if asked["topics"] == [] else [no_topics]
    refused = error_answer(frame.api, frame.version, asked, code)
    assert refused is not None

    def answered(answer: Frame) -> Iterable[Order]:
        return [Edit({**answer.values, "topics": refused["topics"]})]

    return [no_topics, OnAnswer(answered)]
