"""Bytes from the client: cut into requests, counted, passed on."""

from __future__ import annotations

from struct import Struct
from typing import Any

from klamm.decoders.compile import UNREADABLE
from klamm.decoders.framing import SIZE, tls_or_size
from klamm.decoders.sasl_tokens import GSSAPI_FIRST, Tokens
from klamm.proxy.session.api_versions import unsupported
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Piece, Send, sends
from klamm.proxy.session.header import header
from klamm.proxy.session.listeners import have_room
from klamm.proxy.session.memory import FEWEST, MOST, NO_LENGTH, ApiMemory, equal_requests
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.request_bodies import RequestBodies
from klamm.proxy.session.request_bodies import count as count_requests
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.steps import CLOSED, COUNT, MORE, PASSED, REPLACED, Step
from klamm.proxy.session.summaries import EMPTY, NO_ERRORS
from klamm.rules.plan import SASL_HANDSHAKE, Plan

HEAD = Struct(">iii").unpack_from  # size, key and version, correlation id
make = tuple.__new__  # a named tuple in a third of the time
HEADER_LIMIT = 64 * 1024  # client id and tagged fields of a request's header


class Requests:
    """`left`: bytes of the current frame still to come, which go on as they are. `kept`: the start of a
    frame not understood yet.
    """

    def __init__(self, connection: Connection, rule_orders: RuleOrders | None) -> None:
        self.connection, self.rule_orders = connection, rule_orders
        self.left = 0
        self.kept: list[bytes] = []
        self.kept_size = 0
        self.need = 0  # of what is kept, before it is looked at again
        self.since = 0  # when the first byte of what is kept came
        self.instead: list[Piece | Effect] = []  # what goes to the broker for a frame that is swallowed
        self.rules_revision = 0
        self.passed = 0  # frames that come now, of which rules have said already that they pass
        self.known: dict[int, ApiMemory] = {}
        self.memories = self.known  # empty while tokens are expected: then every frame is looked at
        self.bodies = RequestBodies(connection, None if rule_orders is None else rule_orders.peer)
        self.steady: ApiMemory | None = None  # the last read was whole requests of this memory, all equal
        self.met: ApiMemory  # of the frame that was looked at last
        self.limit = connection.context.frame_limit
        self.names_revision = 0
        self.unread: list[bytes] = []  # came while the connection was muted

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the same object when all of it goes on, else effects."""
        connection = self.connection
        if connection.closing or "broker" in connection.over:
            return []
        rule_orders = self.rule_orders
        if rule_orders is not None:
            if connection.muted_until:
                return self._muted(data, now)
            if self.rules_revision != rule_orders.engine.revision:
                self._rule_anew(rule_orders)
        steady, self.steady = self.steady, None
        if self.names_revision != connection.context.topology.names_revision:
            self._read_names_again()
        elif (
            steady is not None
            and not (steady.summary.listeners and have_room(steady.summary.listeners))
            and self._same(steady, data, now)
        ):
            self.steady = steady
            return data
        read, arrived = data, now
        if self.kept:
            self.kept.append(data)
            self.kept_size += len(data)
            if self.kept_size < self.need:
                return []
            data, arrived, self.kept, self.need = b"".join(self.kept), self.since, [], 0
        size, pos, start = len(data), self.left, 0
        pieces: list[Piece | Effect] = []
        if self.bodies.walk is not None:
            self._feed(data[:pos] if pos < size else data, pos <= size)
        pending, limit, memories = connection.pending, self.limit, self.memories
        current: int | None = None  # key and version of the equal frames that are being counted
        prefix, least, began = b"", NO_LENGTH, 0
        ids: list[int] = []
        first = 0  # where in `ids` these frames begin
        memory: ApiMemory | None = None
        while size - pos >= 12:
            length, code, correlation = HEAD(data, pos)
            if code != current or not data.startswith(prefix, pos + 12) or not least <= length <= limit:
                if current is not None:
                    assert memory is not None
                    count_requests(memory, len(ids) - first, pos - began)
                    current = None
                memory = memories.get(code)
                if memory is None or not (
                    (memory.least <= length <= limit and data.startswith(memory.prefix, pos + 12))
                    or (length <= limit and memory.turn(data, pos, length))
                ):
                    step = self._read_new(data, pos, length, code, correlation, arrived)
                    if step in (MORE, CLOSED):
                        break
                    memories = self.memories
                    if step != COUNT:
                        if step == REPLACED:
                            pieces += (data[start:pos], *self.instead)
                            start, self.instead = pos + length + 4, []
                        pos += length + 4
                        arrived = now
                        if "broker" in connection.over:
                            data, size = data[:pos], pos
                        elif connection.muted_until:
                            self.unread.append(data[pos:])
                            data, size = data[:pos], pos
                        continue
                    memory = self.met
                if memory.summary.listeners and have_room(memory.summary.listeners):
                    self._tell(memory, correlation, length, now)
                    pos += length + 4
                    continue
                current, prefix, least, began = code, memory.prefix, memory.least, pos
                ids = self._continued(memory, now)
                first = len(ids)
                if memory.summary.answered and not ids:
                    pending.append(
                        make(PendingRequests, (memory, memory.summary, now, ids, length, (), None))
                    )
                if memory.least <= length:
                    stride = length + 4
                    like = equal_requests(memory, data[pos : pos + 8], stride)
                    count = min((size - pos) // stride, MOST)
                    if like is not None and count >= FEWEST:
                        found = like.ids(memoryview(data)[pos : pos + count * stride], count)
                        if found:
                            ids += found
                            pos += count * stride
                            continue
            ids.append(correlation)
            pos += length + 4
        if current is not None:
            assert memory is not None
            count_requests(memory, len(ids) - first, pos - began)
            if pos == size and memory.summary.answered:
                self._steady(memory, data, pos - length - 4, length)
        if pos < size and connection.tokens is not None and not connection.closing:
            pos = self._short_tokens(data, pos, size)
        if pos >= size:
            self.left = pos - size
            if data is read and not connection.effects and not pieces:
                return data
            pieces.append(data[start:])
        else:
            self.left = 0
            self.kept, self.kept_size, self.since = [data[pos:]], size - pos, arrived
            pieces.append(data[start:pos])
        effects, connection.effects = connection.effects, []
        return [*sends("broker", pieces), *effects]

    def _muted(self, data: bytes, now: int) -> list[Effect]:
        """Take the rest of a request that has begun to pass; what follows it waits for `unmute`."""
        connection, begun = self.connection, min(self.left, len(data))
        until, connection.muted_until = connection.muted_until, 0
        effects = self.receive(data[:begun], now) if begun else []
        connection.muted_until = until
        self.unread.append(data[begun:])
        return [Send("broker", effects)] if isinstance(effects, bytes) else effects

    def unmute(self, now: int) -> list[Effect]:
        """Go on: the throttle time is over."""
        self.connection.muted_until = 0
        unread, self.unread, self.since = b"".join(self.unread), [], now
        effects = self.receive(unread, now) if unread else []
        return [Send("broker", effects)] if isinstance(effects, bytes) else effects

    def _tell(self, memory: ApiMemory, correlation: int, length: int, now: int) -> None:
        """Count a request that has listeners by itself; one that is never answered is shown at once."""
        run = PendingRequests(memory, memory.summary, now, [correlation], length)
        count_requests(memory, 1, length + 4)
        if memory.summary.answered:
            self.connection.pending.append(run)
        else:
            self.connection.exchange(memory, run, correlation, NO_ERRORS, None, None)

    def _continued(self, memory: ApiMemory, now: int) -> list[int]:
        """The ids of pending requests that this one can be added to, where rules look at each frame."""
        if memory.concerns[0] is not None and self.connection.pending:
            last = self.connection.pending[-1]
            same = last.memory is memory and last.summary is memory.summary and last.arrived == now
            if same and last.answer_orders is None and isinstance(last.ids, list):
                return last.ids
        return []

    def _rule_anew(self, rule_orders: RuleOrders) -> None:
        """The rules have changed: look up again which concern each API version."""
        self.rules_revision, self.steady, self.passed = rule_orders.engine.revision, None, 0
        rule_orders.passed("request")
        rule_orders.rule_anew(self.known)

    def _steady(self, memory: ApiMemory, data: bytes, last: int, length: int) -> None:
        """Prepare the fast path: the read ended with the frame at `last`; the next may hold equal ones."""
        concern = memory.concerns[0]
        if concern is None:
            if memory.least <= length:
                self.steady = memory
        elif not concern.by_header or memory.noted > length or self.passed:
            return
        elif equal_requests(memory, data[last : last + 8], length + 4) is not None:
            self.steady = memory

    def _same(self, memory: ApiMemory, data: bytes, now: int) -> bool:
        """Fast path: the read holds exactly requests that equal the last of the read before."""
        like = memory.equal
        assert like is not None
        count, rest = divmod(len(data), like.stride)
        if rest or count > MOST:
            return False
        ids = like.ids(data, count)
        if not ids:
            return False
        if memory.concerns[0] is not None:
            assert self.rule_orders is not None
            self.passed = self.rule_orders.passes(memory, count, now)
            if self.passed < count:
                return False
            self.passed = 0
        self.connection.pending.append(
            make(PendingRequests, (memory, memory.summary, now, ids, like.stride - 4, (), None))
        )
        count_requests(memory, count, len(data))
        return True

    def _read_names_again(self) -> None:
        """Topic ids have got names: read again what was read without them."""
        self.names_revision = self.connection.context.topology.names_revision
        for memory in self.known.values():
            if not memory.summary.named or memory.before is not None:
                memory.forget()
                memory.noted = NO_LENGTH

    def _read_new(self, data: bytes, pos: int, length: int, code: int, correlation: int, now: int) -> Step:
        """Read a frame that does not match the memory. After COUNT, `met` is its memory."""
        connection = self.connection
        end, size, memory = pos + 4 + length, len(data), self.memories.get(code)
        ruled = memory is not None and memory.concerns[0] is not None and 8 <= length <= self.limit
        if memory is not None and ruled and data.startswith(memory.header, pos + 12):
            return self._ask_rules(memory, data, pos, pos + 12 + len(memory.header), end, correlation, now)
        key, version = code >> 16, (code & 0xFFFF ^ 0x8000) - 0x8000
        if connection.tokens is None and not self.known and key >> 8 == GSSAPI_FIRST:
            connection.tokens = Tokens("GSSAPI")
        if connection.tokens is not None and 0 <= length <= self.limit:
            if connection.tokens.is_token(length, key & 0xFFFF):
                connection.tokens.from_client()
                return PASSED
            self.memories = self.known
        wrong = tls_or_size(length, "client", self.limit)
        if wrong is not None:
            connection.close(wrong[0], "", wrong[1])
            return CLOSED
        plan = connection.context.planner.plan(key, version)
        try:
            client_id, body = header(plan, data, pos, min(end, size))
        except UNREADABLE:
            if end > size and size - pos < HEADER_LIMIT:
                return MORE
            connection.problem(
                "undecodable_header",
                plan.name,
                f"the header of a {plan.name} v{version} request does not decode",
            )
            self.met = self._remember(code, plan, None)
            return COUNT
        if memory is None or memory.header != data[pos + 12 : body]:
            memory = self._remember(code, plan, client_id)
            memory.header = data[pos + 12 : body]
            if self.rule_orders is not None:
                self.rule_orders.rule(memory)
        if plan.refuse is not None:
            connection.close("unknown_version", plan.name, plan.refuse, _named(plan))
            return CLOSED
        if plan.answer:  # a client negotiates with its newest ApiVersions first (KIP-511): no problem
            return self._answer(plan, correlation, end <= size)
        if memory.concerns[0] is not None:
            return self._ask_rules(memory, data, pos, body, end, correlation, now)
        return self._read_body(memory, data, pos, body, end, correlation, now)

    def _ask_rules(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        """A request that rules may act on. They are asked in this order: `looks` at its header, `request`
        when all of it is there; `passed` where it goes on as it is.
        """
        connection, rules, size = self.connection, self.rule_orders, end - pos
        assert rules is not None
        held = False
        if self.passed:
            self.passed -= 1
        else:
            held = rules.looks(memory, "request", memory.concerns[0], now)
            if held and size > connection.context.held_limit:
                connection.too_large(memory.plan, "request", size)
                held = False
            if not held:
                rules.passed("request")
        if held and end > len(data):
            self.need = size
            return MORE
        self.met, step = memory, COUNT
        known = size - 4 >= memory.noted and data.startswith(memory.prefix, pos + 12)
        if not known or memory.summary.listeners:
            step = self._read_body(memory, data, pos, body, end, correlation, now)
            memory.noted, memory.least = memory.least, NO_LENGTH
        if not held or step == MORE:
            return step
        whole = data[pos:end]
        orders = rules.request(memory, whole[: body - pos], whole[body - pos :], correlation, now)
        if orders is None:
            return step
        self.instead, awaited = orders
        connection.ends(self.instead)
        count_requests(memory, 1, size)
        if memory.summary.listeners and not memory.summary.answered:
            unanswered = PendingRequests(memory, memory.summary, now, [correlation], size - 4)
            connection.exchange(memory, unanswered, correlation, NO_ERRORS, None, None)
        for requests in awaited:
            if requests.memory is None:
                connection.due(requests)
            else:
                connection.pending.append(requests)
        return REPLACED

    def _remember(self, code: int, plan: Plan, client_id: str | None) -> ApiMemory:
        connection, context = self.connection, self.connection.context
        counters = context.stats.of_requests(
            context.cluster,
            connection.broker,
            client_id,
            plan.name,
            plan.version if plan.unknown is None else -1,
        )
        if len(self.known) > 1024:  # a client that makes up versions
            self.known.clear()
        if plan.unknown is not None and code not in self.known and not (plan.refuse or plan.answer):
            kind = "unknown_api" if plan.name == "unknown" else "unknown_version"
            connection.problem(kind, plan.name, plan.unknown, _named(plan))
        memory = self.known[code] = ApiMemory(plan, counters)
        return memory

    def _answer(self, plan: Plan, correlation: int, whole: bool) -> Step:
        """Answer an ApiVersions request of an unknown version instead of the broker."""
        if not whole:
            return MORE
        connection = self.connection
        body = unsupported()
        answer = SIZE.pack(4 + len(body)) + SIZE.pack(correlation) + body
        connection.due(PendingRequests(None, EMPTY, 0, [correlation], 0, (answer,)))
        return REPLACED

    def _read_body(
        self, memory: ApiMemory, data: bytes, pos: int, body: int, end: int, correlation: int, now: int
    ) -> Step:
        step = self.bodies.read(memory, data, pos, body, end, correlation, now)
        self._expect_tokens(memory)
        self.met, self.need = memory, self.bodies.need if step == MORE else 0
        return step

    def _feed(self, data: bytes, last: bool) -> None:
        """Read more of a request that passes while it is read."""
        assert self.bodies.walk is not None
        memory = self.bodies.walk[1]
        self.bodies.feed(data, last)
        self._expect_tokens(memory)

    def _expect_tokens(self, memory: ApiMemory) -> None:
        if memory.plan.key == SASL_HANDSHAKE and memory.plan.version == 0:
            self.memories = {}

    def _short_tokens(self, data: bytes, pos: int, size: int) -> int:
        """Skip whole tokens that are shorter than a request's header; gives the position behind them."""
        tokens = self.connection.tokens
        while tokens is not None and size - pos >= 4:
            (length,) = SIZE.unpack_from(data, pos)
            if not 0 <= length < 8 or size - pos < 4 + length:
                break
            tokens.from_client()
            pos += 4 + length
        return pos


def _named(plan: Plan) -> dict[str, Any]:
    """Fields of a log line about an API or version that klamm does not know."""
    return {"key": plan.key, "version": plan.version}
