"""Says in words what is wrong with a body."""

from __future__ import annotations

from klamm.decoders.apis import API
from klamm.decoders.body import decode, is_whole
from klamm.decoders.failures import DecodeError
from klamm.decoders.schema import Side


def oddity(body: bytes, key: int, version: int, side: Side) -> str:
    """The place and the reason, and the other versions whose layout has just these bytes; "" where the body
    is as it should be. Slow where it is not. Raises UnknownApi.
    """
    try:
        decode(body, key, version, side)
    except DecodeError as error:
        place = f"{error.path or 'the body'} at byte {error.offset}"
        fitting = [other for other in _versions(key) if other != version and is_whole(key, other, side, body)]
        return f"{place}: {error.reason}{_told(fitting)}"
    return ""


def _versions(key: int) -> range:
    first, last = API[key].versions
    return range(first, last + 1)


def _told(versions: list[int]) -> str:
    if not versions:
        return ""
    if len(versions) == 1:
        return f"; version {versions[0]}'s layout fits"
    return f"; the layouts of versions {', '.join(map(str, versions))} fit"
