"""Plays a capture as the clients: sends the requests again, and compares the answers with the recorded ones.

What is guaranteed is the recorded order of cause and effect: a request is sent when those that began before
it have been sent, and those that had been answered before it began have been answered. It follows from going
through the capture in the order of time, sending at each request and waiting at each answer. Nothing can wait
for ever: an exchange that ended before a request began cannot have needed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import NamedTuple

from klamm.captures.captured import Captured, CapturedConnection, api_name
from klamm.decoders import API, DecodeError, encode
from klamm.decoders.body import decode_prefix
from klamm.decoders.headers import (
    answered_version,
    read_request_header,
    read_response_header,
    request_frame,
    request_header_version,
    response_header_version,
)
from klamm.decoders.schema import ERROR, RECORDS, Api
from klamm.replay.cluster import Cluster
from klamm.replay.comparing import NOT_YET, Differences, count_records, is_assignment
from klamm.replay.dividing import LEADERS, divided
from klamm.replay.meanings import Values, meaning
from klamm.replay.pairs import ABSENT, Pair, pairs, together
from klamm.replay.renaming import About, Renaming
from klamm.replay.replayed_connection import Node, Part, ReplayedConnection
from klamm.replay.sessions import in_session
from klamm.replay.survey import CREATE_TOPICS, Survey, why_not

ANSWER_S = 60.0  # longer than it took in the recording
AGAIN_S = 0.1  # between two times of asking
API_VERSIONS = 18
SHARED = frozenset({"ShareFetch", "ShareAcknowledge"})  # a session of a member, not of a connection
PARTIAL = frozenset({"Fetch", "ShareFetch"})  # answers of sessions leave out unchanged parts
OnProgress = Callable[[int], None]  # requests that were sent


class Pace(NamedTuple):
    """`speed`: so many times as fast; None: as soon as what was answered before is answered. `patience_s`:
    for what is not there yet.
    """

    speed: float | None = 1.0
    patience_s: float = 10.0


AS_RECORDED = Pace()


Asker = tuple[str | None, str | None]


def _asker(values: Values | None) -> Asker:
    """Group and transactional id of a request: answers that are about one of these do not name it."""
    return (values.get("group_id"), values.get("transactional_id")) if values else (None, None)


class Place(NamedTuple):
    """A part of a request, in recorded names."""

    api: str
    topic: str | bytes | None
    partition: int | None
    group: str | None


class Sent(NamedTuple):
    """A request of the recording and what was made of it. `values` None: it could not be read."""

    row: Captured
    played: ReplayedConnection
    api: Api | None
    values: Values | None
    parts: list[Part]


class Player:
    """`sent` and `answered` count requests of the recording."""

    def __init__(
        self,
        cluster: Cluster,
        survey: Survey,
        differences: Differences,
        pace: Pace = AS_RECORDED,
        without: frozenset[str] = frozenset(),
        progress: OnProgress = lambda count: None,
    ) -> None:
        self.cluster, self.survey, self.differences = cluster, survey, differences
        self.pace, self.without, self.progress = pace, without, progress
        self.renaming = Renaming(cluster.stand_in)
        self.replayed: dict[Hashable, ReplayedConnection] = {}  # by connection, or (group, member)
        self.waiting: dict[CapturedConnection, dict[int, Sent]] = {}
        self.given_up: set[tuple[Asker, Place]] = set()
        self.sent = self.answered = 0

    async def play(self, rows: Iterable[Captured]) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            for row in rows:
                if row.connection is None:
                    continue
                if row.kind == "closed":
                    await self._closed(row.connection)
                elif row.kind == "frame" and row.side == "response":
                    await self._ended(row)
                elif row.kind == "frame" and why_not(row, self.without) is None:
                    if self.pace.speed is not None:
                        due = start + (row.time_ns - self.survey.first_ns) / 1e9 / self.pace.speed
                        await asyncio.sleep(max(0.0, due - loop.time()))
                    await self._begun(row)
        finally:
            for played in self.replayed.values():
                await played.close()

    # A request.

    async def _begun(self, row: Captured) -> None:
        assert row.connection is not None
        self.sent += 1
        self.progress(self.sent)
        offered = self.cluster.offered.get(row.api_key)
        is_known = not self.cluster.offered or row.api_key == API_VERSIONS
        if not is_known and (offered is None or not offered[0] <= row.api_version <= offered[1]):
            now = (
                "the cluster has no such API"
                if offered is None
                else f"v{offered[0]}-{offered[1]} are offered"
            )
            self._differs(row, "version", f"v{row.api_version}", now)
            return
        try:
            async with asyncio.timeout(ANSWER_S):
                made = await self._send(row, row.connection)
        except OSError as error:
            self._differs(row, "answer", "it was sent", str(error) or f"not taken within {ANSWER_S:.0f} s")
            return
        if row.awaits:
            self.waiting.setdefault(row.connection, {})[row.exchange] = made

    def _replayed(self, key: Hashable, user: CapturedConnection) -> ReplayedConnection:
        played = self.replayed.get(key)
        if played is None:
            played = self.replayed[key] = ReplayedConnection(self.cluster, self._home(user.broker))
        played.users.add(user)
        return played

    def _home(self, broker: str) -> Node:
        if broker == "bootstrap" or broker.startswith("controller"):
            return None
        return self.cluster.stand_in(int(broker) if broker.isdigit() else broker)

    async def _send(self, row: Captured, connection: CapturedConnection) -> Sent:
        """Raises OSError."""
        frame = row.frame
        assert frame is not None
        api, values = API.get(row.api_key), None
        if api is not None and row.api_version in api.versions:
            with suppress(DecodeError):
                start = read_request_header(frame, request_header_version(api, row.api_version)).size
                values, _ = decode_prefix(frame[start:], api.key, row.api_version, "request")
        shared = api is not None and api.name in SHARED and values is not None
        key = (values["group_id"], values["member_id"]) if shared and values else connection
        played = self._replayed(key, connection)
        if api is None or values is None:
            whole = len(frame).to_bytes(4, "big") + frame
            answer = await played.send(played.home, whole, row.correlation_id, row.awaits)
            return Sent(row, played, api, None, [Part(played.home, None, answer)])
        return Sent(row, played, api, values, await self._parts(row, played, api, values))

    async def _parts(self, row: Captured, played: ReplayedConnection, api: Api, values: Values) -> list[Part]:
        """A recorded request, or some of it, sent to those who have to answer."""
        now = self._fitting(row, self.renaming.request(api.request, row.api_version, values))
        assert row.connection is not None
        sent = []
        for node, asked in (await played.parts(api, row.api_version, now, row.connection)).items():
            frame = _written(row, api, asked)
            answer = await played.send(node, frame, row.correlation_id, row.awaits)
            sent.append(Part(node, asked, answer))
        return sent

    def _fitting(self, row: Captured, values: Values) -> Values:
        """Topics with as many replicas as there are brokers, and without configured values that are blank."""
        if row.api_key != CREATE_TOPICS:
            return values
        most = len(self.cluster.nodes)
        topics = [
            topic
            | {
                "replication_factor": min(topic["replication_factor"], most),
                "configs": [one for one in topic["configs"] if not _is_blanked(one["value"])],
            }
            for topic in values["topics"]
        ]
        return values | {"topics": topics}

    # Its answer.

    async def _ended(self, row: Captured) -> None:
        assert row.connection is not None
        made = self.waiting.get(row.connection, {}).pop(row.exchange, None)
        if made is None:
            return
        recorded = None
        with suppress(DecodeError):
            recorded = _read(row.frame, made.api, row.api_version)
        try:
            await self._compared(row, made, recorded)
        except TimeoutError:
            self._differs(
                made.row, "answer", "answered", f"no answer within {self._limit_s(row, made):.0f} s"
            )
            for part in made.parts:
                await made.played.give_up(part.node)
        except OSError as error:
            self._differs(made.row, "answer", "answered", str(error))
        except DecodeError as error:
            self._differs(made.row, "answer", "answered", f"it cannot be read: {error}")

    async def _compared(self, row: Captured, made: Sent, recorded: tuple[Values, int] | None) -> None:
        answer = await self._answer(row, made)
        self.answered += 1
        if answer is None or recorded is None or made.api is None:
            return
        loop = asyncio.get_running_loop()
        deadline, api, asker = loop.time() + self.pace.patience_s, made.api, _asker(made.values)
        while True:
            version = min(answer[1], recorded[1])
            found = self._met(api, version, recorded[0], answer[0])
            missing = {place for place in _not_yet(api, found) if (asker, place) not in self.given_up}
            if not missing:
                break
            if loop.time() > deadline:
                self.given_up |= {(asker, place) for place in missing}
                break
            await asyncio.sleep(AGAIN_S)
            answer = await self._again(row, made, missing, answer)
        assert row.connection is not None
        self.differences.compare(api, version, found, row.connection.number, row.exchange, bool(row.blanks))

    def _met(self, api: Api, version: int, recorded: Values, now: Values) -> list[Pair]:
        """All pairs of both answers; learns new ids from them."""
        found = []
        partial = api.name in PARTIAL
        for pair in pairs(api.response, version, recorded, now, self.renaming, partial):
            found.append(pair)
            kind = meaning(pair.field)
            if kind == "topic_id":
                name = pair.beside.get("name") or pair.beside.get("topic_name")
                if name:  # partitions with ids only may be of other topics
                    self.renaming.learn_topic(pair.recorded, pair.now, name)
            elif kind is not None and not isinstance(pair.recorded, list):
                self.renaming.learn(kind, pair.owner, pair.recorded, pair.now)
        return found

    async def _answer(self, row: Captured, made: Sent) -> tuple[Values, int] | None:
        """The brokers' answers as one, and the version that it is in; None where it cannot be read."""
        answers, version = [], row.api_version
        for part in made.parts:
            assert part.answer is not None
            async with asyncio.timeout(self._limit_s(row, made)):
                frame = await part.answer
            read = None if part.values is None else _read(frame, made.api, row.api_version)
            if read is None or made.api is None or part.values is None:
                continue
            answers.append(read[0])
            version = read[1]
            if in_session(made.api, part.values):
                made.played.sessions.answered(made.api, part.node, part.values, read[0])
        if not answers or made.api is None:
            return None
        return together(made.api.response, version, answers), version

    def _limit_s(self, row: Captured, made: Sent) -> float:
        return ANSWER_S + (row.time_ns - made.row.time_ns) / 1e9

    async def _again(
        self, row: Captured, made: Sent, missing: set[Place], before: tuple[Values, int]
    ) -> tuple[Values, int]:
        """Ask once more, and only for what was not there yet where the request can be divided."""
        api, version, values = made.api, row.api_version, made.values
        assert api is not None
        assert values is not None
        self.cluster.forget()
        self.renaming.forget_leader_epochs()
        if in_session(api, values):
            again = made.played.sessions.again(api, values)
        else:
            parts = divided(
                api.request, version, values, LEADERS, lambda about: self._place(api, about) in missing
            )
            again = parts.get(True, values)
        found = await self._answer(
            row, made._replace(parts=await self._parts(made.row, made.played, api, again))
        )
        if found is None:
            return before
        whole = again is values or in_session(api, values)
        return found if whole else (together(api.response, found[1], [before[0], found[0]]), found[1])

    def _place(self, api: Api, about: About) -> Place:
        topic_id = about.get("topic_id")
        topic = about.get("topic") or self.renaming.topic_names.get(topic_id or b"", topic_id)
        return Place(api.name, topic, about.get("partition"), about.get("group"))

    # Ends.

    async def _closed(self, connection: CapturedConnection) -> None:
        self.waiting.pop(connection, None)
        for key in [key for key, played in self.replayed.items() if connection in played.users]:
            if await self.replayed[key].leave(connection):
                del self.replayed[key]

    def _differs(self, row: Captured, path: str, recorded: str, now: str) -> None:
        assert row.connection is not None
        place = row.connection.number, row.exchange
        self.differences.add(api_name(row.api_key), row.api_version, f"({path})", (recorded, now), *place)


