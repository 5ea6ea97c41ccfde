"""Clients that have authenticated with klamm: the end of their sessions, and that they authenticate again on
the connection that they have (KIP-368).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from klamm.decoders import DecodeError
from klamm.decoders.failures import UnknownApi
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.edge.link import Link
from klamm.proxy.sasl.mechanisms import Mechanism
from klamm.proxy.sasl.realm import OTHER_PRINCIPAL, Realm
from klamm.proxy.sasl.server import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Admit,
    approval,
    refusal,
)
from klamm.proxy.sasl.verdicts import Check, Failed, Proven
from klamm.rules.frame import Frame
from klamm.rules.orders import Answer, Cut, Order
from klamm.rules.rule import Draw, Rule

RULE = "authentication"  # among the rules of listeners
EXPIRED, FAILED = "its SASL session has ended", "its SASL authentication failed"
LEAVES_S = 1.0  # requests under way may take so long
LATE_S = 5.0  # for a client that begins in time, and is held up
ILLEGAL_STATE = 34


@dataclass(slots=True)
class Login:
    """The authentication of one connection. `realm` gives that of now. `named`: its mechanism; `mechanism`:
    of one under way.
    """

    realm: Callable[[], Realm]
    named: str
    proven: Proven
    mechanism: Mechanism | None = None


class Logins:
    """An action of klamm's own, in place of the broker's answers to SASL."""

    name: ClassVar[str] = RULE
    sides: ClassVar[Sequence[str]] = ("request",)

    def __init__(self, book: RuleBook) -> None:
        self.book = book
        self.logins: WeakKeyDictionary[Link, Login] = WeakKeyDictionary()
        self.links: WeakValueDictionary[int, Link] = WeakValueDictionary()  # by their numbers
        self.listens = False

    def begin(self, link: Link, realm: Callable[[], Realm], named: str, step: Admit) -> None:
        """A client has authenticated, and its link is open."""
        if not self.listens:
            self.listens = True
            self.book.listen(Rule(RULE, (self,), keys=frozenset({SASL_HANDSHAKE, SASL_AUTHENTICATE})))
        self.logins[link] = Login(realm, named, step.proven)
        self.links[link.number] = link
        _expire_in(link, step.lifetime_ms)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        link = self.links.get(frame.peer.number)
        if link is None:
            return ()
        try:
            values = frame.values
        except (DecodeError, UnknownApi):
            return (Cut("fin"),)
        if frame.api.key == SASL_HANDSHAKE:
            return self._handshake(link, frame.version, str(values["mechanism"]))
        return self._authenticate(link, frame.version, values["auth_bytes"])

    def _handshake(self, link: Link, version: int, mechanism: str) -> Iterable[Order]:
        login = self.logins[link]
        realm = login.realm()
        offered: dict[str, Any] = {"error_code": 0, "mechanisms": list(realm.mechanisms)}
        if mechanism == login.named and version:  # tokens without headers cannot be told from requests
            login.mechanism = realm.begin(mechanism, login.proven)
            if login.mechanism is not None:
                return (Answer(offered),)
        _leave(link)
        return (Answer({**offered, "error_code": ILLEGAL_STATE}),)

    def _authenticate(self, link: Link, version: int, message: bytes) -> Iterable[Order]:
        """A password that has changed is proven on a new connection: hashing it would hold up the others."""
        login = self.logins[link]
        realm = login.realm()
        if login.mechanism is None:
            _leave(link)
            why = "SaslHandshake comes first"
            return (Answer({"error_code": ILLEGAL_STATE, "error_message": why, "auth_bytes": b""}),)
        verdict = realm.judge(login.mechanism.answer(message))
        if isinstance(verdict, Check):
            return (Cut("fin"),)
        if isinstance(verdict, Proven) and verdict.user != login.proven.user:
            verdict = Failed(OTHER_PRINCIPAL, "another user", verdict.user)
        if isinstance(verdict, Failed):
            _leave(link)
            return (Answer(refusal(verdict)),)
        lifetime_ms = 0
        if isinstance(verdict, Proven):
            lifetime_ms = realm.lifetime_ms(verdict, time.time())
            login.proven, login.mechanism = verdict, None
            _expire_in(link, lifetime_ms)
        return (Answer(approval(verdict, lifetime_ms, version)),)


def _expire_in(link: Link, lifetime_ms: int) -> None:
    """End its connection soon after, between two exchanges; 0: never."""
    if (before := link.timers.pop("login", None)) is not None:
        before.cancel()
    if lifetime_ms:
        later = asyncio.get_running_loop().call_later
        link.timers["login"] = later(lifetime_ms / 1000 + LATE_S, link.drain, EXPIRED, LEAVES_S)


def _leave(link: Link) -> None:
    """End its connection once it has the answer."""
    asyncio.get_running_loop().call_soon(link.drain, FAILED, LEAVES_S)
