"""Requests that wait for their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from klamm.proxy.session.effects import Effect, Piece
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.summaries import RequestSummary


class PendingRequests(NamedTuple):
    """Requests of one memory that came in one read and say the same, waiting for their answers. `memory`
    None: klamm's own answer.
    """

    memory: ApiMemory | None
    summary: RequestSummary
    arrived: int  # ns
    ids: Sequence[int]  # correlation ids, in order
    length: int  # of the first, without its size field
    made: tuple[Piece | Effect, ...] = ()  # klamm's own answer
    answer_orders: Any = None  # rule_orders.AnswerOrders: decided about the answer when the request came
