"""Checks that the frames are valid Kafka: kafka-python 3 reads each one, writes it again, and reads the
records.
"""

from collections.abc import Iterator
from typing import Any

from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.memory_records import MemoryRecords

from benchmarks.traffic import frames

BATCH_SIZES = (200, 16_384, 1_000_000)
CORRELATION_ID = 7
BASE_OFFSET = 12_345


def check() -> str:
    """Raises AssertionError, or what kafka-python raises, at the first frame that is not as it should be."""
    messages = list(_messages())
    for data, kind in messages:
        read = kind.decode(data, header=True, framed=True)
        assert read.header.correlation_id == CORRELATION_ID, f"{kind.__name__}: wrong correlation id"
        assert read.encode(header=True, framed=True) == data, f"{kind.__name__}: written differently"
    for size_bytes in BATCH_SIZES:
        batches = MemoryRecords(frames.at_offset(frames.record_batch(size_bytes), BASE_OFFSET))
        assert batches.size_in_bytes() == size_bytes
        batch = batches.next_batch()
        assert batch.validate_crc(), f"batch of {size_bytes} bytes: wrong checksum"
        offsets = [record.offset for record in batch]
        assert offsets == list(range(BASE_OFFSET, BASE_OFFSET + len(offsets)))
        assert not batches.has_next()
    return f"kafka-python reads and rewrites {len(messages)} frames, and reads {len(BATCH_SIZES)} batches"


def _messages() -> Iterator[tuple[bytes, Any]]:
    """Frames, and what kafka-python has for their API and version."""
    produce, fetch = frames.VERSION[frames.PRODUCE], frames.VERSION[frames.FETCH]
    for size_bytes in BATCH_SIZES:
        batch = frames.record_batch(size_bytes)
        yield frames.produce_request(CORRELATION_ID, batch), ProduceRequest[produce]
        yield frames.fetch_request(CORRELATION_ID, BASE_OFFSET, size_bytes), FetchRequest[fetch]
        yield frames.fetch_response(CORRELATION_ID, BASE_OFFSET, batch), FetchResponse[fetch]
    yield frames.produce_response(CORRELATION_ID, BASE_OFFSET), ProduceResponse[produce]
    yield frames.metadata_request(CORRELATION_ID), MetadataRequest[12]
    yield frames.metadata_response(CORRELATION_ID, "127.0.0.1", 9092), MetadataResponse[12]
    yield frames.api_versions_request(CORRELATION_ID), ApiVersionsRequest[4]
    ranges = {key: (0, version) for key, version in frames.VERSION.items()}
    for version in range(5):
        answer = frames.api_versions_response(CORRELATION_ID, version, ranges)
        yield answer, ApiVersionsResponse[version]