def _not_yet(api: Api, found: Iterable[Pair]) -> set[Place]:
    """The parts of a request that have to be asked for again."""
    missing = set()
    for pair in found:
        if pair.field.mark == ERROR:
            late = pair.now in NOT_YET and pair.recorded not in NOT_YET
        elif pair.field.mark == RECORDS:
            late = count_records(pair.now) < count_records(pair.recorded)
        else:
            there = pair.recorded not in (None, ABSENT)
            late = is_assignment(pair) and there and pair.now in (None, ABSENT)
        if late:
            about = pair.about
            missing.add(Place(api.name, about.get("topic"), about.get("partition"), about.get("group")))
    return missing


def _read(frame: bytes | None, api: Api | None, version: int) -> tuple[Values, int] | None:
    """A response, and the version that it is in. Raises DecodeError."""
    if frame is None or api is None or version not in api.versions:
        return None
    body = frame[read_response_header(frame, response_header_version(api, version)).size :]
    version = answered_version(api.key, version, body)
    return decode_prefix(body, api.key, version, "response")[0], version


def _written(row: Captured, api: Api, values: Values) -> bytes:
    """A request frame with the header of the recorded one."""
    assert row.frame is not None
    header = read_request_header(row.frame, request_header_version(api, row.api_version))
    body = encode(values, api.key, row.api_version, "request")
    return request_frame(api, row.api_version, row.correlation_id, header.client_id, body, header.tags)


def _is_blanked(value: str | None) -> bool:
    return bool(value) and not str(value).strip("\0")
