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
    once: tuple[str, ...]  # what a request tells of a partition for this one time


KINDS = {
    "Fetch": Kind("session_id", "session_epoch", "partition", ()),
    "ShareFetch": Kind(None, "share_session_epoch", "partition_index", ("acknowledgement_batches",)),
    ACKNOWLEDGE: Kind(None, "share_session_epoch", "partition_index", ("acknowledgement_batches",)),
}


def in_session(api: Api, values: Values) -> bool:
    """Is the request of a session, or the one that makes or ends it?"""
    kind = KINDS.get(api.name)
    if kind is None or kind.epoch not in values:
        return False
    return kind.session_id is None or values[kind.epoch] != ENDING or values[kind.session_id] != 0


class Held(NamedTuple):
    topic: Values  # as it was told last
    partition: Values
    by: Any  # the recorded connection that told it


class Sessions:
    """Those of one client, by broker: of a connection that fetches, or of a member of a share group on all
    its connections, since brokers know share sessions by their members.
    """

    def __init__(self) -> None:
        self.held: dict[Part, Held] = {}
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
        mine = {part: held.topic for part, held in self.held.items() if held.by == by}
        alone = len(mine) == len(self.held)
        if epoch == ENDING and alone:
            return self._ending(api, version, values, kind, owner, home)
        if epoch == NEW and alone:
            self.open = {}
        forgotten = {part: topic for topic, part in _told(values.get(FORGOTTEN) or ())}
        if epoch in (NEW, ENDING):
            forgotten |= mine
        for part in forgotten:
            self.held.pop(part, None)
        changed: dict[Part, Held] = {}
        for topic, partition in _partitions(values["topics"]):
            part = _topic(topic), partition[kind.partition]
            changed[part] = Held(topic, partition, by)
            forgotten.pop(part, None)
            if epoch != ENDING and api.name != ACKNOWLEDGE:
                self.held[part] = Held(topic, partition | {name: [] for name in kind.once}, by)
        owners = {
            part: owner({**held.topic, "partition": part[1]}) for part, held in (self.held | changed).items()
        }
        asked = dict.fromkeys(owners[part] for part in changed)
        if api.name != ACKNOWLEDGE:
            asked |= dict.fromkeys(owners[part] for part, held in self.held.items() if held.by == by)
            left = (owner({**topic, "partition": part[1]}) for part, topic in forgotten.items())
            asked |= dict.fromkeys(broker for broker in left if broker in self.open)
        out: dict[Owner, Values] = {}
        for broker in asked or {home: None}:
            there = self.open.get(broker)
            told = changed if there or api.name == ACKNOWLEDGE else self.held
            topics = _grouped({part: held for part, held in told.items() if owners[part] == broker})
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
        self.held, self.open = {}, {}
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
        self.held = {part: held for part, held in self.held.items() if held.by != by}

    def again(self, api: Api, values: Values) -> Values:
        """The same request once more: nothing has changed since."""
        kind = KINDS[api.name]
        empty: Values = {"topics": [], **({FORGOTTEN: []} if FORGOTTEN in values else {})}
        return values | empty | {kind.epoch: max(values[kind.epoch], NEW + 1)}


def _topic(topic: Values) -> Any:
    return topic.get("topic") or topic["topic_id"]


def _partitions(topics: Any) -> Any:
    return ((topic, partition) for topic in topics for partition in topic["partitions"])


def _told(topics: Any) -> Any:
    return ((topic, (_topic(topic), partition)) for topic, partition in _partitions(topics))


def _forgotten(parts: dict[Part, Values]) -> list[Values]:
    topics: dict[Any, Values] = {}
    for (name, number), topic in parts.items():
        topics.setdefault(name, topic | {"partitions": []})["partitions"].append(number)
    return list(topics.values())


def _grouped(parts: dict[Part, Held]) -> list[Values]:
    topics: dict[Any, Values] = {}
    for (name, _), held in parts.items():
        topics.setdefault(name, held.topic | {"partitions": []})["partitions"].append(held.partition)
    return list(topics.values())
