"""Finds, among many rules, those that may select a frame, by the client ids and topics that they list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.decoders import DecodeError
from klamm.decoders.text import TopicName
from klamm.rules.parts import names_all, parts

if TYPE_CHECKING:
    from klamm.decoders.schema import Api, Side
    from klamm.rules.frame import Frame, Part, Peer
    from klamm.rules.rule import Rule
    from klamm.rules.state import CountedRule

FEW = 16  # rules: to ask each of them costs less than to look them up
REMEMBERED = 256  # kinds of frames and clients, with the rules that concern them


class ByName:
    """Rules by the names that they list. `others` may select any name. `rules` stand in their order."""

    def __init__(self, rules: Iterable[CountedRule], listed: Callable[[Rule], frozenset[str] | None]) -> None:
        self.others: list[CountedRule] = []
        self.rules: list[CountedRule] = []
        self.by_name: defaultdict[str, list[CountedRule]] = defaultdict(list)
        for counted in rules:
            names = listed(counted.rule)
            (self.others if names is None else self.rules).append(counted)
            for name in names or ():
                self.by_name[name].append(counted)

    def naming(self, names: Iterable[str]) -> Iterator[CountedRule]:
        """The rules that list one of these names, each once, in no order."""
        found = {counted.place: counted for name in names for counted in self.by_name.get(name, ())}
        return iter(found.values())


class Concerned(tuple["CountedRule", ...]):
    """Many rules that concern the frames of a connection; `by_topic` looks up those that list topics."""

    by_topic: ByName


class Listed(NamedTuple):
    """Stands in a look for all rules that list topics; conditions are judged for `now`."""

    by_topic: ByName
    now: int

    def asked(self, topics: set[str] | None) -> Iterable[CountedRule]:
        """The rules that may select a frame about these topics; None: about any topic."""
        return self.by_topic.rules if topics is None else self.by_topic.naming(topics)


def _topics_listed(rule: Rule) -> frozenset[str] | None:
    waits = rule.when.once_hit or rule.when.until_hit  # for another rule: judged as the frame begins
    return None if rule.topic is None or waits else rule.topic.names


def _clients_listed(rule: Rule) -> frozenset[str] | None:
    """The client ids and addresses that a rule lists; None: it may select others too."""
    return None if rule.client is None else rule.client.names


def topics_of(frame: Frame, name_of: TopicName) -> set[str] | None:
    """The topics that a frame is about; None: all topics. A frame that cannot be read is about none."""
    fields = frame.api.fields(frame.side)
    try:
        found = [*parts(fields, frame.version, frame.values, name_of), *frame.session_parts]
        if frame.side == "request" and names_all(fields, frame.version, frame.values):
            return None
    except DecodeError:
        return set()
    return {topic for part in found if (topic := topic_of(part, name_of)) is not None}


def topic_of(part: Part, name_of: TopicName) -> str | None:
    """Its name, where only its id is on the wire too, if klamm knows it."""
    topic: str | None = part.get("topic")
    return name_of(part["topic_id"]) if topic is None and part.get("topic_id") is not None else topic


class Index:
    """The rules of a process on frames; made anew when they change."""

    def __init__(self, rules: tuple[CountedRule, ...]) -> None:
        self.rules = rules
        self._by_api: dict[tuple[int, str], ByName] = {}
        self._known: dict[object, tuple[CountedRule, ...]] = {}

    def concerning(
        self, key: int, version: int, side: Side, peer: Peer, client_id: str | None
    ) -> tuple[CountedRule, ...]:
        """The rules that may act on such frames of a connection. What many rules say is remembered."""
        if len(self.rules) <= FEW:
            return tuple(_concerning(self.rules, key, version, side, peer, client_id))
        of = key, version, side, _same_for(peer), client_id, peer.instance_id
        if of not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            names = (peer.client_host, client_id, peer.instance_id)
            candidates = self._candidates(key, side, [name for name in names if name is not None])
            self._known[of] = _many([*_concerning(candidates, key, version, side, peer, client_id)])
        return self._known[of]

    def unreadable(
        self, api: Api, version: int, side: Side, peer: Peer, client_id: str | None
    ) -> CountedRule | None:
        """A rule that would have to read the body of such frames, of a version that klamm does not know."""
        if version in api.versions:
            return None
        found = self.concerning(api.key, version, side, peer, client_id)
        return next((each for each in found if each.reads and each.interferes), None)

    def may_change(self, key: int) -> bool:
        """Is there a rule that may change a frame of this API, or withhold it?"""
        rules = (each for each in self.rules if each.rule.enabled and each.interferes)
        return any(not each.rule.keys or key in each.rule.keys for each in rules)

    def _candidates(self, key: int, side: Side, names: Iterable[str]) -> Iterable[CountedRule]:
        """The rules that may concern frames of an API on a side, of a client with these names, in order."""
        found = self._by_api.get((key, side))
        if found is None:
            of_api = (
                counted
                for counted in self.rules
                if counted.rule.side == side and (not counted.rule.keys or key in counted.rule.keys)
            )
            found = self._by_api[key, side] = ByName(of_api, _clients_listed)
        return sorted([*found.others, *found.naming(names)], key=_place) if found.rules else found.others


def _concerning(
    rules: Iterable[CountedRule], key: int, version: int, side: Side, peer: Peer, client_id: str | None
) -> Iterator[CountedRule]:
    for counted in rules:
        rule = counted.rule
        if (
            rule.enabled
            and rule.side == side
            and (not rule.keys or key in rule.keys)
            and version in rule.versions
            and selects(rule, peer, client_id)
        ):
            yield counted


def selects(rule: Rule, peer: Peer, client_id: str | None) -> bool:
    """By what is the same for all frames of a client on a connection."""
    if rule.broker and peer.broker not in rule.broker:
        return False
    if rule.cluster is not None and not rule.cluster(peer.cluster):
        return False
    if rule.principal is not None and not rule.principal(*filter(None, [peer.principal])):
        return False
    if rule.client is None:
        return True
    names = (peer.client_host, client_id, peer.instance_id)
    return rule.client(*(name for name in names if name is not None))


def _same_for(peer: Peer) -> tuple[str | None, ...]:
    """The properties of a connection that rules select by, and that stay the same."""
    return peer.cluster, peer.broker, peer.client_host, peer.principal


def _many(found: Sequence[CountedRule]) -> tuple[CountedRule, ...]:
    """With an index by topic where that is worth it."""
    by_topic = ByName(found, _topics_listed) if len(found) > FEW else None
    if by_topic is None or len(by_topic.rules) <= FEW:
        return tuple(found)
    many = Concerned(found)
    many.by_topic = by_topic
    return many


def each_asked(
    look: Sequence[Any], ready: Callable[[CountedRule, int], bool], frame: Frame, name_of: TopicName
) -> Iterator[Any]:
    """A look that ends with a Listed: what it stands for, in order. A rule may edit the topics of the frame:
    the rules after it are looked up again.
    """
    *alone, listed = look
    last, body = -1, None
    while True:
        if frame.body is not body:
            body = frame.body
            named = listed.asked(topics_of(frame, name_of))
            able = (each for each in named if not each.conditional or ready(each, listed.now))
            left = iter(sorted((each for each in [*alone, *able] if _place(each) > last), key=_place))
        following = next(left, None)
        if following is None:
            return
        last = _place(following)
        yield following


def _place(each: Any) -> int:
    """Of a rule, or of a hit."""
    counted: CountedRule = getattr(each, "counted", each)
    return counted.place
