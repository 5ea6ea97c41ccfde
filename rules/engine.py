"""Rules against frames: which apply, whether this match is a hit, and what their actions ask for.

One Engine for a process, one Gate for a connection. Pure: time is an argument, chance follows from the seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from klamm.decoders import DecodeError, UnknownApi, encode
from klamm.decoders.schema import Api, Side
from klamm.rules.chance import PER_MATCH, Draws, number, stream
from klamm.rules.fetch_sessions import FetchSessions
from klamm.rules.frame import Frame, Part, Peer
from klamm.rules.groups import Groups
from klamm.rules.orders import ENDING, Answer, Edit, Log, OnAnswer, Order, Pause, Raw
from klamm.rules.parts import TopicName, names_all, parts
from klamm.rules.rule import Rule
from klamm.rules.state import Tally

FETCH = 1
SESSION_NOT_FOUND = 70  # FETCH_SESSION_ID_NOT_FOUND: the client starts a new session, and names its topics


class Hit(NamedTuple):
    """A rule that acts on a frame. `only`: on these parts of it."""

    tally: Tally
    draw: Draws
    only: Callable[[Part], bool] | None
    key: Hashable  # what it was counted for


# What was decided from a header: rules to ask when the frame is whole, in the order of the file. A Hit is
# one already.
Look = tuple[Tally | Hit, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """What a rule does when the answer comes."""

    rule: str
    act: Callable[[Frame], Iterable[Order]]

    def __call__(self, frame: Frame) -> Iterable[Order]:
        return self.act(frame)


class Engine:
    """All rules of a process. `revision` goes up when they change; gates then have to be asked anew."""

    def __init__(self, seed: int, wall_offset_ns: int = 0) -> None:
        self.seed, self.wall_offset_ns = seed, wall_offset_ns
        self.tallies: tuple[Tally, ...] = ()
        self.by_name: dict[str, Tally] = {}
        self.revision = 0
        self.groups = Groups()
        self.connections: Counter[tuple[str, str, str]] = Counter()
        self.failed: list[tuple[str, str]] = []  # (rule, why), for the log, drained at the edge
        self.unread: set[tuple[str, int, int]] = set()  # (rule, API key, version) of which that was said

    def load(self, rules: Sequence[Rule], now: int) -> None:
        """These rules, from now on. One that was there before, unchanged, goes on counting where it was."""
        before = {tally.rule: tally for tally in self.tallies}
        self.tallies = tuple(before.get(rule) or Tally(rule, now, self.wall_offset_ns) for rule in rules)
        self.by_name = {tally.rule.name: tally for tally in self.tallies}
        self.groups.wanted = any(rule.group or rule.when.per == "group" for rule in rules)
        self.unread.clear()
        self.revision += 1

    def peer(self, cluster: str, broker: str, client_address: str, number: int = 0) -> Peer:
        """A new connection."""
        of = cluster, broker, client_address.rpartition(":")[0]
        self.connections[of] += 1
        return Peer(cluster, broker, client_address, f"{'/'.join(of)}/{self.connections[of]}", number)

    def concerned(
        self, api: Api, version: int, side: Side, peer: Peer, client_id: str | None
    ) -> tuple[Tally, ...]:
        """The rules that may act on such frames of a connection: what never changes on it is decided here."""
        found = tuple(
            tally
            for tally in self.tallies
            if tally.rule.enabled
            and tally.rule.event == "frame"
            and tally.rule.side == side
            and (not tally.rule.keys or api.key in tally.rule.keys)
            and version in tally.rule.versions
            and self.selects(tally.rule, peer, client_id)
        )
        return found if version in api.versions else tuple(self._by_header(found, api, version))

    def _by_header(self, tallies: Iterable[Tally], api: Api, version: int) -> Iterator[Tally]:
        """The rules that need no body: that of a version which klamm does not know cannot be read."""
        for tally in tallies:
            if not tally.reads:
                yield tally
            elif (of := (tally.rule.name, api.key, version)) not in self.unread:
                self.unread.add(of)
                tally.failures += 1
                unknown = f"klamm does not know {api.name} v{version}, only {api.versions}"
                self.failed.append(
                    (tally.rule.name, f"{unknown}, and the rule asks for something in its body")
                )

    def learns_from(self, api: Api, side: Side) -> bool:
        return side == "request" and self.groups.wanted and self.groups.told_by(api)

    @staticmethod
    def selects(rule: Rule, peer: Peer, client_id: str | None) -> bool:
        if rule.broker and peer.broker not in rule.broker:
            return False
        if rule.cluster is not None and not rule.cluster(peer.cluster):
            return False
        if rule.client is None:
            return True
        return rule.client(peer.client_host) or (client_id is not None and rule.client(client_id))

    def ready(self, tally: Tally, now: int) -> bool:
        """Is this the rule's time?"""
        rule = tally.rule
        if tally.timed and not tally.open(now):
            return False
        if not (rule.when.once_hit or rule.when.until_hit):
            return True
        once, until = self.by_name.get(rule.when.once_hit), self.by_name.get(rule.when.until_hit)
        return (not rule.when.once_hit or (once is not None and once.hits > 0)) and not (until and until.hits)


