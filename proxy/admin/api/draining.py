"""/v1/drain: klamm ends, without an error for its clients."""

from __future__ import annotations

import math

from klamm.client.types import Draining, DrainWish
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.rule_book import Refused


def drain(control: Control, ask: Ask) -> Draining:
    wish: DrainWish = ask.query
    if wish.within_s is not None and not (0 < wish.within_s < math.inf):
        raise Refused(422, f"within_s must be more than 0, not {wish.within_s}")
    control.drain.begin(f"POST /v1/drain by {ask.who}", wish.within_s)
    links, waiting = control.drain.left()
    return Draining(links, waiting, control.drain.within_s)


ROUTES = [
    Route(
        "POST",
        "/v1/drain",
        drain,
        "Take no new connections, end each that is open between two exchanges, then end klamm",
        Draining,
        202,
        query=DrainWish,
        refusals={422: "The time is no positive number"},
    ),
]
