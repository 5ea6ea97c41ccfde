"""pause: a frame waits for a person, who looks at it, edits it, and lets it go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from klamm.rules.frame import Frame
from klamm.rules.orders import Order, Pause
from klamm.rules.quantities import Duration
from klamm.rules.rule import Draw

MINUTE = Duration(60_000_000_000)


@dataclass(frozen=True, slots=True)
class Pausing:
    """Hold a frame until `klamm intercept` resumes, edits or drops it, or answers with an error. What
    follows on the connection waits behind it; other connections go on.
    """

    name: ClassVar[str] = "pause"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    timeout: Duration = MINUTE
    """A frame that nobody has resolved goes on after so long."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return [Pause(self.timeout)]
