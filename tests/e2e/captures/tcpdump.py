"""tcpdump as a context: what passed an interface, in a file."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT

from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, free_ports, wait_for


@contextmanager
def tcpdump(
    file: Path, interface: str, ports: str, inside: Namespace | None = None, besides: str = ""
) -> Iterator[None]:
    """`ports` as "9092" or "9092-9099"; `besides`: a filter of tcpdump for other packets. At the end the file
    holds all that was sent within the context, or AssertionError.
    """
    last = free_ports()  # nobody listens there: a call to it comes after everything else
    wanted = f"tcp portrange {ports} or tcp port {last}" + (f" or {besides}" if besides else "")
    command = ["tcpdump", "-i", interface, "-B", "65536", "--immediate-mode", "-U", "-w", str(file), wanted]
    log = file.with_suffix(".log")
    recording = inside.start(log, *command) if inside else Process(command, log)
    try:
        wait_for(lambda: "listening on" in log.read_text(), "tcpdump", [recording])
        yield
        wait_for(lambda: _called(last, inside) and last in _ports(file), "the last packet", [recording])
    finally:
        recording.child.send_signal(SIGINT)
        recording.child.wait(30)
    assert re.search(r"^0 packets dropped by kernel", log.read_text(), re.MULTILINE), log.read_text()


def _called(port: int, inside: Namespace | None) -> bool:
    if inside is not None:
        connect = f"import socket; socket.socket().connect_ex(({inside.host!r}, {port}))"
        inside.run("python3", "-c", connect)
        return True
    with socket.socket() as caller:
        caller.connect_ex(("127.0.0.1", port))
    return True


def _ports(file: Path) -> set[int]:
    from klamm.captures.packets.layers import PORTS
    from klamm.captures.packets.packet_files import BadFile, packets
    from klamm.captures.packets.tcp_segments import Segment, segment

    found = set()
    with file.open("rb") as opened:
        try:
            for packet in packets(opened):
                one = segment(packet)
                if isinstance(one, Segment):
                    found.update(PORTS.unpack(one.flow[-4:]))
        except BadFile:
            pass  # it grows
    return found
