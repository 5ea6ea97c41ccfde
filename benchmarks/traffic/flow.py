"""One connection of the load generator, on either end: frames of one size come in, of another go out."""

import socket
import ssl

_SINK = bytearray(4 << 20)
_ID_ENDS = 12  # of a request, with its size: size, key, version, correlation id


class Flow:
    """`blob` holds the frames to send, `cycle` of them before they repeat."""

    __slots__ = ("_begun", "_cycle", "_flags", "blob", "in_bytes", "out_bytes", "reads", "sent", "sock")

    def __init__(
        self, sock: socket.socket, in_bytes: int, blob: memoryview, out_bytes: int, cycle: int
    ) -> None:
        self.sock = sock
        self.in_bytes = in_bytes
        self.reads = self.sent = 0
        self.blob = blob
        self.out_bytes = out_bytes
        self._cycle = cycle
        self._begun = 0
        self._flags = 0 if isinstance(sock, ssl.SSLSocket) else socket.MSG_TRUNC

    def send(self, frames: int) -> None:
        """The next frames of the cycle; blocks until the kernel has taken them."""
        self.sock.sendall(self.due(frames))
        self.sent += frames

    def due(self, frames: int) -> memoryview:
        """The next frames of the cycle."""
        start = self.sent % self._cycle * self.out_bytes
        return self.blob[start : start + frames * self.out_bytes]

    def receive(self) -> int:
        """How many frames this completes, -1 at the end. Without TLS the kernel drops the bytes uncopied."""
        count = self.sock.recv_into(_SINK, 0, self._flags)
        if not count:
            return -1
        self.reads += 1
        frames, self._begun = divmod(self._begun + count, self.in_bytes)
        return frames

    def expect(self, frame: memoryview) -> None:
        """Read one whole frame and compare it. Raises ConnectionError where it differs or ends early."""
        position, size = 0, len(frame)
        while position < size:
            chunk = self.sock.recv(min(1 << 20, size - position))
            if not chunk:
                raise ConnectionError(f"closed after {position} of the {size} bytes of the first frame")
            if chunk != frame[position : position + len(chunk)].tobytes():
                raise ConnectionError(f"the first frame differs from the one sent after byte {position}")
            position += len(chunk)


class Renumbered(Flow):
    """The broker's end behind a proxy that numbers requests anew: each answer has the id of its request.

    `first`: the id of the first request, which has been read.
    """

    __slots__ = ("_beginning", "_ids", "_left")

    def __init__(self, flow: Flow, first: bytes, cycle: int) -> None:
        super().__init__(flow.sock, flow.in_bytes, flow.blob, flow.out_bytes, cycle)
        self._ids = [first]
        self._beginning = bytearray()  # of the request that comes now, to the end of its id
        self._left = flow.in_bytes

    def receive(self) -> int:
        count = self.sock.recv_into(_SINK)
        if not count:
            return -1
        self.reads += 1
        at = frames = 0
        while at < count:
            missing = min(_ID_ENDS - len(self._beginning), count - at)
            self._beginning += _SINK[at : at + missing]
            step = min(self._left, count - at)
            at, self._left = at + step, self._left - step
            if not self._left:
                frames, self._left = frames + 1, self.in_bytes
                self._ids.append(bytes(self._beginning[_ID_ENDS - 4 :]))
                self._beginning.clear()
        return frames

    def due(self, frames: int) -> memoryview:
        answers = bytearray(super().due(frames))
        for place, correlation_id in enumerate(self._ids[:frames]):
            start = place * self.out_bytes + 4
            answers[start : start + 4] = correlation_id
        del self._ids[:frames]
        return memoryview(answers)


def read_exactly(sock: socket.socket, size_bytes: int) -> bytes:
    """Raises ConnectionError at an early end."""
    data = bytearray()
    while len(data) < size_bytes:
        chunk = sock.recv(size_bytes - len(data))
        if not chunk:
            raise ConnectionError(f"closed after {len(data)} of {size_bytes} bytes")
        data += chunk
    return bytes(data)


def read_frame(sock: socket.socket) -> bytes:
    """One frame with its size."""
    size = read_exactly(sock, 4)
    return size + read_exactly(sock, int.from_bytes(size))
