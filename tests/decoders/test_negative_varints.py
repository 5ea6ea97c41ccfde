"""Varints that are negative as int32, which nobody writes and Kafka reads: judged by Kafka's classes."""

from __future__ import annotations

from collections import Counter
from functools import cache

from klamm.decoders import DecodeError, decode, encode, interpret, layout
from klamm.decoders.headers import read_request_header
from klamm.decoders.interpret import Layout
from tests.decoders.test_oracle import SIDES, as_kafka_tells, messages
from tests.oracle.messages import NEWEST_FIRST, ReadBack, read_back, values_of

MINUS_1, LEAST = b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08"
REFUSED_BY_4_4 = "Invalid negative number of tagged fields"


@cache
def judged(kafka: str) -> list[tuple[Layout, bytes, ReadBack]]:
    """Messages of defaults in layouts that it knows, with a zero byte replaced; and how it reads them."""
    of_kafka = [
        layout(key, version, side)
        for (key, side, version), _ in messages().items()
        if side in SIDES and layout(key, version, side).flexible
    ]
    plain = [(of, encode({}, of.api, of.version, of.side)) for of in of_kafka]
    known = [
        each
        for each, read in zip(plain, read_back(kafka, plain), strict=True)
        if not read.error and read.same
    ]
    made = [
        (of, data[:at] + varint + data[at + 1 :])
        for of, data in known
        for at, byte in enumerate(data)
        if byte == 0
        for varint in (MINUS_1, LEAST)
    ]
    return [(*each, read) for each, read in zip(made, read_back(kafka, made), strict=True)]


def test_what_any_kafka_reads_is_read_as_the_same_values() -> None:
    seen: Counter[bool] = Counter()
    for kafka in NEWEST_FIRST:
        for of, data, read in judged(kafka):
            if read.error:
                continue
            values = decode(data, of.api, of.version, of.side)
            if kafka == NEWEST_FIRST[0]:  # an older one may have other names
                told = values_of(of.fields, of.version, read.values)
                assert as_kafka_tells(of.fields, of.version, values) == told
            assert interpret.read(of, data) == (values, len(data))
            seen[MINUS_1 in data] += 1
    assert min(seen[True], seen[False]) > 100


def test_what_every_kafka_refuses_is_refused() -> None:
    refused = 0
    for of, data, read in judged(NEWEST_FIRST[0]):
        if read.error and REFUSED_BY_4_4 not in read.error:
            try:
                decode(data, of.api, of.version, of.side)
            except DecodeError:
                refused += 1
            else:
                raise AssertionError(of, data.hex(), read.error)
    assert refused > 1000


def test_a_header_with_a_negative_count_of_tags_has_none() -> None:
    frame = b"\0\3\0\x0c\0\0\0\7\0\3app" + MINUS_1 + b"rest"
    header = read_request_header(frame, 2)
    assert (header.client_id, frame[header.size :]) == ("app", b"rest")
