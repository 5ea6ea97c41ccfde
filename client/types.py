"""What the admin API takes and gives, as JSON. Times are seconds since 1970, sizes bytes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field


class Mistake(Struct, frozen=True):
    """One thing to correct; `path` is the key in what was sent, empty for all of it."""

    path: str
    reason: str


class Problem(Struct, frozen=True):
    """Why something was not done."""

    error: str
    mistakes: list[Mistake] = field(default_factory=list)


class Rule(Struct, frozen=True):
    """A rule in force. `written` is what stands in the file, or what was sent. `over`: it hits no more.
    `warnings`: probable mistakes that klamm permits.
    """

    name: str
    origin: Literal["file", "hand"]
    written: dict[str, Any]
    enabled: bool
    dry: bool
    matches: int
    hits: int
    failures: int
    over: bool
    expires: float | None = None
    made_by: str = ""
    warnings: list[str] = field(default_factory=list)


class RuleFile(Struct, frozen=True):
    """The file of rules that klamm reads, "" if it was given none; how many rules of it are in force, and
    since when. At `rejected` the file was read again and had `mistakes`, each with its place: the rules are
    those of before.
    """

    file: str
    rules: int
    loaded: float
    rejected: float | None = None
    mistakes: list[str] = field(default_factory=list)


class Switch(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a rule acts."""

    enabled: bool


class Connection(Struct, frozen=True):
    """One client's connection. Bytes are as TCP counts them, null where the system does not tell."""

    id: int
    cluster: str
    broker: str
    client: str
    client_id: str | None
    since: float
    in_flight: int
    from_client_bytes: int | None
    to_client_bytes: int | None


class Node(Struct, frozen=True):
    """A broker or controller: where it is, and where klamm stands for it; "host:port" both."""

    cluster: str
    kind: Literal["broker", "controller"]
    node_id: int
    upstream: str
    listening: str


class Cluster(Struct, frozen=True):
    """`bootstrap` is where klamm finds the cluster, `listening` where clients do; `reason`: why not ready.
    `sasl`: do brokers want SASL of clients? null until one has answered.
    """

    name: str
    cluster_id: str | None
    bootstrap: list[str]
    listening: str
    ready: bool
    reason: str
    nodes: int
    sasl: bool | None = None


class Body(Struct, frozen=True):
    """One side of an exchange. `values` as in `klamm wire`, secrets and records as their sizes; or `raw`."""

    bytes: int
    values: dict[str, Any] | None = None
    raw: str | None = None
    reason: str = ""


class Exchange(Struct, frozen=True, omit_defaults=True):
    """A request and its response. `errors` counts names; `origin` is who answered. `response_bytes` is null
    where no answer was due. `correlation_id` is known where no filter looked at bodies; `connection_id` is
    the `id` of the Connection.
    """

    time: float
    cluster: str
    broker: str
    connection: str
    api: str
    version: int
    client_id: str | None
    origin: Literal["broker", "klamm"]
    request_bytes: int
    response_bytes: int | None
    latency_ms: float | None
    id: int = 0
    connection_id: int = 0
    correlation_id: int | None = None
    topics: dict[str, list[int]] = field(default_factory=dict)
    group: str | None = None
    errors: dict[str, int] = field(default_factory=dict)
    request: Body | None = None
    response: Body | None = None


class Capture(Struct, frozen=True):
    """The capture that runs. `waiting_bytes` wait for the disk; what was dropped found no room there, and
    `lost_frames` are known to be missing in it. `failures` are the disk's; `failing`: it has failed, and not
    yet taken rows for 5 s.
    """

    name: str
    folder: str
    records: Literal["blank", "keep", "hash"]
    filter: str | None
    rows: int
    segments: int
    waiting_bytes: int
    dropped_bytes: int
    lost_frames: int
    failures: int
    last_error: str
    failing: bool = False


class CaptureWish(Struct, frozen=True, forbid_unknown_fields=True):
    """What to capture: as the options of `klamm run`. `folder` is one on klamm's machine."""

    folder: str
    records: Literal["blank", "keep", "hash"] = "blank"
    filter: str | None = None


class Held(Struct, frozen=True):
    """A frame that waits to be resolved. `since` and `until` are when it was held, and when it goes on by
    itself; `values` as in Body, told for one frame only.
    """

    id: int
    rule: str
    side: Literal["request", "response"]
    api: str
    version: int
    correlation_id: int
    client_id: str | None
    cluster: str
    broker: str
    connection: str
    since: float
    until: float
    bytes: int
    values: dict[str, Any] | None = None
    reason: str = ""


class Resolution(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of it: `resume` it, with other `values` if they are given; `drop` it; `error` answers with
    `code`, a name or number of Kafka's.
    """

    action: Literal["resume", "drop", "error"]
    values: dict[str, Any] | None = None
    code: str | int | None = None


class Exchanges(Struct, frozen=True):
    """The newest exchanges, oldest first, recorded since `since`; `bodies`: with what was in them."""

    since: float
    bodies: bool
    exchanges: list[Exchange]


class Line(Struct, frozen=True):
    """One line of the stream: an exchange, or how many the reader was too slow for."""

    exchange: Exchange | None = None
    dropped: int = 0
