"""Bytes from the broker: matched with their requests, counted, their addresses rewritten, passed on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from struct import Struct
from typing import Any

from klamm.decoders.compile import UNREADABLE, Path, skip_tags
from klamm.decoders.failures import DecodeError, EncodeError
from klamm.proxy.api_versions import clamped
from klamm.proxy.connection import MIB, NO_MEMO, Connection, Effect, Flow, Memo, Run, tls_or_size
from klamm.proxy.notes import QUIET, AnswerNote, answer_note
from klamm.proxy.rewrite import Unbound, neutralise, rewrite
from klamm.proxy.stats import BOUNDS_NS
from klamm.proxy.topology import Unbindable
from klamm.rules.plan import API_VERSIONS, METADATA

HEAD = Struct(">ii").unpack_from  # size, correlation id
SIZE = Struct(">i")
MEMO_LIMIT = 4096
HELD_MEMO_LIMIT = 256 * 1024
TAIL_HELD = 256 * 1024  # a response that ends in addresses is held whole up to this size; a larger one flows
TAIL_LIMIT = MIB
COPIED = 4096  # below it, copying costs less than another write
SHAPE_LIMIT = 64 * 1024  # of a response whose shape is remembered
FIRST_LOOK = 256 * 1024  # a held response is looked at when this much is there: addresses mostly come early

Piece = bytes | memoryview


class Responses:
    """`left`: bytes of the current frame still to come, which go on as they are. `kept`: the start of a frame that is held until
    `need` bytes are there. `walk` reads a frame while it passes; `tail` is the end of one, held back to be looked at.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.left = 0
        self.kept: list[bytes] = []
        self.kept_size = 0
        self.need = 8
        self.since = 0  # when the first byte of what is kept came
        self.blocked = False  # a listener is being bound
        self.walk: tuple[Generator[None, bytes, tuple[Any, ...]], Flow, tuple[Path, ...], int] | None = None
        self.pending: tuple[Run, int, int, int] | None = None  # what to log once `walk` has read the frame
        self.tail: list[bytes] | None = None
        self.tailed: Flow
        self.limit = connection.ground.frame_limit

    def receive(self, data: bytes, now: int) -> bytes | list[Effect]:
        """The same object when all of it goes on; else effects."""
        if self.connection.closing:
            return []
        pieces: list[Piece] = []
        offset = 0
        while self.kept and not self.blocked and not self.connection.closing:
            missing = max(0, self.need - self.kept_size)
            if len(data) - offset < missing:
                break
            frame = b"".join([*self.kept, data[offset : offset + missing]])
            offset += missing
            self.kept, self.need = [], 8
            self._scan(frame, 0, now, self.since, pieces)
        if self.kept:
            self.kept.append(data[offset:])
            self.kept_size += len(data) - offset
        elif not self.connection.closing:
            self._scan(data, offset, now, now, pieces)
        if len(pieces) == 1 and pieces[0] is data and not self.connection.effects:
            return data
        effects, self.connection.effects = self.connection.effects, []
        return [*_sends(pieces), *effects]

    def _scan(self, data: bytes, offset: int, now: int, arrived: int, pieces: list[Piece]) -> None:
        """Take data from an offset on, which is where the last call ended; what may go on is added to `pieces`.

        `arrived` is when the first byte of the first frame came, which was held if that was not now.
        """
        connection = self.connection
        size, pos, start = len(data), offset + self.left, offset
        walked = self.walk
        if walked is not None or self.tail is not None:
            start = self._pass(data, offset, min(pos, size), pos <= size, start, pieces)
        in_flight, turn = connection.in_flight, connection.turn
        while size - pos >= 8:
            if not in_flight:
                if not self._odd(*HEAD(data, pos)):
                    break
                pos += HEAD(data, pos)[0] + 4
                continue
            run = in_flight[0]
            flow, ids = run.flow, run.ids
            if flow is None:
                pieces += (_part(data, start, pos), run.made)
                start = pos
                in_flight.popleft()
                continue
            least, most, first, second, second_at, third, third_at, note = flow.answer
            began, before, count = pos, turn, len(ids)
            while size - pos >= 8:
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
                if turn == count:
                    break
            if turn > before:
                self._count(flow, run, note, turn - before, pos - began, now - run.arrived)
                if turn == count:
                    in_flight.popleft()
                    turn = 0
                continue
            if correlation != ids[turn] or not 4 <= length <= self.limit:
                connection.turn = turn
                if not self._odd(length, correlation):
                    break
                pos += length + 4
                continue
            met = self._meet(data, pos, length, flow)
            if met is None:
                break
            note, replaced = met
            if replaced is not None:
                pieces.append(_part(data, start, pos))
                pieces += replaced
                start = min(pos + length + 4, size)
            if replaced is not None or arrived != now:
                flow.lane.own.add(now - arrived)
            self._count(flow, run, note, 1, length + 4, arrived - run.arrived)
            if flow.plan.logged:
                if self.walk is None:
                    connection.exchange(flow, run, correlation, note, length, arrived - run.arrived)
                else:
                    self.pending = (run, correlation, length, arrived - run.arrived)
            pos += length + 4
            arrived = now
            turn += 1
            if turn == count:
                in_flight.popleft()
                turn = 0
        connection.turn = turn
        if self.walk is not None and self.walk is not walked:
            start = self._pass(data, self.walk[3], size, False, start, pieces)
        if in_flight and in_flight[0].flow is None and pos <= size and not connection.closing:
            start = self._release(data, start, pos, pieces)
        if pos < size and connection.tokens is not None and not self.blocked:
            pos = self._short_tokens(data, pos, size)
        if pos >= size:
            self.left = pos - size
            pieces.append(data if start == 0 else _part(data, start, size))
        else:
            self.left = 0
            pieces.append(_part(data, start, pos))
            self.kept, self.kept_size, self.since = [data[pos:]], size - pos, arrived

    def bound(self, now: int) -> bytes | list[Effect]:
        """The listeners that were asked for are there, or their nodes say why not."""
        self.blocked = False
        return self.receive(b"", now)

    def _odd(self, length: int, correlation: int) -> bool:
        """A frame that answers no request: a SASL token, or the end of the connection."""
        connection = self.connection
        tokens = connection.tokens
        if tokens is not None and tokens.awaited > 0 and 0 <= length <= self.limit:
            tokens.from_broker()
            return True
        wrong = tls_or_size(length, "broker", self.limit)
        if wrong is not None:
            connection.close(wrong[0], "", wrong[1])
        elif not connection.in_flight:
            connection.close(
                "unexpected_response",
                "",
                f"a response with correlation id {correlation} that nobody asked for",
            )
        else:
            oldest = connection.in_flight[0]
            name, expected = oldest.flow.plan.name if oldest.flow else "", oldest.ids[connection.turn]
            message = (
                f"a response with correlation id {correlation}; the oldest request is {name} with {expected}"
            )
            connection.close("correlation_mismatch", name, message)
        return False

    def _release(self, data: bytes, start: int, pos: int, pieces: list[Piece]) -> int:
        """Answers made by klamm whose turn has come."""
        in_flight = self.connection.in_flight
        while in_flight and in_flight[0].flow is None:
            pieces += (_part(data, start, pos), in_flight.popleft().made)
            start = pos
        return start

    def _meet(
        self, data: bytes, pos: int, length: int, flow: Flow
    ) -> tuple[AnswerNote, list[bytes] | None] | None:
        """A frame that is not like the last of its kind: (what it says, what replaces it). None: more bytes are needed, or it ends."""
        plan, end = flow.plan, pos + 4 + length
        whole = end <= len(data)
        if plan.hold:
            return self._held(data, pos, length, flow)
        if plan.response is None:
            if not plan.logged:
                flow.answer = Memo(4, self.limit, b"", b"", 0, b"", 0, QUIET)
            return QUIET, None
        if not whole and plan.tail is not None and length <= TAIL_HELD:
            return self._wait(length + 4)
        try:
            body = self._body(flow, data, pos)
            if plan.tail is not None and not whole:
                raise IndexError
            *columns, stop = plan.response.pick(data, body, min(end, len(data)))
        except UNREADABLE:
            if not whole:
                return self._start_walk(flow, data, pos, length)
            if plan.tail is not None:
                return self._refuse(flow, "its addresses cannot be looked for")
            self._undecodable(flow)
            return QUIET, None
        if flow.answer_columns != columns:
            flow.answer_columns, flow.answer_note = columns, self._said(flow, tuple(columns))
            if not flow.answer_note.named:
                flow.answer_columns = None
        if plan.tail is not None and plan.response.column(tuple(columns), (plan.tail, "node_id")):
            return (
                self._rewritten(data, pos, body, end, flow)
                if length <= TAIL_HELD
                else self._blanked(data, pos, body, end, flow)
            )
        flow.answer = NO_MEMO
        if flow.answer_columns is not None and not plan.logged:
            if plan.tail is None and stop - pos <= MEMO_LIMIT:
                flow.answer = Memo(
                    stop - pos - 4, self.limit, data[pos + 8 : stop], b"", 0, b"", 0, flow.answer_note
                )
            elif plan.shape is not None and length == flow.answer_length and length <= SHAPE_LIMIT:
                flow.answer = _shape(plan.shape(data, body, end), data[pos:end], pos, flow.answer_note)
            flow.answer_length = length
        return flow.answer_note, None

    def _said(self, flow: Flow, columns: tuple[Any, ...]) -> AnswerNote:
        topology = self.connection.ground.topology
        plan = flow.plan
        if plan.key == METADATA and plan.response is not None:
            names, ids = (plan.response.column(columns, ("topics", what)) for what in ("name", "topic_id"))
            for name, topic_id in zip(names or (), ids or (), strict=False):
                if name is not None:
                    topology.learn_topic(topic_id, name)
        return answer_note(plan, columns, topology.topic_names.get)

    def _wait(self, need: int) -> None:
        """Hold the frame until so much of it is there."""
        self.need = need

    def _body(self, flow: Flow, data: bytes, pos: int) -> int:
        return skip_tags(data, pos + 9, len(data), data[pos + 8]) if flow.plan.response_tags else pos + 8

    def _held(
        self, data: bytes, pos: int, length: int, flow: Flow
    ) -> tuple[AnswerNote, list[bytes] | None] | None:
        """A response that is not passed on before its addresses are rewritten."""
        end, size = pos + 4 + length, len(data)
        topology = self.connection.ground.topology
        if (
            end <= size
            and flow.revision == topology.revision
            and flow.held is not None
            and len(flow.held) == length - 4
        ):
            if data.startswith(flow.held, pos + 8):
                return flow.answer_note, [*_resized(data, pos, pos + 8, flow.replaced)]
        if end > size and (flow.plan.key == API_VERSIONS or size - pos < FIRST_LOOK):
            return self._wait(min(length + 4, FIRST_LOOK) if flow.plan.key != API_VERSIONS else length + 4)
        try:
            body = self._body(flow, data, pos)
            if flow.plan.key == API_VERSIONS:
                return self._clamped(data, pos, body, end, flow)
        except (*UNREADABLE, DecodeError, EncodeError) as error:
            return self._refuse(flow, str(error) or "cut short")
        return self._rewritten(data, pos, body, end, flow)

    def _clamped(
        self, data: bytes, pos: int, body: int, end: int, flow: Flow
    ) -> tuple[AnswerNote, list[bytes] | None]:
        original = data[body:end]
        new = clamped(original, flow.plan.version, self.connection.ground.allow_unknown_apis)
        code = int.from_bytes(original[:2], "big", signed=True)
        note = AnswerNote([(None, code)] if code else [])
        return note, None if new is original else [*_resized(data, pos, body, [new])]

    def _rewritten(
        self, data: bytes, pos: int, body: int, end: int, flow: Flow
    ) -> tuple[AnswerNote, list[bytes] | None] | None:
        """Splice klamm's addresses in; the part of a frame that has not come yet flows after them."""
        connection, plan, size = self.connection, flow.plan, len(data)
        topology = connection.ground.topology
        assert plan.endpoints is not None
        there = min(end, size)
        try:
            new = rewrite(plan.endpoints, data, body, there, connection.standing)
        except Unbound:
            self.blocked = True
            connection.effects.append(("bind",))
            return self._wait(end - pos)
        except Unbindable as error:
            connection.close("unbindable", plan.name, str(error))
            return None
        except UNREADABLE:
            if end <= size:
                return self._refuse(flow, "its addresses cannot be found")
            if size - pos > connection.ground.held_limit:
                return self._refuse(flow, f"no end of its addresses in the first {size - pos} bytes")
            return self._wait(min(end - pos, 2 * (size - pos)))
        note = self._watched(flow, data, pos, body, end) if plan.hold else flow.answer_note
        if new is None:
            if end > size:
                return note, None
            new = [data[body:end]]
        late = end - there
        if late == 0 and end - pos <= HELD_MEMO_LIMIT and plan.hold and note.named:
            head = data[pos + 8 : body]
            flow.held, flow.replaced, flow.revision = data[pos + 8 : end], [head, *new], topology.revision
            flow.answer_note = note
        return note, [*_resized(data, pos, body, new, late)]

    def _watched(self, flow: Flow, data: bytes, pos: int, body: int, end: int) -> AnswerNote:
        """What a held response says; a part of one is read on while the rest passes."""
        if flow.plan.response is None:
            return QUIET
        if end > len(data):
            met = self._start_walk(flow, data, pos, end - pos - 4)
            return met[0] if met else QUIET
        try:
            return self._said(flow, flow.plan.response.pick(data, body, end)[:-1])
        except UNREADABLE:
            self._undecodable(flow)
            return QUIET

    def _start_walk(
        self, flow: Flow, data: bytes, pos: int, length: int
    ) -> tuple[AnswerNote, list[bytes] | None] | None:
        """Read the rest of a frame as it passes; the part of it that is here goes on at once."""
        plan = flow.plan
        assert plan.response is not None
        try:
            body = self._body(flow, data, pos)
        except UNREADABLE:
            return self._wait(len(data) - pos + 1)
        if plan.tail is None:
            made, paths = plan.response_walk(), plan.response.paths
        else:
            made, paths = plan.tail_walk()
        walk = made()
        next(walk)
        self.walk = (walk, flow, paths, body)
        return QUIET, None

    def _pass(self, data: bytes, begin: int, stop: int, last: bool, start: int, pieces: list[Piece]) -> int:
        """Read data[begin:stop] of a frame that passes; `last`: it ends there. Everything before the returned position went into
        `pieces` or is held back."""
        if self.walk is not None:
            walk, flow, paths, _ = self.walk
            try:
                walk.send(data[begin:stop])
            except StopIteration as done:
                self._walked(flow, paths, done.value[:-1])
                if flow.plan.tail is not None:
                    begin = stop - done.value[-1]
                    pieces.append(_part(data, start, begin))
                    start, self.tail, self.tailed = begin, [], flow
            except UNREADABLE:
                self._unread(flow)
            else:
                if last:
                    self._unread(flow)
        if self.tail is not None:
            self.tail.append(data[begin:stop])
            start = stop
            if sum(map(len, self.tail)) > TAIL_LIMIT:
                self._refuse(self.tailed, f"its addresses take more than {TAIL_LIMIT} bytes")
            elif last:
                pieces.append(self._ended(b"".join(self.tail)))
                self.tail = None
        return start

    def _blanked(
        self, data: bytes, pos: int, body: int, end: int, flow: Flow
    ) -> tuple[AnswerNote, list[bytes]]:
        """A large answer that came in one piece is treated as if it had not."""
        walk = flow.plan.tail_walk()[0]()
        next(walk)
        start = end
        try:
            walk.send(data[body:end])
        except StopIteration as done:
            start -= done.value[-1]
        self.tailed = flow
        return flow.answer_note, [data[pos:start], self._ended(data[start:end])]

    def _walked(self, flow: Flow, paths: tuple[Path, ...], columns: tuple[Any, ...]) -> None:
        self.walk = None
        picked = flow.plan.response
        assert picked is not None
        missing = (None,) * (len(picked.paths) - len(paths))
        note = self._said(flow, columns + missing)
        if note.errors:
            self._count_errors(flow, note)
        if self.pending is not None:
            self.connection.exchange(flow, *self.pending[:2], note, *self.pending[2:])
            self.pending = None

    def _unread(self, flow: Flow) -> None:
        """A frame of which a part has gone on does not decode."""
        self.walk = None
        if flow.plan.tail is not None:
            self._refuse(flow, "its addresses cannot be found")
            return
        self._undecodable(flow)
        if self.pending is not None:
            self.connection.exchange(flow, *self.pending[:2], QUIET, *self.pending[2:])
            self.pending = None

    def _ended(self, tail: bytes) -> bytes:
        """The end of a large answer, with no address in it."""
        flow, plan = self.tailed, self.tailed.plan
        assert plan.tail is not None and plan.endpoints is not None
        try:
            new = neutralise(tail, plan.tail_tagged)
        except UNREADABLE:
            self._refuse(flow, "its addresses cannot be blanked")
            return b""
        if new != tail:
            size = f"a {plan.name} v{plan.version} response that flowed past"
            self.connection.problem(
                "endpoints_blanked",
                plan.name,
                f"{size}: its node_endpoints were blanked, the client will refresh",
            )
        return new

    def _count(self, flow: Flow, run: Run, note: AnswerNote, times: int, size: int, elapsed: int) -> None:
        """Like responses that came in one read."""
        lane = flow.lane
        lane.responses += times
        lane.response_bytes += size
        bucket = bisect_left(BOUNDS_NS, elapsed)
        lane.latency.buckets[bucket] += times
        lane.latency.total_ns += times * elapsed
        for topic in run.note.topics:
            topic.latency.buckets[bucket] += times
            topic.latency.total_ns += times * elapsed
        if note.errors:
            self._count_errors(flow, note, times)

    def _count_errors(self, flow: Flow, note: AnswerNote, times: int = 1) -> None:
        ground = self.connection.ground
        for topic, code in note.errors:
            flow.lane.errors[code] += times
            if topic is not None:
                ground.stats.topic(ground.cluster, topic, flow.plan.name).errors[code] += times

    def _undecodable(self, flow: Flow) -> None:
        plan = flow.plan
        self.connection.problem(
            "undecodable",
            plan.name,
            f"a {plan.name} v{plan.version} response does not decode; passed on as it is",
        )

    def _refuse(self, flow: Flow, reason: str) -> None:
        """A response that may carry addresses cannot be rewritten: better no answer than one that leads past klamm."""
        plan = flow.plan
        self.connection.close(
            "unrewritable", plan.name, f"a {plan.name} v{plan.version} response cannot be passed on: {reason}"
        )

    def _short_tokens(self, data: bytes, pos: int, size: int) -> int:
        """Tokens of less than 4 bytes: the position after those that are whole."""
        tokens = self.connection.tokens
        while tokens is not None and tokens.awaited > 0 and size - pos >= 4:
            (length,) = SIZE.unpack_from(data, pos)
            if not 0 <= length < 4 or size - pos < 4 + length:
                break
            tokens.from_broker()
            pos += 4 + length
        return pos


