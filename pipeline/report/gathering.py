"""Sums up traffic for a report with Spark: only small results come to the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.captures.captured import WITHOUT_REQUEST
from klamm.pipeline.detectors.finding import Evidence, Findings
from klamm.pipeline.report.gathering_bodies import OddBodies, gather_odd_bodies
from klamm.pipeline.report.gathering_groups import ConsumerGroup, gather_groups

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

S = 1_000_000  # us
Place = tuple[str, int, int | None]  # capture, connection, exchange
STEPS_S = (0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
BUCKETS = 90  # of time, at most, for captures of up to 90 days
CLIENTS = 40  # at most: the clients with the most exchanges
LINES = 20  # about gaps of a capture
BOOTSTRAP = "bootstrap"  # klamm's port for any broker
SHARES = (0.5, 0.9, 0.99, 0.999)
NO_FAILURE = ("MEMBER_ID_REQUIRED",)  # errors that are part of a normal exchange: the first join (KIP-394)
ACCURACY = 1000  # of percentiles: their rank is right to 0.1 %
LEAN = (
    *(
        "capture",
        "connection",
        "cluster",
        "broker",
        "client_id",
        "exchange",
        "time",
        "api",
        "api_key",
        "version",
        "awaits",
    ),
    *("request_bytes", "response_bytes", "answered", "latency_ms", "software", "topics"),
)


@dataclass(frozen=True, slots=True, order=True)
class Latency:
    """The latencies of an API at a broker; broker and cluster None: at all of them. `ms` has a value for each
    of SHARES.
    """

    api: str
    cluster: str | None
    broker: str | None
    count: int
    ms: tuple[float, ...]
    most_ms: float


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """An API's exchanges that began in a bucket of time."""

    start_us: int
    api: str
    count: int
    request_bytes: int
    response_bytes: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, order=True)
class Errors:
    start_us: int
    error: str
    count: int


class Client(NamedTuple):
    """A client: `apis`, the number of exchanges by API; `versions`, the highest by API. `errors`: error codes
    in its answers.
    """

    client_id: str | None
    software: str | None
    connections: int
    exchanges: int
    request_bytes: int
    response_bytes: int
    errors: int
    apis: dict[str, int]
    versions: dict[str, int]


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """Frames of 2**`exponent` bytes up to twice that."""

    api: str
    side: str
    exponent: int
    count: int


class EvidenceExchange(NamedTuple):
    """An exchange that is evidence. `end_us`: when its answer came; if none was seen, when it was asked."""

    api: str | None
    version: int | None
    client_id: str | None
    broker: str
    end_us: int
    request_bytes: int | None
    response_bytes: int | None
    latency_ms: float | None
    topics: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass
class Traffic:
    """The traffic of a capture. `lost` frames are missing; `problems` say where, and which parts could not be
    read.
    """

    captures: int = 0
    first_us: int = 0
    last_us: int = 0
    step_us: int = S
    exchanges: int = 0
    unanswered: int = 0
    connections: int = 0
    clients: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    errors: int = 0
    lost: int = 0
    brokers: list[tuple[str, str]] = field(default_factory=list)  # cluster, broker
    problems: Counter[str] = field(default_factory=Counter)  # line: how often
    damaged: list[str] = field(default_factory=list)
    series: list[Moment] = field(default_factory=list)
    error_series: list[Errors] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    top_clients: list[Client] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    groups: list[ConsumerGroup] = field(default_factory=list)
    odd_bodies: list[OddBodies] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        """Brokers; where klamm knew none of them by its number, addresses."""
        named = [at for at in self.brokers if at[1] != BOOTSTRAP]
        return len(named) or len(self.brokers)

    @property
    def seconds(self) -> float:
        return (self.last_us - self.first_us) / S


def lean(tables: Tables) -> DataFrame:
    """The exchanges with the columns that a report shows; worth keeping in memory, as they are read often."""
    from pyspark.sql import functions as F

    failures = F.filter("errors", lambda one: ~one["name"].isin(*NO_FAILURE))
    return tables.exchanges.select(*LEAN, failures.alias("errors"))


