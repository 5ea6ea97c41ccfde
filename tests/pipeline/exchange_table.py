"""Exchanges made up for any version of any API, as frames and as rows of the table `exchanges`."""

from collections.abc import Iterable
from random import Random
from unittest import mock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.exchanges import Exchange
from klamm.captures.exports import exchange_rows, exchange_schema
from klamm.captures.frames import Framed, Framing
from klamm.decoders import layout
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Api
from klamm.rules.json_form import uuid_text
from klamm.rules.subjects import subjects
from tests.decoders import hostile

HERE = CapturedConnection("run", 7, "main", "2", "10.0.0.1:50000", "x")
SIZE = 4
TEXTS = ["", "k", "kk", "ä", "€uro", "𝄞x"]
CLIENT_IDS = [None, "", "k", "team-a-1", "größe"]


class Known(dict[bytes, str]):
    """Names of topic ids, some of them; `asked` are all whose name somebody wanted to know."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, str] = {}

    def get(self, topic_id: bytes, otherwise: str | None = None) -> str | None:  # type: ignore[override]
        if topic_id[0] % 2 == 0:
            return None
        name = "k" if topic_id[0] % 4 == 1 else "kk"
        self.asked[uuid_text(topic_id)] = name
        return name


def made(api: Api, version: int, random: Random) -> Exchange:
    """A request, and mostly its response."""
    at, client_id = random.randrange(10**18, 2 * 10**18), random.choice(CLIENT_IDS)
    bodies = [body(api, version, side, random) for side in hostile.SIDES]
    request = request_frame(api, version, 5, client_id, bodies[0])[SIZE:]
    response = response_frame(api, version, 5, bodies[1])[SIZE:]
    asked = Captured(at, "frame", HERE, "request", api.key, version, 5, client_id, 3, len(request), request)
    late = at + random.choice((0, 1, 999_999, 10**6, 500 * 10**6, random.randrange(10**12)))
    lost = Captured(
        late, "frame", HERE, "response", api.key, version, 5, client_id, 3, len(response), response
    )
    return Exchange(asked, None if random.random() < 0.1 else lost)


def body(api: Api, version: int, side: str, random: Random) -> bytes:
    with mock.patch.object(hostile, "TEXTS", TEXTS):
        return hostile.message(layout(api.key, version, side), random, alike=random.random() < 0.3)


def framed(exchanges: Iterable[Exchange]) -> tuple[list[Framed], Known]:
    framing = Framing()
    framing.topics = known = Known()
    found = [framing.exchange(one) for one in exchanges]
    for one in found:
        subjects(one.request, one.response)  # asks for the name of each id
    return found, known


def table(spark: SparkSession, exchanges: list[Framed]) -> DataFrame:
    """With `place`, where each stands in the list."""
    schema = exchange_schema.schema()
    rows = zip(*(exchange_rows.row(one) for one in exchanges), strict=True)
    columns = [pa.array(list(values), field.type) for values, field in zip(rows, schema, strict=True)]
    whole = pa.Table.from_arrays(columns, schema=schema).append_column(
        "place", pa.array(range(len(exchanges)))
    )
    return spark.createDataFrame(whole).withColumns(
        {
            "latency_ms": F.expr("latency_ns / 1e6D"),
            "request_body": F.expr("parse_json(request_body)"),
            "response_body": F.expr("parse_json(response_body)"),
        }
    )
