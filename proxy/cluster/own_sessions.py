"""Authenticates klamm again on connections of clients, before its own sessions on them end (KIP-368)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import uniform

from klamm.proxy.cluster.conversation import Conversation, Credentials, Unanswered, Way
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.discovery import in_time
from klamm.proxy.cluster.own_sasl.sasl import OwnSession, authenticate
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.edge.exchanging import Exchanging
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.renewing import Renewing
from klamm.proxy.session.rewriting.topology import broker_label

AGAIN = (0.75, 0.85)  # of a session's time: sessions of one moment do not begin anew in one moment
RETRY, LAST = 0.05, 0.9  # while credentials cannot be had: after such a part of it, and until such a part
LEAST_S = 2.0  # of a session: brokers take no second authentication within a second
EXPIRED, EARLY = "its SASL session ends", 0.85
PATIENCE_S = 30.0  # for an answer, at least: a broker may throttle the connection meanwhile


class OwnSessions:
    """`dialler` knows the credentials of the moment."""

    def __init__(self, dialler: Dialler, problems: Problems) -> None:
        self.dialler, self.problems = dialler, problems

    def began(self, link: Link, session: OwnSession) -> None:
        """Authenticate again before it ends, or end the connection where it is too short for that."""
        if session.lifetime_s < LEAST_S:
            self._at(EARLY * session.lifetime_s, link, session, 1.0)
        else:
            share = uniform(*AGAIN)
            self._at(share * session.lifetime_s, link, session, share)

    def _at(self, after_s: float, link: Link, session: OwnSession, share: float) -> None:
        later = asyncio.get_running_loop().call_later
        link.timers["session"] = later(after_s, self._due, link, session, share)

    def _due(self, link: Link, session: OwnSession, share: float) -> None:
        """`share`: the part of the session's time that is over."""
        if share > LAST:
            self._end(link, session)
        else:
            self._run(link, partial(self._renew, link, session, share))

    def _run(self, link: Link, work: Callable[[], Awaitable[None]]) -> None:
        link.host.keep(link.safely(work))

    def _end(self, link: Link, session: OwnSession) -> None:
        """Between two exchanges; the client connects anew."""
        link.drain(EXPIRED, (1 - EARLY) / 2 * session.lifetime_s)

    async def _renew(self, link: Link, session: OwnSession, share: float) -> None:
        try:
            credentials = await self._credentials(True)
        except Unanswered as error:
            if link.client.gone:
                return
            self._say(link, error)
            self._at(RETRY * session.lifetime_s, link, session, share + RETRY)
            return
        broker = link.broker
        if broker is None or broker.eof_sent or link.client.ended or link.draining is not None:
            return
        if credentials is None or credentials[:2] != (session.mechanism, session.username):
            self._end(link, session)  # a broker takes no other principal on the same connection
            return
        work = partial(self._authenticate, link, session)
        link.draining = renewing = Renewing(link, broker, work, partial(self._run, link))
        renewing.look()

    async def _credentials(self, newer: bool) -> Credentials | None:
        """As they are now. Raises Unanswered."""
        read = self.dialler.way.credentials
        return None if read is None else await read(newer)

    async def _authenticate(self, link: Link, session: OwnSession, exchanging: Exchanging) -> None:
        conversation = Conversation(session.address, exchanging.reader, exchanging.transport, session.name)
        way = self.dialler.way._replace(timeout_s=max(PATIENCE_S, self.dialler.way.timeout_s))

        async def again(_address: Address, _way: Way) -> OwnSession | None:
            credentials = await self._credentials(False)  # the answers took long: a token may have ended
            assert credentials is not None
            return await authenticate(conversation, credentials, session.version)

        try:
            renewed = await in_time(session.address, way, again)
        except OSError as error:
            if not link.client.gone and isinstance(link.draining, Renewing):
                self._say(link, error)
                if not exchanging.transport.is_closing():
                    self._end(link, session)
            return
        self.problems.stats.reauthentications[self.problems.cluster, broker_label(link.target)] += 1
        if renewed is not None:
            self.began(link, renewed)

    def _say(self, link: Link, error: OSError) -> None:
        self.problems.count(link.target, "reauthentication_failed")
        message = f"klamm's own SASL session is not renewed: {error}"
        self.problems.say(link, "reauthentication_failed", "", message)
