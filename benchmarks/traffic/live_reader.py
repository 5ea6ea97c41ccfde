"""Reads the live stream of a klamm as the page of `klamm web` does: python -m ... HOST:PORT [EXPR]"""

import asyncio
import sys

from klamm.client.asynchronous import AsyncKlamm


async def read(admin: str, where: str | None) -> None:
    """Until klamm ends, or this process."""
    async with AsyncKlamm(admin) as klamm, klamm.live(where, "raw") as lines:
        async for _ in lines:
            pass


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