class Gate:
    """One connection: what its frames are judged by besides themselves."""

    def __init__(self, engine: Engine, peer: Peer, name_of: TopicName) -> None:
        self.engine, self.peer, self.name_of = engine, peer, name_of
        self.sessions = FetchSessions()
        self.streams: dict[str, list[int]] = {}  # rule -> [where its numbers begin, its last match]

    def connecting(self, frame: Frame, now: int) -> list[Order]:
        """What is done to the connection as it opens."""
        engine = self.engine
        tallies = [
            t for t in engine.tallies if t.rule.event == "connect" and engine.selects(t.rule, self.peer, None)
        ]
        return self.orders(frame, self.look(tallies, None, now), now)

    def look(self, tallies: Iterable[Tally], client_id: str | None, now: int) -> Look:
        """From the header alone: what still has to be asked of the body, or is a hit already."""
        pending: list[Tally | Hit] = []
        for tally in tallies:
            if tally.conditional and not self.engine.ready(tally, now):
                continue
            if tally.reads:
                pending.append(tally)
                continue
            hit = self._match(tally, self._counted_by_header(tally.rule, client_id), None, now)
            if hit is not None:
                pending.append(hit)
        return tuple(pending)

    def quiet(self, tallies: tuple[Tally, ...], count: int, now: int) -> int:
        """How many of so many frames, from the first on, a rule that stands on chance alone surely lets pass:
        its numbers are drawn here without a call for each. 0 says nothing: `look`.
        """
        if len(tallies) != 1 or tallies[0].conditional or tallies[0].reads or tallies[0].counts:
            return 0
        tally = tallies[0]
        start, match = self._stream(tally.rule)
        chance, passed = tally.rule.when.chance, 0
        while passed < count and number(start, (match + passed + 1) * PER_MATCH) >= chance:
            passed += 1
        if passed and tally.first_match_ns is None:
            tally.first_match_ns = now
        tally.matches += passed
        self.streams[tally.rule.name][1] += passed
        return passed

    def _stream(self, rule: Rule) -> list[int]:
        known = self.streams.get(rule.name)
        if known is None:
            known = self.streams[rule.name] = [stream(self.engine.seed, rule.name, self.peer.key), -1]
        return known

    def orders(self, frame: Frame, look: Look, now: int) -> list[Order]:
        """What all rules ask for of a frame that is whole. An edit is seen by the rules after it."""
        if self.engine.learns_from(frame.api, frame.side):
            self.engine.groups.learn(frame)
        asked: list[Order] = []
        tracked = frame.api.key == FETCH and frame.side == "request" and any(map(_by_topic, look))
        tracked = tracked and _is_readable(frame)
        if tracked and self.sessions.unknown(frame):
            return [Answer({"error_code": SESSION_NOT_FOUND})]
        if tracked:
            frame.held = tuple(self.sessions.held(frame))
        end: list[Order] = []
        for pending in look:
            if end and not _observes(pending):
                if isinstance(pending, Hit):
                    pending.tally.give_back(pending.key)
                continue
            hit = pending if isinstance(pending, Hit) else self._read(pending, frame, now)
            if hit is not None and not hit.tally.rule.dry:
                asked += self._act(hit, frame)
                if asked and isinstance(asked[-1], ENDING):
                    end.append(asked.pop())
        if end:
            return asked + end
        if tracked:
            self.sessions.asks(frame)
            asked.append(OnAnswer(self._session_answered))
        return asked

    def answered(self, acts: Iterable[Callable[[Frame], Iterable[Order]]], frame: Frame) -> list[Order]:
        """What was decided of an answer when its request was seen, now that the answer is here."""
        asked: list[Order] = []
        for act in acts:
            asked += self._safely(act.rule if isinstance(act, Later) else "", frame, act)
            if asked and isinstance(asked[-1], ENDING):
                break
        return asked

    def draws(self) -> Draws:
        """Numbers for what goes on after its hit: the shape of a stream."""
        return Draws(stream(self.engine.seed, "", self.peer.key), 0)

    def _session_answered(self, frame: Frame) -> Iterable[Order]:
        self.sessions.answers(frame)
        return ()

    def _act(self, hit: Hit, frame: Frame) -> list[Order]:
        """What the rule's actions say, one after another; each sees what those before it have done."""
        frame.only, name = hit.only, hit.tally.rule.name
        said: list[Order] = []
        end: list[Order] = []
        for action in hit.tally.rule.do:
            if not end or getattr(action, "observes", False):
                orders = self._safely(name, frame, partial(action.act, draw=hit.draw))
                said += [_signed(order, name) for order in orders]
                if said and isinstance(said[-1], ENDING):
                    end.append(said.pop())
        return said + end

    def _safely(self, rule: str, frame: Frame, ask: Callable[[Frame], Iterable[Order]]) -> list[Order]:
        """An action that fails, or asks for what cannot be sent, does nothing, and is said."""
        before = frame.read, frame.body
        try:
            said = list(ask(frame))
            for order in said:
                if isinstance(order, Edit):
                    body = encode(order.values, frame.api.key, frame.version, frame.side)
                    frame.become(order.values, body)
                elif isinstance(order, Raw):
                    frame.become(None, order.body)
                elif isinstance(order, Answer) and order.values is not None:
                    encode(order.values, frame.api.key, frame.version, "response")
        except Exception as error:  # a plugin may raise anything
            frame.become(*before)
            tally = self.engine.by_name.get(rule)
            if tally is not None:
                tally.failures += 1
            unknown = isinstance(error, UnknownApi)
            why = f"{error}; the action needs to read it" if unknown else f"{type(error).__name__}: {error}"
            self.engine.failed.append((rule, why))
            return []
        return said

    def _read(self, tally: Tally, frame: Frame, now: int) -> Hit | None:
        """A rule that asks for something in the body."""
        rule = tally.rule
        try:
            only = self._selected(rule, frame)
            if only is False:
                return None
            if rule.where is not None and not rule.where.on(frame.api, frame.version, frame.side)(frame):
                return None
            chosen = only if callable(only) else None
            return self._match(tally, self._counted_by(rule, frame, chosen), chosen, now)
        except DecodeError:
            return None  # observation fails open; metering says so

    def _selected(self, rule: Rule, frame: Frame) -> Callable[[Part], bool] | bool:
        """Which parts of the frame the rule is about: a predicate, True for all, False for none."""
        if rule.group is not None and not self._of_group(rule, frame):
            return False
        if rule.topic is None and not rule.partition:
            return True

        def wanted(part: Part) -> bool:
            topic, partition, group = part.get("topic"), part.get("partition"), part.get("group")
            if topic is None and part.get("topic_id") is not None:
                topic = self.name_of(part["topic_id"])
            return (
                (rule.topic is None or (topic is not None and rule.topic(topic)))
                and (not rule.partition or partition is None or partition in rule.partition)
                and (rule.group is None or group is None or rule.group(group))
            )

        fields = frame.api.fields(frame.side)
        found = any(wanted(part) for part in parts(fields, frame.version, frame.values, self.name_of))
        if not found and frame.side == "request":
            found = names_all(fields, frame.version, frame.values)
            if frame.api.key == FETCH:
                found = any(map(wanted, frame.held))
        return wanted if found else False

    def _of_group(self, rule: Rule, frame: Frame) -> bool:
        assert rule.group is not None
        return any(map(rule.group, self._groups(frame)))

    def _groups(self, frame: Frame) -> set[str]:
        """The groups that a frame, its request or its client names."""
        named = self._groups_named(frame) or (self._groups_named(frame.request) if frame.request else set())
        if named:
            return named
        group = self.engine.groups.of(frame.client_id, frame.peer.client_address)
        return set() if group is None else {group}

    def _groups_named(self, frame: Frame) -> set[str]:
        fields = frame.api.fields(frame.side)
        found = parts(fields, frame.version, frame.values, self.name_of)
        return {part["group"] for part in found if part.get("group") is not None}

    def _match(
        self, tally: Tally, key: Hashable, only: Callable[[Part], bool] | None, now: int
    ) -> Hit | None:
        """One more match: is it a hit?"""
        rule = tally.rule
        known = self._stream(rule)
        known[1] += 1
        start, match = known
        if not tally.count(key, now) or number(start, match * PER_MATCH) >= rule.when.chance:
            return None
        tally.hit(key)
        return Hit(tally, Draws(start, match), only, key)

    def _counted_by_header(self, rule: Rule, client_id: str | None) -> Hashable:
        """The same where the header is enough to tell."""
        per = rule.when.per
        return self.peer.key if per == "connection" else client_id if per == "client" else None

    def _counted_by(self, rule: Rule, frame: Frame, only: Callable[[Part], bool] | None) -> Hashable:
        """What its matches are counted by: nothing, or that of which the rule counts each by itself."""
        if rule.when.per == "group":
            return frozenset(self._groups(frame))
        if rule.when.per != "topic":
            return self._counted_by_header(rule, frame.client_id)
        fields = frame.api.fields(frame.side)
        found = parts(fields, frame.version, frame.values, self.name_of)
        return frozenset((p.get("topic"), p.get("partition")) for p in found if only is None or only(p))


def _signed(order: Order, rule: str) -> Order:
    """What is carried out later knows whose it is."""
    match order:
        case OnAnswer(act):
            return OnAnswer(Later(rule, act))
        case Pause() | Log():
            return order._replace(rule=rule)
    return order


def _observes(pending: Tally | Hit) -> bool:
    """Does the rule leave frames alone? Then it sees also what another has ended."""
    rule = pending.tally.rule if isinstance(pending, Hit) else pending.rule
    return all(getattr(action, "observes", False) for action in rule.do)


def _is_readable(frame: Frame) -> bool:
    try:
        return frame.values is not None
    except DecodeError:
        return False


def _by_topic(pending: Tally | Hit) -> bool:
    rule = pending.tally.rule if isinstance(pending, Hit) else pending.rule
    return rule.topic is not None or bool(rule.partition)
