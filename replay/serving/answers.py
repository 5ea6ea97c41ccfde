"""Answers requests as a broker: computed where the recording has the facts, else as it was recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from klamm.decoders import EncodeError, encode
from klamm.decoders.schema import Api
from klamm.replay.serving.groups import Alive, Groups
from klamm.replay.serving.matching import Key, Values, matter, nearest, spoken
from klamm.replay.serving.members import ConsumerGroups
from klamm.replay.serving.parts import composed, fitted, in_version, unknown_code
from klamm.replay.serving.recording import Answered, Recording
from klamm.rules.errors.answers import NoPlace, error_answer
from klamm.settings.nearest import suggestion

MOST_LINES = 1000  # lines for people; all requests are counted


class Asked(NamedTuple):
    """A request to a node ("2", "controller 1"), and whether its connection is still open."""

    api: Api
    version: int
    node: str
    client_id: str | None
    values: Values
    alive: Alive


class Unanswered(Exception):
    """There is no answer to a request; the text says why."""


Reply = Values | bytes | None  # values, or a body; None: no answer is due
Play = Callable[["Broker", Asked], "Reply | Awaitable[Reply]"]


class Broker:
    """All nodes of the recorded cluster in one. `say` takes a line for people. `strict`: a request without a
    recorded answer raises Unanswered, and does not get an error of its API.
    """

    def __init__(
        self, recording: Recording, play: dict[str, Play], say: Callable[[str], None], strict: bool = False
    ) -> None:
        self.recording, self.play, self.say, self.strict = recording, play, say, strict
        self.groups = Groups(recording.members)
        self.consumers = ConsumerGroups(
            lambda: list(recording.partitions), recording.id_of, recording.name_of, self.groups.new_member_id
        )
        self.committed: dict[tuple[str, str, int], Values] = dict(recording.committed)
        self.produced: Counter[tuple[str, int]] = Counter()  # the next offset, where it was asked for
        self.producer_ids = 0
        self.answered: Counter[str] = Counter()  # requests, by API
        self.unanswered: Counter[str] = Counter()
        self.lacking = False  # whether the recording lacks a part of the current request
        self.told_of: set[Any] = set()  # reported as missing
        self.lines: set[str] = set()

    async def answer(self, asked: Asked) -> bytes | None:
        """The body of the response; None where none is due. Raises Unanswered."""
        play, self.lacking = self.play.get(asked.api.name), False
        try:
            values = self.recorded(asked) if play is None else play(self, asked)
        except Exception:
            self.lacking = True
            raise
        finally:  # nothing else was asked in between
            (self.unanswered if self.lacking else self.answered)[asked.api.name] += 1
        if isinstance(values, Awaitable):
            values = await values
        if values is None or isinstance(values, bytes):
            return values
        values = fitted(values, asked.api.response, asked.version)
        try:
            return encode(values, asked.api.key, asked.version, "response")
        except EncodeError as error:
            raise Unanswered(f"the recorded answer does not fit: {error}") from error

    def recorded(self, asked: Asked) -> Reply:
        """The recorded answer to an equal request, else one made from recorded parts, else an error."""
        whole = self.whole(asked)
        if whole is None:
            return self.of_parts(asked)
        return whole.body if whole.version == asked.version else in_version(whole, asked.version)

    def whole(self, asked: Asked) -> Answered | None:
        """The recorded answer to the same question; of the same node, where each has its own."""
        key = self.key(asked)
        own = self.recording.tell(self.recording.whole, (asked.api.key, key, asked.node))
        return own or self.recording.tell(self.recording.whole, (asked.api.key, key, None))

    def key(self, asked: Asked) -> Key:
        return matter(asked.api, asked.version, asked.values, self.recording.name_of)

    def of_parts(self, asked: Asked) -> Reply:
        """Each part as it was answered when others asked for it, or with an error."""
        try:
            values, found, missing = composed(
                self.recording, asked.api, asked.version, asked.values, unknown_code(asked.api)
            )
        except NoPlace:
            values, found, missing = {}, 0, 1
        if missing or not found:
            self.lacks(asked)
        if found:
            return values
        try:
            return error_answer(asked.api, asked.version, asked.values, unknown_code(asked.api))
        except NoPlace as error:
            raise Unanswered(str(error)) from error

    def lacks(self, asked: Asked, topic: str | None = None) -> None:
        """Says once that nothing recorded answers a request, and what comes nearest. `topic` is the one that
        is unknown. Raises Unanswered if strict.
        """
        self.lacking = True
        key = self.key(asked)
        about = asked.api.key, asked.version, key if topic is None else topic
        if not self.strict and (about in self.told_of or len(self.told_of) >= MOST_LINES):
            return
        what, near = f"topic {topic}", suggestion(topic or "", sorted(self.recording.topics()))
        if topic is None:
            what, near = spoken(key) or "everything", self._nearest(asked.api, key)
        line = f"nothing recorded answers {asked.api.name} v{asked.version} for {what}{near}"
        if self.strict:
            raise Unanswered(line)
        self.told_of.add(about)
        self.say_once(line)

    def say_once(self, line: str) -> None:
        """One line for a client that asks again and again."""
        if line not in self.lines and len(self.lines) < MOST_LINES:
            self.lines.add(line)
            self.say(line)

    def _nearest(self, api: Api, key: Key) -> str:
        near = nearest(key, self.recording.keys[api.key])
        if near is None:
            return f"; the recording has no {api.name}" * (api.key not in self.recording.last)
        return f"; nearest is {spoken(near) or 'one for everything'}"


async def waited(delay_ms: int, answer: Reply) -> Reply:
    """An answer that a broker keeps back while there is nothing new."""
    await asyncio.sleep(delay_ms / 1000)
    return answer


def known(recording: Recording, values: Values, index: int, name: str = "name") -> Any:
    """The partition that an element of a request names; None if the recording never met it."""
    return recording.partitions.get((recording.topic(values, name), index))
