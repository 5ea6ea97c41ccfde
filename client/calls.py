"""The calls of the admin API: each function gives a `Call`, as data, which either client carries out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from klamm.client.failures import Mistaken, Refused
from klamm.client.reading import reader
from klamm.client.types import (
    Capture,
    CaptureWish,
    Cluster,
    Connection,
    Draining,
    Exchange,
    Exchanges,
    Line,
    Node,
    PausedFrame,
    Problem,
    Reloaded,
    Resolution,
    Rule,
    RuleFile,
    Segments,
    Switch,
)

T = TypeVar("T")
UNPROCESSABLE = 422
Written = Mapping[str, Any]  # a rule as in a file: {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}


class Call(NamedTuple, Generic[T]):
    """A request, and the type of its answer."""

    method: str
    path: str
    gives: Any
    body: bytes | None = None

    def answer(self, status: int, body: bytes) -> T:
        """Decodes the answer. Raises Refused."""
        if status >= 400:
            raise refusal(status, body)
        found: T = reader(self.gives).decode(body) if self.gives is not None else None  # type: ignore[assignment]
        return found


def refusal(status: int, body: bytes) -> Refused:
    """The reason for which klamm refused."""
    try:
        problem = reader(Problem).decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Refused(status, f"status {status}: {body[:200].decode('utf-8', 'replace')}")
    kind = Mistaken if status == UNPROCESSABLE else Refused
    return kind(status, problem.error, problem.mistakes)


def rules() -> Call[list[Rule]]:
    return Call("GET", "/v1/rules", list[Rule])


def rule(name: str) -> Call[Rule]:
    return Call("GET", _rule(name), Rule)


def add_rule(written: Written) -> Call[Rule]:
    return Call("POST", "/v1/rules", Rule, msgspec.json.encode(written))


def change_rule(name: str, written: Written) -> Call[Rule]:
    return Call("PUT", _rule(name), Rule, msgspec.json.encode(written))


def switch_rule(name: str, enabled: bool) -> Call[Rule]:
    return Call("PATCH", _rule(name), Rule, msgspec.json.encode(Switch(enabled)))


def remove_rule(name: str) -> Call[None]:
    return Call("DELETE", _rule(name), None)


def reset_rule(name: str) -> Call[Rule]:
    return Call("POST", _rule(name) + "/reset", Rule)


def rules_off() -> Call[list[str]]:
    return Call("POST", "/v1/rules/off", list[str])


def rule_file() -> Call[RuleFile]:
    return Call("GET", "/v1/rule-file", RuleFile)


def paused() -> Call[list[PausedFrame]]:
    return Call("GET", "/v1/paused", list[PausedFrame])


def paused_frame(number: int) -> Call[PausedFrame]:
    return Call("GET", f"/v1/paused/{number}", PausedFrame)


def resolve(number: int, resolution: Resolution) -> Call[None]:
    return Call("POST", f"/v1/paused/{number}", None, msgspec.json.encode(resolution))


def capture() -> Call[Capture]:
    return Call("GET", "/v1/capture", Capture)


def begin_capture(wish: CaptureWish) -> Call[Capture]:
    return Call("POST", "/v1/capture", Capture, msgspec.json.encode(wish))


def end_capture() -> Call[None]:
    return Call("DELETE", "/v1/capture", None)


def capture_segments() -> Call[Segments]:
    return Call("GET", "/v1/capture/segments", Segments)


def capture_archive() -> Call[bytes]:
    """Its answer is a stream of bytes."""
    return Call("GET", "/v1/capture/archive", bytes)


def drain(within_s: float | None = None) -> Call[Draining]:
    return Call("POST", "/v1/drain" + _query(within_s=within_s), Draining)


def reload_config() -> Call[Reloaded]:
    return Call("POST", "/v1/config", Reloaded)


def connections() -> Call[list[Connection]]:
    return Call("GET", "/v1/connections", list[Connection])


def close_connection(number: int) -> Call[None]:
    return Call("DELETE", f"/v1/connections/{number}", None)


def clusters() -> Call[list[Cluster]]:
    return Call("GET", "/v1/clusters", list[Cluster])


def brokers() -> Call[list[Node]]:
    return Call("GET", "/v1/brokers", list[Node])


def exchanges(where: str | None = None, limit: int = 100, bodies: bool = False) -> Call[Exchanges]:
    return Call("GET", "/v1/exchanges" + _query(where=where, limit=limit, bodies=bodies or None), Exchanges)


def exchange(number: int, form: str = "values") -> Call[Exchange]:
    return Call("GET", f"/v1/exchanges/{number}" + _query(form=form), Exchange)


def live(where: str | None = None, bodies: str = "none", rule: str | None = None) -> Call[Line]:
    """Its answer is an endless stream of lines."""
    return Call("GET", "/v1/live" + _query(where=where, bodies=bodies, rule=rule), Line)


def counters() -> Call[dict[str, Any]]:
    return Call("GET", "/v1/counters", dict[str, Any])


def config() -> Call[dict[str, Any]]:
    return Call("GET", "/v1/config", dict[str, Any])


def openapi() -> Call[dict[str, Any]]:
    return Call("GET", "/v1/openapi.json", dict[str, Any])


def _rule(name: str) -> str:
    return "/v1/rules/" + quote(name, safe="")


def _query(**given: Any) -> str:
    words = {key: str(value).lower() if isinstance(value, bool) else value for key, value in given.items()}
    text = urlencode({key: value for key, value in words.items() if value is not None})
    return f"?{text}" if text else ""
