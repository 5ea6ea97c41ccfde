"""Kafka's own classes judge the wire tables, the made readers and writers, the interpreter, the headers."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, ERRORS, DecodeError, compile, decode, encode, headers, interpret, layout
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import UNKNOWN_TAGS, Api, Field, Side, all_fields, defaults, members
from tests.decoders.columns import column, in_wire_order, leaves
from tests.oracle.messages import (
    NEWEST_FIRST,
    Key,
    Message,
    ReadBack,
    error_codes,
    read_back,
    values_of,
    written,
)
from tests.oracle.values import random_values

SEED = 20
SIDES: tuple[Side, Side] = ("request", "response")
PER_LAYOUT = 4
DAMAGE = (b"\0", b"\1", b"\x7f", b"\x80", b"\xff")
NO_REQUEST_HEADER = {"requestApiKey": 0, "requestApiVersion": 0, "correlationId": 0, "clientId": ""}

Path = tuple[str, ...]
Judged = dict[str, set[Layout]]  # of the fixture: a set for each way of judging


@cache
def messages() -> dict[Key, list[Message]]:
    return written(SEED, PER_LAYOUT)


def layouts(api: Api) -> Iterator[tuple[Layout, list[Message]]]:
    """The layouts that Kafka has; the first test reports others."""
    for side in SIDES:
        for version in range(api.versions.first, api.versions.last + 1):
            if of_kafka := messages().get((api.key, side, version)):
                yield layout(api.key, version, side), of_kafka


@cache
def read_by_kafka() -> dict[Layout, list[tuple[dict[str, Any], ReadBack]]]:
    """Values of each layout, and what Kafka read from what `encode` made of them."""
    answers = defaultdict(list)
    for kafka in NEWEST_FIRST:
        sent = [
            (of, random_values(of, Random(f"{SEED} {of} {index}")))
            for (key, side, version), (message, *_) in messages().items()
            if message.kafka == kafka and side in SIDES
            for of in [layout(key, version, side)]
            for index in range(PER_LAYOUT)
        ]
        written_here = [(of, encode(values, of.api, of.version, of.side)) for of, values in sent]
        for (of, values), answer in zip(sent, read_back(kafka, written_here), strict=True):
            answers[of].append((values, answer))
    return answers


every_api = pytest.mark.parametrize("api", API, ids=lambda api: api.name)


def test_the_tables_have_the_apis_and_versions_of_kafka_and_no_others() -> None:
    tables = {
        f"{api.name} {side} {version}"
        for api in API
        for side in SIDES
        for version in range(api.versions.first, api.versions.last + 1)
    }
    kafka = {f"{API[key].name} {side} {version}" for key, side, version in messages() if side in SIDES}
    assert kafka == tables


def test_every_name_that_kafka_gives_an_api_finds_it() -> None:
    for (key, side, _), (message, *_) in messages().items():
        if side != "header":
            assert API[message.name.removesuffix(side.capitalize())].key == key


def test_the_error_codes_are_those_of_kafka() -> None:
    assert [(error.code, error.name, error.retriable) for error in ERRORS] == error_codes()


@every_api
def test_what_kafka_writes_is_read_as_the_same_values_and_written_as_the_same_bytes(
    api: Api, judged: Judged
) -> None:
    for of, written_by_kafka in layouts(api):
        for message in written_by_kafka:
            values = values_of(of.fields, of.version, message.values)
            assert decode(message.data, api.key, of.version, of.side) == values, of
            assert encode(values, api.key, of.version, of.side) == message.data, of
            assert interpret.read(of, message.data) == (values, len(message.data)), of
            assert interpret.write(of, values) == message.data, of
        judged["decode"].add(of)
        judged["encode"].add(of)


@every_api
def test_what_is_written_here_is_read_by_kafka_as_the_same_values(api: Api, judged: Judged) -> None:
    for of, _ in layouts(api):
        for values, answer in read_by_kafka()[of]:
            assert not answer.error, of
            read = values_of(of.fields, of.version, answer.values)
            assert read == as_kafka_tells(of.fields, of.version, values), of
            assert answer.same, of
            assert interpret.write(of, values) == encode(values, api.key, of.version, of.side), of
        judged["read back"].add(of)


def as_kafka_tells(fields: tuple[Field, ...], version: int, values: dict[str, Any]) -> dict[str, Any]:
    """Values with their defaults; without unknown tags and the bytes of records, which Kafka's JSON lacks."""
    values_of_kafka = defaults(fields, version) | {
        name: value for name, value in values.items() if name != UNKNOWN_TAGS
    }
    for f in fields:
        value = values_of_kafka.get(f.name)
        if f.kind == "records" and value is not None:
            values_of_kafka[f.name] = b""
        elif members(f) and value is not None:
            inner = value if f.kind == "array" else [value]
            inner = [as_kafka_tells(members(f), version, element) for element in inner]
            values_of_kafka[f.name] = inner if f.kind == "array" else inner[0]
    return values_of_kafka


