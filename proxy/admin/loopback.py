"""Which hosts only this machine reaches."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """A name or an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
