"""klamm's admin API from Python: `Klamm("127.0.0.1:19091")`, or `AsyncKlamm` on an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klamm.client.asynchronous import AsyncKlamm
    from klamm.client.failures import ApiError, Mistaken, NoAnswer, Refused, Unusable
    from klamm.client.sync import Klamm

__all__ = ["ApiError", "AsyncKlamm", "Klamm", "Mistaken", "NoAnswer", "Refused", "Unusable"]

_HOMES = {"AsyncKlamm": "asynchronous", "Klamm": "sync"}


def __getattr__(name: str) -> Any:
    """Imported when it is used: the proxy wants the types alone."""
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"klamm.client.{_HOMES.get(name, 'failures')}"), name)
