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
        fitting = [other for other in _versions(key) if other != version and is_whole(key, other, side, body)]
        return f"{place(error, 'the body')}: {error.reason}{fitting_words(fitting)}"
    return ""


def odd_end(body: bytes, key: int, version: int, side: Side) -> str:
    """The same of a body that does not end where its layout does; "" for others. Quick for these."""
    return "" if is_whole(key, version, side, body) else oddity(body, key, version, side)


def place(failure: DecodeError, whole: str) -> str:
    """Where it is; `whole` names the bytes, for a failure in no field of them."""
    return f"{failure.path or whole} at byte {failure.offset}"


def fitting_words(versions: list[int]) -> str:
    """The end of a sentence about other versions whose layout has the same bytes."""
    if not versions:
        return ""
    if len(versions) == 1:
        return f"; version {versions[0]}'s layout fits"
    return f"; the layouts of versions {', '.join(map(str, versions))} fit"


def _versions(key: int) -> range:
    first, last = API[key].versions
    return range(first, last + 1)
