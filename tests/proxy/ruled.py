"""Sessions with rules: what they do, in the words of a test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from klamm.decoders import API
from klamm.proxy.connection import Ground
from klamm.proxy.held import Resume
from klamm.proxy.session import Session
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.rule import Action, Rule
from tests.proxy.traffic import TOPIC_ID, Cut, Exchanged, Outcome, bind_all, ground, whole

CLIENT = "10.0.0.7:50000"


def act(name: str, /, *fields: Any, **named: Any) -> Action:
    return ACTIONS[name](*fields, **named)


def rule(*do: Action, api: str | None = None, name: str = "", **more: Any) -> Rule:
    """A rule on requests; its name is that of its first action."""
    keys = frozenset() if api is None else frozenset({API[api].key})
    return Rule(name or do[0].name, do, keys=keys, **more)


def ruled(*rules: Rule, seed: int = 1, **settings: Any) -> Ground:
    """What sessions with these rules stand on."""
    engine = Engine(seed)
    engine.load(rules, 0)
    at = replace(ground(**settings), engine=engine)
    at.topology.learn_topic(TOPIC_ID, "orders")
    return at


def engine_of(at: Ground) -> Engine:
    assert at.engine is not None
    return at.engine


class Talk:
    """One connection under rules, at times of one's choosing. Nothing goes to an end that is `over`."""

    def __init__(self, at: Ground, client: str = CLIENT) -> None:
        self.at, self.session = at, Session(at, "1", "klamm.example", client)
        self.outcome = Outcome()
        self.over: set[str] = set()
        self.now = 0  # at least: after a throttle time
        self._done(self.session.connecting(0), Outcome())

    @property
    def ended(self) -> bool:
        return bool(self.over)

    def client(self, *requests: Exchanged | bytes, cut: Cut = whole, now: int = 0) -> Outcome:
        """The client sends: what follows from it."""
        return self._take(
            "broker", self.session.from_client, [_bytes(r, "request") for r in requests], cut, now
        )

    def broker(self, *answers: Exchanged | bytes, cut: Cut = whole, now: int = 0) -> Outcome:
        return self._take(
            "client", self.session.from_broker, [_bytes(a, "answer") for a in answers], cut, now
        )

    def _take(self, side: str, receive: Any, data: Iterable[bytes], cut: Cut, now: int) -> Outcome:
        fresh = Outcome()
        for piece in cut(b"".join(data)):
            effects = receive(piece, max(now, self.now))
            self._done([("send", side, piece)] if effects is piece else effects, fresh)
        self.outcome.broker += fresh.broker
        self.outcome.client += fresh.client
        self.outcome.events += fresh.events
        return fresh

    def _done(self, effects: list[Any], outcome: Outcome) -> None:
        """As the transport carries them out."""
        for effect in effects:
            kind, *rest = effect
            if kind == "send" and rest[0] in self.over:
                raise AssertionError(f"{rest} goes to an end that is over")
            if kind == "bind":
                bind_all(self.at)
                self._done(self.session.bound(0), outcome)
                continue
            if kind == "mute_channel":
                self.now = max(self.now, rest[0])
                self._done(self.session.unmute(self.now), outcome)
                continue
            if kind == "pause":
                to, held = rest
                after = self.session.resolve(held, Resume(), 0)
                self._done([*(("send", to, each) for each in held.gap.filled), *after], outcome)
                continue
            outcome.take(self.session, "", [effect], b"", self.at)
            if kind == "cut":
                self.over.add(rest[0])
            elif kind in ("mute", "close"):
                self.over |= {"client", "broker"}


def _bytes(one: Exchanged | bytes, side: str) -> bytes:
    return one if isinstance(one, bytes) else getattr(one, side) or b""


def frames(data: bytes) -> list[bytes]:
    """Whole frames, sizes included."""
    found = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        assert len(data) >= end, f"cut short: {data!r}"
        found.append(data[:end])
        data = data[end:]
    return found
