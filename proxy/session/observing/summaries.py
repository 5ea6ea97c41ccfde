"""Request and response summaries, made from the columns that were picked from a body. The memory keeps them,
because the same bytes come again.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from klamm.decoders.schema import GROUP, PARTITION, TOPIC, TOPIC_ID, TRANSACTIONAL_ID
from klamm.decoders.text import TopicName, uuid_text, valid_text
from klamm.proxy.session.observing.counters import TopicCounters
from klamm.proxy.session.observing.listeners import Listeners
from klamm.rules.frame import Treatment
from klamm.rules.plan import Picked, Plan, errors, flat, values

NIL = bytes(16)
LISTED = {"group": GROUP, "transactional_id": TRANSACTIONAL_ID}  # the log shows them with commas between
MOST_NAMED = 1000  # topics of one frame that metering and the log name, and errors that they count


class RequestSummary:
    """A request's topics, whether it is answered, the fields that the log shows, its listeners, whether any
    of them takes `bodies`, and what rules did to it.
    """

    __slots__ = ("answered", "bodies", "listeners", "named", "shown", "topics", "treatment")

    def __init__(
        self,
        topics: tuple[TopicCounters, ...] = (),
        answered: bool = True,
        shown: dict[str, Any] | None = None,
    ) -> None:
        self.topics, self.answered, self.shown = topics, answered, shown
        self.named = True  # klamm knew the name of every topic id; else it is read again later
        self.listeners: Listeners = ()  # of the exchange
        self.bodies = False
        self.treatment: Treatment | None = None

    def treated(self, treatment: Treatment) -> RequestSummary:
        """The summary of an equal request to which rules did this."""
        copy = RequestSummary(self.topics, self.answered, self.shown)
        copy.named, copy.listeners, copy.treatment = self.named, self.listeners, treatment
        copy.bodies = self.bodies
        return copy


class ResponseSummary:
    """A response's errors as (topic or None, code), and the fields that the log shows."""

    __slots__ = ("errors", "named", "shown")

    def __init__(self, found: list[tuple[str | None, int]], shown: dict[str, Any] | None = None) -> None:
        self.errors, self.shown = found, shown
        self.named = True

    def changed(self, codes: list[int]) -> ResponseSummary:
        """That of an answer whose errors were changed to these."""
        return ResponseSummary([(None, code) for code in codes], self.shown)


EMPTY, NO_ERRORS = RequestSummary(), ResponseSummary([])


def label(topic: Any, name_of: TopicName) -> tuple[str, bool]:
    """A topic's label, and whether it is final: its name or, while klamm has not seen that, `id:` and its id
    as Kafka prints it.
    """
    if isinstance(topic, str):
        return valid_text(topic), True
    name = name_of(topic)
    if name is not None:
        return valid_text(name), True
    return "id:" + uuid_text(topic), False


def topics_named(picked: Picked, columns: tuple[Any, ...], name_of: TopicName) -> tuple[list[str], bool]:
    """The distinct topics of a frame, in wire order, and whether all have their names. Topics beyond the
    first MOST_NAMED are left out.
    """
    topics = chain(
        values(picked, columns, TOPIC), (id_ for id_ in values(picked, columns, TOPIC_ID) if id_ != NIL)
    )
    found = [label(topic, name_of) for topic in islice(topics, MOST_NAMED)]
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
            for topic, below in islice(zip(beside, columns[i], strict=False), MOST_NAMED):
                if topic is not None and topic != NIL and not isinstance(topic, list):
                    shown.setdefault(label(topic, name_of)[0], []).extend(flat(below))
    return shown


def logged_fields(
    plan: Plan, picked: Picked | None, columns: tuple[Any, ...], name_of: TopicName
) -> dict[str, Any] | None:
    """The fields that the log shows of a body; None if no log or listener takes exchanges of this API."""
    if not plan.observed or picked is None:
        return None
    names, _ = topics_named(picked, columns, name_of)
    fields: dict[str, Any] = {"topics": {name: [] for name in names} | partitions(picked, columns, name_of)}
    for name, mark in LISTED.items():
        if found := list(islice(values(picked, columns, mark), MOST_NAMED)):
            fields[name] = ",".join(valid_text(str(one)) for one in found)
    return fields


def response_summary(plan: Plan, columns: tuple[Any, ...], name_of: TopicName) -> ResponseSummary:
    assert plan.response is not None
    found: list[tuple[str | None, int]] = []
    final = True
    for topic, code in islice(errors(plan.response, columns), MOST_NAMED):
        name = None
        if topic is not None and topic != NIL:
            name, known = label(topic, name_of)
            final = final and known
        found.append((name, code))
    summary = ResponseSummary(found, logged_fields(plan, plan.response, columns, name_of))
    summary.named = final
    return summary
