"""capture: an exchange that a capture keeps, whatever its filter says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from klamm.rules.frame import Frame
from klamm.rules.orders import Keep, Order
from klamm.rules.rule import Draw


@dataclass(frozen=True, slots=True)
class Keeping:
    """Keep the exchange in the running capture even if its filter does not hold: with the filter `False` a
    capture holds only the exchanges that rules choose.
    """

    name: ClassVar[str] = "capture"
    sides: ClassVar[Sequence[str]] = ("request", "response")
    observes: ClassVar[bool] = True

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Keep()]
