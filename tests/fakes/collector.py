"""A collector of OpenTelemetry: takes OTLP over HTTP, and keeps the spans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire

KINDS = {Wire.SPAN_KIND_SERVER: "server", Wire.SPAN_KIND_CLIENT: "client"}


@dataclass
class Span:
    """A span as the collector got it. Ids are hex; times ns since 1970."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    links: list[str]
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        return [span for body in list(self.bodies) for span in _spans(body)]

    def of(self, name: str, kind: str) -> list[Span]:
        """The spans of an API, of a kind."""
        return [each for each in self.spans if each.name.split()[0] == name and each.kind == kind]


@contextmanager
def collector(port: int = 0) -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _spans(body: bytes) -> Iterator[Span]:
    for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield Span(
                    span.name,
                    KINDS[span.kind],
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    [link.trace_id.hex() for link in span.links],
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    bool(span.status.code),
                    _values(span.attributes),
                    _values(of_resource.resource.attributes),
                )


def _values(found: Any) -> dict[str, Any]:
    pairs: list[KeyValue] = list(found)
    return {each.key: _value(each.value) for each in pairs}


def _value(value: AnyValue) -> Any:
    if value.WhichOneof("value") == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, str(value.WhichOneof("value")))
