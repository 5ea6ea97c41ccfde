"""A request in parts, one for each broker that has to answer: leaders of partitions, coordinators."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Literal, TypeVar

from klamm.decoders.schema import GROUP, PARTITION, Api, Field, all_fields, members
from klamm.replay.meanings import IDENTITIES, Values, shape
from klamm.replay.renaming import NOWHERE, About

Owner = TypeVar("Owner", bound=Hashable)
Answering = Literal["leader", "group", "transaction", "any"]

LED = frozenset({
    "Produce", "Fetch", "ListOffsets", "DeleteRecords", "OffsetForLeaderEpoch", "ShareFetch",
    "ShareAcknowledge", "DescribeProducers",
})  # fmt: skip
TRANSACTIONS = frozenset({
    "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "DescribeTransactions",
})  # fmt: skip
LEADERS, GROUPS = frozenset({PARTITION}), frozenset({GROUP})  # the marks by which a request is divided
TRANSACTIONAL_IDS = ("transactional_id", "v3_and_below_transactional_id")


def answering(api: Api, version: int) -> Answering:
    """The kind of node that has to answer, unless any broker does, or the one that is asked answers for
    itself.
    """
    if api.name in LED:
        return "leader"
    if api.name in TRANSACTIONS:
        return "transaction"
    return "group" if any(f.mark == GROUP for _, f in all_fields(api.request, version)) else "any"


def transactional_id(values: Values) -> str | None:
    """The first transactional id that a request names."""
    for of in (values, *(values.get("transactions") or ())):
        for name in TRANSACTIONAL_IDS:
            if of.get(name):
                return str(of[name])
    return next(iter(values.get("transactional_ids") or ()), None)


def divided(
    fields: tuple[Field, ...],
    version: int,
    values: Values,
    marks: frozenset[str],
    owner: Callable[[About], Owner],
    outer: About = NOWHERE,
) -> dict[Owner, Values]:
    """Owner -> what is asked of it; empty where nothing in the request, or struct, has a mark of these."""
    of = shape(fields, version)
    about = {**outer, **{what: values[name] for name, what in of.identities if values.get(name) is not None}}
    arrays = [
        f
        for f in of.fields
        if f.kind == "array" and values.get(f.name) is not None and _bears(f, version, marks)
    ]
    parts: dict[Owner, Values] = {}
    for f in arrays:
        for element in values[f.name]:
            if members(f):
                inner = divided(members(f), version, element, marks, owner, about)
            else:
                inner = {owner({**about, IDENTITIES[f.mark or ""]: element}): element}
            for whose, part in inner.items():
                if whose not in parts:
                    parts[whose] = values | {f.name: [] for f in arrays}
                parts[whose][f.name].append(part)
    if not arrays and any(f.mark in marks for f in of.fields if f.name in values):
        return {owner(about): values}
    return parts


def _bears(f: Field, version: int, marks: frozenset[str]) -> bool:
    return f.mark in marks or any(inner.mark in marks for _, inner in all_fields(members(f), version))
