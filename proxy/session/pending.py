"""Requests that wait for their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from klamm.proxy.session.effects import Effect, Piece
from klamm.proxy.session.memory import Flow
from klamm.proxy.session.summaries import Note


class Run(NamedTuple):
    """Requests of one flow that came in one read and say the same, waiting for their answers. `flow`
    None: klamm's own answer.
    """

    flow: Flow | None
    note: Note
    arrived: int  # ns
    ids: Sequence[int]  # correlation ids, in order
    length: int  # of the first, without its size field
    made: tuple[Piece | Effect, ...] = ()  # klamm's own answer
    fate: Any = None  # what rules have decided of the answer
