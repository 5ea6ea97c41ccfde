"""klamm's admin API, call by call. For an event loop there is AsyncKlamm."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from klamm.client import calls
from klamm.client.address import target, why
from klamm.client.calls import Call, Written, refusal
from klamm.client.failures import NoAnswer, Unusable, stream_ended
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
    Reloaded,
    Resolution,
    Rule,
    RuleFile,
    Segments,
)

ADMIN = "127.0.0.1:19091"
TIMEOUT_S = 10.0
PIECE_BYTES = 64 << 10

T = TypeVar("T")


def headers(token: str | None, user: str | None) -> dict[str, str]:
    """The headers of every request. Raises Unusable for a token that no header can have."""
    if token and not (token.isascii() and token.isprintable()):
        raise Unusable("the token is not printable ASCII in one line: it is not the one that klamm has")
    headers_sent = {"Content-Type": "application/json", "User-Agent": "klamm-client"}
    headers_sent |= {"Authorization": f"Bearer {token}"} if token else {}
    return headers_sent | ({"X-Klamm-User": user} if user else {})


class Klamm:
    """A running klamm. `admin` is "host:port" or "https://host:port"; `user` stands in klamm's log beside
    changes. For TLS, PEM files: `ca` has the authorities to trust, `cert` and `key` the client's certificate.

    Raises Unusable for these; every method raises NoAnswer, or Refused with klamm's reason.
    """

    def __init__(
        self,
        admin: str = ADMIN,
        token: str | None = None,
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
    ) -> None:
        self.admin, self.timeout_s = admin, timeout_s
        self._target = target(admin, ca, cert, key)
        self._headers = headers(token, user)

    def rules(self) -> list[Rule]:
        return self.ask(calls.rules())

    def rule(self, name: str) -> Rule:
        return self.ask(calls.rule(name))

    def add_rule(self, written: Written) -> Rule:
        """A rule as in a file. It ends after 10 minutes, or its `for`; with `for: forever` never."""
        return self.ask(calls.add_rule(written))

    def change_rule(self, name: str, written: Written) -> Rule:
        return self.ask(calls.change_rule(name, written))

    def switch_rule(self, name: str, enabled: bool) -> Rule:
        return self.ask(calls.switch_rule(name, enabled))

    def remove_rule(self, name: str) -> None:
        self.ask(calls.remove_rule(name))

    def reset_rule(self, name: str) -> Rule:
        return self.ask(calls.reset_rule(name))

    def rules_off(self) -> list[str]:
        """Ends all; the names of those that acted until now."""
        return self.ask(calls.rules_off())

    def rule_file(self) -> RuleFile:
        """The file that klamm reads rules from, and its mistakes where the last reading was rejected."""
        return self.ask(calls.rule_file())

    def paused(self) -> list[PausedFrame]:
        """Frames that wait to be resolved."""
        return self.ask(calls.paused())

    def paused_frame(self, number: int) -> PausedFrame:
        """One of them, with its values."""
        return self.ask(calls.paused_frame(number))

    def resolve(
        self,
        number: int,
        action: Literal["resume", "drop", "error"] = "resume",
        values: dict[str, Any] | None = None,
        code: str | int | None = None,
    ) -> None:
        """Let it go on, as it is or with these values; drop it; or answer with an error of Kafka's."""
        self.ask(calls.resolve(number, Resolution(action, values, code)))

    def capture(self) -> Capture:
        """The one that runs."""
        return self.ask(calls.capture())

    def begin_capture(
        self, folder: str, records: Literal["blank", "keep", "hash"] = "blank", filter: str | None = None
    ) -> Capture:
        """Captures from now on, open connections too; `folder` is one on klamm's machine."""
        return self.ask(calls.begin_capture(CaptureWish(folder, records, filter)))

    def end_capture(self) -> None:
        """Returns when everything is written."""
        self.ask(calls.end_capture())

    def capture_segments(self) -> Segments:
        """Of the capture that runs, or else of the one that ran last."""
        return self.ask(calls.capture_segments())

    @contextmanager
    def capture_archive(self) -> Iterator[Iterator[bytes]]:
        """A tar of these segments: `with klamm.capture_archive() as pieces: file.writelines(pieces)`."""
        with self._reading(calls.capture_archive()) as answer:
            yield self._pieces(answer)

    def drain(self, within_s: float | None = None) -> Draining:
        """klamm ends after it; other calls are answered until then."""
        return self.ask(calls.drain(within_s))

    def reload_config(self) -> Reloaded:
        """klamm reads its configuration again, at once."""
        return self.ask(calls.reload_config())

    def connections(self) -> list[Connection]:
        return self.ask(calls.connections())

    def close_connection(self, number: int) -> None:
        self.ask(calls.close_connection(number))

    def clusters(self) -> list[Cluster]:
        return self.ask(calls.clusters())

    def brokers(self) -> list[Node]:
        return self.ask(calls.brokers())

    def exchanges(self, where: str | None = None, limit: int = 100, bodies: bool = False) -> Exchanges:
        """The newest. klamm keeps them from the first time it is asked on."""
        return self.ask(calls.exchanges(where, limit, bodies))

    def exchange(self, number: int, form: str = "values") -> Exchange:
        return self.ask(calls.exchange(number, form))

    def counters(self) -> dict[str, Any]:
        return self.ask(calls.counters())

    def config(self) -> dict[str, Any]:
        return self.ask(calls.config())

    def openapi(self) -> dict[str, Any]:
        return self.ask(calls.openapi())

    @contextmanager
    def live(
        self, where: str | None = None, bodies: str = "none", rule: str | None = None
    ) -> Iterator[Iterator[Line]]:
        """Exchanges as they happen: `with klamm.live() as lines: for line in lines: ...`. Inside, klamm tells
        already. `rule`: those on which a rule of this name acted, or one of those that fit this glob. Where
        the stream ends, the next line raises NoAnswer.
        """
        with self._reading(calls.live(where, bodies, rule)) as answer:
            yield self._lines(answer)

    def ask(self, call: Call[T]) -> T:
        """Carry it out."""
        connection = self._connection()
        try:
            with self._failing():
                answer = self._send(connection, call)
                return call.answer(answer.status, answer.read())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        at, tls = self._target
        if tls is None:
            return http.client.HTTPConnection(at, timeout=self.timeout_s)
        return http.client.HTTPSConnection(at, timeout=self.timeout_s, context=tls)

    def _send(self, connection: http.client.HTTPConnection, call: Call[Any]) -> http.client.HTTPResponse:
        connection.request(call.method, call.path, call.body, self._headers)
        return connection.getresponse()

    @contextmanager
    def _reading(self, call: Call[Any]) -> Iterator[http.client.HTTPResponse]:
        """Its answer, which may take any time."""
        connection = self._connection()
        try:
            with self._failing():
                answer = self._send(connection, call)
                if answer.status >= 400:
                    raise refusal(answer.status, answer.read())
                if connection.sock is not None:
                    connection.sock.settimeout(None)
            yield answer
        finally:
            connection.close()

    def _pieces(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        while True:
            with self._failing():
                piece = answer.read1(PIECE_BYTES)
            if not piece:
                return
            yield piece

    def _lines(self, answer: http.client.HTTPResponse) -> Iterator[Line]:
        decode = reader(Line).decode
        while True:
            try:
                line = answer.readline()
            except (OSError, http.client.HTTPException) as problem:
                raise stream_ended(self.admin) from problem
            if not line.endswith(b"\n"):  # the end, maybe in the midst of a line
                raise stream_ended(self.admin)
            yield decode(line)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as problem:
            raise NoAnswer(f"no klamm answers at {self.admin}: {why(problem)}") from problem
