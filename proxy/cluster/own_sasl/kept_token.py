"""A token for all connections of a cluster: asked for by one at a time, and again before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.own_sasl.token_sources import Source, Token

AHEAD = 0.7  # of its time: a new one is asked for, and this one serves meanwhile
LEAST_S = 5.0  # one that ends sooner is given to nobody,
SHORT = 0.9  # and neither is one of which such a part is over
UNKNOWN_S = 60.0  # the time of a token that does not say when it ends
FIRST_S, LAST_S = 1.0, 30.0  # after a failure nobody asks for so long; twice as long after each further one


class KeptToken:
    """`failed` gets the error of a question for which nobody waits."""

    def __init__(self, source: Source, failed: Callable[[Unanswered], None]) -> None:
        self.source, self.failed = source, failed
        self.token: Token | None = None
        self.newer_from = self.ends = 0.0  # by the loop's clock
        self.asking: asyncio.Task[Unanswered | None] | None = None
        self.error: Unanswered | None = None  # of the last question
        self.wait_s, self.not_before = FIRST_S, 0.0

    async def get(self, newer: bool = False) -> str:
        """The token; with `newer`, a new one where the time for it has come. Raises Unanswered."""
        now = asyncio.get_running_loop().time()
        token = self.token
        if token is not None and now < self.newer_from:
            return token.text
        usable = token is not None and now < self.ends
        if self.asking is None and now < self.not_before:
            if token is None or not usable or newer:
                assert self.error is not None
                raise Unanswered(str(self.error))
            return token.text
        if self.asking is None:
            self.asking = asyncio.get_running_loop().create_task(self._ask())
        if token is not None and usable and not newer:
            return token.text
        error = await asyncio.shield(self.asking)
        if error is not None:
            raise Unanswered(str(error))
        assert self.token is not None
        return self.token.text

    async def _ask(self) -> Unanswered | None:
        """Gives the error, if there is one."""
        clock = asyncio.get_running_loop().time
        try:
            token = await self.source()
            lifetime_s = UNKNOWN_S if token.lifetime_s is None else token.lifetime_s
            if lifetime_s <= 0:
                raise Unanswered("the new token has ended already: is the time of this machine right?")
        except Unanswered as error:
            self.error = error
            self.not_before = clock() + self.wait_s
            self.wait_s = min(2 * self.wait_s, LAST_S)
            self.failed(error)
            return error
        else:
            self.token, self.error, self.wait_s = token, None, FIRST_S
            self.newer_from = clock() + AHEAD * lifetime_s
            self.ends = clock() + max(SHORT * lifetime_s, lifetime_s - LEAST_S)
            return None
        finally:
            self.asking = None
