"""One proxied connection, without socket, clock or logger: bytes in, effects out.

`from_client(data, now_ns)` and `from_broker(data, now_ns)` take the bytes of a read (the ends of a link call
`requests.receive` and `responses.receive`, which are the same). They give either the very same object (all of
it goes on as it came: the common case) or a list of effects (effects.py), to be carried out in order.

A response belongs to the oldest pending request, and has its correlation id, or else that of exactly one
later request. Bytes that nobody may change are held back in three cases only: an incomplete header, a request
whose listeners are not known yet, and a response that a listener wants to read.
However a stream is cut into reads, it gives the same bytes, events and closes, but for one thing: of a large
response whose end cannot be read, the part that has gone on before the close depends on the reads.
"""

from __future__ import annotations

from klamm.decoders.framing import SIZE, tls_or_size
from klamm.proxy.session import unanswered
from klamm.proxy.session.connection import ClusterContext, Connection
from klamm.proxy.session.effects import Effect, Send
from klamm.proxy.session.memory import ApiMemory
from klamm.proxy.session.paused import Decision, Paused
from klamm.proxy.session.paused_answers import tell_undecided
from klamm.proxy.session.pending import PendingQueue
from klamm.proxy.session.requests import Requests
from klamm.proxy.session.resolving import resolve
from klamm.proxy.session.responses import Responses
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.rules.orders import FOREVER


class Session:
    """`broker` labels the node at the other end; `advertise` is the host that stands for every node of
    the cluster; `number` is the number of the connection, `principal` that of the client's certificate.
    """

    def __init__(
        self,
        context: ClusterContext,
        broker: str,
        advertise: str,
        client_address: str = "",
        number: int = 0,
        principal: str | None = None,
    ) -> None:
        self.connection = Connection(context, broker, advertise)
        self.rule_orders: RuleOrders | None = None
        if context.engine is not None:
            peer = context.engine.peer(context.cluster, broker, client_address, number, principal)
            self.rule_orders = RuleOrders(self.connection, context.engine, peer)
        self.requests = Requests(self.connection, self.rule_orders)
        self.responses = Responses(self.connection, self.rule_orders)
        self.from_client = self.requests.receive
        self.from_broker = self.responses.receive
        self.bound = self.responses.bound
        self.unmute = self.requests.unmute

    def connecting(self, now: int) -> list[Effect]:
        """The effects of rules on a connection that opens; they come before all others."""
        return [] if self.rule_orders is None else self.rule_orders.connecting(now)

    def resolve(self, paused: Paused, decision: Decision, now: int) -> list[Effect]:
        """Carry out the decision about a paused frame. Raises Undecidable, EncodeError and
        DecodeError, and nothing has changed then.
        """
        connection = self.connection
        assert self.rule_orders is not None
        resolve(self.rule_orders, paused, decision, now)
        effects, connection.effects = connection.effects, []
        answers = self.responses.receive(b"", now) if connection.clean else []
        return effects if isinstance(answers, bytes) else [*effects, *answers]

    def drain(self) -> None:
        """Read no more requests: a request of which a part has gone on still goes on whole, the bytes behind
        it never do.
        """
        self.connection.muted_until = FOREVER

    @property
    def muted(self) -> bool:
        """Is the connection muted for a throttle time? Then no request is read."""
        return self.connection.muted_until > 0

    @property
    def blocked(self) -> bool:
        """Do responses wait for a listener to be bound, or for their turn?"""
        return self.responses.bodies.blocked

    def own_time(self, elapsed_ns: int) -> None:
        """Add klamm's own time for one read to the counters of the newest pending request."""
        newest = self.connection.pending.newest
        if newest is not None and newest.memory is not None:
            newest.memory.counters.own.add(elapsed_ns)

    def pending(self) -> int:
        return sum(len(run.ids) for run in self.connection.pending) - self.connection.turn

    @property
    def awaits_token(self) -> bool:
        """May the broker still answer a SASL token that came without a header? Kafka does not answer the last
        one of GSSAPI.
        """
        return self.requests.expects_tokens and self.connection.awaits_token()

    @property
    def owing(self) -> bool:
        """Is an answer due to the client, or the rest of one?"""
        return self.pending() > 0 or self.responses.left > 0 or self.awaits_token

    def unanswered(self) -> list[tuple[ApiMemory, int]]:
        """The pending requests, oldest first, and how many of each, without those whose answer klamm makes
        or drops.
        """
        return [(memory, len(ids)) for memory, _, ids in unanswered.awaiting(self.connection)]

    def client_closed(self) -> list[Effect]:
        """The client has sent its last byte. A request that is cut short goes on as far as it came."""
        connection, requests = self.connection, self.requests
        missing = requests.left or ("some" if requests.kept_size and requests.kept else 0)
        if missing and not connection.closing:
            connection.problem(
                "truncated", "", f"the client closed in the middle of a request, {missing} bytes missing"
            )
        rest = requests.taken()
        effects, connection.effects = connection.effects, []
        return [Send("broker", rest), *effects] if rest and not connection.closing else effects

    def over(self, reason: str, now: int) -> list[Effect]:
        """Both ends are gone, for this reason: no bytes are kept any more, and requests whose answer has not
        come get none.
        """
        connection = self.connection
        connection.holds(-connection.held)
        self.responses.passing.cut()
        tell_undecided(connection)
        unanswered.tell_over(connection, reason, now)
        connection.pending = PendingQueue()
        effects, connection.effects = connection.effects, []
        return effects

    def broker_closed(self, how: str = "closed") -> list[Effect]:
        """The broker has sent its last byte. A response that is cut short and held is dropped: it may
        carry addresses. `how`: "closed" or "reset"; "": the connection ends for another reason.
        """
        connection, responses = self.connection, self.responses
        missing = responses.left or (
            f"{responses.bodies.need - responses.kept_size} or more" if responses.kept else 0
        )
        if connection.closing:
            pass
        elif missing:
            kind, message = _alert_of_tls(responses) or (
                "truncated",
                f"the broker closed in the middle of a response, {missing} bytes missing",
            )
            connection.problem(kind, "", message)
        elif how:
            unanswered.tell(connection, how, self.unanswered(), self.awaits_token)
        effects, connection.effects = connection.effects, []
        return effects


def _alert_of_tls(responses: Responses) -> tuple[str, str] | None:
    """Kind and message, if the broker's last bytes are an alert of TLS: it has 7, fewer than a response's
    header, for which Responses waits.
    """
    start = b"".join(responses.kept) if responses.kept_size < 8 else b""
    if len(start) < SIZE.size:
        return None
    (size,) = SIZE.unpack_from(start)
    found = tls_or_size(size, "broker", responses.limit)
    return found if found is not None and found[0] == "tls_from_broker" else None
