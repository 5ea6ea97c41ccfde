"""Why an answer is not the one that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.client.types import Mistake


class ApiError(Exception):
    """A call failed; the text says why."""


class Unusable(ApiError, ValueError):
    """An address or a file that the client was given cannot be used."""


class NoAnswer(ApiError):
    """No klamm answers at the address, or it went away."""


def stream_ended(admin: str) -> NoAnswer:
    """A stream of exchanges goes on as long as klamm, and as long as it is read."""
    return NoAnswer(f"klamm at {admin} has ended, or its stream was not read for 30 s")


class Refused(ApiError):
    """klamm refused: the status, and for a rule or an expression every mistake in it."""

    def __init__(self, status: int, reason: str, mistakes: Sequence[Mistake] = ()) -> None:
        self.status, self.reason, self.mistakes = status, reason, tuple(mistakes)
        lines = [
            f"{mistake.path}: {mistake.reason}" if mistake.path else mistake.reason for mistake in mistakes
        ]
        super().__init__("\n".join(lines) or reason)


class Mistaken(Refused, ValueError):
    """klamm cannot use the input: a name that Kafka lacks, an expression that cannot be read."""