def _shape(volatile: list[tuple[int, int, int, Any]], frame: bytes, start: int, note: AnswerNote) -> Memo:
    """The frame's bytes around its volatile values: sizes, counts and everything that says something. `start`: of the frame."""
    steady, pos = [], 8
    for _, first, last, value in volatile:
        first = (
            last - len(value) if isinstance(value, bytes) else first
        )  # records: their length is of the shape
        if first - start > pos:
            steady.append((pos, frame[pos : first - start]))
        pos = last - start
    steady.append((pos, frame[pos:]))
    if len(steady) > 3 or steady[0][0] != 8 or not steady[-1][1]:
        return NO_MEMO
    (_, one), (two_at, two), (three_at, three) = (steady + [(0, b"")] * 2)[:3]
    return Memo(len(frame) - 4, len(frame) - 4, one, two, two_at, three, three_at, note)


def _part(data: bytes, start: int, stop: int) -> Piece:
    """A part of what was read, not copied when that is worth it."""
    return data[start:stop] if stop - start < COPIED else memoryview(data)[start:stop]


def _sends(pieces: list[Piece]) -> list[Effect]:
    """Small pieces in one write, large ones in one each."""
    if sum(map(len, pieces)) < COPIED:
        pieces = [b"".join(pieces)]
    return [("send", "client", piece) for piece in pieces if len(piece)]


def _resized(data: bytes, pos: int, body: int, new: list[bytes], late: int = 0) -> list[bytes]:
    """A frame with a new body, `late` bytes of which are still to come."""
    size = body - pos - 4 + sum(map(len, new)) + late
    return [SIZE.pack(size), data[pos + 4 : body], *new]
