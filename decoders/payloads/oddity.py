"""Says in words how a payload is not as its layout says, and who is known to write it so."""

from __future__ import annotations

from klamm.decoders import interpret, spans
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import Layout
from klamm.decoders.oddity import fitting_words, place
from klamm.decoders.payloads.body import Decoded, layout_read, payload_layout
from klamm.decoders.payloads.tables import PAYLOADS
from klamm.decoders.spans import TAGGED, Span

# By name, version, and the first field that is not there.
WRITERS = {
    ("ConsumerProtocolSubscription", 1, "owned_partitions"): (
        "kafka-go, @platformatic/kafka, sarama-cluster and kafkajs before 2.2.2 write so"
    ),
    ("ConsumerProtocolSubscription", 3, "owned_partitions"): "samsa writes so",
    ("ConsumerProtocolAssignment", 0, "user_data"): (
        "kafka_ex before 2017 and @platformatic/kafka of May 2026 write so"
    ),
    ("ConsumerProtocolAssignment", 1, "user_data"): "pykafka writes so",
}


def payload_oddity(read: Decoded, data: bytes) -> str:
    """The place and the reason of the failure, the other versions whose layout has just these bytes, and who
    writes so; "" where there is none. Slow where there is one.
    """
    failure = read.failure
    if failure is None:
        return ""
    missing = _missing(layout_read(read), data)
    if missing is None:
        return f"{place(failure, 'the payload')}: {failure.reason}{_fitting(read, data)}"
    words = f"ends at byte {failure.offset} before {missing}"
    if missing in _names(read.name, read.version) - _names(read.name, PAYLOADS[read.name].versions.first):
        words += f", which version {read.version} has"
    writer = WRITERS.get((read.name, read.version, missing))
    return f"{words}{_fitting(read, data)}{f'; {writer}' if writer else ''}"


def _missing(of: Layout, data: bytes) -> str | None:
    """The path of the first field, where the bytes end just before it."""
    tree, failure = spans.read(of, data, 0, len(data))
    last = _unfinished(tree)
    if failure is None or last is tree or last.start < len(data):
        return None
    if last.name == TAGGED:
        return f"the tagged fields{f' of {failure.path}' if failure.path else ''}"
    return failure.path


def _unfinished(span: Span) -> Span:
    """The innermost field in which reading failed."""
    while span.parts and span.parts[-1].end < 0:
        span = span.parts[-1]
    return span


def _names(name: str, version: int) -> set[str]:
    return {f.name for f in payload_layout(name, version).fields if version in f.versions}


def _fitting(read: Decoded, data: bytes) -> str:
    first, last = PAYLOADS[read.name].versions
    others = (version for version in range(first, last + 1) if version != read.version)
    return fitting_words([version for version in others if _fits(payload_layout(read.name, version), data)])


def _fits(of: Layout, data: bytes) -> bool:
    try:
        return interpret.read(of, data)[1] == len(data)
    except DecodeError:
        return False
