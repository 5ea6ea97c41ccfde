"""Fetch sessions (KIP-227; of share groups: KIP-932) when other brokers lead than when it was recorded.

A recorded session is one with each broker that leads some of its partitions now. Its requests tell what has
changed; a broker that gets to know of the session only now is told all that is its.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from klamm.decoders.schema import Api
from klamm.replay.dividing import LEADERS, divided
from klamm.replay.meanings import Values
from klamm.replay.renaming import About

Owner = TypeVar("Owner", bound=Hashable)
Part = tuple[Any, int]  # topic, or its id, and partition

ENDING, NEW = -1, 0  # epochs of a session; ENDING is that of a request without a session, too
FORGOTTEN = "forgotten_topics_data"
ACKNOWLEDGE = "ShareAcknowledge"


class Kind(NamedTuple):
    session_id: str | None
    epoch: str
    partition: str
    once: tuple[str, ...]  # fields that a request has for a partition this one time


KINDS = {
    "Fetch": Kind("session_id", "session_epoch", "partition", ()),
    "ShareFetch": Kind(None, "share_session_epoch", "partition_index", ("acknowledgement_batches",)),
    ACKNOWLEDGE: Kind(None, "share_session_epoch", "partition_index", ("acknowledgement_batches",)),
}


def in_session(api: Api, values: Values) -> bool:
    """Whether the request belongs to a session, or opens or ends one."""
    kind = KINDS.get(api.name)
    if kind is None or kind.epoch not in values:
        return False
    return kind.session_id is None or values[kind.epoch] != ENDING or values[kind.session_id] != 0


class SessionPartition(NamedTuple):
    topic: Values  # as in its last request
    partition: Values
    by: Any  # the recorded connection that asked for it


class Sessions:
    """The fetch sessions of one client, by broker: of a connection that fetches, or of a member of a share
    group on all its connections, since brokers know share sessions by their members.
    """

    def __init__(self) -> None:
        self.partitions: dict[Part, SessionPartition] = {}
        self.open: dict[Any, tuple[int, int]] = {}  # broker -> id of the session, its next epoch

    def requests(
        self,
        api: Api,
        version: int,
        values: Values,
        owner: Callable[[About], Owner],
        home: Owner,
        by: Any = None,
    ) -> dict[Owner, Values]:
        """Broker -> its request. `home` is asked where no partition is left that tells who; `by` is the
        recorded connection.
        """
        kind, epoch = KINDS[api.name], values[KINDS[api.name].epoch]
        mine = {part: each.topic for part, each in self.partitions.items() if each.by == by}
        alone = len(mine) == len(self.partitions)
        if epoch == ENDING and alone:
            return self._ending(api, version, values, kind, owner, home)
        if epoch == NEW and alone:
            self.open = {}
        forgotten = {part: topic for topic, part in _with_topics(values.get(FORGOTTEN) or ())}
        if epoch in (NEW, ENDING):
            forgotten |= mine
        for part in forgotten:
            self.partitions.pop(part, None)
        changed: dict[Part, SessionPartition] = {}
        for topic, partition in _partitions(values["topics"]):
            part = _topic(topic), partition[kind.partition]
            changed[part] = SessionPartition(topic, partition, by)
            forgotten.pop(part, None)
            if epoch != ENDING and api.name != ACKNOWLEDGE:
                self.partitions[part] = SessionPartition(
                    topic, partition | {name: [] for name in kind.once}, by
                )
        owners = {
            part: owner({**each.topic, "partition": part[1]})
            for part, each in (self.partitions | changed).items()
        }
        asked = dict.fromkeys(owners[part] for part in changed)
        if api.name != ACKNOWLEDGE:
            asked |= dict.fromkeys(owners[part] for part, each in self.partitions.items() if each.by == by)
            left = (owner({**topic, "partition": part[1]}) for part, topic in forgotten.items())
            asked |= dict.fromkeys(broker for broker in left if broker in self.open)
        out: dict[Owner, Values] = {}
        for broker in asked or {home: None}:
            there = self.open.get(broker)
            sent = changed if there or api.name == ACKNOWLEDGE else self.partitions
            topics = _grouped({part: each for part, each in sent.items() if owners[part] == broker})
            out[broker] = values | {kind.epoch: there[1] if there else NEW, "topics": topics}
            if FORGOTTEN in values:
                out[broker][FORGOTTEN] = _forgotten(forgotten) if there else []
            if kind.session_id:
                out[broker][kind.session_id] = there[0] if there else 0
            else:
                self.open[broker] = 0, there[1] + 1 if there else NEW + 1
        return out

    def _ending(
        self,
        api: Api,
        version: int,
        values: Values,
        kind: Kind,
        owner: Callable[[About], Owner],
        home: Owner,
    ) -> dict[Owner, Values]:
        out = divided(api.request, version, values, LEADERS, owner)
        for broker, (session_id, _) in self.open.items():
            out.setdefault(broker, values | {"topics": []})
            if kind.session_id:
                out[broker] = out[broker] | {kind.session_id: session_id}
        self.partitions, self.open = {}, {}
        return out or {home: values}

    def answered(self, api: Api, broker: Any, request: Values, answer: Values) -> None:
        """A broker has answered: its session goes on, or is no more."""
        kind = KINDS[api.name]
        session_id = answer.get(kind.session_id, 0) if kind.session_id else 0
        ended = answer.get("error_code") or (kind.session_id and not session_id)
        if ended or request[kind.epoch] == ENDING:
            self.open.pop(broker, None)
        elif kind.session_id:
            self.open[broker] = session_id, request[kind.epoch] + 1

    def leave(self, by: Any) -> None:
        """A recorded connection has ended."""
        self.partitions = {part: each for part, each in self.partitions.items() if each.by != by}

    def again(self, api: Api, values: Values) -> Values:
        """The same request once more: nothing has changed since."""
        kind = KINDS[api.name]
        empty: Values = {"topics": [], **({FORGOTTEN: []} if FORGOTTEN in values else {})}
        return values | empty | {kind.epoch: max(values[kind.epoch], NEW + 1)}


def _topic(topic: Values) -> Any:
    return topic.get("topic") or topic["topic_id"]


def _partitions(topics: Any) -> Any:
    return ((topic, partition) for topic in topics for partition in topic["partitions"])


def _with_topics(topics: Any) -> Any:
    return ((topic, (_topic(topic), partition)) for topic, partition in _partitions(topics))


def _forgotten(parts: dict[Part, Values]) -> list[Values]:
    topics: dict[Any, Values] = {}
    for (name, number), topic in parts.items():
        topics.setdefault(name, topic | {"partitions": []})["partitions"].append(number)
    return list(topics.values())


def _grouped(parts: dict[Part, SessionPartition]) -> list[Values]:
    topics: dict[Any, Values] = {}
    for (name, _), each in parts.items():
        topics.setdefault(name, each.topic | {"partitions": []})["partitions"].append(each.partition)
    return list(topics.values())
