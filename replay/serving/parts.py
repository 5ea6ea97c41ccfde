"""An answer put together of recorded parts, where nobody asked for just these parts at once."""

from __future__ import annotations

from klamm.decoders.body import decode_prefix
from klamm.decoders.schema import Api, Field, members
from klamm.replay.serving.matching import Values
from klamm.replay.serving.recording import Answered, Recording, part_key
from klamm.rules.errors.answers import error_answer, names_in
from klamm.rules.errors.places import Node, tree


def fitted(values: Values, fields: tuple[Field, ...], version: int) -> Values:
    """Only what one version can say, of values that may be another's; what it says besides is left to the
    defaults.
    """
    fit: Values = {}
    for f in fields:
        if version not in f.versions or f.name not in values:
            continue
        value, inner = values[f.name], members(f)
        if value is None and version not in f.null:
            continue
        if inner and value is not None:
            is_array = f.kind == "array"
            value = [fitted(v, inner, version) for v in value] if is_array else fitted(value, inner, version)
        fit[f.name] = value
    return fit


def in_version(answered: Answered, version: int) -> Values:
    """A recorded response as another version has it."""
    values = decode_prefix(answered.body, answered.api.key, answered.version, "response")[0]
    return values if version == answered.version else fitted(values, answered.api.response, version)


def composed(
    recording: Recording, api: Api, version: int, request: Values, code: int
) -> tuple[Values, int, int]:
    """The answer, and how many of its parts were recorded and were not: these have the error.

    Raises NoPlace where the request names no parts.
    """
    answer = error_answer(api, version, request, code, only=lambda part: True)
    assert answer is not None
    base = recording.last.get(api.key)
    answer = dict(answer) if base is None else in_version(base, version) | _arrays(api, version, answer)
    weaver = _Weaver(recording, api, version)
    weaver.weave(tree(api.key, version), answer, names_in(request, api, version))
    return answer, weaver.found, weaver.missing


def _arrays(api: Api, version: int, answer: Values) -> Values:
    """The arrays of a response with a part for each part of the request; the codes of the whole beside them
    are 0.
    """
    top = tree(api.key, version)
    return {inner.path[-1]: answer[inner.path[-1]] for inner in top.inner if inner.sources} | dict.fromkeys(
        top.codes, 0
    )


class _Weaver:
    """Puts recorded elements in the places of an answer. `found` and `missing` count them."""

    def __init__(self, recording: Recording, api: Api, version: int) -> None:
        self.recording, self.api, self.version = recording, api, version
        self.found = self.missing = 0

    def weave(self, node: Node, values: Values, scope: Values) -> None:
        for inner in node.inner:
            name = inner.path[-1]
            if not inner.sources or not inner.keys:
                continue
            deeper = any(below.sources and below.keys for below in inner.inner)
            values[name] = [self._element(inner, element, scope, deeper) for element in values[name] or ()]

    def _element(self, node: Node, element: Values, scope: Values, deeper: bool) -> Values:
        part = scope | node.part(element)
        if deeper:
            element = dict(element)
            self.weave(node, element, part)
            return element
        recorded = self.recording.tell(self.recording.parts, part_key(self.recording, self.api, node, part))
        if recorded is None:
            self.missing += 1
            return element
        self.found += 1
        keys = {name: element[name] for name in node.keys if element.get(name)}
        return fitted(recorded, node.fields, self.version) | keys


def unknown_code(api: Api) -> int:
    """The error for a part that has no recorded answer."""
    return TOPIC_ERRORS.get(api.name, UNKNOWN_SERVER_ERROR)


UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION = -1, 3
TOPIC_ERRORS = dict.fromkeys(
    ("Metadata", "DescribeTopicPartitions", "OffsetForLeaderEpoch", "DeleteTopics", "CreatePartitions"),
    UNKNOWN_TOPIC_OR_PARTITION,
)
