"""Maps recorded ids to those of the cluster of the replay: learned from answers, used in requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from klamm.decoders.records import RecordsError
from klamm.decoders.schema import RECORDS, Field, members
from klamm.replay.batches import Producer, with_producers
from klamm.replay.meanings import NIL, NODE_RESOURCES, OWNERS, Meaning, Values, meaning, means_nothing, shape

About = Mapping[str, Any]  # "topic" (its name, or its recorded id), "partition", "group"
NOWHERE: About = {}
EPOCHS = frozenset({"producer_epoch", "member_epoch", "leader_epoch"})
UNCHECKED_EPOCH = -1  # a leader epoch that the broker does not compare with its own


class Renaming:
    """`node` tells which node stands in the place of a recorded one. Of what is learned, the last holds."""

    def __init__(self, node: Callable[[int], int]) -> None:
        self.node = node
        self.topic_names: dict[bytes, str] = {}  # of recorded topic ids
        self.learned: dict[tuple[Any, ...], Any] = {}
        self.last_epochs: dict[tuple[Any, ...], tuple[int, int]] = {}

    # Recorded ids, and those of now.

    def learn(self, kind: Meaning, owner: Any, recorded: Any, now: Any) -> None:
        """`owner`: whose epoch it is. Where either stands for nothing, there is nothing to learn."""
        if kind == "node" or means_nothing(kind, recorded) or means_nothing(kind, now):
            return
        self.learned[kind, owner, recorded] = now
        if kind in EPOCHS:
            self.last_epochs[kind, owner] = recorded, now

    def learn_topic(self, recorded: bytes, now: bytes, name: str) -> None:
        if recorded != NIL:
            self.learn("topic_id", None, recorded, now)
            self.topic_names[recorded] = name

    def forget_leader_epochs(self) -> None:
        """Leaders have changed: what was learned may be older than what brokers have."""
        self.learned = {key: now for key, now in self.learned.items() if key[0] != "leader_epoch"}

    def renewed(self, kind: Meaning, owner: Any, recorded: Any) -> Any:
        """The id of now; the same id where nothing was learned."""
        if means_nothing(kind, recorded):
            return recorded
        if kind == "node":
            return self.node(recorded)
        found = self.learned.get((kind, owner, recorded))
        if found is not None:
            return found
        if kind == "leader_epoch":
            return UNCHECKED_EPOCH
        if (
            kind == "producer_epoch"
        ):  # a producer without transactions counts its epoch up by itself (KIP-360)
            before, now = self.last_epochs.get((kind, owner), (recorded, recorded))
            return now + recorded - before
        return recorded

    def producer(self, producer_id: int, epoch: int) -> Producer:
        now = self.renewed("producer", None, producer_id)
        return now, self.renewed("producer_epoch", producer_id, epoch)

    # Structs.

    def about(self, fields: tuple[Field, ...], version: int, values: Values, outer: About) -> About:
        """The subject of a recorded struct, from its own fields and those of the structs around it."""
        own = {
            what: values[name]
            for name, what in shape(fields, version).identities
            if values.get(name) is not None
        }
        if "topic_id" in own and not own.get("topic"):
            own["topic"] = self.topic_names.get(own["topic_id"], own["topic_id"])
        return {**outer, **own} if own else outer

    def request(
        self, fields: tuple[Field, ...], version: int, values: Values, outer: About = NOWHERE
    ) -> Values:
        """A recorded request, or a struct in it, as the cluster of the replay understands it."""
        of = shape(fields, version)
        if not of.deep:
            return values
        about = self.about(fields, version, values, outer)
        new = dict(values)
        for f in of.fields:
            value = values.get(f.name)
            if f.name in of.deep and value is not None:
                new[f.name] = self._value(f, version, value, values, about)
        return new

    def _value(self, f: Field, version: int, value: Any, beside: Values, about: About) -> Any:
        kind = meaning(f)
        if kind is not None:
            owner = whose(f, kind, beside, about)
            if f.kind == "array":
                return list(dict.fromkeys(self.renewed(kind, owner, one) for one in value))
            return self.renewed(kind, owner, value)
        if f.mark == RECORDS:
            try:
                return with_producers(value, self.producer)
            except RecordsError:
                return value
        if f.name == "resource_name":
            named = beside.get("resource_type") in NODE_RESOURCES and value.isdigit()
            return str(self.renewed("node", None, int(value))) if named else value
        if f.kind == "array":
            return [self.request(members(f), version, one, about) for one in value]
        return self.request(members(f), version, value, about)


def whose(f: Field, kind: Meaning, beside: Values, about: About) -> Any:
    """The owner of an epoch, in recorded ids; None for a field of the whole cluster."""
    if kind == "leader_epoch":
        return about.get("topic"), about.get("partition")
    return beside.get(OWNERS[f.name]) if f.name in OWNERS else None