def gather(
    pool: Executor, tables: Tables, exchanges: DataFrame, plots: bool
) -> tuple[Traffic, list[Future[None]]]:
    """Takes `exchanges` from `lean`. The jobs add what the plots need; without `plots` there are none, nor
    where there was no traffic.
    """
    found = Traffic()
    _missing(tables.some_frames("time", "kind", "text", "lost"), found)
    _overview(exchanges, found)
    if not plots or not found.exchanges:
        return found, []
    longest = pool.submit(gather_groups, tables, found.step_us, found.groups)
    jobs = [pool.submit(job, exchanges, found) for job in PLOTTED]
    return found, [longest, *jobs, pool.submit(gather_odd_bodies, tables, found.odd_bodies)]


def _missing(frames: DataFrame, found: Traffic) -> None:
    """Rows without a time say which file is damaged; the others, where the capture itself has gaps."""
    from pyspark.sql import functions as F

    gaps = frames.where(F.col("kind") == "lost").groupBy(F.isnull("time"), "text")
    rows = gaps.agg(F.sum("lost"), F.count(F.lit(1)).alias("times")).orderBy(F.desc("times"), "text")
    for damaged, text, lost, times in rows.collect():
        found.lost += lost
        if damaged:
            found.damaged.append(text)
        elif len(found.problems) < LINES:
            found.problems[text] += times


