"""delay: what is answered, or asked, goes on later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import cos as cosine
from math import log, pi, sqrt
from typing import ClassVar, Literal

from klamm.rules.actions.answers import is_answered
from klamm.rules.frame import Frame
from klamm.rules.orders import Delay as Later
from klamm.rules.orders import OnAnswer, Order
from klamm.rules.quantities import Duration
from klamm.rules.rule import Draw

Distribution = Literal["uniform", "normal", "exponential"]


@dataclass(frozen=True, slots=True)
class Delay:
    """Let a frame go on later than it came. What follows on the connection waits behind it: Kafka answers
    in order.
    """

    name: ClassVar[str] = "delay"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    time: Duration
    """The delay, from the frame's arrival; with jitter, the mean delay."""
    jitter: Duration = Duration(0)
    """The largest deviation (uniform), or the standard deviation (normal)."""
    distribution: Distribution = "uniform"
    """uniform, normal, or exponential with `time` as its mean."""
    of: Literal["answer", "request"] = "answer"
    """The frame that is late: the answer to the request that matched, or the request on its way to the
    broker. A request without an answer (acks=0) is late itself.
    """

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        later = Later(max(0, round(self._time(draw))))
        if frame.side == "request" and self.of == "answer" and is_answered(frame):
            return [OnAnswer(lambda _: [later], needs_request=False)]
        return [later]

    def _time(self, draw: Draw) -> float:
        match self.distribution:
            case "exponential":
                return -self.time * log(1 - draw())
            case "normal":  # Box and Muller
                return self.time + self.jitter * sqrt(-2 * log(1 - draw())) * cosine(2 * pi * draw())
        return self.time + (2 * draw() - 1) * self.jitter if self.jitter else self.time
