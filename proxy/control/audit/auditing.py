"""Tells the audit log of the connections of clients, of how they authenticate, of their administrative
requests and of rules that act on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from klamm.decoders import DecodeError
from klamm.decoders.error_codes import error_name
from klamm.decoders.failures import UnknownApi
from klamm.proxy.config_types import Address
from klamm.proxy.control.audit.audited_apis import TREES, Kept
from klamm.proxy.control.audit.sasl_users import LONGEST, is_last, user_of
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.edge.link import Link
from klamm.proxy.log.audit import SUCCESS, Audit
from klamm.proxy.session.rewriting.topology import NodeKey, broker_label
from klamm.rules.frame import Frame
from klamm.rules.orders import OnAnswer, Order
from klamm.rules.rule import Draw, Rule
from klamm.rules.subjects import error_codes

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
LONGEST_MECHANISM = 50
REFUSALS = {  # of klamm's own SASL -> Kafka's error
    "wrong_credentials": "SASL_AUTHENTICATION_FAILED",
    "not_allowed": "SASL_AUTHENTICATION_FAILED",
    "unsupported_mechanism": "UNSUPPORTED_SASL_MECHANISM",
}
UNANSWERED, UNREADABLE, UNKNOWN = "unanswered", "unreadable", "unknown"
AUTHENTICATION, REQUEST = "authentication", "request"
RULE = "audit log"  # among the rules of listeners


@dataclass(slots=True)
class Client:
    """A connection. `mechanism`, `user`: of its SASL; `waiting`: requests without an answer yet, as events;
    `acted`: hits by rule.
    """

    number: int
    cluster: str
    broker: str
    address: str
    principal: str | None
    client_id: str | None = None
    mechanism: str = ""
    user: str | None = None
    waiting: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    acted: Counter[str] = field(default_factory=Counter)


class Auditing:
    """An action of klamm's own, on the requests of the table and those of SASL. Others pass as they did."""

    name: ClassVar[str] = RULE
    sides: ClassVar[Sequence[str]] = ("request",)
    observes: ClassVar[bool] = True

    def __init__(self, audit: Audit, book: RuleBook) -> None:
        self.audit, self.book = audit, book
        self.clients: dict[int, Client] = {}
        self.numbers = count(1)
        book.listen(Rule(RULE, (self,), keys=frozenset({*TREES, SASL_HANDSHAKE, SASL_AUTHENTICATE})))
        book.engine.acted = self.acted

    def opened(self, link: Link, cluster: str) -> None:
        """A client has connected."""
        address = str(Address(*link.client_address))
        broker = broker_label(link.target)
        client = self.clients[link.number] = Client(link.number, cluster, broker, address, link.principal)
        self._tell(client, "connected", SUCCESS, {"listener": str(Address(*link.local_address))})

    def login(
        self,
        cluster: str,
        target: NodeKey | None,
        address: str,
        client_id: str | None,
        mechanism: str,
        user: str | None,
        reason: str,
    ) -> None:
        """A client has authenticated with klamm, or tried to. `user`: as it says; `reason`: that of a
        refusal, or "success".
        """
        done = reason == SUCCESS
        principal = f"User:{user}" if done else None
        client = Client(0, cluster, broker_label(target), address, principal, client_id)
        fields = {"mechanism": mechanism, "user": None if user is None else user[:LONGEST]}
        more = {} if done else {"reason": reason}
        self._tell(client, AUTHENTICATION, SUCCESS if done else REFUSALS[reason], {**fields, **more})

    def closed(self, link: Link, reason: str) -> None:
        """A connection has ended."""
        client = self.clients.pop(link.number, None)
        if client is None:
            return
        for event, fields in client.waiting.values():
            self._tell(client, event, UNANSWERED, fields)
        if client.client_id is None and link.broker is not None:
            named = (memory.client_id for memory in link.session.requests.known.values())
            client.client_id = next(filter(None, named), None)
        self._tell(client, "disconnected", SUCCESS, {"reason": reason, "rules": dict(client.acted)})

    def acted(self, rule: Rule, frame: Frame) -> None:
        """A rule had a hit. The first on a connection is told at once, the number of all when it ends."""
        client = self.clients.get(frame.peer.number)
        if client is None or rule.name in self.book.listening:
            return
        client.acted[rule.name] += 1
        if client.acted[rule.name] == 1:
            client.client_id = frame.client_id or client.client_id
            api = None if rule.event == "connect" else frame.api.name
            actions = [action.name for action in rule.do]
            self._tell(client, "rule_acted", SUCCESS, {"rule": rule.name, "actions": actions, "api": api})

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        client = self.clients.get(frame.peer.number)
        if client is None:
            return ()
        client.client_id = frame.client_id or client.client_id
        try:
            event, fields = self._asked(client, frame)
        except (DecodeError, UnknownApi):
            fields = {"api": frame.api.name, "version": frame.version}
            self._tell(client, REQUEST, UNREADABLE, fields)
            return ()
        number = next(self.numbers)
        client.waiting[number] = event, fields

        def answered(answer: Frame) -> Iterable[Order]:
            if client.waiting.pop(number, None) is not None:
                self._answered(client, event, fields, answer)
            return ()

        return (OnAnswer(answered),)

    def _asked(self, client: Client, frame: Frame) -> tuple[str, dict[str, Any]]:
        """The event of a request, and its fields. Raises DecodeError and UnknownApi."""
        values = frame.values
        if frame.api.key == SASL_HANDSHAKE:
            client.mechanism, client.user = str(values["mechanism"])[:LONGEST_MECHANISM], None
            return AUTHENTICATION, {"mechanism": client.mechanism, "user": None}
        if frame.api.key == SASL_AUTHENTICATE:
            client.user = client.user or user_of(client.mechanism, values["auth_bytes"])
            return AUTHENTICATION, {"mechanism": client.mechanism, "user": client.user}
        kept = Kept(frame.api.name, values)
        more = {"left_out": kept.left_out} if kept.left_out else {}
        return REQUEST, {"api": frame.api.name, "version": frame.version, "asked": kept.fields, **more}

    def _answered(self, client: Client, event: str, fields: dict[str, Any], answer: Frame) -> None:
        try:
            codes = error_codes(answer.api.fields("response"), answer.version, answer.values)
        except (DecodeError, UnknownApi):
            self._tell(client, event, UNREADABLE, fields)
            return
        if codes:
            errors = dict(Counter(map(error_name, codes)))
            self._tell(client, event, error_name(codes[0]), {**fields, "errors": errors})
        elif answer.api.key == SASL_HANDSHAKE:
            if answer.version == 0:  # tokens without headers follow, which say no outcome
                self._tell(client, event, UNKNOWN, fields)
        elif answer.api.key != SASL_AUTHENTICATE:
            self._tell(client, event, SUCCESS, fields)
        elif is_last(client.mechanism, answer.values["auth_bytes"]):
            if client.user is not None:
                client.principal = f"User:{client.user}"
            self._tell(client, event, SUCCESS, fields)
            client.user = None  # of the next authentication on this connection (KIP-368)

    def _tell(self, client: Client, event: str, outcome: str, fields: dict[str, Any]) -> None:
        self.audit.event(
            event,
            outcome,
            cluster=client.cluster,
            address=client.address,
            principal=client.principal,
            client_id=client.client_id,
            connection_id=client.number or None,
            broker=client.broker,
            **fields,
        )