def _overview(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    each = exchanges.groupBy("capture", "connection", "cluster", "broker", "client_id").agg(
        F.min("time").alias("first"),
        F.max("time").alias("last"),
        F.count(F.lit(1)).alias("exchanges"),
        F.count_if(F.col("awaits") & ~F.col("answered")).alias("unanswered"),
        F.sum("request_bytes").alias("sent"),
        F.sum("response_bytes").alias("received"),
        F.sum(_error_count()).alias("errors"),
    )
    (row,) = each.agg(
        F.count_distinct("capture"),
        F.unix_micros(F.min("first")),
        F.unix_micros(F.max("last")),
        *(F.sum(name) for name in ("exchanges", "unanswered", "sent", "received", "errors")),
        F.count_distinct("capture", "connection"),
        F.count_distinct(F.coalesce(F.concat(F.lit("="), "client_id"), F.lit(""))),
        F.sort_array(F.collect_set(F.struct("cluster", "broker"))),
    ).collect()
    found.captures, *times, exchanges_, unanswered, sent, received, errors, connections, clients, brokers = (
        row
    )
    if not exchanges_:
        return
    found.first_us, found.last_us = times
    found.exchanges, found.unanswered, found.errors = exchanges_, unanswered, errors
    found.request_bytes, found.response_bytes = sent or 0, received or 0
    found.connections, found.clients = connections, clients
    found.brokers = [(one["cluster"], one["broker"]) for one in brokers]
    found.step_us = step_us(found.seconds)


def step_us(seconds: float) -> int:
    """A round width of buckets, so that they are not more than BUCKETS."""
    return round(next((step for step in STEPS_S if seconds / step < BUCKETS), STEPS_S[-1]) * S)


def _error_count() -> Column:
    from pyspark.sql import functions as F

    total = F.aggregate("errors", F.lit(0).cast("bigint"), lambda sum, one: sum + one["count"])
    return F.coalesce(total, F.lit(0))


def _api() -> Column:
    from pyspark.sql import functions as F

    numbered = F.concat(F.lit("API key "), "api_key")  # null without a key
    return F.coalesce("api", numbered, F.lit(WITHOUT_REQUEST)).alias("api")


def _bucket(found: Traffic) -> Column:
    from pyspark.sql import functions as F

    return (F.floor(F.unix_micros("time") / found.step_us) * found.step_us).alias("start")


def _series(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    rows = exchanges.groupBy(_bucket(found), _api()).agg(
        F.count(F.lit(1)),
        F.coalesce(F.sum("request_bytes"), F.lit(0)),
        F.coalesce(F.sum("response_bytes"), F.lit(0)),
        F.percentile_approx("latency_ms", F.array(F.lit(0.5), F.lit(0.99)), ACCURACY),
    )
    for *values, shares in rows.collect():
        found.series.append(Moment(*values, *(shares or (None, None))))
    found.series.sort(key=lambda one: (one.start_us, one.api))


def _error_series(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    each = exchanges.select(_bucket(found), F.explode("errors").alias("one"))
    rows = each.groupBy("start", "one.name").agg(F.sum("one.count")).collect()
    found.error_series += sorted(Errors(*row) for row in rows)


def _latencies(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    seen = exchanges.where("latency_ms is not null").select(
        _api(), F.struct("cluster", "broker").alias("at"), "latency_ms"
    )
    rows = seen.rollup("api", "at").agg(
        F.count(F.lit(1)),
        F.percentile_approx("latency_ms", F.array(*map(F.lit, SHARES)), ACCURACY),
        F.max("latency_ms"),
    )
    for api, at, count, ms, most in rows.where("api is not null").collect():
        cluster, broker = (None, None) if at is None else at
        found.latencies.append(Latency(api, cluster, broker, count, tuple(ms), most))
    found.latencies.sort(key=lambda one: (-one.count, one.api, one.broker or ""))


def _clients(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    rows = exchanges.groupBy("client_id").agg(
        F.max("software"),
        F.count_distinct("capture", "connection"),
        F.count(F.lit(1)).alias("exchanges"),
        F.coalesce(F.sum("request_bytes"), F.lit(0)),
        F.coalesce(F.sum("response_bytes"), F.lit(0)),
        F.sum(_error_count()),
    )
    top = rows.orderBy(F.desc("exchanges"), "client_id").limit(CLIENTS).collect()
    named = [row[0] for row in top if row[0] is not None]
    of_top = exchanges.where(F.col("client_id").isNull() | F.col("client_id").isin(named))
    apis: dict[str | None, dict[str, int]] = {}
    versions: dict[str | None, dict[str, int]] = {}
    by_api = of_top.groupBy("client_id", _api()).agg(F.count(F.lit(1)), F.max("version"))
    for client_id, api, count, version in by_api.collect():
        apis.setdefault(client_id, {})[api] = count
        versions.setdefault(client_id, {})[api] = -1 if version is None else version
    found.top_clients += [Client(*[*row, apis[row[0]], versions[row[0]]]) for row in top]


def _sizes(exchanges: DataFrame, found: Traffic) -> None:
    from pyspark.sql import functions as F

    sides = (("request", "request_bytes"), ("response", "response_bytes"))
    entries = F.array(
        *(F.struct(F.lit(side).alias("side"), F.col(name).alias("bytes")) for side, name in sides)
    )
    each = exchanges.select(_api(), F.explode(entries).alias("frame")).where("frame.bytes > 0")
    exponent = F.floor(F.log2("frame.bytes")).cast("int")
    rows = each.groupBy("api", "frame.side", exponent.alias("exponent")).agg(F.count(F.lit(1)))
    found.sizes += sorted(Size(*row) for row in rows.collect())


PLOTTED: tuple[Callable[[DataFrame, Traffic], None], ...] = (
    _series,
    _error_series,
    _latencies,
    _clients,
    _sizes,
)


def evidence_exchanges(exchanges: DataFrame, findings: Findings) -> dict[Place, EvidenceExchange]:
    """The exchanges that findings point to, as far as they are there."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    wanted = {place(one) for found in findings.found for one in found.evidence if one.exchange is not None}
    if not wanted:
        return {}
    names = ("capture", "connection", "exchange")
    # As Arrow: of a list, Spark would make rows in Python workers.
    keys = exchanges.sparkSession.createDataFrame(
        pa.table(dict(zip(names, zip(*wanted, strict=True), strict=True)))
    )
    end = F.unix_micros("time") + F.coalesce(F.round(F.col("latency_ms") * 1000), F.lit(0)).cast("bigint")
    rows = exchanges.join(F.broadcast(keys), list(names)).select(
        *(*names, "api", "version", "client_id", "broker"),
        end,
        *("request_bytes", "response_bytes", "latency_ms", "topics", F.col("errors.name")),
    )
    return {(row[0], row[1], row[2]): _evidence_exchange(row[3:]) for row in rows.collect()}


def _evidence_exchange(values: Iterable[Any]) -> EvidenceExchange:
    *rest, topics, errors = values
    return EvidenceExchange(*[*rest, tuple(topics or ()), tuple(errors or ())])


def present(exchanges: DataFrame, client_ids: Collection[str]) -> frozenset[str]:
    """Those of the client ids that have exchanges."""
    from pyspark.sql import functions as F

    if not client_ids:
        return frozenset()
    rows = exchanges.where(F.col("client_id").isin(*client_ids)).select("client_id").distinct().collect()
    return frozenset(row[0] for row in rows)


def place(one: Evidence) -> Place:
    """The key of an exchange."""
    return one.capture, one.connection, one.exchange
