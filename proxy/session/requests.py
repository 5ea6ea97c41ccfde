"""Cuts the bytes from the client into requests, counts them and passes them on."""

from __future__ import annotations

from struct import Struct

from klamm.decoders.failures import DecodeError
from klamm.decoders.headers import read_request_header
from klamm.decoders.sasl_tokens import GSSAPI_FIRST, Tokens
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Piece, ReadClient, Send, Turn, sends
from klamm.proxy.session.frame_sizes import judge_size, skip_short
from klamm.proxy.session.listener_frames import must_wait, request_frame
from klamm.proxy.session.memory import MOST, NO_LENGTH, ApiMemory, equal_requests, int32
from klamm.proxy.session.observing.listeners import have_room
from klamm.proxy.session.own_answers import ANSWERED_LIMIT, refusal
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.request_bodies import RequestBodies, goes_on
from klamm.proxy.session.request_bodies import count as count_requests
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.steps import CLOSED, COUNT, MORE, PASSED, REPLACED, Step
from klamm.proxy.session.turns import KNOWN, READ, STEPS, Turns
from klamm.proxy.session.undecodable import undecodable_header
from klamm.rules.plan import UNKNOWN, Plan

HEAD = Struct(">iii").unpack_from  # size, key and version, correlation id
HEADER_LIMIT = 64 * 1024  # client id and tagged fields of a request's header
LONG_HEADER = 4096  # of such headers a connection remembers one


