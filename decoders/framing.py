"""Sizes of frames, and what speaks another protocol than Kafka's."""

from __future__ import annotations

import re
from struct import Struct

SIZE = Struct(">i")
TLS_RECORD = re.compile(rb"[\x14-\x17]\x03[\0-\x04][\0-\x48]")  # type, version, length (RFC 8446)
NOT_KAFKA = {  # the first bytes of other protocols, where a size is due
    **dict.fromkeys(
        (b"GET ", b"HEAD", b"POST", b"PUT "), "HTTP: metrics and health are at --admin or --metrics"
    ),
    **dict.fromkeys(
        (b"PROX", b"\r\n\r\n"),
        "the PROXY protocol, and its address is not in clusters[].proxy_protocol.from: "
        "name the load balancer there, or switch the header off in it",
    ),
}


def tls_or_size(length: int, who: str, limit: int) -> tuple[str, str] | None:
    """Why a frame's size cannot be, as (kind, message). A TLS record's first bytes read as a size of
    352,518,144 and more, a binary PROXY header's as 218,762,506: no request has exactly that size.
    """
    record = {0x1603: "handshake", 0x1503: "alert"}.get(length >> 16 & 0xFFFF)
    if record and who == "client":
        return (
            "tls_from_client",
            f"the client speaks TLS ({record}) to a plain port: "
            "set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or start klamm with --listen-tls-cert",
        )
    if record:
        return "tls_from_broker", f"the broker speaks TLS ({record}): start klamm with --upstream-tls"
    first = SIZE.pack(length)
    if who == "client" and first in NOT_KAFKA:
        return "bad_size", f"the client does not speak Kafka but {NOT_KAFKA[first]}"
    if first == b"HTTP":
        return "bad_size", f"the {who} does not speak Kafka but HTTP: name the port of a broker"
    least = 8 if who == "client" else 4
    if least <= length <= limit:
        return None
    return "bad_size", f"the {who} announces a frame of {length} bytes; klamm takes {least} to {limit}"
