"""The differences between two configurations, as paths of keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from klamm.proxy.config import Cluster, Config

AT_START = (
    "admin",
    "audit",
    "handover",
    "metrics.listen",
    "rules",
    "state",
    "traces",
    "workers",
)  # taken by a new process only
IN_PLACE = {"bootstrap", "advertise", "map", "allow_unknown_apis", "connect_timeout_s"}
IN_PLACE_IF_BOTH = {"tls", "sasl", "listen_tls", "names", "listen_sasl"}


def changed(before: Config, after: Config) -> list[str]:
    """The keys that differ, such as `limits.drain_s` and `clusters[orders].tls.ca`."""
    found = [path for path in _paths(before, after, "") if path != "clusters"]
    old, new = ({each.name: each for each in config.clusters} for config in (before, after))
    for name in dict.fromkeys([*old, *new]):
        at = f"clusters[{name}]"
        found += _paths(old[name], new[name], at) if name in old and name in new else [at]
    return found


def at_start(paths: list[str]) -> list[str]:
    """The keys among them that klamm takes only when it starts."""
    return [
        path for path in paths if path in AT_START or path.startswith(tuple(f"{key}." for key in AT_START))
    ]


def in_place(before: Cluster, after: Cluster) -> bool:
    """Can the connections and listeners of a cluster stay while it takes other settings?"""
    for name in (each.name for each in fields(Cluster)):
        old, new = getattr(before, name), getattr(after, name)
        both = name in IN_PLACE_IF_BOTH and old is not None and new is not None
        if old != new and name not in IN_PLACE and not both:
            return False
    return True


def _paths(before: Any, after: Any, at: str) -> Iterator[str]:
    if before == after:
        return
    if is_dataclass(before) and type(before) is type(after):
        for each in fields(before):
            below = f"{at}.{each.name}" if at else each.name
            yield from _paths(getattr(before, each.name), getattr(after, each.name), below)
    else:
        yield at
