"""Kafka's own classes judge the wire tables, the compiled readers and writers, and the interpreter."""

import random
from collections.abc import Iterator

import pytest

from klamm.decoders import API, DecodeError, compile, decode, encode, interpret, layout
from klamm.decoders.schema import Api, Side
from tests.oracle.messages import Key, Message, values_of, written

SEED = random.SystemRandom().randrange(2**31)
SIDES: tuple[Side, Side] = ("request", "response")
PER_LAYOUT = 5


@pytest.fixture(scope="session")
def messages() -> dict[Key, list[Message]]:
    print(f"seed {SEED}")
    return written(SEED, PER_LAYOUT)


def of_api(api: Api, messages: dict[Key, list[Message]]) -> Iterator[tuple[Side, int, Message]]:
    for side in SIDES:
        for version in range(api.versions.first, api.versions.last + 1):
            for message in messages[api.key, side, version]:
                yield side, version, message


def test_the_tables_have_the_apis_and_versions_of_kafka_and_no_others(messages: dict[Key, list[Message]]) -> None:
    tables = {
        (api.key, side, version)
        for api in API
        for side in SIDES
        for version in range(api.versions.first, api.versions.last + 1)
    }
    assert {key for key in messages if key[1] != "header"} == tables


def test_every_name_that_kafka_gives_an_api_finds_it(messages: dict[Key, list[Message]]) -> None:
    names = {(found[0].name, key) for (key, side, _), found in messages.items() if side == "request"}
    assert {(name, API[name.removesuffix("Request")].key) for name, _ in names} == names


@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_what_kafka_writes_is_read_as_the_same_values_and_written_as_the_same_bytes(
    api: Api, messages: dict[Key, list[Message]]
) -> None:
    for side, version, message in of_api(api, messages):
        of = layout(api.key, version, side)
        values = values_of(of.fields, version, message.values, of.flexible)
        assert decode(message.data, api.key, version, side) == values, of
        assert encode(values, api.key, version, side) == message.data, of
        assert interpret.read(of, message.data) == (values, len(message.data)), of
        assert interpret.write(of, values) == message.data, of


@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_values_left_out_are_written_as_the_defaults_of_kafka(
    api: Api, messages: dict[Key, list[Message]]
) -> None:
    for side, version, message in of_api(api, messages):
        if not message.values:
            of = layout(api.key, version, side)
            assert encode({}, api.key, version, side) == message.data, of
            assert interpret.write(of, {}) == message.data, of
