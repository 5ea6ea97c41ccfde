"""How a client took a fault: what it told, what klamm saw of it, and which facts follow from both."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from tests.clients.drivers import Event

ALMOST_TOLD_S = 0.9  # of the second that clients are told to wait
INSISTS = 3  # refused requests from which on a client does more than to make sure


class Line(NamedTuple):
    """An exchange in klamm's log; `asked` and `answered` in seconds since 1970."""

    api: str
    asked: float
    answered: float
    errors: dict[str, int]
    topics: tuple[str, ...]
    broker: str

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Line":
        answered = datetime.fromisoformat(fields["time"]).timestamp()
        return cls(
            fields["api"],
            answered - fields["latency_ms"] / 1000,
            answered,
            fields.get("errors", {}),
            tuple(fields.get("topics", ())),
            fields["broker"],
        )


class Fault(NamedTuple):
    """A fault and the reaction that the protocol asks for.

    In `rules`, {name} stands for the topic, group and transactional id of one run; the first rule
    injects `error` into `api`. Where `unlogged`, the log shows no error, and the first exchange on the
    topic is the one with the fault. Before the client starts, its topic has `records`; where there is a
    `proof`, one more is sent when klamm has seen such a request after the fault, or `proof_s` after the
    start. Runs of the clients in `long` take too long for `make test`.
    """

    name: str
    text: str
    api: str
    error: str
    rules: tuple[dict[str, Any], ...]
    shows: tuple[str, ...]
    action: str = "produce"
    options: dict[str, Any] = {"n": 1}  # noqa: RUF012 - a tuple's default, which nobody changes
    records: int = 0
    proof: str = ""
    proof_s: float = 8.0
    sasl: bool = False
    unlogged: bool = False
    long: tuple[str, ...] = ()


class Seen(NamedTuple):
    """One run: events of the driver, exchanges of its client in klamm's log, hits by rule, records stored."""

    fault: Fault
    topic: str
    events: list[Event]
    lines: list[Line]
    hits: dict[str, int]
    stored: list[str]

    @property
    def injected(self) -> Line | None:
        """The exchange that the fault was injected into."""
        return next((line for line in self.lines if self.is_injected(line)), None)

    def is_injected(self, line: Line) -> bool:
        if line.api != self.fault.api:
            return False
        return self.topic in line.topics if self.fault.unlogged else self.fault.error in line.errors

    @property
    def after(self) -> list[Line]:
        """The client's requests after it had the answer, in their order."""
        first = self.injected
        if first is None:
            return []
        later = [line for line in self.lines if line is not first and line.asked >= first.answered - 0.002]
        return sorted(later, key=lambda line: line.asked)

    @property
    def until_success(self) -> list[Line]:
        """`after`, up to the first request of the same API that was served."""
        found = self.after
        for index, line in enumerate(found):
            if line.api == self.fault.api and not line.errors:
                return found[: index + 1]
        return found

    @property
    def took_ms(self) -> int | None:
        """From the fault to the same API's next good answer; None where there was none."""
        first, found = self.injected, self.until_success
        if first is None or not found or found[-1].api != self.fault.api or found[-1].errors:
            return None
        return round((found[-1].answered - first.answered) * 1000)

    @property
    def requests(self) -> str:
        """`until_success` as names, with equal neighbours counted."""
        runs = [(api, len(list(same))) for api, same in groupby(line.api for line in self.until_success)]
        runs_of_apis = [api if count == 1 else f"{api} ×{count}" for api, count in runs]
        return ", ".join(runs_of_apis[:8] + [f"and {len(runs_of_apis) - 8} more"] * (len(runs_of_apis) > 8))

    def of(self, event: str) -> list[Event]:
        return [each for each in self.events if each["event"] == event]

    @property
    def values(self) -> list[str]:
        return [each["value"] for each in self.of("record")]


def _before_success(api: str) -> Callable[[Seen], bool]:
    """Asked for while the first good answer was still awaited."""

    def asked(seen: Seen) -> bool:
        good = seen.until_success
        return any(line.api == api and line.asked <= good[-1].answered for line in seen.after)

    return asked


