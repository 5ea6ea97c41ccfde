"""Bytes from the broker: matched with their requests, counted, passed on."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from struct import Struct

from klamm.decoders.framing import SIZE, tls_or_size
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.counters import BOUNDS_NS
from klamm.proxy.session.effects import Effect, Piece, part, sends, span
from klamm.proxy.session.large_responses import LargeResponses
from klamm.proxy.session.listeners import have_room
from klamm.proxy.session.memory import FEWEST, MOST, NO_PATTERN, ApiMemory, equal_responses
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.response_bodies import Met, ResponseBodies
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.summaries import ResponseSummary

HEAD = Struct(">ii").unpack_from  # size, correlation id


class Responses:
    """`left`: bytes of the current frame still to come, which go on as they are. `kept`: the start of a
    frame that is held.
    """

    def __init__(self, connection: Connection, rule_orders: RuleOrders | None) -> None:
        self.connection, self.rule_orders = connection, rule_orders
        self.left = 0
        self.kept: list[bytes] = []
        self.kept_size = 0
        self.since = 0  # when the first byte of what is kept came
        self.limit = connection.context.frame_limit
        self.passing = LargeResponses(connection)
        self.bodies = ResponseBodies(connection, self.passing)

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the same object when all of it goes on, else effects."""
        connection = self.connection
        if connection.closing or "client" in connection.over:
            return []
        if connection.clean and connection.pending and self._same(connection.pending, data, now):
            return data
        pieces: list[Piece | Effect] = []
        offset = 0
        while self.kept and not self.bodies.blocked and not self.connection.closing:
            missing = max(0, self.bodies.need - self.kept_size)
            if len(data) - offset < missing:
                break
            frame = b"".join([*self.kept, data[offset : offset + missing]])
            offset += missing
            self.kept, self.bodies.need = [], 8
            self._scan(frame, 0, now, self.since, pieces)
        if self.kept:
            self.kept.append(span(data, offset, len(data)))
            self.kept_size += len(data) - offset
        elif not connection.closing and "client" not in connection.over:
            self._scan(data, offset, now, now, pieces)
        connection.clean = not (self.kept or self.left or self.passing.busy())
        if len(pieces) == 1 and pieces[0] is data and not connection.effects:
            return data
        effects, connection.effects = connection.effects, []
        return [*sends("client", pieces), *effects]

    def _same(self, pending: deque[PendingRequests], data: bytes, now: int) -> bool:
        """Fast path: the read holds exactly the answers to the oldest pending requests, like those before."""
        run = pending[0]
        memory, ids = run.memory, run.ids
        if (
            memory is None
            or run.answer_orders is not None
            or (run.summary.listeners and have_room(run.summary.listeners))
            or self.connection.turn
            or (len(pending) > 1 and pending[1].memory is None)
        ):
            return False
        like, count = memory.equal_answers, len(ids)
        if like is None or like.steady is not memory.answer or len(data) != count * like.stride:
            return False
        if count > MOST or like.ids(data, count) != tuple(ids):
            return False
        pending.popleft()
        self._count(memory, run, memory.answer.summary, count, len(data), now - run.arrived)
        return True

    def _ruled(
        self, data: bytes, pos: int, length: int, memory: ApiMemory, run: PendingRequests, now: int
    ) -> Met | None:
        """Read a response, rewrite its addresses, then carry out the rules about it."""
        rule_orders, concern, answers = self.rule_orders, memory.concerns[1], self.bodies
        if rule_orders is None or (run.answer_orders is None and concern is None):
            return answers.meet(data, pos, length, memory)
        answer_orders, size = run.answer_orders, length + 4
        swallowed = (
            answer_orders is not None and answer_orders.swallow
        )  # the second answer to a request sent twice
        new = rule_orders.look["response"] is None
        held = swallowed or rule_orders.looks(memory, "response", concern, now) or answer_orders is not None
        if held and size > self.connection.context.held_limit:
            if swallowed:
                self.connection.refuse(memory.plan, f"{size} bytes are more than a rule may hold")
                return None
            if new:
                self.connection.too_large(memory.plan, "response", size)
            rule_orders.give_up("response")
            held = False
        if held and len(data) - pos < size:
            answers.need = size
            return None
        met = answers.meet(data, pos, length, memory)
        memory.answer, rule_orders.heard = NO_PATTERN, None
        if met is None:
            return None
        if not held:
            rule_orders.passed("response")
            return met
        summary, replaced = met
        whole = data[pos : pos + size] if replaced is None else b"".join(replaced)
        ruled = rule_orders.response(memory, run, whole, now)
        return met if ruled is None else (summary, ruled)

    def _heard(self, summary: ResponseSummary) -> tuple[ResponseSummary, str]:
        """The summary for the log, and who made the answer: rules may have changed its errors."""
        rule_orders = self.rule_orders
        if rule_orders is None or rule_orders.heard is None:
            return summary, "broker"
        codes, rule_orders.heard = rule_orders.heard, None
        return ResponseSummary([(None, code) for code in codes], summary.shown), "klamm"

    def _scan(self, data: bytes, offset: int, now: int, arrived: int, pieces: list[Piece | Effect]) -> None:
        """Take data from an offset on, which is where the last call ended; what may go on is added to
        `pieces`.

        `arrived` is when the first byte of the first frame came, which was held if that was not now.
        """
        connection = self.connection
        size, pos, start = len(data), offset + self.left, offset
        passing = self.passing
        if passing.walk is not None or passing.tail is not None:
            start = passing.feed(data, offset, min(pos, size), pos <= size, start, pieces)
        before = passing.walk
        pending, turn = connection.pending, connection.turn
        while size - pos >= 8:
            if not pending:
                if not self._odd(*HEAD(data, pos)):
                    break
                pos += HEAD(data, pos)[0] + 4
                continue
            run = pending[0]
            memory, ids = run.memory, run.ids
            if memory is None:
                pieces += (part(data, start, pos), *run.made)
                start = pos
                pending.popleft()
                if connection.ends(run.made):
                    return
                continue
            told = memory.plan.logged or (run.summary.listeners and have_room(run.summary.listeners))
            pattern = memory.answer if run.answer_orders is None and not told else NO_PATTERN
            least, most, first, second, second_at, third, third_at, summary = pattern
            began, first_turn, count = pos, turn, len(ids)
            stride = HEAD(data, pos)[0] + 4
            like = None if pattern is NO_PATTERN else equal_responses(memory, stride)
            if like is not None:
                seen = min((size - pos) // stride, count - turn, MOST)
                if seen >= FEWEST:
                    found = like.ids(memoryview(data)[pos : pos + seen * stride], seen)
                    if found == tuple(ids[turn : turn + seen]):
                        pos += seen * stride
                        turn += seen
            while turn < count and size - pos >= 8:
                length, correlation = HEAD(data, pos)
                if (
                    correlation != ids[turn]
                    or not least <= length <= most
                    or not data.startswith(first, pos + 8)
                    or (
                        second
                        and not (
                            data.startswith(second, pos + second_at)
                            and data.startswith(third, pos + third_at)
                        )
                    )
                ):
                    break
                pos += length + 4
                turn += 1
            if turn > first_turn:
                self._count(memory, run, summary, turn - first_turn, pos - began, now - run.arrived)
                if turn == count:
                    pending.popleft()
                    turn = 0
                continue
            if correlation != ids[turn] or not 4 <= length <= self.limit:
                connection.turn = turn
                if not self._odd(length, correlation):
                    break
                pos += length + 4
                continue
            met = self._ruled(data, pos, length, memory, run, arrived)
            if met is None:
                break
            summary, replaced = met
            if replaced is not None:
                pieces.append(part(data, start, pos))
                pieces += replaced
                start = min(pos + length + 4, size)
            if replaced is not None or arrived != now:
                memory.counters.own.add(now - arrived)
            self._count(memory, run, summary, 1, length + 4, arrived - run.arrived)
            if told:
                if passing.walk is None:
                    said, origin = self._heard(summary)
                    connection.exchange(memory, run, correlation, said, length, arrived - run.arrived, origin)
                else:
                    passing.logged = (run, correlation, length, arrived - run.arrived)
            if self.rule_orders is not None and connection.ends(pieces):
                return
            pos += length + 4
            arrived = now
            turn += 1
            if turn == count:
                pending.popleft()
                turn = 0
        connection.turn = turn
        if passing.walk is not before:
            start = passing.feed(data, passing.body, size, False, start, pieces)
        if pending and pending[0].memory is None and pos <= size and not connection.closing:
            start = self._release(data, start, pos, pieces)
            if "client" in connection.over:
                return
        if pos < size and connection.tokens is not None and not self.bodies.blocked:
            pos = self._short_tokens(data, pos, size)
        if pos >= size:
            self.left = pos - size
            pieces.append(data if start == 0 else part(data, start, size))
        else:
            self.left = 0
            pieces.append(part(data, start, pos))
            self.kept, self.kept_size, self.since = [data[pos:]], size - pos, arrived

    def bound(self, now: int) -> list[Effect]:
        """Go on: the ports that `Bind` asked for are open, or their nodes say why not."""
        self.bodies.blocked = False
        effects = self.receive(b"", now)
        return [] if isinstance(effects, bytes) else effects

    def _odd(self, length: int, correlation: int) -> bool:
        """A frame that answers no request: a SASL token (True), else it ends the connection."""
        connection = self.connection
        tokens = connection.tokens
        if tokens is not None and tokens.awaited > 0 and 0 <= length <= self.limit:
            tokens.from_broker()
            return True
        wrong = tls_or_size(length, "broker", self.limit)
        if wrong is not None:
            connection.close(wrong[0], "", wrong[1])
        elif not connection.pending:
            connection.close(
                "unexpected_response",
                "",
                f"a response with correlation id {correlation} that nobody asked for",
            )
        else:
            oldest = connection.pending[0]
            name, expected = oldest.memory.plan.name if oldest.memory else "", oldest.ids[connection.turn]
            message = (
                f"a response with correlation id {correlation}; the oldest request is {name} with {expected}"
            )
            connection.close("correlation_mismatch", name, message)
        return False

    def _release(self, data: bytes, start: int, pos: int, pieces: list[Piece | Effect]) -> int:
        """Send responses of klamm's own whose turn has come."""
        pending = self.connection.pending
        while pending and pending[0].memory is None:
            made = pending.popleft().made
            pieces += (part(data, start, pos), *made)
            start = pos
            if self.connection.ends(made):
                break
        return start

    def _count(
        self,
        memory: ApiMemory,
        run: PendingRequests,
        summary: ResponseSummary,
        times: int,
        size: int,
        elapsed: int,
    ) -> None:
        """Count equal responses that came in one read."""
        counters = memory.counters
        counters.responses += times
        counters.response_bytes += size
        bucket = bisect_left(BOUNDS_NS, elapsed)
        counters.latency.buckets[bucket] += times
        counters.latency.total_ns += times * elapsed
        for topic in run.summary.topics:
            topic.latency.buckets[bucket] += times
            topic.latency.total_ns += times * elapsed
        for listener in run.summary.listeners:
            if listener.full:
                listener.missed(times)
        if summary.errors:
            self.connection.count_errors(memory, summary, times)

    def _short_tokens(self, data: bytes, pos: int, size: int) -> int:
        """Skip whole tokens of less than 4 bytes; gives the position behind them."""
        tokens = self.connection.tokens
        while tokens is not None and tokens.awaited > 0 and size - pos >= 4:
            (length,) = SIZE.unpack_from(data, pos)
            if not 0 <= length < 4 or size - pos < 4 + length:
                break
            tokens.from_broker()
            pos += 4 + length
        return pos
