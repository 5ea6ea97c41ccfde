"""Is the host that clients are told one that can be found?"""

from __future__ import annotations

import asyncio

from klamm.proxy.log.event_log import EventLog


async def resolve(host: str) -> None:
    """Raises OSError, and UnicodeError for what cannot be a name in DNS."""
    await asyncio.get_running_loop().getaddrinfo(host, None)


async def say_unresolved(host: str, cluster: str, log: EventLog) -> None:
    """Clients may resolve names that klamm cannot, so it is no more than a warning."""
    try:
        await resolve(host)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        message = (
            f"advertise: {host} does not resolve from here ({why}): clients are told this name, and those "
            "that cannot resolve it reach no broker; give a name or an address that leads clients to klamm"
        )
        log.event("advertise_unresolved", message, "warning", cluster=cluster, per=host)
