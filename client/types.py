"""Requests and answers of the admin API, as JSON. Times are seconds since 1970, sizes bytes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field


class Mistake(Struct, frozen=True):
    """One mistake; `path` is the key in the input, empty for all of it."""

    path: str
    reason: str


class Problem(Struct, frozen=True):
    """Why something was not done."""

    error: str
    mistakes: list[Mistake] = field(default_factory=list)


class Rule(Struct, frozen=True):
    """A rule in force. `written` is its text in the file, or as it was sent. `over`: it has no more hits.
    `expires`: klamm removes it, if it was made by hand; `ends`: it has no hits from then on, at the latest,
    null where no time ends it, or its time has not begun. `warnings`: probable mistakes that klamm permits.
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
    ends: float | None = None


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


class DrainWish(Struct, frozen=True, forbid_unknown_fields=True):
    """`within_s`: seconds that requests under way may take; without it: `limits.drain_s` of the settings."""

    within_s: float | None = None


class Draining(Struct, frozen=True):
    """klamm takes no new connections; those that are open end within `within_s` seconds, then klamm ends."""

    connections: int
    requests: int
    within_s: float


class Reloaded(Struct, frozen=True):
    """klamm.yaml was read again. `changed`: the keys whose values differ, such as `limits.drain_s`;
    `at_start`: those of them that klamm takes only when it starts again.
    """

    file: str
    changed: list[str]
    at_start: list[str]


class Connection(Struct, frozen=True):
    """One client's connection. Bytes are as TCP counts them, null where the system does not tell. The
    `principal` is that of the client's certificate; `software` is the one that the client has named, with its
    version: empty where it named none.
    """

    id: int
    cluster: str
    broker: str
    client: str
    client_id: str | None
    since: float
    in_flight: int
    from_client_bytes: int | None
    to_client_bytes: int | None
    principal: str | None = None
    software: str = ""


class Node(Struct, frozen=True):
    """A broker or controller: where it is, and where klamm stands for it; "host:port" both."""

    cluster: str
    kind: Literal["broker", "controller"]
    node_id: int
    upstream: str
    listening: str


class Cluster(Struct, frozen=True):
    """`bootstrap` is where klamm finds the cluster, `listening` where clients do; `reason`: why not ready.
    `sasl`: do brokers want SASL of clients? null until one has answered. `state` is starting, ready, degraded
    (served, but the cluster or one of its nodes did not answer last, or a node has no listener) or draining.
    """

    name: str
    cluster_id: str | None
    bootstrap: list[str]
    listening: str
    ready: bool
    reason: str
    nodes: int
    sasl: bool | None = None
    state: str = ""


class Payload(Struct, frozen=True, omit_defaults=True):
    """A structure of Kafka's own inside a field of bytes, by its name in `klamm wire`. `values`: as far as
    its bytes go; `reason`: why no further, or where bytes are left over.
    """

    payload: str
    version: int
    values: dict[str, Any]
    reason: str = ""


class Body(Struct, frozen=True):
    """One side of an exchange. `values` as in `klamm wire`, secrets and records as their sizes; or `raw`,
    which rules have not changed. `reason`: why there are no values, or no bytes, or where the body is not as
    its layout says. Beside `raw`, where it differs: `came`, the body before klamm replaced addresses in it,
    and `sent`, what rules made of it. `withheld`: nothing of it went on. `payloads`: the contents of fields
    of bytes in `values`, by path.
    """

    bytes: int
    values: dict[str, Any] | None = None
    raw: str | None = None
    reason: str = ""
    came: str | None = None
    sent: str | None = None
    withheld: bool = False
    payloads: dict[str, Payload] = {}


Fate = Literal["rewritten", "withheld", "made"]


class Exchange(Struct, frozen=True, omit_defaults=True):
    """A request and its response. `errors` counts names, as the client was told them; `origin` is the end
    that answered. Where rules `changed` a broker's answer the origin is klamm, and `response_bytes` are the
    broker's; they are null if there is no answer. `unanswered`: why the connection ended before the answer
    came; the request had waited for `waited_ms` then. `correlation_id` is known where no filter read bodies;
    `connection_id` is the `id` of the Connection; `principal` is that of the client's certificate. `rules`
    have acted on it; they held the request and the response for so long. `undecodable` tells of each side
    whose body does not end as its layout does the place and the reason, where klamm has the bodies at hand.
    `fates` names the sides that rules changed (`rewritten`), that klamm did not send on (`withheld`) and that
    it made itself (`made`).
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
    changed: bool = False
    id: int = 0
    connection_id: int = 0
    correlation_id: int | None = None
    topics: dict[str, list[int]] = field(default_factory=dict)
    group: str | None = None
    transactional_id: str | None = None
    principal: str | None = None
    errors: dict[str, int] = field(default_factory=dict)
    unanswered: str = ""
    waited_ms: float = 0.0
    undecodable: dict[str, str] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    fates: dict[str, Fate] = field(default_factory=dict)
    request_delay_ms: float = 0.0
    response_delay_ms: float = 0.0
    request: Body | None = None
    response: Body | None = None


class Capture(Struct, frozen=True):
    """The running capture. `waiting_bytes` wait for the disk; dropped bytes found no room there, and
    `lost_frames` are known to be missing. `failures` are the disk's; `failing`: it failed, and has not yet
    taken rows for 5 s. `since`: when it began; `written_bytes` went to the disk.
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
    since: float = 0.0
    written_bytes: int = 0


class Segment(Struct, frozen=True):
    """A sealed segment. `sealed`: when."""

    name: str
    bytes: int
    sealed: float


class Segments(Struct, frozen=True):
    """The sealed segments of the capture that runs, or else of the one that ran last: all of its folder, the
    oldest first.
    """

    folder: str
    segments: list[Segment]


class CaptureWish(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a new capture, as the options of `klamm run`. `folder` is one on klamm's machine."""

    folder: str
    records: Literal["blank", "keep", "hash"] = "blank"
    filter: str | None = None


class PausedFrame(Struct, frozen=True):
    """A frame that waits to be resolved. `since` and `until` are the times at which it was paused, and at
    which it goes on by itself; `values` as in Body, for a single frame only.
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
    principal: str | None = None


class Resolution(Struct, frozen=True, forbid_unknown_fields=True):
    """The decision: `resume` the frame, with other `values` if they are given; `drop` it; `error` answers
    with `code`, a name or number of Kafka's.
    """

    action: Literal["resume", "drop", "error"]
    values: dict[str, Any] | None = None
    code: str | int | None = None


class Exchanges(Struct, frozen=True):
    """The newest exchanges, oldest first, recorded since `since`; `bodies`: with their bodies. For `unjudged`
    frames `where` takes too much work.
    """

    since: float
    bodies: bool
    exchanges: list[Exchange]
    unjudged: int = 0


class Line(Struct, frozen=True):
    """One line of the stream: an exchange; or the number of exchanges that a slow reader lost here, which
    ended from `since` to `until`; or the number of frames for which `where` takes too much work.
    """

    exchange: Exchange | None = None
    dropped: int = 0
    unjudged: int = 0
    since: float = 0.0
    until: float = 0.0
