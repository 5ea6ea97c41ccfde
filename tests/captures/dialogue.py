"""TCP connections made up with dpkt, and files of their packets."""

from __future__ import annotations

import io
from collections.abc import Iterable
from ipaddress import ip_address
from struct import pack
from typing import Any

from dpkt.ip import IP
from dpkt.ip6 import IP6
from dpkt.tcp import TCP

from klamm.captures.packets.packet_files import Packet
from klamm.captures.packets.tcp_segments import ACK, FIN, RST, SYN
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Side

MS = 1_000_000
BEGIN_NS = 1_700_000_000 * 1000 * MS
ETHERNET, RAW = 1, 101

LINKS = {
    "ethernet": (ETHERNET, lambda kind: bytes(12) + kind),
    "VLAN": (ETHERNET, lambda kind: bytes(12) + b"\x81\0\0\x07" + kind),
    "QinQ": (ETHERNET, lambda kind: bytes(12) + b"\x88\xa8\0\x07\x81\0\0\x08" + kind),
    "cooked": (113, lambda kind: b"\0\0\0\1\0\6" + bytes(8) + kind),
    "cooked with VLAN": (113, lambda kind: b"\0\0\0\1\0\6" + bytes(8) + b"\x81\0\0\x07" + kind),
    "cooked v2": (276, lambda kind: kind + bytes(18)),
    "loopback": (0, lambda kind: pack("=I", 2 if kind == b"\x08\0" else 30)),
    "raw": (RAW, lambda _: b""),
}


def request(correlation_id: int, name: str = "ApiVersions", version: int = 0, **values: Any) -> bytes:
    api = API[name]
    return request_frame(api, version, correlation_id, "tests", encode(values, api.key, version, "request"))


def response(correlation_id: int, name: str = "ApiVersions", version: int = 0, **values: Any) -> bytes:
    api = API[name]
    return response_frame(api, version, correlation_id, encode(values, api.key, version, "response"))


class Dialogue:
    """One connection; `packets` are what was captured of it, in order."""

    def __init__(
        self,
        client: str = "10.0.0.7",
        broker: str = "10.0.0.1",
        ports: tuple[int, int] = (40_000, 29_092),
        link: str = "ethernet",
        first: int = 0xFFFFFF00,
        begin_ns: int = BEGIN_NS,
    ) -> None:
        self.hosts = {"request": ip_address(client).packed, "response": ip_address(broker).packed}
        self.ports: dict[Side, int] = {"request": ports[0], "response": ports[1]}
        self.next: dict[Side, int] = {"request": first, "response": first // 3}
        self.link = link
        self.time_ns = begin_ns
        self.packets: list[Packet] = []

    def open(self) -> Dialogue:
        self.send("request", b"", SYN)
        self.send("response", b"", SYN | ACK)
        self.send("request", b"")
        return self

    def close(self) -> Dialogue:
        self.send("request", b"", FIN | ACK)
        self.send("response", b"", FIN | ACK)
        self.send("request", b"")
        return self

    def reset(self) -> Dialogue:
        self.send("response", b"", RST)
        return self

    def ask(self, correlation_id: int, **more: Any) -> Dialogue:
        """A request and its answer."""
        self.send("request", request(correlation_id, **more))
        self.send("response", response(correlation_id, **more))
        return self

    def send(self, side: Side, data: bytes, flags: int = ACK, most: int = 1 << 14) -> None:
        """In segments of at most so many bytes."""
        for start in range(0, len(data) or 1, most):
            self._send(side, data[start : start + most], flags)

    def _send(self, side: Side, data: bytes, flags: int) -> None:
        other: Side = "response" if side == "request" else "request"
        self.time_ns += MS
        tcp = TCP(
            sport=self.ports[side],
            dport=self.ports[other],
            seq=self.next[side] & 0xFFFFFFFF,
            ack=self.next[other] & 0xFFFFFFFF if flags & ACK else 0,
            flags=flags,
            data=data,
        )
        self.next[side] += len(data) + bool(flags & (SYN | FIN))
        self.packets.append(self.packed(tcp, side, other))

    def packed(self, tcp: Any, side: Side, other: Side) -> Packet:
        source, target = self.hosts[side], self.hosts[other]
        link_type, head = LINKS[self.link]
        if len(source) == 4:
            ip = IP(src=source, dst=target, p=6, data=tcp)
            ip.len = len(ip)
            return Packet(self.time_ns, link_type, head(b"\x08\0") + bytes(ip))
        ip6 = IP6(src=source, dst=target, nxt=6, hlim=64, plen=len(tcp), data=tcp)
        ip6.p, ip6.all_extension_headers = 6, []
        return Packet(self.time_ns, link_type, head(b"\x86\xdd") + bytes(ip6))


def pcap(packets: Iterable[Packet], order: str = "<", nanoseconds: bool = False) -> bytes:
    """A file of packets with one link type."""
    unit_ns, magic = (1, 0xA1B23C4D) if nanoseconds else (1000, 0xA1B2C3D4)
    file = io.BytesIO()
    link_type = ETHERNET
    for time_ns, kind, data in packets:
        link_type = kind
        seconds, rest = divmod(time_ns, 1000 * MS)
        file.write(pack(f"{order}IIII", seconds, rest // unit_ns, len(data), len(data)) + data)
    return pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 1 << 18, link_type) + file.getvalue()
