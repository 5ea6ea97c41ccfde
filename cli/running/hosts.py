"""Names and addresses of hosts.

Each function raises ValueError with a reason that reads after the name of the option or key.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from klamm.proxy.config_types import Host, NodePattern, ServerName
from klamm.proxy.session.rewriting.node_names import PLACE

LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
TLS_WORDS = {"SSL", "SASL_SSL"}  # as Kafka writes them before ://


def host(text: str) -> Host:
    """A name, an IPv4 address, or an IPv6 address with or without brackets."""
    without_protocol(text)
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not inner:
        raise ValueError("no host")
    if ":" in inner or re.fullmatch(r"[0-9.]+", inner):
        try:
            return Host(str(ip_address(inner)))
        except ValueError:
            raise ValueError(_no_ip_address(inner)) from None
    labels = inner.removesuffix(".").split(".")
    if len(inner) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{inner!r} is not a host name: it takes letters, digits, '-', '_' and dots")
    return Host(inner)


def node_pattern(text: str) -> NodePattern:
    """A host name with $(node) in it once, and no digit beside that."""
    example = "broker-$(node).kafka.example.com"
    if text.count(PLACE) != 1:
        raise ValueError(f"{text!r} has to have {PLACE} in it, once: write it as {example}")
    if re.search(r"[0-9]\$|\)[0-9]", text):
        raise ValueError(f"{text!r} has a digit beside {PLACE}, where ids end: write it as {example}")
    for node in ("2147483647", "controller-2147483647"):
        try:
            server_name(text.replace(PLACE, node))
        except ValueError as problem:
            raise ValueError(f"{text!r} gives no names for nodes: {problem}") from None
    return NodePattern(text)


def server_name(text: str) -> ServerName:
    """A host name as clients send it in TLS: no IP address, and no dot at its end. Java sends only names with
    a dot within, and without an underscore.
    """
    found = host(text)
    if ":" in found or found.replace(".", "").isdigit():
        raise ValueError(f"clients send no server name for an IP address such as {found}: write a host name")
    if found.endswith("."):
        raise ValueError(f"clients send server names without a dot at the end: write {found[:-1]}")
    if "." not in found or "_" in found:
        why = "with '_' in it" if "_" in found else "without a dot"
        raise ValueError(f"Java sends no server name for a host {why}: write one such as kafka.example.com")
    return ServerName(found)


def _no_ip_address(text: str) -> str:
    name, _, number = text.rpartition(":")
    if text.isdigit():
        return f"{text!r} is a number: write a host name or an IP address"
    if number.isdigit() and ":" not in name and not name.isdigit():
        return f"a host without a port is due: write it as {name}"
    return f"{text!r} is not an IP address"


def without_protocol(text: str, about_tls: str = "") -> None:
    """Raises ValueError for a protocol before the address; `about_tls` follows if it is that of TLS."""
    protocol, mark, rest = text.partition("://")
    if mark:
        advice = about_tls if protocol.upper() in TLS_WORDS else ""
        raise ValueError(f"write {rest!r} without {protocol + mark!r}{advice}")
