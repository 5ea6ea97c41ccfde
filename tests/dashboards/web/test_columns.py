"""Fields of bodies as columns of the list: which there are, what is said of others, and the cells."""

from __future__ import annotations

import re

import pytest

from klamm.dashboards.web.columns import TEXT, VALUES, UnknownField, cells, columns, paths
from klamm.decoders import API
from tests.dashboards.web.exchanges import TOPIC_ID, exchange, fetch, heartbeat, produce, records

ACKS = columns("request.acks")


def test_a_cell_has_the_value_of_its_field() -> None:
    wanted = columns("request.acks, response.throttle_time_ms,request.topic_data.name")
    assert cells(produce(acks=1), wanted) == ["1", "0", "orders"]


def test_an_exchange_without_the_field_has_an_empty_cell() -> None:
    assert cells(heartbeat(), ACKS) == [""]
    assert cells(exchange("Metadata", 9, {"topics": []}), columns("response.brokers.host")) == [""]


def test_errors_have_their_names_ids_are_as_kafka_prints_them_and_records_are_a_size() -> None:
    one = fetch(records(b"tea"))
    wanted = columns("response.error_code,response.responses.topic_id,response.responses.partitions.records")
    code, topic, size = cells(one, wanted)
    assert (code, topic) == ("NONE", "AAECAwQFBgcICQoLDA0ODw")
    assert size == f"{len(records(b'tea'))} bytes"
    assert cells(heartbeat(27), columns("response.error_code")) == ["REBALANCE_IN_PROGRESS"]
    assert TOPIC_ID.hex() not in topic


def test_a_null_is_told_apart_from_nothing() -> None:
    assert cells(produce(), columns("request.transactional_id")) == ["null"]


def test_the_values_of_an_array_stand_in_one_cell_of_bounded_length() -> None:
    names = [f"topic-{number}" for number in range(50)]
    one = exchange("Metadata", 9, {"topics": [{"name": name} for name in names]})
    (cell,) = cells(one, columns("request.topics.name"))
    assert cell.startswith("topic-0, topic-1, ")
    assert cell.endswith(f", and {50 - VALUES} more")
    long = exchange("Metadata", 9, {"topics": [{"name": "x" * 5000}]})
    (cell,) = cells(long, columns("request.topics.name"))
    assert len(cell) == TEXT + 1


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("request.akcs", "unknown field 'request.akcs'; did you mean request.acks?"),
        ("acks", "a field begins with request. or response., as request.acks does"),
        ("request.topic_data", "holds other fields: name one of them, such as request.topic_data.name"),
        ("request.auth_bytes", "is a secret, which is never shown"),
        (",".join(f"request.f{number}" for number in range(21)), "21 columns of fields are too many"),
    ],
)
def test_a_path_that_is_no_column_is_explained(path: str, why: str) -> None:
    with pytest.raises(UnknownField, match=re.escape(why)):
        columns(path)


def test_every_path_that_is_offered_is_a_column() -> None:
    assert "request.acks" in paths([API["Produce"]])
    assert "request.acks" not in paths([API["Fetch"]])
    for path in paths(API):
        assert columns(path)


def test_no_path_of_a_secret_is_offered() -> None:
    offered = paths([API["SaslAuthenticate"]])
    assert "response.error_code" in offered
    assert not [path for path in offered if path.endswith("auth_bytes")]
