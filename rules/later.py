"""Orders that are carried out later, with the rule that gave them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from klamm.rules.frame import Frame
from klamm.rules.orders import Log, OnAnswer, Order, Pause


@dataclass(frozen=True, slots=True)
class Later:
    """The function that a rule calls when the answer comes."""

    rule: str
    act: Callable[[Frame], Iterable[Order]]

    def __call__(self, frame: Frame) -> Iterable[Order]:
        return self.act(frame)


def signed(order: Order, rule: str) -> Order:
    """Adds the rule's name to orders that are carried out later."""
    match order:
        case OnAnswer(act):
            return order._replace(act=Later(rule, act))
        case Pause() | Log():
            return order._replace(rule=rule)
    return order
