"""Tells loopback hosts, which only this machine reaches, from others."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """`host`: a name or an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
