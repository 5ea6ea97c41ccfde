"""The settings of klamm: plain data, checked before it gets here (cli/running/config_file.py).

A field's name is its key in klamm.yaml; docs/configuration.md lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NewType

Seconds = NewType("Seconds", float)
Bytes = NewType("Bytes", int)
Port = NewType("Port", int)
Count = NewType("Count", int)  # from 0
ApiName = NewType("ApiName", str)  # as in Kafka's newest release, "Produce"; or "all"
ClusterName = NewType("ClusterName", str)
Host = NewType("Host", str)  # a name or an IP address, without brackets
InputFile = NewType("InputFile", str)  # absolute, or relative to the working directory
OutputFile = NewType("OutputFile", str)
Folder = NewType("Folder", str)
StateFolder = NewType("StateFolder", str)  # or the word auto
Filter = NewType("Filter", str)  # an expression as in rules: docs/expressions.md

AUTO = StateFolder("auto")  # $STATE_DIRECTORY, or $XDG_STATE_HOME/klamm, or ~/.local/state/klamm
ALL_APIS = ApiName("all")
ROOM = 100  # ports of a listen range without an end


class Address(NamedTuple):
    """A host (name, IPv4, or IPv6 without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listen(NamedTuple):
    """Where clients find one cluster: the bootstrap port `first`, and after it a port for each node."""

    host: str = "127.0.0.1"
    first: int = 19092
    last: int | None = None
    """Inclusive; None leaves room for 100 ports."""

    @property
    def ports(self) -> range:
        """Every port of the range."""
        return range(self.first, min(self.first + ROOM - 1 if self.last is None else self.last, 65535) + 1)

    def __str__(self) -> str:
        return str(Address(self.host, self.first)) + ("" if self.last is None else f"-{self.last}")


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS from klamm to the brokers. PEM files."""

    ca: InputFile | None = None
    """Certificates to trust; None trusts those of the system."""
    cert: InputFile | None = None
    """klamm's own certificate, for brokers that ask for one; its key is in `key`, or in the same file."""
    key: InputFile | None = None
    server_name: Host | None = None
    """Sent as SNI and looked for in the broker's certificate; None takes the host that is dialled."""
    verify: bool = True
    """False accepts any certificate: for trials only."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One Kafka cluster and the listeners in front of it."""

    bootstrap: tuple[Address, ...]
    """Any one of them that answers is enough."""
    name: ClusterName = ClusterName("kafka")
    """A label in logs and metrics."""
    listen: Listen = Listen()
    advertise: Host | None = None
    """The host that clients are told; None tells each the local address of its own connection."""
    map: Mapping[Address, Address] = field(default_factory=dict)
    """What a broker advertises -> where klamm reaches it."""
    ports: Mapping[int, Port] = field(default_factory=dict)
    """Node id -> listen port, for ids that shall not, or do not, fit the listen range."""
    tls: Tls | None = None
    allow_unknown_apis: bool = False
    """True leaves unknown API keys in ApiVersions; an address that one of them carries bypasses klamm."""
    connect_timeout_s: Seconds = Seconds(5.0)
    """For a TCP connection and its TLS handshake to a broker."""


@dataclass(frozen=True, slots=True)
class Admin:
    """The HTTP server: /metrics, /healthz, /readyz, and the admin API below /v1 (docs/admin-api.md)."""

    listen: Address | None = Address("127.0.0.1", 19091)
    """None runs without it; port 0 takes a free one."""
    token_file: InputFile | None = None
    """Holds what callers have to show for /v1; an address that is not a loopback needs it."""
    read_only: bool = False
    """True refuses whatever would change something."""


@dataclass(frozen=True, slots=True)
class Log:
    """Events are always logged; exchanges (request and response, a line each) for the APIs named here."""

    apis: tuple[ApiName, ...] = ()
    format: Literal["auto", "json", "console"] = "auto"
    """auto: console on a terminal, else JSON."""
    file: OutputFile | None = None
    """Appended to; None writes to standard error."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is counted, and where it is shown to those who may see nothing else."""

    level: Literal["full", "header"] = "full"
    """header: requests, bytes and latency per API, client and broker. full: errors and topics too."""
    topics: Count = Count(200)
    """Distinct topic labels; what comes later counts as "other"."""
    clients: Count = Count(200)
    """Distinct client labels, likewise."""
    listen: Address | None = None
    """A listener for /metrics, /healthz and /readyz alone, beside the admin API's; None: there is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what klamm may take."""

    frame_bytes: Bytes = Bytes(1 << 30)
    """A frame that announces more closes its connection."""
    held_frame_bytes: Bytes = Bytes(16 << 20)
    """A frame that klamm has to change is kept whole up to this size."""
    connections: int = 0
    """As many at once, of all clusters; 0: as the system's limit of open files allows."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done to frames; docs/rules.md."""

    file: InputFile
    """Read again when it changes."""
    seed: Count | None = None
    """Decides all chances; None takes the file's, or else one that is made up and said."""
    plugins: tuple[InputFile, ...] = ()
    """Python files with actions of your own, besides those that the file names."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What goes through is kept: docs/captures.md."""

    folder: Folder
    """Where its segments go; made if it is not there."""
    filter: Filter | None = None
    """Only exchanges for which this expression holds; None keeps all."""
    records: Literal["blank", "keep", "hash"] = "blank"
    """Of records: nothing but the headers of batches; all; or keys and values as hashes."""
    key_file: InputFile | None = None
    """Holds the key of the hashes; None makes one up, so that only hashes of one capture compare."""
    segment_bytes: Bytes = Bytes(64 << 20)
    """A segment ends at this size,"""
    segment_s: Seconds = Seconds(300.0)
    """or at this age."""
    keep_bytes: Bytes | None = None
    """The oldest segments are deleted beyond so much."""
    keep_s: Seconds | None = None
    """And those that were ended so long ago."""
    queue_bytes: Bytes = Bytes(16 << 20)
    """Waits for the disk at most; what comes then is left out, and the capture says how much."""


@dataclass(frozen=True, slots=True)
class State:
    """The nodes of each cluster and their ports are remembered over a restart."""

    folder: StateFolder | None = AUTO
    """A small file for each cluster goes there; None remembers nothing."""


@dataclass(frozen=True, slots=True)
class Config:
    """All of it."""

    clusters: tuple[Cluster, ...] = ()
    admin: Admin = Admin()
    log: Log = Log()
    metrics: Metrics = Metrics()
    limits: Limits = Limits()
    rules: Rules | None = None
    capture: Capture | None = None
    state: State = State()