class Requests:
    """`left`: bytes of the current frame that are still to come, and go on as they are. `kept`: the first
    bytes of a frame that cannot be read, or must not go on, before more of it is there.
    """

    def __init__(self, connection: Connection, rule_orders: RuleOrders | None) -> None:
        self.connection, self.rule_orders = connection, rule_orders
        self.left = self.kept_size = 0
        self.kept: list[bytes] = []
        self.need = 0  # bytes in `kept` before the frame is read again
        self.since = 0  # when the first byte in `kept` came (ns)
        self.instead: list[Piece | Effect] = []  # goes to the broker in place of the frame, after REPLACED
        self.revision = 0  # of ClusterContext, when the memories were made
        self.passed = 0  # leading frames of this read that the rules have already let pass
        self.known: dict[int, ApiMemory] = {}
        self.memories = self.known  # empty while SASL tokens are expected: then every header is read
        self.expects_tokens = False
        self.bodies = RequestBodies(connection, None if rule_orders is None else rule_orders.peer)
        self.steady: ApiMemory | None = None  # the last read held equal, whole requests of this memory only
        self.met: ApiMemory  # the memory of the frame that was read last
        self.limit = connection.context.frame_limit
        self.rules_revision = self.names_revision = self.labels_revision = 0
        self.unread: list[bytes] = []  # bytes that came while the connection was muted
        self.turns = Turns(connection.context.crowd)

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the very same object if all of it goes on, else effects."""
        connection = self.connection
        if connection.closing or connection.broker_over:
            return []
        if connection.muted_until:
            return self._muted(data, now)
        if self.revision != connection.context.revision:
            self._read_again()
        if self.steady is not None and self._same(self.steady, data, now):
            return data
        self.steady = None
        read, arrived = data, now
        if self.kept:
            self.kept.append(data)
            self.kept_size += len(data)
            connection.holds(len(data))
            if self.kept_size < self.need and connection.may_hold(self.kept_size):
                return []
            data, arrived, self.need = self.taken(), self.since, 0
        if connection.pending.waiting(connection.turn) > self.turns.crowd.pending and not connection.crowded:
            connection.crowded = True
            connection.effects.append(ReadClient(False))
        self.turns.begin(now)
        return self._cut(data, data is read, now, arrived)

    def _cut(self, data: bytes, is_read: bool, now: int, arrived: int) -> bytes | list[Effect]:
        """Read the requests in `data`, of this read alone or not; its first byte came when it `arrived`."""
        connection, read = self.connection, data
        size, pos, start = len(data), self.left, 0
        pieces: list[Piece | Effect] = []
        if self.bodies.walk is not None:
            self._feed(data[:pos] if pos < size else data, pos <= size, now)
            if connection.muted_until and pos < size:
                self.unread.append(data[pos:])
                data, size = data[:pos], pos
        while size - pos >= 12:
            length, code, correlation = HEAD(data, pos)
            memory = self.memories.get(code)
            if memory is not None and length <= self.limit and memory.matches(data, pos, length):
                step, self.met = COUNT, memory
                self.turns.left -= KNOWN
                if memory.summary.bodies and self._waits(memory, length + 4, size - pos):
                    step = MORE
            else:
                step = self._read_new(data, pos, length, code, correlation, arrived)
                self.turns.left -= READ + connection.work // STEPS
                connection.work = 0
            if step in (MORE, CLOSED):
                break
            if step == COUNT:
                self._count(self.met, correlation, length, now, data, pos)
            elif step == REPLACED:
                pieces += (data[start:pos], *self.instead)
                start, self.instead = pos + length + 4, []
            pos += length + 4
            arrived = now
            if self.turns.left < 0 and pos < size and not connection.muted_until:
                connection.muted_until = now or 1
                connection.effects.append(Turn("request"))
            if connection.broker_over or connection.muted_until:
                if connection.muted_until:
                    self.unread.append(data[pos:])
                data, size = data[:pos], min(pos, size)
            elif step == COUNT and pos == size:
                self._become_steady(self.met, data[pos - length - 4 : pos - length + 4], length)
        if pos < size and not connection.broker_over:
            pos = skip_short(connection, data, pos, self.limit)
        if connection.broker_over:
            data, size = data[:pos], min(pos, size)
        if pos >= size:
            self.left = pos - size
            if is_read and data is read and not connection.effects and not pieces:
                return data
            pieces.append(data[start:])
        else:
            self.left = 0
            self.kept, self.kept_size, self.since = [data[pos:]], size - pos, arrived
            connection.holds(self.kept_size)
            pieces.append(data[start:pos])
        effects, connection.effects = connection.effects, []
        return [*sends("broker", pieces), *effects]

    def taken(self) -> bytes:
        """Remove the kept bytes, and give them."""
        data, self.kept = b"".join(self.kept), []
        self.connection.holds(-self.kept_size)
        self.kept_size = 0
        return data

    def _muted(self, data: bytes, now: int) -> list[Effect]:
        """Pass the rest of a request of which a part has gone on; the bytes behind it wait for `unmute`."""
        connection, begun = self.connection, min(self.left, len(data))
        until, connection.muted_until = connection.muted_until, 0
        effects = self.receive(data[:begun], now) if begun else []
        connection.muted_until = until
        self.unread.append(data[begun:])
        return [Send("broker", effects)] if isinstance(effects, bytes) else effects

    def unmute(self, now: int) -> list[Effect]:
        """Go on: the throttle time is over, the others have had their turn, or a handshake is answered."""
        connection = self.connection
        if connection.shaking_hands:
            return []
        connection.muted_until = 0
        if connection.tokens is not None and connection.tokens.sent == 0:
            self.memories, self.expects_tokens = {}, True
        self.turns.renew(now)
        unread, self.unread, self.since = b"".join(self.unread), [], now
        effects = self.receive(unread, now) if unread else []
        return [Send("broker", effects)] if isinstance(effects, bytes) else effects

    def _waits(self, memory: ApiMemory, size: int, there: int) -> bool:
        """Must a request be whole before it goes on, since a listener takes its body?"""
        waits = must_wait(self.connection, memory.summary.listeners, size, there)
        self.need = size if waits else 0
        return waits

    def _count(
        self, memory: ApiMemory, correlation: int, length: int, now: int, data: bytes, pos: int
    ) -> None:
        """Count the request at `pos`, which goes on, and append it to the pending requests: to the newest
        entry, if it is equal to it and no listener takes each exchange.
        """
        connection, summary = self.connection, memory.summary
        count_requests(memory, 1, length + 4)
        connection.sent(memory.plan, now)
        one_by_one = bool(summary.listeners) and have_room(summary.listeners)
        frame = None
        if one_by_one and summary.bodies:
            frame = request_frame(self.rule_orders, memory, data, pos, length, now)
        last = connection.pending.newest
        if (
            summary.answered
            and last is not None
            and last.memory is memory
            and last.summary is summary
            and last.arrived == now
            and last.answer_orders is None
            and not one_by_one
        ):
            connection.pending.also(correlation)
        elif summary.answered or summary.listeners or memory.plan.logged:
            request = PendingRequests(memory, summary, now, correlation, length, frame=frame)
            goes_on(connection, memory, request)

    def _read_again(self) -> None:
        """Rules, listeners, labels or names of topic ids have changed: forget the memories of them."""
        context, rule_orders = self.connection.context, self.rule_orders
        self.revision, self.steady = context.revision, None
        if rule_orders is not None and self.rules_revision != rule_orders.engine.revision:
            self.rules_revision, self.passed = rule_orders.engine.revision, 0
            rule_orders.passed("request")
            rule_orders.rule_anew(self.known)
        if self.labels_revision != context.stats.revision:
            self.labels_revision = context.stats.revision
            self.known.clear()  # their counters may be gone
        if self.names_revision != context.topology.names_revision:
            self.names_revision = context.topology.names_revision
            for memory in self.known.values():
                memory.forget_unnamed()

    def _become_steady(self, memory: ApiMemory, head: bytes, length: int) -> None:
        """Prepare the fast path: a read ended with a request of this memory; the next may hold equal ones."""
        concern = memory.concerns[0]
        by_header = concern is None or (concern.by_header and not self.passed)
        if by_header and memory.summary.answered and memory.least_now() <= length and not self.expects_tokens:
            equal_requests(memory, head, length + 4)
            self.steady = memory

    def _same(self, memory: ApiMemory, data: bytes, now: int) -> bool:
        """Fast path: the read holds only whole requests that equal the last request of the read before."""
        summary, size, count = memory.summary, len(data), 1
        crowded = self.connection.pending.weight > self.turns.crowd.pending
        if size < 12 or crowded or (summary.listeners and have_room(summary.listeners)):
            return False
        many: tuple[int, ...] | None = None
        if int32(data, 0) == size - 4:
            if int32(data, 4) != memory.code or not memory.least_now() <= size - 4 <= self.limit:
                return False
            if data[12 : 12 + len(memory.prefix)] != memory.prefix:
                return False
        else:
            like = memory.equal
            if like is None or like.steady is not memory.prefix:
                return False
            count = size // like.stride
            many = like.ids(data, count) if count * like.stride == size and count <= MOST else None
            if not many:
                return False
        if memory.concerns[0] is not None:
            assert self.rule_orders is not None
            self.passed = self.rule_orders.passes(memory, count, now)
            if self.passed < count:
                return False
            self.passed = 0
        waiting = PendingRequests(memory, summary, now, int32(data, 8), size // count - 4)
        if many is not None:
            waiting.many = list(many)
        self.connection.pending.append(waiting)
        count_requests(memory, count, size)
        return True

    def _read_new(self, data: bytes, pos: int, length: int, code: int, correlation: int, now: int) -> Step:
        """Read a frame that does not match the memory. After COUNT, `met` is its memory."""
        connection, end, memory = self.connection, pos + 4 + length, self.memories.get(code)
        known = None if memory is None or not 8 <= length <= self.limit else memory.header
        if memory is None or known is None or not data.startswith(known, pos + 12):
            step = self._read_header(data, pos, length, code, now)
            if step != COUNT:
                return step
            memory, known = self.met, self.met.header
            if known is None:
                return COUNT
        plan, body = memory.plan, pos + 12 + len(known)
        if plan.refuse is not None:
            connection.close("request", "unknown_version", plan.name, plan.refuse, plan.numbers())
            return CLOSED
        if plan.answer:  # clients try their newest ApiVersions first (KIP-511): not a problem
            if len(data) < end <= pos + ANSWERED_LIMIT:
                self.need = end - pos
                return MORE
            self.instead += refusal(connection, plan, correlation, end - pos)
            return CLOSED if connection.broker_over else REPLACED
        if memory.concerns[0] is not None:
            return self._ask_rules(memory, data, pos, body, end, correlation, now)
        return self._read_body(memory, data, pos, body, end, correlation, now)

    def _read_header(self, data: bytes, pos: int, length: int, code: int, now: int) -> Step:
        """Read a header that differs from the last one. After COUNT, `met` is the memory of its frames."""
        connection, end, size = self.connection, pos + 4 + length, len(data)
        key, version = code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000
        if connection.tokens is None and not self.known and key >> 8 == GSSAPI_FIRST:
            connection.tokens = Tokens("GSSAPI")
        if connection.tokens is not None and 0 <= length <= self.limit:
            if connection.tokens.is_token(length, key & 0xFFFF):
                connection.tokens.from_client()
                return PASSED
            connection.tokens.over()
            self.memories, self.expects_tokens = self.known, False
        if (step := judge_size(connection, length, self.limit)) != COUNT:
            return step
        plan = connection.context.planner.plan(key, version)
        try:
            header = read_request_header(
                data[pos + 4 : min(end, size, pos + HEADER_LIMIT)], plan.request_header
            )
        except DecodeError as error:
            if end > size and size - pos < HEADER_LIMIT:
                self.need = min(end - pos, 2 * (size - pos))
                return MORE
            if self.rule_orders is not None and self.rule_orders.bars(plan, error.reason):
                return CLOSED
            connection.problem("undecodable_header", plan.name, undecodable_header(plan, error))
            self.met = self._remember(code, plan, None)
            return COUNT
        client_id = connection.identified(header, plan.request_header)
        self.met = self._remember(code, plan, client_id, header.size > LONG_HEADER)
        self.met.header = data[pos + 12 : pos + 4 + header.size]
        if self.rule_orders is not None:
            self.rule_orders.peer.instance_id = connection.instance_id
            self.rule_orders.rule(self.met)
        return COUNT

    def _ask_rules(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        """Call the rule hooks of a request in order: `hold`, by its header; then its body is read; then
        `passed` if it goes on as it is, or `request` once all of it is there.
        """
        connection, rules, size = self.connection, self.rule_orders, end - pos
        assert rules is not None
        asked_before = self.passed > 0  # by `passes`
        held = not asked_before and rules.hold(memory, "request", size, False, now)
        if held and end > len(data):
            if connection.may_hold(len(data) - pos):
                self.need = size
                return MORE
            rules.give_up(memory, "request", size)
            held = False
        if connection.broker_over:
            return CLOSED
        self.met, step = memory, COUNT
        known = size - 4 >= memory.noted and data.startswith(memory.prefix, pos + 12)
        if not known or memory.summary.listeners:
            step = self._read_body(memory, data, pos, body, end, correlation, now)
            memory.noted, memory.least = memory.least, NO_LENGTH
        if step == MORE:
            return MORE
        if asked_before:
            self.passed -= 1
            return step
        if not held:
            rules.passed("request")
            return step
        whole = data[pos:end]
        orders = rules.request(memory, whole, body - pos, correlation, now)
        if orders is None:
            return CLOSED if connection.broker_over else step
        self.instead, awaited = orders
        connection.ends(self.instead)
        count_requests(memory, 1, size)
        for requests in awaited:
            if requests.memory is None:
                self.instead += connection.in_turn(requests)
            else:
                connection.pending.append(requests)
                connection.sent(memory.plan, now)
        if self.instead == [whole]:
            self.instead = []
            return PASSED
        return REPLACED

    def _remember(self, code: int, plan: Plan, client_id: str | None, long: bool = False) -> ApiMemory:
        connection, context = self.connection, self.connection.context
        counters = context.stats.of_requests(
            context.cluster,
            connection.broker,
            client_id,
            plan.name,
            plan.version if plan.unknown is None else -1,
        )
        if len(self.known) > 1024 or long:  # a client that makes up versions, or whose headers take memory
            self.known.clear()
        if plan.unknown is not None and code not in self.known and not (plan.refuse or plan.answer):
            kind = "unknown_api" if plan.name == UNKNOWN else "unknown_version"
            connection.problem(kind, plan.name, plan.unknown, plan.numbers())
        memory = self.known[code] = ApiMemory(code, plan, counters, client_id or "")
        return memory

    def _read_body(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        step = self.bodies.read(memory, data, pos, body, end, correlation, now)
        self.met, self.need = memory, self.bodies.need if step == MORE else 0
        if step == COUNT and memory.summary.bodies and self._waits(memory, end - pos, len(data) - pos):
            return MORE
        return step

    def _feed(self, data: bytes, last: bool, now: int) -> None:
        """Read more of a request that passes while it is read."""
        assert self.bodies.walk is not None
        memory = self.bodies.walk[1]
        if self.bodies.feed(data, last):
            self.connection.sent(memory.plan, now)
