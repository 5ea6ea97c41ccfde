"""Expressions as columns, judged by the same expressions over the frames of the same exchanges."""

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from klamm.decoders import API
from klamm.pipeline.columns import condition, sql
from klamm.rules.expressions import ExpressionError, parse
from klamm.rules.expressions.names import FUNCTIONS
from klamm.rules.glob import Glob
from tests.decoders.hostile import LAYOUTS
from tests.pipeline.exchange_table import framed, made, table
from tests.rules import random_expressions

PAIRS = 100  # expressions in a job, each over all rows
WORDS = [
    'size > 200 or side == "response" and size % 7 == 2',
    "request_size - response_size < -20",
    "latency_ms >= 500 and latency_ms < 1e9",
    "latency_ms // 0.7 > 3 or latency_ms % -0.3 == 0",
    "latency_ms * 2 / 3 - 1 < 0.3",
    "version // -4 == -2 or version % -4 == -1 or -version / 3 < -2.5",
    'client_id is None or lower(client_id) == "größe"',
    '"ea" in client_id and client_id not in ["k", "team-b-1"]',
    'len(client_id) == 5 and not client_id.endswith("x")',
    'glob(client_id, "team-*", "?", "!team-[!a]-1")',
    'matches(client_id, "^(?i)TEAM-[a-c]-\\\\d$")',
    'client == "10.0.0.1" and broker == "2" and cluster != "other"',
    'principal == "x" or principal is None and version > 3',
    "error == NONE and error > 5",
    "0 < error < 300 or error in (UNKNOWN_TOPIC_OR_PARTITION, -7, 1.5)",
    "not error != NONE",
    "not topic == 'k' and partition != 0",
    "topic is None or group == client_id",
    "any(1 < x < 3e9 for x in body.broker_ids) or all(5 in p.isr_nodes for t in topics for p in t.partitions)",
    "any(size + p.partition_index * p.partition_index * p.leader_id > 7 for t in topics for p in t.partitions)",
    "any(p.high_watermark - p.log_start_offset // 1000 > 0 for t in responses for p in t.partitions)",
    "any(v.value * 0 == 0 or v.value // 3 > 5 or v.value != v.value for e in entries for v in e.values)",
    "any(o.value > 9007199254740993 or o.value in [0.5, 1] for e in entries for o in e.ops)",
    "any(p.metadata > b'\\x60' or p.metadata == 'k' or len(p.metadata) == 2 for p in protocols)",
    "any(m.metadata.startswith('k') or b'\\0' in m.metadata for m in members)",
    "len(auth_bytes) > 2 or auth_bytes is None",
    "any(p.records is None or len(p.records) < 3 for t in topic_data for p in t.partition_data)",
    "request.acks == -1 and any(len(r.error_message) == 2 for t in responses for r in t.partition_responses)",
    "request.transactional_id is not None and request.timeout_ms > throttle_time_ms",
    "cluster_id > topic or lower(topic) < lower(group)",
    "any(2.0 in p.isr_nodes or version / 2 in p.replica_nodes for t in topics for p in t.partitions)",
    "'k' in group and len(topic) != 2",
]


def expression(random: Random, index: int) -> str:
    of = random.choice(LAYOUTS)
    text = random_expressions.condition(of, random)
    return text if index % 25 == 0 else f"api == {API[of.api].name!r} and ({text})"


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
    """Raises AssertionError with what differs."""
    texts = [expression(random, index) for index in range(PAIRS)] + WORDS
    apis = [next(iter(parse(text).apis()), random.randrange(75)) for text in texts for _ in range(2)]
    exchanges, known = framed(made(API[key], random.choice(_versions(key)), random) for key in apis)
    said = {}
    for text in texts:
        try:
            said[text] = condition(parse(text), known.asked)
        except ExpressionError:
            assert text not in WORDS
    rows = table(spark, exchanges).select("place", *said.values()).toArrow().sort_by("place")
    outcomes = []
    for column, text in enumerate(said, 1):
        wanted = parse(text)
        for place, one in enumerate(exchanges):
            outcomes.append(bool(rows.column(column)[place].as_py()))
            assert outcomes[-1] is wanted.holds(one.request, one.response), (seed_of(one), text)
    assert len(said) > PAIRS / 2
    assert any(outcomes)


def seed_of(one: object) -> str:
    return repr(one)[:2000]


def _versions(key: int) -> range:
    return range(API[key].versions.first, API[key].versions.last + 1)
