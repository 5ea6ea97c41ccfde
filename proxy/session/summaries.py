"""What was picked from a frame, in the words of metering and log: kept per connection, for the same bytes
come again.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from klamm.decoders.schema import GROUP, PARTITION, TOPIC, TOPIC_ID
from klamm.proxy.session.counters import TopicCounters
from klamm.proxy.session.listeners import Listeners
from klamm.rules.plan import Picked, Plan, errors, flat, values

TopicName = Callable[[bytes], str | None]
NIL = bytes(16)


class RequestSummary:
    """A request's topics, whether it is answered, the fields that the log shows, and its listeners."""

    __slots__ = ("answered", "listeners", "named", "shown", "topics")

    def __init__(
        self,
        topics: tuple[TopicCounters, ...] = (),
        answered: bool = True,
        shown: dict[str, Any] | None = None,
    ) -> None:
        self.topics, self.answered, self.shown = topics, answered, shown
        self.named = True  # every topic id had a name; else it is read again when more ids have got one
        self.listeners: Listeners = ()  # of the exchange


class ResponseSummary:
    """A response's errors as (topic or None, code), and the fields that the log shows."""

    __slots__ = ("errors", "named", "shown")

    def __init__(self, found: list[tuple[str | None, int]], shown: dict[str, Any] | None = None) -> None:
        self.errors, self.shown = found, shown
        self.named = True


EMPTY, NO_ERRORS = RequestSummary(), ResponseSummary([])


def label(topic: Any, name_of: TopicName) -> tuple[str, bool]:
    """A topic's name, or `id:` and its id as Kafka prints it while klamm has not seen the name; and
    whether it is final.
    """
    if isinstance(topic, str):
        return topic, True
    name = name_of(topic)
    if name is not None:
        return name, True
    return "id:" + urlsafe_b64encode(topic).rstrip(b"=").decode(), False


def topics_named(picked: Picked, columns: tuple[Any, ...], name_of: TopicName) -> tuple[list[str], bool]:
    """The distinct topics of a frame, in wire order, and whether all have their names."""
    found = [label(topic, name_of) for topic in values(picked, columns, TOPIC)]
    found += [label(topic, name_of) for topic in values(picked, columns, TOPIC_ID) if topic != NIL]
    return list(dict.fromkeys(name for name, _ in found)), all(final for _, final in found)


def partitions(picked: Picked, columns: tuple[Any, ...], name_of: TopicName) -> dict[str, list[int]]:
    """Topic -> partition indexes, for the log."""
    shown: dict[str, list[int]] = {}
    for i, mark in enumerate(picked.marks):
        if mark != PARTITION or not isinstance(columns[i], list):
            continue
        for j, other in enumerate(picked.marks):
            beside = columns[j]
            parent = picked.paths[j][:-1]
            if (
                other not in (TOPIC, TOPIC_ID)
                or picked.paths[i][: len(parent)] != parent
                or not isinstance(beside, list)
            ):
                continue
            for topic, below in zip(beside, columns[i], strict=False):
                if topic is not None and topic != NIL and not isinstance(topic, list):
                    shown.setdefault(label(topic, name_of)[0], []).extend(flat(below))
    return shown


def shown(
    plan: Plan, picked: Picked | None, columns: tuple[Any, ...], name_of: TopicName
) -> dict[str, Any] | None:
    """The fields that the log shows of a body; None where nobody is shown exchanges of this API."""
    if not plan.told or picked is None:
        return None
    names, _ = topics_named(picked, columns, name_of)
    said: dict[str, Any] = {"topics": {name: [] for name in names} | partitions(picked, columns, name_of)}
    groups = values(picked, columns, GROUP)
    if groups:
        said["group"] = ",".join(map(str, groups))
    return said


def response_summary(plan: Plan, columns: tuple[Any, ...], name_of: TopicName) -> ResponseSummary:
    assert plan.response is not None
    found: list[tuple[str | None, int]] = []
    final = True
    for topic, code in errors(plan.response, columns):
        name = None
        if topic is not None and topic != NIL:
            name, known = label(topic, name_of)
            final = final and known
        found.append((name, code))
    summary = ResponseSummary(found, shown(plan, plan.response, columns, name_of))
    summary.named = final
    return summary
