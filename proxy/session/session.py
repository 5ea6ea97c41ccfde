"""One proxied connection, without socket, clock or logger: bytes in, effects out.

`from_client(data, now_ns)` and `from_broker(data, now_ns)` take what was read and give either the very same
object (all of it goes on as it came: the common case) or a list of effects (effects.py), to be carried out in
order.

A response belongs to the oldest request, and its correlation id must say so. Bytes that nobody may change are
never kept, except a header that is not whole. A stream gives the same bytes, events and closes however it is
cut.
"""

from __future__ import annotations

from collections import Counter

from klamm.proxy.session.connection import ClusterContext, Connection
from klamm.proxy.session.effects import Effect, Send
from klamm.proxy.session.paused import Decision, Paused
from klamm.proxy.session.requests import Requests
from klamm.proxy.session.resolving import resolve
from klamm.proxy.session.responses import Responses
from klamm.proxy.session.rule_orders import RuleOrders


class Session:
    """`broker` labels the node at the other end; `advertise` is the host that stands for every node of
    the cluster. `number` is the connection's.
    """

    def __init__(
        self, context: ClusterContext, broker: str, advertise: str, client_address: str = "", number: int = 0
    ) -> None:
        self.connection = Connection(context, broker, advertise)
        self.rule_orders: RuleOrders | None = None
        if context.engine is not None:
            peer = context.engine.peer(context.cluster, broker, client_address, number)
            self.rule_orders = RuleOrders(self.connection, context.engine, peer)
        self.requests = Requests(self.connection, self.rule_orders)
        self.responses = Responses(self.connection, self.rule_orders)
        self.from_client = self.requests.receive
        self.from_broker = self.responses.receive
        self.bound = self.responses.bound
        self.unmute = self.requests.unmute

    def connecting(self, now: int) -> list[Effect]:
        """Effects of rules on a connection that opens, before anything else."""
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

    @property
    def muted(self) -> bool:
        """Is a throttle time under way, in which no request is read?"""
        return self.connection.muted_until > 0

    def own_time(self, elapsed_ns: int) -> None:
        """Count klamm's own time for one read with the newest pending request."""
        newest = self.connection.pending[-1].memory if self.connection.pending else None
        if newest is not None:
            newest.counters.own.add(elapsed_ns)

    def pending(self) -> int:
        return sum(len(run.ids) for run in self.connection.pending) - self.connection.turn

    def unanswered(self) -> Counter[tuple[str, str]]:
        """The same, by API and client id, without what klamm itself asked or would have answered."""
        found: Counter[tuple[str, str]] = Counter()
        answered = self.connection.turn  # of the oldest pending requests
        for run in self.connection.pending:
            if run.memory is not None and not (run.answer_orders is not None and run.answer_orders.swallow):
                found[run.memory.counters.api, run.memory.counters.client_id] += len(run.ids) - answered
            answered = 0
        return found

    def client_closed(self) -> list[Effect]:
        """The client has sent its last byte. A request that is cut short goes on as far as it came."""
        connection, requests = self.connection, self.requests
        missing = requests.left or ("some" if requests.kept_size and requests.kept else 0)
        if missing and not connection.closing:
            connection.problem(
                "truncated", "", f"the client closed in the middle of a request, {missing} bytes missing"
            )
        rest, requests.kept = b"".join(requests.kept), []
        effects, connection.effects = connection.effects, []
        return [Send("broker", rest), *effects] if rest and not connection.closing else effects

    def broker_closed(self) -> list[Effect]:
        """The broker has sent its last byte. A response that is cut short and held is dropped: it may
        carry addresses.
        """
        connection, responses = self.connection, self.responses
        missing = responses.left or (
            f"{responses.bodies.need - responses.kept_size} or more" if responses.kept else 0
        )
        if missing and not connection.closing:
            connection.problem(
                "truncated", "", f"the broker closed in the middle of a response, {missing} bytes missing"
            )
        effects, connection.effects = connection.effects, []
        return effects
