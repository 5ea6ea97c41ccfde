"""A request without its refused parts, and the broker's answer with them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

from klamm.decoders import API
from klamm.decoders.schema import Api
from klamm.rules.errors.answers import NoPlace, Only, names_in
from klamm.rules.errors.places import Node, Steps, Values, elements, key_of, places, tree

Asked = Callable[[Steps], Iterator[tuple[Any, Values]]]

# APIs with which the broker changes each part by itself; it must not get a part that is refused. All others
# only read (or, as Fetch, belong to a session that needs all parts): there the broker's answer is edited.
SPLITS = frozenset({
    "Produce", "OffsetCommit", "TxnOffsetCommit", "OffsetDelete", "AddPartitionsToTxn", "WriteTxnMarkers",
    "LeaveGroup", "DeleteGroups", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords",
    "ElectLeaders", "AlterPartitionReassignments", "AlterReplicaLogDirs", "AlterConfigs",
    "IncrementalAlterConfigs", "CreateAcls", "DeleteAcls", "AlterClientQuotas", "AlterUserScramCredentials",
    "UpdateFeatures", "AlterShareGroupOffsets", "DeleteShareGroupOffsets", "InitializeShareGroupState",
    "WriteShareGroupState", "DeleteShareGroupState", "AssignReplicasToDirs", "LeaderAndIsr", "StopReplica",
    "AlterPartition",
})  # fmt: skip


def partial(api: Api | int | str, version: int) -> Literal["split", "edit", "whole"]:
    """The way in which part of a request is refused: the request is split, or the answer edited; "whole": it
    is not possible, since the only code of this version is that of the whole response.
    """
    of = API[key_of(api)]
    if not any(place.arrays for place in places(of, version)):
        return "whole"
    return "split" if of.name in SPLITS else "edit"


def split_request(
    api: Api | int | str, version: int, request: Values, only: Only
) -> tuple[Values | None, Values | None]:
    """Splits a request into the part that the broker still gets, and the part that is refused.

    Refused are the innermost parts for which `only` is true. None for a side without any parts. Raises
    UnknownApi, and NoPlace where the request has no parts, or asks for all by a null.
    """
    of = API[key_of(api)]
    rest, refused, any_rest, any_refused = request, request, False, False
    scope = names_in(request, of, version)
    sources = list(_innermost(tree(of.key, version)))
    if not sources:
        raise NoPlace(f"{of.name} v{version}: the request has no parts", edit=False)
    for source in sources:
        if request[source[0].array] is None:
            raise NoPlace(f"{of.name} v{version}: the request asks for all", edit=True)
        keep, out = _split(request, source, scope, only)
        rest, refused = rest | keep, refused | out
        any_rest, any_refused = any_rest or any(keep.values()), any_refused or any(out.values())
    return rest if any_rest or not any_refused else None, refused if any_refused else None


def _innermost(node: Node, before: Steps = ()) -> Iterator[Steps]:
    """The arrays of a request that hold its smallest parts, each from the top."""
    for inner in node.inner:
        for source in inner.sources:
            deeper = list(_innermost(inner, (*before, *source)))
            yield from deeper or [(*before, *source)]


def _split(values: Values, steps: Steps, scope: Values, only: Only) -> tuple[Values, Values]:
    """The first of these arrays, without and with only the parts in question."""
    step, deeper = steps[0], steps[1:]
    rest: list[Any] = []
    refused: list[Any] = []
    for element in values[step.array] or ():
        part = scope | step.part(element)
        if not deeper:
            (refused if only(part) else rest).append(element)
            continue
        keep, out = _split(element, deeper, part, only)
        if any(out.values()):
            refused.append(element | out)
        if any(keep.values()) or not any(out.values()):
            rest.append(element | keep)
    return {step.array: rest}, {step.array: refused}


def merge_answers(
    api: Api | int | str, version: int, served: Values, refused: Values, request: Values, only: Only
) -> Values:
    """The broker's answer with the refused parts in it; `request` and `only` are those of `split_request`.

    A part that both have is the refused one. Parts of one topic (group, ...) come together again; those that
    only their order tells apart (CreateAcls, DeleteAcls) stand in the order of the request.
    """
    of = API[key_of(api)]
    scope = names_in(request, of, version)
    return _merged(
        tree(of.key, version), served, refused, lambda steps: elements(request, steps, scope), only
    )


def _merged(node: Node, served: Values, refused: Values, asked: Asked, only: Only) -> Values:
    out = dict(served)
    for inner in node.inner:
        name = inner.path[-1]
        ours, theirs = list(refused[name] or ()), list(served[name] or ())
        if not inner.keys and inner.sources:
            sides = [ours if only(part) else theirs for _, part in asked(inner.sources[0])]
            out[name] = [side.pop(0) for side in sides if side]
            continue
        at = {_element_text(inner, element): index for index, element in enumerate(theirs)}
        for element in ours:
            index = at.get(_element_text(inner, element))
            if index is None:
                theirs.append(element)
            else:
                both = _merged(inner, theirs[index], element, asked, only)
                theirs[index] = both if inner.inner else element
        out[name] = theirs
    return out


def _element_text(node: Node, element: Values) -> str:
    return repr([element[name] for name in node.keys])
