"""Sessions with rules: what they do, in the words of a test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from klamm.decoders import API
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import Piece, To, carry_out
from klamm.proxy.session.paused import Paused, Resume
from klamm.proxy.session.session import Session
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.orders import How
from klamm.rules.rule import Action, Rule
from tests.proxy.traffic import TOPIC_ID, Cutting, Exchanged, Outcome, Recorder, ground, whole

CLIENT = "10.0.0.7:50000"


def act(name: str, /, *fields: Any, **named: Any) -> Action:
    return ACTIONS[name](*fields, **named)


def rule(*do: Action, api: str | None = None, name: str = "", **more: Any) -> Rule:
    """A rule on requests; its name is that of its first action."""
    keys = frozenset() if api is None else frozenset({API[api].key})
    return Rule(name or do[0].name, do, keys=keys, **more)


def ruled(*rules: Rule, seed: int = 1, **settings: Any) -> ClusterContext:
    """The context of sessions with these rules."""
    engine = Engine(seed)
    engine.load(rules, 0)
    at = replace(ground(**settings), engine=engine)
    at.topology.learn_topic(TOPIC_ID, "orders")
    return at


def engine_of(at: ClusterContext) -> Engine:
    assert at.engine is not None
    return at.engine


class Talk(Recorder):
    """One connection under rules, at times of one's choosing. Nothing goes to an end that is `over`."""

    def __init__(self, at: ClusterContext, client: str = CLIENT) -> None:
        super().__init__(Session(at, "1", "klamm.example", client), at, Outcome())
        self.over: set[To] = set()
        self.now = 0  # at least: after a throttle time
        carry_out(self.session.connecting(0), self)

    @property
    def ended(self) -> bool:
        return bool(self.over)

    def client(self, *requests: Exchanged | bytes, cut: Cutting = whole, now: int = 0) -> Outcome:
        """The client sends: what follows from it."""
        return self._send(
            "broker", self.session.from_client, [_bytes(r, "request") for r in requests], cut, now
        )

    def broker(self, *answers: Exchanged | bytes, cut: Cutting = whole, now: int = 0) -> Outcome:
        return self._send(
            "client", self.session.from_broker, [_bytes(a, "answer") for a in answers], cut, now
        )

    def _send(self, to: To, receive: Any, data: Iterable[bytes], cut: Cutting, now: int) -> Outcome:
        before, self.outcome = self.outcome, Outcome()
        for piece in cut(b"".join(data)):
            self.take(to, receive(piece, max(now, self.now)), piece)
        fresh, self.outcome = self.outcome, before
        before.broker += fresh.broker
        before.client += fresh.client
        before.events += fresh.events
        return fresh

    def send(self, to: To, data: Piece) -> None:
        assert to not in self.over, f"{bytes(data)!r} goes to an end that is over"
        super().send(to, data)

    def mute_channel(self, until: int) -> None:
        """The time passes at once."""
        self.now = max(self.now, until)
        carry_out(self.session.unmute(self.now), self)

    def pause(self, to: To, frame: Paused) -> None:
        """It goes on as it is, at once."""
        after = self.session.resolve(frame, Resume(), 0)
        for each in frame.place.filled or ():
            assert isinstance(each, bytes)
            self.send(to, each)
        carry_out(after, self)

    def cut(self, to: To, how: How) -> None:
        super().cut(to, how)
        self.over.add(to)

    def silence(self, close_after_ns: int) -> None:
        super().silence(close_after_ns)
        self.over |= {"client", "broker"}

    def close(self, kind: str, api: str, message: str, fields: dict[str, Any] | None, answered: bool) -> None:
        super().close(kind, api, message, fields, answered)
        self.over |= {"broker"} if answered else {"client", "broker"}


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
