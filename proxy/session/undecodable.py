"""The line of the log about a body that does not decode."""

from __future__ import annotations

from klamm.decoders.oddity import oddity
from klamm.decoders.schema import Side
from klamm.rules.plan import Plan

MOST = 16 * 1024  # bytes of a body in which the place is looked for

WRONG, EARLY = "a length, a count or a null in it is wrong", "it ends early"  # of a body that was not kept


class Undecodable:
    """Its text is made when the line is written: to find the place takes long, and few of the lines are
    written. `body`: the bytes, or the reason where they are not at hand.
    """

    def __init__(self, plan: Plan, side: Side, body: bytes | str) -> None:
        self.plan, self.side = plan, side
        self.body = body if len(body) <= MOST else f"{len(body)} bytes"

    def __str__(self) -> str:
        plan, body = self.plan, self.body
        why = body if isinstance(body, str) else oddity(body, plan.key, plan.version, self.side)
        return f"a {plan.name} v{plan.version} {self.side} does not decode ({why}); passed on as it is"
