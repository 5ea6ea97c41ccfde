"""Cuts the bytes from the broker into responses, matches them with requests, counts and passes them on."""

from __future__ import annotations

from struct import Struct

from klamm.decoders.framing import tls_or_size
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Pause, Piece, ReadClient, Turn, part, sends, span
from klamm.proxy.session.large_responses import LargeResponses
from klamm.proxy.session.listener_frames import must_wait, response_frame
from klamm.proxy.session.memory import MOST, NO_PATTERN, ApiMemory, equal_responses, int32
from klamm.proxy.session.observing.listeners import have_room, missed
from klamm.proxy.session.observing.summaries import ResponseSummary
from klamm.proxy.session.paused_answers import tell_later
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.response_bodies import Met, ResponseBodies
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.steps import MORE, PASSED, REPLACED, Step
from klamm.proxy.session.turns import KNOWN, READ, STEPS, Turns
from klamm.proxy.session.unmatched import close_unasked, take_later
from klamm.rules.frame import Frame

HEAD = Struct(">ii").unpack_from  # size, correlation id
HANDSHAKE = 10  # bytes of an answer to SaslHandshake 0, up to the end of its error code


class Responses:
    """`left`: bytes of the current frame that are still to come, and go on as they are, but for addresses in
    its last field. `kept`: the first bytes of a frame that is held.
    """

    def __init__(self, connection: Connection, rule_orders: RuleOrders | None) -> None:
        self.connection, self.rule_orders = connection, rule_orders
        self.left = 0
        self.kept: list[bytes] = []
        self.kept_size = 0
        self.kept_for_rules = False  # for rules or listeners only: released if too much is held in all
        self.since = 0  # when the first byte in `kept` came (ns)
        self.instead: list[Piece | Effect] = []  # goes to the client in place of a response, after REPLACED
        self.limit = connection.context.frame_limit
        self.shown: Frame | None = None  # the response that was read last, for listeners that take bodies
        self.passing = LargeResponses(connection)
        self.bodies = ResponseBodies(connection, self.passing)
        self.turns = Turns(connection.context.crowd)

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """Gives the very same object if all of it goes on, else effects."""
        connection = self.connection
        if connection.closing or connection.client_over:
            return []
        if connection.clean and self._same(data, now):
            return data
        self.turns.begin(now)
        pieces: list[Piece | Effect] = []
        offset = 0
        while self.kept and not self.bodies.blocked and not self.connection.closing:
            missing = max(0, self._needed() - self.kept_size)
            if len(data) - offset < missing:
                arrived = len(data) - offset
                if not self.kept_for_rules or connection.may_hold(self.kept_size + arrived):
                    break
                missing = arrived
            frame = b"".join([*self.kept, data[offset : offset + missing]])
            offset += missing
            connection.holds(-self.kept_size)
            self.kept, self.kept_for_rules, self.bodies.need = [], False, 8
            self._scan(frame, 0, now, self.since, pieces)
        if self.kept:
            self.kept.append(span(data, offset, len(data)))
            self.kept_size += len(data) - offset
            connection.holds(len(data) - offset)
        elif not connection.closing and not connection.client_over:
            self._scan(data, offset, now, now, pieces)
        connection.clean = not (self.kept or self.left or self.passing.busy())
        if (
            connection.crowded
            and connection.pending.waiting(connection.turn) <= connection.context.crowd.pending // 2
        ):
            connection.crowded = False
            connection.effects.append(ReadClient(True))
        if len(pieces) == 1 and pieces[0] is data and not connection.effects:
            return data
        effects, connection.effects = connection.effects, []
        return [*sends("client", pieces), *effects]

    def _needed(self) -> int:
        """The bytes of the frame that must be there before it is read: a SASL token may have fewer than the
        header of a response.
        """
        if not self.connection.awaits_token():
            return self.bodies.need
        start = b"".join(self.kept) if self.kept_size < 8 else self.kept[0]
        length = int32(start, 0) if len(start) >= 4 else 0
        return min(self.bodies.need, 4 + length) if length >= 0 else self.bodies.need

    def _same(self, data: bytes, now: int) -> bool:
        """Fast path: the read is exactly the answers to the oldest pending requests; all match the memory."""
        pending = self.connection.pending
        run = pending.oldest
        if run is None or pending.own or self.connection.turn or run.answer_orders is not None:
            return False
        if self.connection.crowded:
            return False
        memory, summary, size, count = run.memory, run.summary, len(data), 1
        if memory is None or (summary.listeners and have_room(summary.listeners)):
            return False
        pattern = memory.answer
        if run.many is None:
            if size < 8 or int32(data, 4) != run.first or int32(data, 0) != size - 4:
                return False
            if not pattern.matches(data, 0, size - 4):
                return False
        else:
            like, count = memory.equal_answers, len(run.many)
            if like is None or like.steady is not pattern or size != count * like.stride:
                return False
            if count > MOST or like.ids(data, count) != tuple(run.many):
                return False
        pending.remove_oldest()
        self._count(memory, run, pattern.summary, count, size, now - run.arrived)
        if summary.listeners:
            missed(summary.listeners, count)
        return True

    def _ruled(
        self, data: bytes, pos: int, length: int, memory: ApiMemory, run: PendingRequests, now: int
    ) -> Met | None:
        """Call the rule hooks of a response in order: `hold`, by its header and its request; then its body is
        read and its addresses are rewritten; then `passed` if rules do not hold it, or `response` if they do.
        """
        rules, answer_orders, bodies, size = self.rule_orders, run.answer_orders, self.bodies, length + 4
        self.connection.treatment = None
        if rules is None or (answer_orders is None and memory.concerns[1] is None):
            if rules is not None:
                rules.passed("response")  # those that concerned it may have gone since it began
            return self._meet(data, pos, length, memory, run, now)
        twice = (
            answer_orders is not None and answer_orders.swallow
        )  # the client does not wait for this answer
        if twice and size > self.connection.context.held_limit:
            self.connection.refuse(memory.plan, f"{size} bytes are more than a rule may hold")
            return None
        held = twice or rules.hold(memory, "response", size, answer_orders is not None, now)
        if held and len(data) - pos < size:
            if twice or self.connection.may_hold(len(data) - pos):
                bodies.need, self.kept_for_rules = size, not twice
                return None
            rules.give_up(memory, "response", size)
            held = False
        if self.connection.closing:
            return None
        met = self._meet(data, pos, length, memory, run, now)
        memory.answer, rules.changed_errors = NO_PATTERN, None
        if met is None:
            return None
        if not held:
            rules.passed("response")
            return met
        summary, replaced = met
        came = data[pos : pos + size]
        before = came if replaced is None else b"".join(replaced)
        ruled = rules.response(memory, run, before, now, None if replaced is None else came)
        if self.shown is not None and rules.answer is not None:
            self.shown.treatment, self.shown.sent = rules.answer.treatment, rules.answer
        return None if self.connection.closing else met if ruled is None else (summary, ruled)

    def _meet(
        self, data: bytes, pos: int, length: int, memory: ApiMemory, run: PendingRequests, now: int
    ) -> Met | None:
        """Read the body, and keep the frame where a listener takes it and all of it is there."""
        met, rules, request = self.bodies.meet(data, pos, length, memory), self.rule_orders, run.frame
        self.shown = None
        if met is not None and rules is not None and request is not None and len(data) - pos >= length + 4:
            came = data[pos : pos + length + 4]
            self.shown = response_frame(rules, memory, came, met[1], now, request)
        return met

    def _logged(self, summary: ResponseSummary) -> tuple[ResponseSummary, str]:
        """The summary for the log, and the origin of the answer: klamm if rules have changed it."""
        rule_orders = self.rule_orders
        if rule_orders is None or rule_orders.changed_errors is None:
            return summary, "broker"
        codes, rule_orders.changed_errors = rule_orders.changed_errors, None
        return summary.changed(codes), "klamm"

    def _scan(self, data: bytes, offset: int, now: int, arrived: int, pieces: list[Piece | Effect]) -> None:
        """Read the frames in `data`, from an offset on, where the last call ended; add to `pieces` all that
        may go on. `arrived`: when the first byte of the first frame came; before `now` if it was held.
        """
        connection = self.connection
        size, pos, start = len(data), offset + self.left, offset
        passing, pending = self.passing, connection.pending
        if passing.walk is not None or passing.tail is not None:
            start = passing.feed(data, offset, min(pos, size), pos <= size, start, pieces)
        before = passing.walk
        while size - pos >= 8:
            run = pending.oldest
            length, correlation = HEAD(data, pos)
            if run is not None and run.memory is None and not connection.awaits_token():
                start = self._release(data, start, pos, pieces)
                if connection.client_over:
                    return
            elif (
                run is None
                or run.memory is None
                or not 4 <= length <= self.limit
                or (correlation != run.ids[connection.turn] and not take_later(connection, run, correlation))
            ):
                step = self._odd(data, pos, length, correlation)
                if step == MORE:
                    break
                if step == REPLACED:
                    start = self._replace(data, start, pos, length, pieces)
                pos += length + 4
            else:
                run = pending.oldest or run
                step = self._answer(data, pos, length, run, arrived, now)
                if step == MORE:
                    break
                if step == REPLACED:
                    start = self._replace(data, start, pos, length, pieces)
                connection.turn += 1
                if connection.turn == run.count():
                    pending.remove_oldest()
                    connection.turn = 0
                if self.rule_orders is not None and connection.ends(pieces):
                    return
                pos += length + 4
                arrived = now
                if self.turns.left < 0 and pos < size:
                    self.bodies.blocked = True
                    connection.effects.append(Turn("response"))
                    break
        if passing.walk is not before:
            start = passing.feed(data, passing.body, size, False, start, pieces)
        if pos < size and connection.tokens is not None and not self.bodies.blocked:
            pos = connection.tokens.skip_short(data, pos, "response")
        if pending.own and pos <= size and not connection.closing and not connection.awaits_token():
            start = self._release(data, start, pos, pieces)
            if connection.client_over:
                return
        self._end(data, start, pos, arrived, pieces)

    def _replace(self, data: bytes, start: int, pos: int, length: int, pieces: list[Piece | Effect]) -> int:
        """Add the bytes before the frame at `pos`, and then `instead`. Gives the end of the frame."""
        pieces += (part(data, start, pos), *self.instead)
        self.instead = []
        return min(pos + length + 4, len(data))

    def _end(self, data: bytes, start: int, pos: int, arrived: int, pieces: list[Piece | Effect]) -> None:
        """Add the bytes from `start` on; the frame at `pos`, of which only a part is there, is kept."""
        if pos >= len(data):
            self.left = pos - len(data)
            pieces.append(data if start == 0 else part(data, start, len(data)))
            return
        pieces.append(part(data, start, pos))
        rest = data[pos:]
        self.left = 0
        self.kept, self.kept_size, self.since = [rest], len(rest), arrived
        self.connection.holds(self.kept_size)

    def _answer(
        self, data: bytes, pos: int, length: int, run: PendingRequests, arrived: int, now: int
    ) -> Step:
        """Read the answer at `pos`, unless it matches the memory, and count it. MORE: also if it has ended
        the connection. After REPLACED, `instead` goes to the client.
        """
        memory, passing = run.memory, self.passing
        assert memory is not None
        logged = memory.plan.logged and not run.told_at_once
        one_by_one = logged or (run.summary.listeners and have_room(run.summary.listeners))
        if not one_by_one and run.answer_orders is None and memory.answer.matches(data, pos, length):
            if run.many is not None:
                equal_responses(memory, length + 4)
            self.turns.left -= KNOWN
            self._count(memory, run, memory.answer.summary, 1, length + 4, now - run.arrived)
            if run.summary.listeners:
                missed(run.summary.listeners, 1)
            return PASSED
        size, there = length + 4, len(data) - pos
        takes_body = one_by_one and run.frame is not None
        if takes_body and must_wait(self.connection, run.summary.listeners, size, there):
            self.bodies.need, self.kept_for_rules = size, True
            return MORE
        decides = self.connection.decides(memory.plan)
        if decides and there < (needed := min(size, HANDSHAKE)):
            self.bodies.need = needed
            return MORE
        met = self._ruled(data, pos, length, memory, run, arrived)
        self.turns.left -= READ + self.connection.work // STEPS
        self.connection.work = 0
        if met is None:
            return MORE
        summary, replaced = met
        if decides:
            memory.answer = NO_PATTERN
            self.connection.end_handshake(data[pos + 8 : pos + min(size, HANDSHAKE)] == b"\0\0")
        if replaced is not None or arrived != now:
            memory.counters.own.add(now - arrived)
        self._count(memory, run, summary, 1, length + 4, arrived - run.arrived)
        if not one_by_one:
            missed(run.summary.listeners, 1)
        elif passing.walk is None:
            read, origin = self._logged(summary)
            correlation = run.ids[self.connection.turn]
            elapsed, last = arrived - run.arrived, replaced[-1] if replaced else None
            exchange = memory, run, correlation, read, length, elapsed, origin, self.shown
            if isinstance(last, Pause):
                tell_later(self.connection, last.frame, exchange)
            else:
                self.connection.exchange(*exchange)
        else:
            passing.logged = (run, run.ids[self.connection.turn], length, arrived - run.arrived)
        if replaced is None:
            return PASSED
        self.instead = replaced
        return REPLACED

    def bound(self, now: int) -> list[Effect]:
        """Go on after `Bind`: the ports are open, or `Node.failure` says why not. Or go on after `Turn`."""
        self.bodies.blocked = False
        self.turns.renew(now)
        effects = self.receive(b"", now)
        return [] if isinstance(effects, bytes) else effects

    def _odd(self, data: bytes, pos: int, length: int, correlation: int) -> Step:
        """Take a frame that answers no request: a SASL token, or the answer to a Produce request with acks=0.
        MORE: also if it is neither, which ends the connection.
        """
        connection = self.connection
        tokens, acks_0 = connection.tokens, connection.acks_0
        if tokens is not None and tokens.awaited > 0 and 0 <= length <= self.limit:
            tokens.from_broker()
            return PASSED
        wrong = tls_or_size(length, "broker", self.limit)
        if wrong is not None:
            connection.close("response", wrong[0], "", wrong[1])
        elif acks_0 is not None and not connection.pending.wanting(correlation, connection.turn):
            return self._answer_to_acks_0(data, pos, length, acks_0)
        else:
            close_unasked(connection, correlation)
        return MORE

    def _answer_to_acks_0(self, data: bytes, pos: int, length: int, memory: ApiMemory) -> Step:
        """Count it as a response, but no latency: when its request came is not known any more."""
        met = self.bodies.meet(data, pos, length, memory)
        if met is None:
            return MORE
        summary, replaced = met
        message = "an answer to a Produce request with acks=0, which Kafka does not answer"
        self.connection.problem("acks_0_answered", memory.plan.name, message)
        memory.counters.responses += 1
        memory.counters.response_bytes += length + 4
        self.connection.count_errors(memory, summary, 1)
        self.instead = replaced or []
        return PASSED if replaced is None else REPLACED

    def _release(self, data: bytes, start: int, pos: int, pieces: list[Piece | Effect]) -> int:
        """Send klamm's own answers whose turn has come."""
        pending = self.connection.pending
        while pending.oldest is not None and pending.oldest.memory is None:
            made = pending.remove_oldest().made
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
        counters.latency.add(elapsed, times)
        for topic in run.summary.topics:
            topic.latency.add(elapsed, times)
        if summary.errors:
            self.connection.count_errors(memory, summary, times)
