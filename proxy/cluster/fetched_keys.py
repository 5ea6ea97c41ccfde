"""The key set of an issuer, fetched from its URL in the background. Keys stay while it does not answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from time import monotonic
from urllib.parse import urlsplit

from klamm.proxy.cluster.http_failures import untrusted, why
from klamm.proxy.log.events import Events
from klamm.proxy.sasl.tokens import Keys, need_library, parse_keys
from klamm.settings.pem_files import authorities_of

FRESH_S = 300.0  # then they are fetched again,
SOON_S = 10.0  # or after so long where a fetch failed, or a token names a key that is not there
PATIENCE_S = 10.0  # for an answer
LARGEST = 1 << 20  # bytes
LOOK_S = 1.0


class FetchedKeys:
    """`value` is empty until the first answer."""

    def __init__(self, url: str, ca: str | None) -> None:
        """Raises OSError on a file that cannot be used, and where the library for tokens is missing."""
        need_library()
        self.url = url
        self.value: Keys = {}
        with authorities_of(ca):
            self.tls = ssl.create_default_context(cafile=ca)
        self.fetched_at: float | None = None
        self.wanted = False  # at once, where the last attempt is long enough ago

    def missing(self) -> None:
        """A token names a key that is not there: the issuer may have a new one."""
        self.wanted = True

    def due(self, now: float) -> bool:
        if self.fetched_at is None:
            return True
        return now - self.fetched_at >= (SOON_S if self.wanted else FRESH_S)

    async def fetch(self) -> bool:
        """Take the keys as they are now; True if they have changed. Raises OSError, and changes nothing."""
        self.fetched_at, self.wanted = monotonic(), True  # a fetch that fails is tried again soon
        found = parse_keys(await self._get(), self.url)
        changed, self.value, self.wanted = found != self.value, found, False
        return changed

    async def _get(self) -> bytes:
        """Raises OSError."""
        import aiohttp  # 12 MB, only if it is wanted

        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        tls = self.tls if urlsplit(self.url).scheme == "https" else False
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self.url, ssl=tls, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise OSError(f"{self.url} answers with status {answer.status}")
                content = await answer.content.read(LARGEST + 1)
                while len(content) <= LARGEST and (more := await answer.content.read(LARGEST)):
                    content += more
        except aiohttp.ClientConnectorCertificateError as error:
            raise OSError(untrusted(self.url, error, "listen_sasl.jwks_ca")) from None
        except aiohttp.ClientError as error:
            raise OSError(f"{self.url} cannot be reached: {why(error)}") from None
        except TimeoutError:
            raise OSError(f"{self.url} does not answer within {PATIENCE_S:g} s") from None
        if len(content) > LARGEST:
            raise OSError(f"{self.url} answers with more than {LARGEST >> 20} MiB")
        return content


async def refresh(current: Callable[[], FetchedKeys | None], log: Events, cluster: str) -> None:
    """Fetch until cancelled. `current` is asked each second: a reload may give others."""
    while True:
        keys = current()
        if keys is not None and keys.due(monotonic()):
            await _fetch(keys, log, cluster)
        await asyncio.sleep(LOOK_S)


async def _fetch(keys: FetchedKeys, log: Events, cluster: str) -> None:
    try:
        changed = await keys.fetch()
    except OSError as error:
        stay = "the ones before stay" if keys.value else "no token can be verified"
        message = f"keys of tokens cannot be fetched, {stay}: {error}"
        log.event("jwks_rejected", message, "error", per=(keys.url, str(error)), cluster=cluster)
    else:
        if changed:
            message = f"tokens are verified with the {len(keys.value)} keys of {keys.url}"
            log.event("jwks_loaded", message, cluster=cluster)