@every_api
def test_values_left_out_are_written_as_the_defaults_of_kafka(api: Api) -> None:
    for of, (nothing_set, *_) in layouts(api):
        assert encode({}, api.key, of.version, of.side) == nothing_set.data, of
        assert interpret.write(of, {}) == nothing_set.data, of


@every_api
def test_damaged_messages_are_refused_or_read_alike_by_compiled_reader_and_interpreter(api: Api) -> None:
    random = Random(SEED)
    for of, (_, *full) in layouts(api):
        for data in damaged(max(full, key=lambda message: len(message.data)).data, random):
            assert outcome_compiled(data, api, of) == outcome_interpreted(data, of), (of, data.hex())


def damaged(data: bytes, random: Random) -> Iterator[bytes]:
    yield data + b"\0"
    for _ in range(4):
        yield data[: random.randrange(len(data) + 1)]
        if data:
            at = random.randrange(len(data))
            yield data[:at] + random.choice(DAMAGE) + data[at + 1 :]


def outcome_compiled(data: bytes, api: Api, of: Layout) -> str:
    """As text, since a float that is no number equals nothing."""
    try:
        return repr(decode(data, api.key, of.version, of.side))
    except DecodeError:
        return "refused"


def outcome_interpreted(data: bytes, of: Layout) -> str:
    try:
        values, end = interpret.read(of, data)
    except DecodeError:
        return "refused"
    return repr(values) if end == len(data) else "refused"


@every_api
def test_a_pick_or_a_walk_over_pieces_gives_the_columns_of_a_full_read(api: Api) -> None:
    random = Random(SEED)
    for of, written_by_kafka in layouts(api):
        every = leaves(of)
        for paths in (every, tuple(random.sample(every, min(len(every), 3)))):
            pick, walker = compile.pick(of, paths), compile.walk(of, paths)
            for message in written_by_kafka:
                values = decode(message.data, api.key, of.version, of.side)
                columns = tuple(column(of.fields, of.version, values, path) for path in paths)
                assert pick(message.data, 0, len(message.data))[:-1] == columns, (of, paths)
                assert walked(walker, message.data, random)[:-1] == columns, (of, paths)


def walked(walker: compile.Walk, data: bytes, random: Random) -> tuple[Any, ...]:
    """The result of a walk that is sent `data` in pieces."""
    walking, at = walker(), 0
    try:
        next(walking)
        while at < len(data):
            size = random.choice((1, 2, 5, 40, 1000))
            walking.send(data[at : at + size])
            at += size
    except StopIteration as end:
        result: tuple[Any, ...] = end.value
        return result
    raise AssertionError("the walk wants more bytes than there are")


@every_api
def test_every_field_is_located_at_the_bytes_that_it_takes(api: Api) -> None:
    for of, written_by_kafka in layouts(api):
        paths = leaves(of)
        locate = compile.locate(of, paths)
        fields = {path: replace(f, tag=None) for path, f in all_fields(of.fields, of.version)}
        for message in written_by_kafka:
            values = decode(message.data, api.key, of.version, of.side)
            located = locate(message.data, 0, len(message.data))
            spans = [span for span in located if span[0] != compile.TAG_PATH]
            found = [(paths[index], value) for index, _, _, value in spans]
            assert found == list(in_wire_order(of.fields, of.version, values)), of
            for index, start, end, value in spans:
                f = fields[paths[index]]
                alone = Layout(of.api, of.version, of.side, of.flexible, (f,))
                tags = b"\0" if of.flexible else b""
                assert interpret.write(alone, {f.name: value}) == message.data[start:end] + tags, (of, f.name)


@every_api
def test_the_header_before_a_body_has_the_version_that_kafka_gives_it(api: Api) -> None:
    version_of = {
        "request": headers.request_header_version,
        "response": headers.response_header_version,
    }
    for of, (message, *_) in layouts(api):
        assert version_of[of.side](api, of.version) == message.header, of


@pytest.mark.parametrize("version", [0, 1, 2])
def test_request_headers_are_read_as_kafka_writes_them(version: int) -> None:
    for message in messages()["RequestHeader", "header", version]:
        given = NO_REQUEST_HEADER | message.values
        header = headers.read_request_header(message.data, version)
        assert (header.key, header.version) == (given["requestApiKey"], given["requestApiVersion"])
        assert header.correlation_id == given["correlationId"]
        assert header.client_id == (given["clientId"] if version else None)
        assert (header.tags, header.size) == ([], len(message.data))


@pytest.mark.parametrize("version", [0, 1])
def test_response_headers_are_read_as_kafka_writes_them(version: int) -> None:
    for message in messages()["ResponseHeader", "header", version]:
        header = headers.read_response_header(message.data, version)
        assert header.correlation_id == message.values.get("correlationId", 0)
        assert (header.tags, header.size) == ([], len(message.data))
