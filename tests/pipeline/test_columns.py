"""Expressions as columns, judged by the same expressions over the frames of the same exchanges."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from klamm.captures.captured import Captured
from klamm.captures.exchanges import Exchange
from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from klamm.pipeline.sql import condition, sql
from klamm.rules.expressions import Expression, ExpressionError, parse
from tests.decoders.hostile import LAYOUTS
from tests.pipeline.exchange_table import SIZE, framed, made, table
from tests.rules.expressions import random_expressions

RANDOM, ROWS = 40, 2  # expressions in a job, and exchanges for each of them
WRITTEN = [
    'size > 200 or side == "response" and size % 7 == 2',
    "request_size - response_size < -20",
    "latency_ms // 0.7 > 3 or latency_ms % -0.3 == 0",
    "latency_ms * 2 / 3 - 1 < 0.3",
    "version // -4 == -2 or version % -4 == -1 or -version / 3 < -2.5",
    'client_id is None or lower(client_id) == "größe"',
    '"ea" in client_id and client_id not in ["k", "team-b-1"]',
    'len(client_id) == 5 and not client_id.endswith("x")',
    'glob(client_id, "team-*", "?", "!team-[!a]-1")',
    'matches(client_id, "^(?i)TEAM-[a-c]-\\\\d$")',
    'client == "10.0.0.1" and broker == "2" and cluster != "other"',
    "connection == 7 and duration > 0.5",
    "client_port == 50000 and connection != 8 and size > 100",
    "client_port % 7 == 6 or connection - 7 > 0 or duration - latency_ms > 0",
    'principal == "x" or principal is None and version > 3',
    "error == NONE and error > 5",
    "0 < error < 300 or error in (UNKNOWN_TOPIC_OR_PARTITION, -7, 1.5)",
    'api in ["Fetch", "Metadata"] and not topic == "k" and partition != 0',
    "version > 5 and topic is None or group == client_id",
    "any(5 in p.isr_nodes or 2.0 in p.isr_nodes for t in topics for p in t.partitions)",
    "any(version / 2 in p.replica_nodes for t in topics for p in t.partitions)",
    "any(size + p.partition_index * p.partition_index * p.leader_id > 7 for t in topics for p in "
    "t.partitions)",
    "any(p.high_watermark - p.log_start_offset // 1000 > 0 for t in responses for p in t.partitions)",
    "any(v.value * 0 == 0 or v.value // 3 > 5 or v.value != v.value for e in entries for v in e.values)",
    "any(o.value > 9007199254740993 or o.value in [0.5, 1] for e in entries for o in e.ops)",
    "any(p.metadata > b'\\x60' or p.metadata == 'k' or len(p.metadata) == 2 for p in protocols)",
    "any(m.metadata.startswith('k') or b'\\0' in m.metadata for m in members)",
    "len(auth_bytes) > 2 or auth_bytes is None",
    "any(p.records is None or len(p.records) < 3 for t in topic_data for p in t.partition_data)",
    "request.acks == -1 and any(len(r.error_message) == 2 for t in responses for r in t.partition_responses)",
    "request.transactional_id is not None and request.timeout_ms > throttle_time_ms",
    "api == FindCoordinator and group != 'k'",
    "group is None or group > 'b'",
    "transactional_id > topic or lower(topic) < lower(transactional_id)",
    "api == 'OffsetFetch' and 'k' in group and len(topic) != 2",
]


@given(st.integers(0, 2**32))
@settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_column_holds_where_the_expression_does(spark: SparkSession, seed: int) -> None:
    judged(spark, Random(seed))


def judged(spark: SparkSession, random: Random) -> None:
    """Raises AssertionError for the first of them that differs."""
    random_ones = (parse(written(random, place), secrets=True) for place in range(RANDOM))
    asked = [*map(parse, WRITTEN), *random_ones]
    keys = [next(iter(one.apis()), random.randrange(75)) for one in asked for _ in range(ROWS)]
    exchanges, known = framed(made(API[key], random.choice(versions(key)), random) for key in keys)
    columns = {}
    for one in asked:
        with suppress(ExpressionError):  # of secrets, and of the order of bytes
            columns[one] = condition(one, known.asked)
    assert columns.keys() >= set(asked[: len(WRITTEN)])
    assert len(columns) > len(asked) * 0.8
    rows = table(spark, exchanges).select("place", *columns.values()).toArrow().sort_by("place")
    found = [(one, place) for one in columns for place in range(len(exchanges))]
    held = [bool(value) for column in rows.columns[1:] for value in column.to_pylist()]
    for (one, place), outcome in zip(found, held, strict=True):
        frames = exchanges[place].request, exchanges[place].response
        assert outcome is one.holds(*frames), (str(one), [frame and frame.values for frame in frames])
    assert len(held) / 50 < sum(held) < len(held) / 2


def written(random: Random, place: int) -> str:
    """Most of them for one API: what fits all is long."""
    of = random.choice(LAYOUTS)
    text = random_expressions.condition(of, random)
    return text if place % 20 == 0 else f"api == {API[of.api].name!r} and ({text})"


def versions(key: int) -> range:
    return range(API[key].versions.first, API[key].versions.last + 1)


def held_by(spark: SparkSession, exchanges: list[Exchange], *texts: str) -> list[list[bool]]:
    """For each of the texts, for each of the exchanges."""
    found, known = framed(exchanges)
    columns = [condition(parse(text), known.asked) for text in texts]
    rows = table(spark, found).select("place", *columns).toArrow().sort_by("place")
    return [[bool(value) for value in column.to_pylist()] for column in rows.columns[1:]]


def test_frames_that_frames_of_rules_would_not_be_hold_nothing(spark: SparkSession) -> None:
    whole = made(API["Metadata"], 9, Random(1))
    assert whole.request is not None
    beyond = Exchange(whole.request._replace(api_version=99), None)
    damaged = Exchange(whole.request._replace(frame=whole.request.frame[:-3]), None)  # type: ignore[index]
    texts = ["version > 3", "side == 'request' and not error == 3", "body.topics is None or len(topics) < 9"]
    known, unequal, body = held_by(spark, [whole, beyond, damaged], *texts)
    assert known == [True, False, True]
    assert unequal == [False, False, False]
    assert body == [True, False, False]


def test_an_answer_in_the_layout_of_version_0_is_of_version_0(spark: SparkSession) -> None:
    asked = made(API["ApiVersions"], 4, Random(2)).request
    assert asked is not None
    body = encode({"error_code": 35, "api_keys": []}, 18, 0, "response")
    frame = response_frame(API["ApiVersions"], 0, 5, body)[SIZE:]
    refused = Exchange(asked, asked._replace(side="response", size=len(frame), frame=frame))
    answered = made(API["ApiVersions"], 4, Random(4))
    texts = [
        'side == "response" and version == 0',
        "body.throttle_time_ms is None and error == UNSUPPORTED_VERSION",
    ]
    assert held_by(spark, [refused, answered], *texts) == [[True, False], [True, False]]


def test_text_that_is_not_utf_8_is_asked_for_as_python_shows_its_bytes(spark: SparkSession) -> None:
    one = made(API["Metadata"], 0, Random(3)).request
    assert one is not None
    there = encode({"topics": [{"name": "a\udcff"}]}, 3, 0, "request")
    frame = one.frame[: -len(_body_of(one))] + there  # type: ignore[index]
    exchange = Exchange(one._replace(frame=frame, size=len(frame)), None)
    (by_topic,) = held_by(spark, [exchange], r'topic == "a\udcff"')
    assert by_topic == [True]


def _body_of(one: Captured) -> bytes:
    (found,), _ = framed([Exchange(one, None)])
    assert found.request is not None
    return found.request.body


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('record.key == "k"', "the tables hold no content of records (column 1)"),
        ('json(client_id).a == "k"', "json() is not known to the tables"),
        ("any(c.value == 'x' for t in topics for c in t.configs)", "c.value is a secret"),
        (
            "any(p.high_watermark / 2 > 3 for t in responses for p in t.partitions)",
            "p.high_watermark / 2 may",
        ),
        (
            "any(o.committed_offset * o.committed_offset * 99 > 0 for t in topics for o in t.partitions)",
            "38 digits",
        ),
        ('matches(client_id, "(a|b)*")', "the pattern repeats"),
        ('matches(client_id, "(ab?)*")', "the pattern repeats"),
        ('matches(client_id, "a\\\\B")', r"the pattern has \B"),
        ('matches(client_id, "a\\\\C")', r"the pattern has \C"),
        ('matches(client_id, "\\\\pL")', r"the pattern has \p"),
        (
            "any(o.committed_offset * 99 % 7 == 1 for t in topics for o in t.partitions)",
            "64 bits",
        ),
        ('matches(client_id, "(?i)ä")', "the pattern has letters beyond ASCII"),
        ('api == "Fetch" and topic == "k"', "topic: Fetch 13 requests have ids of topics"),
        ('any(p.metadata < "k" for p in protocols)', 'write b"..."'),
    ],
)
def test_what_a_column_cannot_say_alike_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as wrong:
        sql(parse(text))
    assert reason in str(wrong.value)


def test_what_can_hold_for_no_api_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"can hold for no API: Produce requests have no controller_id \(column 15\)"
    ):
        sql(parse("acks == 1 and controller_id == 1"))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (
            'api == "Fetch" and latency_ms > 100',
            "((api_key = 1 AND version BETWEEN 0 AND 18) AND (response_bytes IS NOT NULL AND "
            "(latency_ms > 100.0D)))",
        ),
        (
            "acks == 0 and any(len(t.partition_data) > 9 for t in topic_data)",
            "(api_key = 0 AND (request_body IS NOT NULL AND "
            "((try_variant_get(request_body, '$.acks', 'INT') = 0) AND "
            "exists(try_variant_get(request_body, '$.topic_data', "
            "'ARRAY<STRUCT<`partition_data`: ARRAY<STRUCT<_: STRING>>>>'), "
            "t_0 -> (size(t_0.`partition_data`) > 9)))))",
        ),
        ('api == "Fetch" and version < 0', "false"),
    ],
)
def test_what_means_the_same_in_all_versions_is_said_once(text: str, column: str) -> None:
    assert sql(parse(text)) == column


def test_errors_are_asked_for_without_a_body() -> None:
    assert "_body" not in sql(parse("error in (NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE) or error > 3"))
    assert "response_body" in sql(parse("error == NONE"))


def test_the_text_does_not_grow_with_nested_divisions() -> None:
    once, twice, thrice = (len(sql(_divided(times))) for times in (1, 2, 3))
    assert thrice - twice == twice - once


def _divided(times: int) -> Expression:
    return parse(f"api == 'Fetch' and size{' // 3' * times} > 7")
