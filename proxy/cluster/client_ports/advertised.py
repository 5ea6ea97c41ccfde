"""Warns if a host that clients are told does not resolve."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from klamm.proxy.log.event_log import EventLog


async def resolve(host: str) -> None:
    """Raises OSError, and UnicodeError for what cannot be a name in DNS."""
    await asyncio.get_running_loop().getaddrinfo(host, None)


async def say_unresolved(told: Sequence[tuple[str, str]], cluster: str, log: EventLog) -> None:
    """Log a warning for each setting whose host does not resolve. No error: clients may resolve names that
    klamm cannot.
    """
    for setting, host in told:
        try:
            await resolve(host)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            message = (
                f"{setting}: {host} does not resolve from here ({why}): clients are told this name, and "
                "those that cannot resolve it reach no broker; give a name or an address that leads clients "
                "to klamm"
            )
            log.event("advertise_unresolved", message, "warning", cluster=cluster, per=host)
