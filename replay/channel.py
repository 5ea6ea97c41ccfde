"""A connection to one broker: requests go out as they come, answers come in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from klamm.decoders.headers import RESPONSE
from klamm.proxy.cluster.conversation import ANSWER_LIMIT, Conversation

SIZE = 4
FRAME_LIMIT = 16 * ANSWER_LIMIT
LAST_BYTES_S = 5.0


class Channel:
    """On a conversation that is authenticated, where that is wanted."""

    def __init__(self, conversation: Conversation) -> None:
        assert isinstance(conversation.writer, asyncio.StreamWriter)
        self.reader, self.writer = conversation.reader, conversation.writer
        self.address = conversation.address
        self.waiting: deque[tuple[int, asyncio.Future[bytes]]] = deque()
        self.ended: Exception | None = None
        self.reading = asyncio.create_task(self._read())

    async def send(self, frame: bytes, correlation_id: int, awaits: bool) -> asyncio.Future[bytes] | None:
        """A whole request. The answer without its size, later: ConnectionError where none comes. None where
        none is due. Raises ConnectionError.
        """
        if self.ended is not None:
            raise self.ended
        answer: asyncio.Future[bytes] | None = None
        if awaits:
            answer = asyncio.get_running_loop().create_future()
            self.waiting.append((correlation_id, answer))
        self.writer.write(frame)
        await self.writer.drain()
        return answer

    async def _read(self) -> None:
        why = "the broker closed the connection"
        try:
            while True:
                head = await self.reader.readexactly(RESPONSE.size)
                size, correlation_id = RESPONSE.unpack(head)
                if not SIZE <= size <= FRAME_LIMIT or not self.waiting:
                    why = "the broker sent an answer to no request"
                    return
                frame = head[SIZE:] + await self.reader.readexactly(size - SIZE)
                expected, answer = self.waiting[0]
                if expected != correlation_id:
                    why = f"the broker answers request {correlation_id}, and not {expected}"
                    return
                self.waiting.popleft()
                if not answer.done():
                    answer.set_result(frame)
        except (OSError, asyncio.IncompleteReadError) as error:
            if isinstance(error, OSError) and str(error):
                why = f"the connection broke ({error.strerror or error})"
        finally:
            self._end(why)

    def _end(self, why: str) -> None:
        self.ended = ConnectionError(why)
        for _, answer in self.waiting:
            if not answer.done():
                answer.set_exception(ConnectionError(why))
                answer.exception()  # it may be that nobody waits
        self.waiting.clear()
        self.writer.close()

    async def close(self) -> None:
        """Sends what is left, if the broker takes it, and does not wait for the pending answers."""
        self.writer.close()
        self.reading.cancel()
        with suppress(asyncio.CancelledError):
            await self.reading
        try:
            async with asyncio.timeout(LAST_BYTES_S):
                await self.writer.wait_closed()
        except OSError:
            self.writer.transport.abort()
