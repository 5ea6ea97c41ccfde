"""The reasons, for people, why an HTTP server of somebody else's cannot be asked."""

from __future__ import annotations

import os
import socket
import ssl


def why(error: Exception) -> str:
    """In a few words, without the address, of an error of aiohttp or of the system."""
    inner = getattr(error, "os_error", None) or error
    if isinstance(inner, ssl.SSLError):
        return f"TLS fails ({inner.reason})"
    if isinstance(inner, OSError) and not isinstance(inner, socket.gaierror) and inner.errno:
        return os.strerror(inner.errno)  # asyncio's own text repeats the address
    return str(getattr(inner, "strerror", None) or type(inner).__name__)


def untrusted(url: str, error: Exception, setting: str) -> str:
    """Of aiohttp's ClientConnectorCertificateError; `setting` names the file of authorities."""
    inner = getattr(error, "certificate_error", error)
    reason = getattr(inner, "verify_message", "") or type(inner).__name__
    return f"{url}: its certificate is not trusted ({reason}): name its authority with {setting}"
