"""OpenTelemetry's SDK as klamm uses it. It is imported only where traces are wanted."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter

from klamm.proxy.config import Traces
from klamm.proxy.metrics.snapshot import product_version
from klamm.proxy.traces.sending import yielding
from klamm.proxy.traces.spans import Traced, spans_of


class Gathered(SpanProcessor):
    """Keeps the spans that have ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def exporter_of(settings: Traces) -> SpanExporter:
    """Reads OTEL_EXPORTER_OTLP_* for what the settings do not say. Raises OSError."""
    try:
        return OTLPSpanExporter(endpoint=settings.endpoint)
    except Exception as problem:
        why = f"traces: OTEL_EXPORTER_OTLP_* of the environment cannot be used: {problem}"
        raise OSError(why) from problem


def maker() -> Callable[[list[Any]], tuple[list[ReadableSpan], int]]:
    """A function that gives the spans of exchanges (the fields of Traced), and the number of those of which
    it could make none. Reads OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and the limits
    of spans.
    """
    gathered = Gathered()
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(gathered)
    make = spans_of(provider)

    def spans(batch: list[Any]) -> tuple[list[ReadableSpan], int]:
        failed = 0
        for each in batch:
            yielding()
            try:
                make(Traced(*each))
            except Exception:  # of text that clients choose, and of libraries that are not klamm's
                failed += 1
        made, gathered.spans = gathered.spans, []
        return made, failed

    return spans


def _resource() -> Resource:
    """The attributes in OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES; klamm's own for missing ones."""
    found = Resource.create()
    own = {
        "service.version": product_version(),
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
    }
    if str(found.attributes["service.name"]).startswith("unknown_service"):
        return found.merge(Resource({"service.name": "klamm", **own}))
    return Resource(own).merge(found)
