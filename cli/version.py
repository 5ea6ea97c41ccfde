"""`klamm --version`."""

from __future__ import annotations

from importlib import metadata, util
from importlib.machinery import EXTENSION_SUFFIXES


def line() -> str:
    """The version, and whether the session is compiled (docs/decisions/0026-a-compiled-session.md)."""
    spec = util.find_spec("klamm.proxy.session.session")
    origin = (spec and spec.origin) or ""
    kind = "compiled" if origin.endswith(tuple(EXTENSION_SUFFIXES)) else "pure Python"
    return f"klamm {metadata.version('klamm')}, session: {kind}"
