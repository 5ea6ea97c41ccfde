"""The answers of the last seconds, and the rates before them."""

from __future__ import annotations

from collections import deque

from klamm.dashboards.terminal.window import Counters

WINDOW = 5  # answers that rates and latencies are of
PAST = 240  # rates kept for the bars


class History:
    """Answers of /v1/counters, the oldest first, and requests a second between each two."""

    def __init__(self) -> None:
        self.answers: deque[Counters] = deque(maxlen=WINDOW + 1)
        self.rates: deque[float] = deque(maxlen=PAST)

    @property
    def previous(self) -> Counters | None:
        """The oldest answer, if it is not the newest."""
        return self.answers[0] if len(self.answers) > 1 else None

    def add(self, answer: Counters) -> None:
        """The next answer; one of another process starts the history anew."""
        if self.answers:
            last = self.answers[-1]
            if (last["pid"], last["started_at"]) != (answer["pid"], answer["started_at"]):
                self.answers.clear()
            else:
                requests = _requests(answer) - _requests(last)
                self.rates.append(max(requests, 0) / max(answer["now"] - last["now"], 0.001))
        self.answers.append(answer)


def _requests(answer: Counters) -> int:
    return sum(each["requests"] for each in answer["requests"])
