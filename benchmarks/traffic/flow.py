"""One connection of the load generator, on either end: frames of one size come in, of another go out."""

import socket
import ssl

_SINK = bytearray(4 << 20)


class Flow:
    """`blob` holds the frames to send, `cycle` of them before they repeat."""

    __slots__ = ("_begun", "_blob", "_cycle", "_flags", "_out_bytes", "in_bytes", "reads", "sent", "sock")

    def __init__(
        self, sock: socket.socket, in_bytes: int, blob: memoryview, out_bytes: int, cycle: int
    ) -> None:
        self.sock = sock
        self.in_bytes = in_bytes
        self.reads = self.sent = 0
        self._blob = blob
        self._out_bytes = out_bytes
        self._cycle = cycle
        self._begun = 0
        self._flags = 0 if isinstance(sock, ssl.SSLSocket) else socket.MSG_TRUNC

    def send(self, frames: int) -> None:
        """The next frames of the cycle; blocks until the kernel has taken them."""
        start = self.sent % self._cycle * self._out_bytes
        self.sock.sendall(self._blob[start : start + frames * self._out_bytes])
        self.sent += frames

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
