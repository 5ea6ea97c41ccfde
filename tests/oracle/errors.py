"""How Kafka's own classes refuse requests, and what they report of refusals that are made here."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from klamm.decoders import API
from tests.oracle.messages import _run


@dataclass(frozen=True, slots=True)
class Refusal:
    """Kafka's answer to a request that fails: a body, None where no answer comes, or the reason why it has
    none.
    """

    data: bytes | None
    error: str


@dataclass(frozen=True, slots=True)
class Report:
    """The errors that Kafka's response class finds in a body with a code in it, or why it cannot."""

    counted: frozenset[int]
    code: int  # -1 where this release does not know the code
    values: dict[str, Any]
    error: str


def refusals(kafka: str, requests: Iterable[tuple[str, int, int, bytes]]) -> list[Refusal]:
    """How one release refuses each of these requests: API, version, code, body."""
    answers = _asked(kafka, "refuse", requests)
    return [Refusal(bytes.fromhex(a["hex"]) if a.get("hex") else None, a.get("error", "")) for a in answers]


def reports(kafka: str, responses: Iterable[tuple[str, int, int, bytes]]) -> list[Report]:
    """The reports of one release about each of these responses: API, version, code, body."""
    answers = _asked(kafka, "report", responses)
    return [
        Report(frozenset(a.get("counted", ())), a.get("code", 0), a.get("values", {}), a.get("error", ""))
        for a in answers
    ]


def _asked(kafka: str, what: str, bodies: Iterable[tuple[str, int, int, bytes]]) -> list[dict[str, Any]]:
    lines = (
        f"{what} {API[name].key} {version} {code} {data.hex()}\n" for name, version, code, data in bodies
    )
    return [json.loads(line) for line in _run(kafka, "Errors", stdin="".join(lines)).splitlines()]
