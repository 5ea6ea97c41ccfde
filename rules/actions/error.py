"""error: the client hears an error of Kafka, at every place that the broker would put it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from klamm.rules.errors.answers import NoPlace, Path, edit_answer, error_answer
from klamm.rules.errors.split import merge_answers, partial, split_request
from klamm.rules.frame import Frame, Part
from klamm.rules.orders import Answer, Edit, OnAnswer, Order
from klamm.rules.quantities import ErrorCode, FieldPath
from klamm.rules.rule import Draw


@dataclass(frozen=True, slots=True)
class Error:
    """Answer with an error. With a topic, partition or group, only these parts of the request are refused,
    and the rest is served: the request goes on without them if it changes anything, else the answer is
    edited.
    """

    name: ClassVar[str] = "error"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    code: ErrorCode
    """A name or code of Kafka's errors."""
    at: FieldPath = FieldPath("")
    """The place in the answer, such as topics.partitions.error_code; by default the one where Kafka itself
    puts it.
    """
    applied: bool = False
    """The broker does what is asked, and the client hears the error all the same: how duplicates are made."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if frame.side == "response":
            return [self._edited(frame)]
        only = frame.only
        if self.applied:
            return [OnAnswer(lambda answer: [self._edited(answer, only)])]
        if only is not None and frame.session_parts:
            return self._in_session(frame)
        way = "whole" if only is None else partial(frame.api, frame.version)
        try:
            if way == "split" and only is not None:
                return self._split(frame)
            if way == "whole":
                request, version = frame.values, frame.version
                return [Answer(error_answer(frame.api, version, request, self.code, self._place()))]
        except NoPlace as reason:
            if not reason.edit:
                raise
        return [OnAnswer(lambda answer: [self._edited(answer, only)])]

    def _place(self) -> Path | None:
        return tuple(self.at.split(".")) if self.at else None

    def _edited(self, answer: Frame, only: object = None) -> Order:
        asked = answer.request.values if answer.request is not None else None
        parts = only if callable(only) else answer.only
        return Edit(
            edit_answer(answer.api, answer.version, answer.values, self.code, self._place(), parts, asked)
        )

    def _in_session(self, frame: Frame) -> Iterable[Order]:
        """Of a Fetch: within a session answers have only changes, so refused parts may have to be added."""
        api, version, only = frame.api, frame.version, frame.only
        assert only is not None
        whole = {**frame.values, "session_id": 0, "session_epoch": -1, "topics": _topics(frame.session_parts)}
        refused = error_answer(api, version, whole, self.code, self._place(), only)
        assert refused is not None
        return [
            OnAnswer(lambda served: [Edit(merge_answers(api, version, served.values, refused, whole, only))])
        ]

    def _split(self, frame: Frame) -> Iterable[Order]:
        """The rest goes on; its answer comes back with the refused parts in it."""
        api, version, request, only = frame.api, frame.version, frame.values, frame.only
        assert only is not None
        rest, refused = split_request(api, version, request, only)
        if refused is None:
            return []
        answer = error_answer(api, version, refused, self.code, self._place())
        if rest is None or answer is None:
            return [Answer(answer)] if rest is None else [Edit(rest)]
        said = answer
        return [
            Edit(rest),
            OnAnswer(lambda served: [Edit(merge_answers(api, version, served.values, said, request, only))]),
        ]


def _topics(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    """The topics of a Fetch request that names these parts."""
    topics: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for part in parts:
        topics.setdefault((part["topic"], part["topic_id"]), []).append({"partition": part["partition"]})
    return [
        {name: value for name, value in (("topic", topic), ("topic_id", topic_id)) if value is not None}
        | {"partitions": partitions}
        for (topic, topic_id), partitions in topics.items()
    ]
