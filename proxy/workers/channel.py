"""A socket pair between two processes of one klamm: messages as pickles, open files beside them, calls with
answers.

Each message is its size (4 bytes, big-endian) and a pickle of (whether a file comes with it, the message). A
pickle runs code, so both ends have to be klamm's own; nobody else can open an unnamed socket pair.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from struct import Struct
from typing import Any, NamedTuple

SIZE = Struct(">I")
READ = 1 << 18  # bytes of one read
MOST_FILES = 32  # that come with one read
BATCH = 16  # messages of one read event before others have their turn

Call = Callable[..., Any | Awaitable[Any]]


class Ended(Exception):
    """The other process has ended."""


class Failed(Exception):
    """A call raised an exception in the other process; the text is its repr."""


class _Request(NamedTuple):
    number: int
    name: str
    arguments: tuple[Any, ...]


class _Answer(NamedTuple):
    number: int
    value: Any
    failure: Exception | str | None = None  # a str: the repr of one that is not in `expected`


class Channel:
    """One end. `calls`: the functions that the other end may call by name; one that gets a file has its
    number as the last argument, and closes it. Exceptions of the types `expected` are raised at the other end
    as they are, so they need to be picklable. `ended` is called once, when the other end is gone.
    """

    def __init__(
        self,
        sock: socket.socket,
        calls: Mapping[str, Call],
        ended: Callable[[], None],
        expected: tuple[type[Exception], ...] = (),
    ) -> None:
        sock.setblocking(False)
        self.sock, self.calls, self.on_end, self.expected = sock, calls, ended, expected
        self.loop = asyncio.get_running_loop()
        self.received = bytearray()
        self.files: deque[int] = deque()
        self.unsent: deque[tuple[memoryview, int | None]] = deque()
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.number = 0
        self.closed = False
        self.loop.add_reader(sock, self._read)

    def tell(self, name: str, *arguments: Any, file: int | None = None) -> None:
        """Call a function of the other end, and want no answer. The file is closed here once it is sent."""
        self._send(_Request(0, name, arguments), file)

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Call a function of the other end. Raises Ended, Failed, and the exceptions that it expects."""
        if self.closed:
            raise Ended
        self.number += 1
        number = self.number
        future = self.waiting[number] = self.loop.create_future()
        try:
            self._send(_Request(number, name, arguments))
            return await future
        finally:
            self.waiting.pop(number, None)

    def close(self) -> None:
        """End it, as if the other end were gone; `ended` is not called."""
        if self.closed:
            return
        self.closed = True
        self.loop.remove_reader(self.sock)
        self.loop.remove_writer(self.sock)
        self.sock.close()
        for file in [*self.files, *(file for _, file in self.unsent if file is not None)]:
            os.close(file)
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Ended())
        for task in self.tasks:
            task.cancel()

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self.on_end()

    def _send(self, message: _Request | _Answer, file: int | None = None) -> None:
        if self.closed:
            if file is not None:
                os.close(file)
            return
        data = pickle.dumps((file is not None, message), pickle.HIGHEST_PROTOCOL)
        self.unsent.append((memoryview(SIZE.pack(len(data)) + data), file))
        if len(self.unsent) == 1:
            self._write()

    def _write(self) -> None:
        while self.unsent:
            data, file = self.unsent[0]
            beside = [] if file is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [file]))]
            try:
                sent = self.sock.sendmsg([data], beside)
            except (BlockingIOError, InterruptedError):
                self.loop.add_writer(self.sock, self._write)
                return
            except OSError:
                self._end()
                return
            if file is not None:
                os.close(file)
            if sent < len(data):
                self.unsent[0] = data[sent:], None
            else:
                self.unsent.popleft()
        self.loop.remove_writer(self.sock)

    def _read(self) -> None:
        for _ in range(BATCH):
            try:
                data, files, _, _ = socket.recv_fds(self.sock, READ, MOST_FILES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data, files = b"", []
            self.files += files
            if not data:
                self._end()
                return
            self.received += data
            self._take()
            if self.closed:
                return

    def _take(self) -> None:
        """Carry out the messages that are whole."""
        at, received = 0, self.received
        while len(received) - at >= SIZE.size:
            end = at + SIZE.size + SIZE.unpack_from(received, at)[0]
            if len(received) < end:
                break
            with memoryview(received) as view:
                has_file, message = pickle.loads(view[at + SIZE.size : end])
            at = end
            self._carry_out(message, self.files.popleft() if has_file else None)
            if self.closed:
                return
        del received[:at]

    def _carry_out(self, message: _Request | _Answer, file: int | None) -> None:
        if isinstance(message, _Answer):
            future = self.waiting.get(message.number)
            if future is None or future.done():
                return
            if message.failure is None:
                future.set_result(message.value)
            else:
                wrong = message.failure
                future.set_exception(Failed(wrong) if isinstance(wrong, str) else wrong)
            return
        arguments = message.arguments if file is None else (*message.arguments, file)
        if not message.number:
            self.calls[message.name](*arguments)
            return
        task = self.loop.create_task(self._answer(message, arguments))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, request: _Request, arguments: tuple[Any, ...]) -> None:
        try:
            value = self.calls[request.name](*arguments)
            if asyncio.iscoroutine(value):
                value = await value
            self._send(_Answer(request.number, value))
        except self.expected as wrong:
            self._send(_Answer(request.number, None, wrong))
        except Exception as wrong:
            self._send(_Answer(request.number, None, repr(wrong)))
