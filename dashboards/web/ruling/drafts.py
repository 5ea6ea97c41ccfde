"""Rules that are made of exchanges."""

from __future__ import annotations

import glob
from typing import Any

from klamm.client.types import Exchange

TIMES = 3


def rule_of(one: Exchange) -> dict[str, Any]:
    """A rule that fails the next exchanges like this one, with its own error if it had one."""
    rule: dict[str, Any] = {"api": one.api}
    if one.client_id:
        rule["client"] = glob.escape(one.client_id)
    topics = [glob.escape(name) for name in one.topics if not name.startswith("id:")]
    if topics:
        rule["topic"] = topics[0] if len(topics) == 1 else topics
    if one.group:
        rule["group"] = glob.escape(one.group)
    return {**rule, "error": _error(one), "times": TIMES}


def _error(one: Exchange) -> str:
    """One of its own, or one that clients of such an API meet."""
    if one.errors:
        return next(iter(one.errors))
    if one.group:
        return "NOT_COORDINATOR"
    return "NOT_LEADER_OR_FOLLOWER" if any(one.topics.values()) else "REQUEST_TIMED_OUT"
