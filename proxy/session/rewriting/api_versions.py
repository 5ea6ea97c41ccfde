"""Limits the versions in ApiVersions responses, so that no address passes klamm in a layout that it does not
know.
"""

from __future__ import annotations

from typing import Any

from klamm.decoders import API, decode, encode
from klamm.decoders.failures import UnknownApi
from klamm.decoders.headers import UNSUPPORTED_VERSION, refuses_version
from klamm.rules.plan import API_VERSIONS, bears_addresses


def clamped(body: bytes, asked: int, allow_unknown: bool) -> bytes:
    """The response with only the APIs and versions that may pass klamm; the same object if all may. Raises
    DecodeError.

    APIs that bear addresses, and ApiVersions, are offered up to the newest version that klamm knows. An API
    of which no version is left is removed, and so is one that klamm does not know (unless allowed).
    """
    if refuses_version(body):
        return body
    values = decode(body, API_VERSIONS, asked, "response")
    offered = values["api_keys"] or []
    kept = [entry for entry in (_offer(entry, allow_unknown) for entry in offered) if entry is not None]
    if kept == offered:
        return body
    return encode({**values, "api_keys": kept}, API_VERSIONS, asked, "response")


def _offer(entry: dict[str, Any], allow_unknown: bool) -> dict[str, Any] | None:
    try:
        api = API[entry["api_key"]]
    except UnknownApi:
        return entry if allow_unknown else None
    if entry["max_version"] <= api.versions.last or not (bears_addresses(api) or api.key == API_VERSIONS):
        return entry
    if entry["min_version"] > api.versions.last:
        return None
    return {**entry, "max_version": api.versions.last}


def unsupported() -> bytes:
    """The answer to an ApiVersions request of a version that klamm does not know: v0, with its own range
    (KIP-511).
    """
    known = API[API_VERSIONS].versions
    mine = {"api_key": API_VERSIONS, "min_version": known.first, "max_version": known.last}
    return encode({"error_code": UNSUPPORTED_VERSION, "api_keys": [mine]}, API_VERSIONS, 0, "response")
