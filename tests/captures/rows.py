"""Rows of a capture, as a test tells them: exchanges of clients that never were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import write_file
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame, response_frame

START_NS = 1_700_000_000_000_000_000  # 2023-11-14 22:13:20 UTC
MS = 1_000_000
TOPIC_ID = bytes(range(16))


def connection(
    number: int = 1, broker: str = "1", client: str = "10.0.0.7:50000", run: str = "a"
) -> CapturedConnection:
    return CapturedConnection(run, number, "main", broker, client)


@dataclass
class Talk:
    """One connection's client and broker; `rows` are what was captured of them."""

    of: CapturedConnection = field(default_factory=connection)
    client_id: str | None = "app"
    now_ms: float = 0.0
    rows: list[Captured] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def exchange(
        self,
        api: str,
        version: int,
        request: Mapping[str, Any] | None = None,
        response: Mapping[str, Any] | bytes | None = None,
        took_ms: float = 1.0,
        **of_response: Any,
    ) -> Talk:
        """A request and, where there is one, its response, values or bytes; `of_response` is for its row."""
        number = self.request(api, version, request or {}, awaits=response is not None)
        self.now_ms += took_ms
        if response is not None:
            self.response(api, version, response, number, **of_response)
        return self

    def request(self, api: str, version: int, values: Mapping[str, Any], **of_row: Any) -> int:
        number = next(self.numbers)
        body = encode(dict(values), api, version, "request")
        frame = request_frame(API[api], version, number, self.client_id, body)[4:]
        self.rows.append(self._row("request", api, version, number, frame, **of_row))
        return number

    def response(
        self, api: str, version: int, values: Mapping[str, Any] | bytes, number: int, **of_row: Any
    ) -> None:
        body = values if isinstance(values, bytes) else encode(dict(values), api, version, "response")
        frame = response_frame(API[api], version, number, body)[4:]
        self.rows.append(self._row("response", api, version, number, frame, **of_row))

    def _row(self, side: Any, api: str, version: int, number: int, frame: bytes, **of_row: Any) -> Captured:
        fields = {
            "time_ns": START_NS + round(self.now_ms * MS),
            "kind": "frame",
            "connection": self.of,
            "side": side,
            "api_key": API[api].key,
            "api_version": version,
            "correlation_id": number,
            "client_id": self.client_id,
            "exchange": number,
            "size": len(frame),
            "frame": frame,
        }
        return Captured(**{**fields, **of_row})

    def heartbeat(self, error_code: int = 0, took_ms: float = 1.0, group: str = "billing") -> Talk:
        asked = {"group_id": group, "generation_id": 1, "member_id": "m"}
        return self.exchange("Heartbeat", 4, asked, {"error_code": error_code}, took_ms)

    def metadata(self, topic: str = "orders") -> Talk:
        topics = [{"name": topic, "topic_id": TOPIC_ID, "error_code": 0, "partitions": []}]
        return self.exchange("Metadata", 12, {"topics": None}, {"brokers": [], "topics": topics})

    def produce(self, topic: str = "orders", records: bytes = b"", acks: int = -1, version: int = 9) -> Talk:
        asked = {
            "acks": acks,
            "timeout_ms": 30_000,
            "topic_data": [{"name": topic, "partition_data": [{"index": 3, "records": records}]}],
        }
        answer = {"responses": [{"name": topic, "partition_responses": [{"index": 3, "error_code": 0}]}]}
        return self.exchange("Produce", version, asked, answer if acks else None)

    def fetch(self, max_wait_ms: int = 500, records: bytes = b"", took_ms: float = 5.0) -> Talk:
        """By topic id, as newer clients do."""
        asked = {
            "max_wait_ms": max_wait_ms,
            "min_bytes": 1,
            "max_bytes": 52_428_800,
            "topics": [{"topic_id": TOPIC_ID, "partitions": [{"partition": 3, "fetch_offset": 0}]}],
        }
        found = {"partition_index": 3, "error_code": 0, "high_watermark": 1, "records": records}
        answer = {"responses": [{"topic_id": TOPIC_ID, "partitions": [found]}]}
        return self.exchange("Fetch", 15, asked, answer, took_ms)

    def answer_alone(self, size: int = 16) -> Talk:
        """A response whose request was not seen: only its size is kept."""
        now_ns = START_NS + round(self.now_ms * MS)
        row = Captured(now_ns, "frame", self.of, "response", correlation_id=77, size=size)
        self.rows.append(row)
        return self

    def closed(self, why: str = "") -> Talk:
        self.rows.append(Captured(START_NS + round(self.now_ms * MS), "closed", connection=self.of, text=why))
        return self

    def opened(self) -> Talk:
        self.rows.append(Captured(START_NS + round(self.now_ms * MS), "opened", connection=self.of))
        return self


def lost(frames: int, text: str = "the disk is slow", at_ms: float = 0.0) -> Captured:
    return Captured(START_NS + round(at_ms * MS), "lost", lost=frames, text=text)


def in_time(*talks: Talk) -> list[Captured]:
    return sorted((row for talk in talks for row in talk.rows), key=lambda row: row.time_ns)


def written(path: Path, rows: Iterable[Captured]) -> Path:
    """A capture of these, as one segment."""
    write_file(path, rows, Origin("test"))
    return path
