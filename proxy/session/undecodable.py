"""The lines of the log about bodies and headers that do not decode."""

from __future__ import annotations

from klamm.decoders.failures import DecodeError
from klamm.decoders.oddity import fitting_words, oddity, place
from klamm.decoders.schema import Side
from klamm.decoders.spans import TAGGED
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


def undecodable_header(plan: Plan, error: DecodeError) -> str:
    """Clients that do not know that a version is flexible leave out the tagged fields of header 2. Where the
    version is not known, the bytes may be anything, a password even: then the reason is not told.
    """
    if plan.unknown is not None:
        return "the header of a request of an unknown API or version does not decode; passed on as it is"
    why = f"{place(error, 'it')}: {error.reason}{fitting_words([1] if error.path == TAGGED else [])}"
    name = f"header, version {plan.request_header}, of a {plan.name} v{plan.version} request"
    return f"the {name} does not decode ({why}); passed on as it is"