def _later(api: str) -> Callable[[Seen], bool]:
    return lambda seen: any(line.api == api for line in seen.after)


def _succeeds(seen: Seen) -> bool:
    if seen.of("error"):
        return False
    wanted = seen.fault.options["n"]
    match seen.fault.action:
        case "produce":
            return len(seen.of("produced")) == wanted
        case "transaction":
            return len(seen.of("committed")) == 1
    return len(seen.values) == wanted and len(seen.of("committed")) > 0


def _asks_again(seen: Seen) -> bool:
    """Where Metadata was asked for twice at once, the second one need not be asked for again."""
    first, api = seen.injected, seen.fault.api
    twice = first is not None and any(
        line.api == api == "Metadata" and line.asked > first.asked and line.topics == first.topics
        for line in seen.lines
    )
    return twice or any(line.api == api for line in seen.after)


def _waits(seen: Seen) -> bool:
    first = seen.injected
    again = next((line for line in seen.after if line.api == seen.fault.api), None)
    return first is not None and again is not None and again.asked - first.answered >= ALMOST_TOLD_S


def _is_told(seen: Seen) -> bool:
    return any(seen.fault.error in (each["error"], *each["message"].split()) for each in seen.of("error"))


def _is_told_of_authentication(seen: Seen) -> bool:
    return any("authenticat" in f"{each['error']} {each['message']}".lower() for each in seen.of("error"))


def _bootstraps(seen: Seen) -> bool:
    return any(line.api == "Metadata" and line.broker == "bootstrap" for line in seen.until_success)


FACTS: dict[str, Callable[[Seen], bool]] = {
    "asks for metadata": _before_success("Metadata"),
    "asks for metadata, then or later": _later("Metadata"),
    "looks up the coordinator": _later("FindCoordinator"),
    "lists offsets": _later("ListOffsets"),
    "asks again": _asks_again,
    "does not insist": lambda seen: sum(map(seen.is_injected, seen.lines)) < INSISTS,
    "joins again": _later("JoinGroup"),
    "keeps its member id": lambda seen: not seen.hits[f"{seen.topic} anew"],
    "has an empty member id": lambda seen: bool(seen.hits[f"{seen.topic} anew"]),
    "is held back as long as it was told": _waits,
    "goes back to the bootstrap address": _bootstraps,
    "succeeds": _succeeds,
    "each record is stored once": lambda seen: sorted(seen.stored) == sorted(
        str(index) for index in range(seen.fault.options["n"])
    ),
    "tells the application": _is_told,
    "tells the application that it is not authenticated": _is_told_of_authentication,
    "aborts the transaction": lambda seen: bool(seen.of("aborted")),
    "tells the application that it is fatal": lambda seen: any(e["fatal"] for e in seen.of("error")),
    "nothing is committed": lambda seen: not seen.of("committed") and not seen.stored,
}  # fmt: skip


def facts_shown(seen: Seen) -> tuple[str, ...]:
    """The facts that the fault asks for and the run shows."""
    return tuple(fact for fact in seen.fault.shows if FACTS[fact](seen))


class Row(NamedTuple):
    """A row of the document."""

    fault: str
    client: str
    did: str
    took: str
    requests: str

    @classmethod
    def of(cls, seen: Seen, client: str, did: str) -> "Row":
        error_times = [each["ms"] for each in seen.of("error")]
        took = seen.took_ms if seen.took_ms is not None else next(iter(error_times), None)
        return cls(seen.fault.name, client, did, "" if took is None else f"{took} ms", seen.requests)


def did(facts: Sequence[str], missing: Sequence[str], why: str) -> str:
    """The words of the document for a reaction."""
    done = [", ".join(facts)] if facts else []
    return "; ".join(done + [f"**not**: {', '.join(missing)} ({why})"] if missing else done)


def rows(text: str) -> Iterator[Row]:
    """The rows of a document that `document` wrote."""
    fault = ""
    for line in text.splitlines():
        if line.startswith("## "):
            fault = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| client", "| ---")):
            client, reaction, took, requests = (cell.strip() for cell in line.strip("|").split("|"))
            yield Row(fault, client, reaction, took, requests)
