"""Measures each client's work in a capture: its requests, settings, latencies and errors."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from klamm.captures.captured import Captured, CapturedConnection, api_name
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.frames import Framing, columns
from klamm.captures.summaries.histogram import Histogram
from klamm.decoders import API
from klamm.decoders.compile import Path
from klamm.decoders.error_codes import error_name
from klamm.decoders.records import RecordsError, batches
from klamm.decoders.schema import ERROR, RECORDS, Side, all_fields, default_of, marked
from klamm.rules.frame import Frame
from klamm.rules.plan import flat

NOBODY = "(no client id)"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
PRODUCE = 0

# Fields of requests that follow from the configuration of the client, by API.
SETTINGS: dict[str, tuple[str, ...]] = {
    "Produce": ("acks", "timeout_ms"),
    "Fetch": (
        "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "rack_id",
        "topics.partitions.partition_max_bytes",
    ),
    "ShareFetch": ("max_wait_ms", "min_bytes", "max_bytes", "max_records"),
    "ListOffsets": ("isolation_level",),
    "Metadata": ("allow_auto_topic_creation",),
    "OffsetCommit": ("retention_time_ms",),
    "OffsetFetch": ("require_stable",),
    "JoinGroup": ("session_timeout_ms", "rebalance_timeout_ms", "protocol_type", "protocols.name"),
    "ConsumerGroupHeartbeat": ("rebalance_timeout_ms", "server_assignor", "subscribed_topic_regex"),
    "InitProducerId": ("transaction_timeout_ms",),
    "CreateTopics": ("timeout_ms",),
    "SaslHandshake": ("mechanism",),
    "ApiVersions": ("client_software_name", "client_software_version"),
}  # fmt: skip
# Fields of which only the presence is compared: their values differ in each run.
PRESENT = {
    "Produce": ("transactional_id",),
    "JoinGroup": ("group_instance_id",),
    "ConsumerGroupHeartbeat": ("instance_id",),
    "InitProducerId": ("transactional_id",),
}
MEANINGS = {
    ("acks", -1): "all", ("isolation_level", 0): "read_uncommitted", ("isolation_level", 1): "read_committed",
}  # fmt: skip
TOLD_BEFORE = -1  # ConsumerGroupHeartbeat: unchanged since an earlier heartbeat (KIP-848)


@dataclass(slots=True)
class ApiUse:
    """The use of one API by one client. Sizes in bytes on the wire, latencies in ms."""

    requests: int = 0
    unanswered: int = 0
    versions: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    last_settings: dict[int, list[Any]] = field(
        default_factory=dict
    )  # the settings in the last request of a version
    request_bytes: Histogram = field(default_factory=Histogram)
    response_bytes: Histogram = field(default_factory=Histogram)
    latency_ms: Histogram = field(default_factory=Histogram)


@dataclass(slots=True)
class ClientUse:
    """One client. `settings` by "Fetch max_bytes"; `batch_...` are of its produced batches."""

    apis: defaultdict[str, ApiUse] = field(default_factory=lambda: defaultdict(ApiUse))
    settings: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    batch_records: Histogram = field(default_factory=Histogram)
    batch_bytes: Histogram = field(default_factory=Histogram)
    connections: set[CapturedConnection] = field(default_factory=set)

    @property
    def requests(self) -> int:
        return sum(use.requests for use in self.apis.values())


@dataclass(slots=True)
class Work:
    """The work of a whole capture."""

    clients: defaultdict[str, ClientUse] = field(default_factory=lambda: defaultdict(ClientUse))
    exchanges: int = 0
    first_ns: int = 0
    last_ns: int = 0
    lost: int = 0  # frames

    @property
    def requests(self) -> int:
        return sum(client.requests for client in self.clients.values())


def measure(rows: Iterable[Captured], together: bool = False) -> Work:
    """Measures it in one pass; `together`: all clients are one."""
    work, framing = Work(), Framing()

    def kept() -> Iterator[Captured]:
        for row in rows:
            work.lost += row.lost
            yield row

    for one in exchanges(kept()):
        first = one.first
        if first.api_key < 0 or first.connection is None:
            continue
        work.exchanges += 1
        work.first_ns = min(work.first_ns or first.time_ns, first.time_ns)
        work.last_ns = max(work.last_ns, one.last.time_ns)
        client = work.clients["(all)" if together else name_of(first.client_id)]
        client.connections.add(first.connection)
        use = client.apis[api_name(first.api_key, first.side)]
        _count(use, one)
        request = None if one.request is None else framing.frame(one.request)
        if request is not None:
            _settings(client, use, request)
        response = None if one.response is None else framing.frame(one.response)
        if response is not None:
            told = response.told
            key, version = told.api.key, told.version
            found = columns(key, version, "response", told.body, _marked(key, version, "response", ERROR))
            for code in filter(None, chain.from_iterable(map(flat, found))):
                use.errors[error_name(code)] += 1
    return work


@lru_cache(4096)
def name_of(client_id: str | None) -> str:
    """A client id without the UUIDs that some clients put into it, and so the same in every run."""
    return NOBODY if client_id is None else UUID.sub("*", client_id)


def _count(use: ApiUse, one: Exchange) -> None:
    if one.request is not None:
        use.requests += 1
        use.versions[one.request.api_version] += 1
        use.request_bytes.add(one.request.size)
        use.unanswered += one.response is None and one.request.awaits
    if one.response is not None:
        use.response_bytes.add(one.response.size)
    if one.latency_ns is not None:
        use.latency_ms.add(one.latency_ns / 1e6)


def _settings(client: ClientUse, use: ApiUse, request: Frame) -> None:
    name, key, version = request.api.name, request.api.key, request.version
    there, absent = _setting_paths(key, version)
    settings = columns(key, version, "request", request.body, there)
    if use.last_settings.get(version) != settings and (there or absent):
        use.last_settings[version] = settings
        values = [(path, set(flat([column])) or {None}) for path, column in zip(there, settings, strict=True)]
        for path, some in [*values, *absent]:
            client.settings[f"{name} {'.'.join(path)}"] |= {
                _setting_text(name, path, value) for value in some
            } - {""}
    if key == PRODUCE:
        paths = _marked(key, version, "request", RECORDS)
        for records in flat(columns(key, version, "request", request.body, paths)):
            _batches(client, records)


def _setting_text(api: str, path: Path, value: Any) -> str:
    """A value as it is shown; empty where nothing is set."""
    if path[-1] in PRESENT.get(api, ()):
        return "none" if value is None else "set"
    if value is None or (api == "ConsumerGroupHeartbeat" and value == TOLD_BEFORE):
        return ""
    if (path[-1], value) in MEANINGS:
        return f"{value} ({MEANINGS[path[-1], value]})"
    return '""' if value == "" else str(value).lower() if isinstance(value, bool) else str(value)


def _batches(client: ClientUse, records: bytes) -> None:
    try:
        for batch in batches(records):
            client.settings["compression"].add(batch.codec)
            client.settings["message format"].add(f"v{batch.magic}")
            client.batch_bytes.add(batch.size)
            if batch.record_count >= 0:
                client.batch_records.add(batch.record_count)
    except RecordsError:
        pass  # damaged ones are not compared


@cache
def _setting_paths(key: int, version: int) -> tuple[tuple[Path, ...], tuple[tuple[Path, set[Any]], ...]]:
    """The paths that this version has; and those it lacks, with the values that Kafka uses for them."""
    api = API[key]
    names = (*SETTINGS.get(api.name, ()), *PRESENT.get(api.name, ()))
    wanted = {tuple(name.split(".")) for name in names}
    there = {path: f for path, f in all_fields(api.request, version) if path in wanted}
    versions = range(api.versions.first, api.versions.last + 1)
    ever = {path: f for each in versions for path, f in all_fields(api.request, each) if path in wanted}
    absent = ((path, {default_of(f, version)}) for path, f in ever.items() if path not in there)
    return tuple(there), tuple(absent)


@cache
def _marked(key: int, version: int, side: Side, mark: str) -> tuple[Path, ...]:
    return tuple(marked(API[key].fields(side), version, frozenset({mark})))
