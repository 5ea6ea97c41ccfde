"""Rules against frames: which apply, whether this match is a hit, and what their actions ask for.

One Engine for a process, one Gate for a connection. Pure: time is an argument, chance follows from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from klamm.decoders import DecodeError, UnknownApi, encode
from klamm.decoders.schema import Api, Side
from klamm.decoders.text import TopicName
from klamm.rules.chance import PER_MATCH, Draws, number, stream
from klamm.rules.fetch_sessions import FetchSessions
from klamm.rules.frame import Frame, Part, Peer
from klamm.rules.groups import Groups
from klamm.rules.index import Concerned, Index, Listed, each_asked, selects, topic_of
from klamm.rules.later import Later, signed
from klamm.rules.orders import ENDING, Answer, Edit, OnAnswer, Order, Raw
from klamm.rules.parts import names_all, parts, place_of
from klamm.rules.peers import Peers
from klamm.rules.rule import Rule
from klamm.rules.state import CountedRule

FETCH = 1
MOST_UNREAD = 1000  # versions that rules cannot read and that are reported; clients may make them up
SESSION_NOT_FOUND = 70  # FETCH_SESSION_ID_NOT_FOUND: the client starts a new session, and names its topics


class Hit(NamedTuple):
    """A rule that acts on a frame. `only`: on these parts of it."""

    counted: CountedRule
    draw: Draws
    only: Callable[[Part], bool] | None
    key: Hashable  # the client, topic, ... that it was counted for


# Found by the header of a frame, in the order of the file: rules to ask when the frame is whole, and Hits,
# which are decided already. A Listed, at the end, stands for many rules.
Look = tuple[CountedRule | Hit | Listed, ...]


class Engine:
    """All rules of a process. `revision` grows when they change; gates must then be asked anew."""

    def __init__(self, seed: int, wall_offset_ns: int = 0) -> None:
        self.seed, self.wall_offset_ns = seed, wall_offset_ns
        self.counted_rules: tuple[CountedRule, ...] = ()
        self.index = Index(())
        self.by_name: dict[str, CountedRule] = {}
        self.revision = 0
        self.on_change: list[Callable[[], None]] = []
        self.groups = Groups()
        self.peer = Peers().peer
        self.acted: Callable[[Rule, Frame], None] | None = None  # gets each hit that has orders
        self.failed: list[tuple[str, str]] = []  # (rule, why), for the log, drained at the edge
        self.unread: set[tuple[str, int, int]] = set()  # (rule, API key, version) that were reported

    def load(self, rules: Sequence[Rule], now: int) -> None:
        """These rules, from now on. One that was there before, unchanged, goes on counting where it was."""
        self.counted_rules = tuple(self._counted(rule, now) for rule in rules)
        for place, counted in enumerate(self.counted_rules):
            counted.place = place
        self.index = Index(tuple(each for each in self.counted_rules if each.rule.event == "frame"))
        self.by_name = {counted.rule.name: counted for counted in self.counted_rules}
        self.groups.wanted = any(rule.group or rule.when.per == "group" for rule in rules)
        self.unread.clear()
        self.changed()

    def _counted(self, rule: Rule, now: int) -> CountedRule:
        before = self.by_name.get(rule.name)
        unchanged = before is not None and before.rule == rule
        return before if before and unchanged else CountedRule(rule, now, self.wall_offset_ns)

    def changed(self) -> None:
        """Let connections look again at which rules concern them."""
        self.revision += 1
        for notice in self.on_change:
            notice()

    def concerned(
        self, api: Api, version: int, side: Side, peer: Peer, client_id: str | None
    ) -> tuple[CountedRule, ...]:
        """The rules that may act on such frames of a connection. Conditions that never change on a connection
        are judged here.
        """
        found = self.index.concerning(api.key, version, side, peer, client_id)
        return found if version in api.versions else tuple(self._by_header(found, api, version))

    def _by_header(self, rules: Iterable[CountedRule], api: Api, version: int) -> Iterator[CountedRule]:
        """The rules that need no body: that of a version which klamm does not know cannot be read."""
        for counted in rules:
            if not counted.reads:
                yield counted
            elif (of := (counted.rule.name, api.key, version)) not in self.unread and len(
                self.unread
            ) < MOST_UNREAD:
                self.unread.add(of)
                counted.failures += 1
                unknown = f"klamm does not know {api.name} v{version}, only {api.versions}"
                why = f"{unknown}, and the rule asks for something in its body"
                self.failed.append((counted.rule.name, why))

    def learns_from(self, api: Api, side: Side) -> bool:
        return side == "request" and self.groups.wanted and self.groups.told_by(api)

    def ready(self, counted: CountedRule, now: int) -> bool:
        """Whether the rule may act now."""
        rule = counted.rule
        if counted.timed and not counted.open(now):
            return False
        if not (rule.when.once_hit or rule.when.until_hit):
            return True
        once, until = self.by_name.get(rule.when.once_hit), self.by_name.get(rule.when.until_hit)
        return (not rule.when.once_hit or (once is not None and once.has_hit())) and not (
            until and until.has_hit()
        )


class Gate:
    """One connection: the state by which its frames are judged."""

    def __init__(self, engine: Engine, peer: Peer, name_of: TopicName) -> None:
        self.engine, self.peer, self.name_of = engine, peer, name_of
        self.sessions = FetchSessions()
        self.streams: dict[str, list[int]] = {}  # rule -> [where its numbers begin, its last match]
        self.unjudged = ""  # a rule that could not judge a frame, or act on it, and why; the caller clears it

    def connecting(self, frame: Frame, now: int) -> list[Order]:
        """The orders for the connection as it opens."""
        engine = self.engine
        rules = [
            t for t in engine.counted_rules if t.rule.event == "connect" and selects(t.rule, self.peer, None)
        ]
        return self.orders(frame, self.look(rules, None, now), now)

    def look(self, rules: Iterable[CountedRule], client_id: str | None, now: int) -> Look:
        """Judges the header alone: gives the hits, and the rules that need the body."""
        many = rules.by_topic if isinstance(rules, Concerned) else None
        pending: list[CountedRule | Hit | Listed] = []
        for counted in rules if many is None else many.others:
            if counted.conditional and not self.engine.ready(counted, now):
                continue
            if counted.reads:
                pending.append(counted)
                continue
            hit = self._match(counted, self._counted_by_header(counted.rule, client_id), None, now)
            if hit is not None:
                pending.append(hit)
        if many is not None:
            pending.append(Listed(many, now))
        return tuple(pending)

    def quiet(self, rules: tuple[CountedRule, ...], count: int, now: int) -> int:
        """How many of so many frames, from the first on, surely pass: rules that are used up, or a rule whose
        only condition is chance, whose numbers are drawn here. 0 means that nothing is known: call `look`.
        """
        if rules and all(counted.used_up() for counted in rules):
            for counted in rules:
                counted.matches += count
                self._stream(counted.rule)[1] += count
            return count
        if len(rules) != 1 or rules[0].conditional or rules[0].reads or rules[0].counts:
            return 0
        counted = rules[0]
        start, match = self._stream(counted.rule)
        chance, passed = counted.rule.when.chance, 0
        while passed < count and number(start, (match + passed + 1) * PER_MATCH) >= chance:
            passed += 1
        if passed and counted.first_match_ns is None:
            counted.first_match_ns = now
        counted.matches += passed
        self.streams[counted.rule.name][1] += passed
        return passed

    def _stream(self, rule: Rule) -> list[int]:
        known = self.streams.get(rule.name)
        if known is None:
            known = self.streams[rule.name] = [stream(self.engine.seed, rule.name, self.peer.key), -1]
        return known

    def orders(self, frame: Frame, look: Look, now: int) -> list[Order]:
        """The orders of all rules for a whole frame. A rule sees the edits of the rules before it."""
        if self.engine.learns_from(frame.api, frame.side):
            self.engine.groups.learn(frame)
        asked: list[Order] = []
        tracked = frame.api.key == FETCH and frame.side == "request" and any(map(_by_topic, look))
        tracked = tracked and _is_readable(frame)
        if tracked and self.sessions.unknown(frame):
            return [Answer({"error_code": SESSION_NOT_FOUND})]
        if tracked:
            frame.session_parts = tuple(self.sessions.parts(frame))
        end: list[Order] = []
        many = bool(look) and isinstance(look[-1], Listed)
        if many and not _is_readable(frame):
            self.unjudged = "the rules of these topics: its body does not decode"
        each: Iterable[Any] = each_asked(look, self.engine.ready, frame, self.name_of) if many else look
        for pending in each:
            if end and not _observes(pending):
                if isinstance(pending, Hit):
                    pending.counted.give_back(pending.key)
                continue
            hit = pending if isinstance(pending, Hit) else self._read(pending, frame, now)
            if hit is not None and not hit.counted.rule.dry:
                asked += self._act(hit, frame)
                if asked and isinstance(asked[-1], ENDING):
                    end.append(asked.pop())
        if end:
            return asked + end
        if tracked and _is_readable(frame):  # it may have been corrupted by now
            self.sessions.asks(frame)
            asked.append(OnAnswer(self._session_answered))
        return asked

    def answered(self, acts: Iterable[OnAnswer], frame: Frame) -> list[Order]:
        """The orders for an answer that were decided with its request."""
        asked: list[Order] = []
        for act, *_ in acts:
            asked += self._safely(act.rule if isinstance(act, Later) else "", frame, act)
            if asked and isinstance(asked[-1], ENDING):
                break
        return asked

    def draws(self) -> Draws:
        """Numbers for a hit that goes on: the shape of a stream."""
        return Draws(stream(self.engine.seed, "", self.peer.key), 0)

    def _session_answered(self, frame: Frame) -> Iterable[Order]:
        self.sessions.answers(frame)
        return ()

    def _act(self, hit: Hit, frame: Frame) -> list[Order]:
        """The orders of the rule's actions, one after another; each sees the edits of those before it."""
        frame.only, name = hit.only, hit.counted.rule.name
        said: list[Order] = []
        end: list[Order] = []
        for action in hit.counted.rule.do:
            if not end or getattr(action, "observes", False):
                orders = self._safely(name, frame, partial(action.act, draw=hit.draw))
                said += [signed(order, name) for order in orders]
                if said and isinstance(said[-1], ENDING):
                    end.append(said.pop())
        if (said or end) and not _observes(hit):
            frame.treatment.rules.append(name)
        if self.engine.acted is not None and (said or end):
            self.engine.acted(hit.counted.rule, frame)
        return said + end

    def _safely(self, rule: str, frame: Frame, ask: Callable[[Frame], Iterable[Order]]) -> list[Order]:
        """An action that fails, or orders a frame that cannot be sent, does nothing; the failure is
        reported.
        """
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
            counted = self.engine.by_name.get(rule)
            if counted is not None:
                counted.failures += 1
            unknown = isinstance(error, UnknownApi)
            why = f"{error}; the action needs to read it" if unknown else f"{type(error).__name__}: {error}"
            self.engine.failed.append((rule, why))
            self._missed(counted, why)
            return []
        return said

    def _read(self, counted: CountedRule, frame: Frame, now: int) -> Hit | None:
        """A rule that asks for something in the body."""
        rule = counted.rule
        try:
            only = self._selected(rule, frame)
            if only is False:
                return None
            if rule.where is not None and not rule.where.on(frame.api, frame.version, frame.side)(frame):
                return None
            chosen = only if callable(only) else None
            return self._match(counted, self._counted_by(rule, frame, chosen), chosen, now)
        except DecodeError as reason:  # observation fails open; metering says so
            self.engine.failed += [(rule.name, why) for why in counted.unread(reason)]
            self._missed(counted, reason)
            return None

    def _missed(self, counted: CountedRule | None, why: object) -> None:
        if counted is not None and counted.interferes and not counted.rule.dry:
            self.unjudged = f"{counted.rule.name}: {why}"

    def _selected(self, rule: Rule, frame: Frame) -> Callable[[Part], bool] | bool:
        """The parts of the frame that the rule selects: a predicate, True for all, False for none."""
        if rule.group is not None and not self._of_group(rule, frame):
            return False
        if rule.topic is None and not rule.partition:
            return True

        def wanted(part: Part) -> bool:
            partition, group, topic = part.get("partition"), part.get("group"), topic_of(part, self.name_of)
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
                found = any(map(wanted, frame.session_parts))
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
        self, counted: CountedRule, key: Hashable, only: Callable[[Part], bool] | None, now: int
    ) -> Hit | None:
        """Counts one more match, and tells whether it is a hit."""
        rule = counted.rule
        known = self._stream(rule)
        known[1] += 1
        start, match = known
        if not counted.count(key, now) or number(start, match * PER_MATCH) >= rule.when.chance:
            return None
        if not counted.hit(key):
            return None
        return Hit(counted, Draws(start, match), only, key)

    def _counted_by_header(self, rule: Rule, client_id: str | None) -> Hashable:
        """The same key where the header is enough."""
        per = rule.when.per
        return self.peer.key if per == "connection" else client_id if per == "client" else None

    def _counted_by(self, rule: Rule, frame: Frame, only: Callable[[Part], bool] | None) -> Hashable:
        """The key by which matches of the rule are counted: None, or the client, topic, ... that it counts
        one by one.
        """
        if rule.when.per == "group":
            return hash(frozenset(self._groups(frame)))  # the names may be long, and very many
        if rule.when.per != "topic":
            return self._counted_by_header(rule, frame.client_id)
        fields = frame.api.fields(frame.side)
        found = parts(fields, frame.version, frame.values, self.name_of)
        return hash(frozenset(place_of(part) for part in found if only is None or only(part)))


def _observes(pending: CountedRule | Hit) -> bool:
    """Whether the rule leaves frames alone. Then it also sees frames that another rule has ended."""
    return not (pending.counted if isinstance(pending, Hit) else pending).interferes


def _is_readable(frame: Frame) -> bool:
    try:
        return frame.values is not None
    except DecodeError:
        return False


def _by_topic(pending: CountedRule | Hit | Listed) -> bool:
    if isinstance(pending, Listed):
        return True
    rule = pending.counted.rule if isinstance(pending, Hit) else pending.rule
    return rule.topic is not None or bool(rule.partition)
