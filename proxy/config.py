"""The settings of klamm: plain data, checked before it gets here (cli/running/config_file.py).

A field's name is its key in klamm.yaml; docs/configuration.md lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from klamm.proxy.config_types import (
    AUTO,
    Address,
    ApiName,
    Bytes,
    ClusterName,
    CollectorUrl,
    Count,
    Filter,
    Folder,
    Host,
    InputFile,
    Listen,
    Network,
    NodePattern,
    OutputFile,
    Port,
    Principal,
    Role,
    Seconds,
    ServerName,
    Share,
    StateFolder,
    Text,
    Url,
)

MOST_WORKERS = 64


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
class Sasl:
    """klamm's own credentials for the brokers. Every client then acts with them."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"]
    username: Text | None = None
    password_file: InputFile | None = None
    """Has the password; it is read for each connection."""
    password_env: Text | None = None
    """Or the name of an environment variable that has it."""
    token_file: InputFile | None = None
    """Has the token of OAUTHBEARER; it is read for each connection."""
    token_command: tuple[Text, ...] = ()
    """Or a program with its arguments, which prints the token."""
    token_endpoint_url: Url | None = None
    """Or where an OIDC server gives tokens to its clients (RFC 6749, 4.4)."""
    client_id: Text | None = None
    client_secret_file: InputFile | None = None
    client_secret_env: Text | None = None
    scope: Text | None = None
    token_ca: InputFile | None = None
    """The server's certificate is of one of these authorities; None: of one of the system's."""
    token_timeout_s: Seconds = Seconds(10.0)
    """For the program or the server to give a token."""
    extensions: Mapping[Text, Text] = field(default_factory=dict)
    """Sent with the token (KIP-342)."""
    principal: Text | None = None
    """Of Kerberos, "klamm@EXAMPLE.COM"; None: that of the ticket cache."""
    keytab: InputFile | None = None
    """Has its key; None: there is a ticket in the cache of the environment (KRB5CCNAME)."""
    service_name: Text = Text("kafka")
    """Of the brokers: the first part of their principals, before the host."""
    aws_profile: Text | None = None
    """In the files of AWS; None: what AWS's own libraries find (AWS_PROFILE, a role, ...)."""
    aws_region: Text | None = None
    """None: that in the broker's name, else the profile's."""


@dataclass(frozen=True, slots=True)
class ListenTls:
    """TLS from the clients to klamm. PEM files, which are read again when they change."""

    cert: InputFile
    """klamm's certificate, for the host that clients get; its key is in `key`, or in the same file."""
    key: InputFile | None = None
    ca: InputFile | None = None
    """Clients need a certificate of one of these authorities; None asks them for none."""
    min_version: Literal["TLSv1.2", "TLSv1.3"] = "TLSv1.2"
    """Clients that speak older versions only are refused."""


@dataclass(frozen=True, slots=True)
class ListenSasl:
    """Clients authenticate with klamm. The files are read again when they change."""

    mechanisms: tuple[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"], ...]
    users: InputFile | None = None
    """The users of PLAIN and SCRAM, as `klamm users` writes it."""
    jwks: InputFile | None = None
    """The keys for the tokens of OAUTHBEARER, a JSON web key set."""
    jwks_url: Url | None = None
    """Or where the issuer has them; they are fetched in the background."""
    jwks_ca: InputFile | None = None
    """Certificates to trust there; None trusts those of the system."""
    issuer: Text | None = None
    """Of the tokens (iss)."""
    audience: tuple[Text, ...] = ()
    """Of the tokens (aud): one of them has to be in it."""
    claim: Text = Text("sub")
    """Of a token, which has the user's name."""
    allow: tuple[Principal, ...] = ()
    """Principals that may use this cluster, as globs; none named: each that authenticates."""
    max_reauth_s: Seconds | None = None
    """After so long a client has to authenticate again (KIP-368); None: when its token expires, if it has."""


@dataclass(frozen=True, slots=True)
class ProxyProtocol:
    """The header with which load balancers tell the addresses of their clients."""

    from_: tuple[Network, ...]
    """Connections from these networks begin with it; from others they must not."""


@dataclass(frozen=True, slots=True)
class Transparent:
    """Clients keep the brokers' addresses: the kernel redirects their connections to klamm's first port."""

    to: tuple[Network, ...] = ()
    """klamm connects to destinations in these networks only; none named: to any, as the redirect decides."""
    ports: tuple[Port, ...] = ()
    """And to these ports only; none named: to any."""


@dataclass(frozen=True, slots=True)
class Names:
    """Host names by which clients of a port, that of other clusters too, say which node they want (SNI)."""

    bootstrap: ServerName
    """For the clients' `bootstrap.servers`."""
    nodes: NodePattern
    """For each node: $(node) stands for the id of a broker, and for controller-ID of a controller."""
    port: Port | None = None
    """The port that clients are told; None: that of `listen`."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One Kafka cluster and the listeners in front of it."""

    bootstrap: tuple[Address, ...]
    """Any one of them that answers is enough."""
    name: ClusterName = ClusterName("kafka")
    """A label in logs and metrics."""
    listen: Listen = Listen()
    advertise: Host | None = None
    """The host in the addresses that clients get; None: the local address of each client's connection."""
    map: Mapping[Address, Address] = field(default_factory=dict)
    """Address that a broker advertises -> address at which klamm reaches it."""
    ports: Mapping[int, Port] = field(default_factory=dict)
    """Node id -> listen port, for nodes whose port must not follow from the listen range."""
    tls: Tls | None = None
    """To the brokers; None speaks plain text."""
    sasl: Sasl | None = None
    """klamm authenticates itself with the brokers; None: SASL of the clients passes through."""
    listen_tls: ListenTls | None = None
    """To the clients; None speaks plain text."""
    proxy_protocol: ProxyProtocol | None = None
    """Load balancers between the clients and klamm that send it; None: the clients connect by themselves."""
    transparent: Transparent | None = None
    """No address is rewritten, and each connection goes on to its original destination; None: klamm has ports
    for the brokers, and clients are told those."""
    allow_unknown_apis: bool = False
    """True leaves unknown API keys in ApiVersions; an address that one of them carries bypasses klamm."""
    connect_timeout_s: Seconds = Seconds(5.0)
    """For a TCP connection and its TLS handshake to a broker."""
    names: Names | None = None
    """All nodes share the first port of `listen`, told apart by host names; None: each has its own port."""
    listen_sasl: ListenSasl | None = None
    """Clients authenticate with klamm; None: their SASL passes through, or they need none."""


@dataclass(frozen=True, slots=True)
class AdminTls(ListenTls):
    """TLS from the callers of the admin API, who may show a certificate of `ca` in place of a token."""


@dataclass(frozen=True, slots=True)
class Admin:
    """The HTTP server: /metrics, /healthz, /readyz, and the admin API below /v1 (docs/admin-api.md)."""

    listen: Address | None = Address("127.0.0.1", 19091)
    """None runs without it; port 0 takes a free one."""
    tls: AdminTls | None = None
    """None speaks plain HTTP."""
    token_file: InputFile | None = None
    """Has the token of callers of /v1 who may do everything. It is read again when it changes."""
    token_env: Text | None = None
    """Or the name of an environment variable that has it."""
    read_only_token_file: InputFile | None = None
    """Has the token of callers of /v1 who may change nothing. It is read again when it changes."""
    read_only_token_env: Text | None = None
    """Or the name of an environment variable that has it."""
    principals: Mapping[Principal, Role] = field(default_factory=dict)
    """The principal of a client certificate, as of clients of Kafka -> its role; "*" is each other one."""
    read_only: bool = False
    """True refuses requests that change something, whoever sends them."""

    @property
    def wants_credentials(self) -> bool:
        """Do callers of /v1 need a token or a certificate?"""
        tokens = self.token_file, self.token_env, self.read_only_token_file, self.read_only_token_env
        return any(tokens) or bool(self.principals)


@dataclass(frozen=True, slots=True)
class Log:
    """Events are always logged; exchanges (request and response, a line each) for the APIs named here."""

    apis: tuple[ApiName, ...] = ()
    format: Literal["auto", "json", "console"] = "auto"
    """auto: console on a terminal, else JSON."""
    file: OutputFile | None = None
    """Appended to; None writes to standard error."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit log: docs/audit.md."""

    file: OutputFile
    """Appended to; opened anew if its path leads elsewhere, as after logrotate."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The detail of metrics, and a listener of their own."""

    level: Literal["full", "header"] = "full"
    """header: requests, bytes and latency per API, client and broker. full: errors and topics too."""
    topics: Count = Count(200)
    """Distinct topic labels; topics beyond that count as "other"."""
    clients: Count = Count(200)
    """Distinct client labels, likewise."""
    listen: Address | None = None
    """A listener for /metrics, /healthz and /readyz alone, beside the admin API's; None: there is none."""
    expire_s: Seconds = Seconds(3600.0)
    """A label that nobody has used for so long is forgotten."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of frames and connections."""

    frame_bytes: Bytes = Bytes(1 << 30)
    """A frame that announces more closes its connection."""
    held_frame_bytes: Bytes = Bytes(16 << 20)
    """The largest frame that klamm holds whole to change it."""
    connections: int = 0
    """The most at one time, over all clusters; 0: as many as the limit of open files allows."""
    connections_per_address: Count = Count(0)
    """The most at one time from one address, over all clusters; 0: as many as come."""
    connections_per_principal: Count = Count(0)
    """The most at one time with one certificate's principal, over all clusters; 0: as many as come."""
    held_bytes: Bytes = Bytes(96 << 20)
    """Of all connections together. Beyond it no frame is held for rules or for a filter of `klamm tail`."""
    drain_s: Seconds = Seconds(10.0)
    """After SIGTERM or POST /v1/drain, requests under way may take so long; then they are cut off."""
    max_age_s: Seconds | None = None
    """A connection of about this age (10 % more or less) ends between two exchanges; None: none does."""
    unruled: Literal["pass", "close"] = "pass"
    """A frame that rules ask for and that cannot be held passes as it is, or its connection is closed."""
    idle_s: Seconds | None = None
    """A connection on which no byte comes or goes for so long ends; None: none does, but for the brokers."""
    connects_per_second: Count = Count(0)
    """The most that are accepted in a second, over all clusters; the others wait. 0: as many as come."""
    frame_s: Seconds | None = Seconds(60.0)
    """A request that has begun goes on: of its rest 4 KiB come within this time, or all. None: no limit."""
    unread_s: Seconds | None = Seconds(600.0)
    """A client takes what is sent to it: 4 KiB within this time, or all. None: no limit."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a file: docs/rules.md."""

    file: InputFile
    """Read again when it changes."""
    seed: Count | None = None
    """Decides all chances; None takes the file's seed, or else a random one, which is logged."""
    plugins: tuple[InputFile, ...] = ()
    """Python files with actions of your own, besides those that the rules' file names."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture of the traffic: docs/captures.md."""

    folder: Folder
    """The folder of its segments; made if it is not there."""
    filter: Filter | None = None
    """Only exchanges for which this expression holds; None keeps all."""
    records: Literal["blank", "keep", "hash"] = "blank"
    """blank keeps the headers of record batches only, keep all, hash keeps keys and values as hashes."""
    key_file: InputFile | None = None
    """Has the key of the hashes; None: a random one, so that only hashes of one capture can be compared."""
    segment_bytes: Bytes = Bytes(64 << 20)
    """A segment ends at this size,"""
    segment_s: Seconds = Seconds(300.0)
    """or at this age."""
    keep_bytes: Bytes | None = None
    """If the segments are larger together, the oldest are deleted."""
    keep_s: Seconds | None = None
    """Segments that ended so long ago are deleted."""
    queue_bytes: Bytes = Bytes(8 << 20)
    """The most that waits for the disk; frames beyond it are left out, and the capture has their number."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Exchanges as traces of OpenTelemetry, all or those for which `filter` holds: docs/traces.md."""

    endpoint: CollectorUrl | None = None
    """Where a collector takes OTLP over HTTP; None: where OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says."""
    sample: Share = Share(0.01)
    """The share of the exchanges that become traces."""
    filter: Filter | None = None
    parents: bool = False
    """True looks for `traceparent` in the headers of records: a trace then goes on in klamm."""


@dataclass(frozen=True, slots=True)
class State:
    """The nodes of each cluster and their ports, kept over a restart."""

    folder: StateFolder | None = AUTO
    """The folder for a small file per cluster; None keeps nothing."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings."""

    clusters: tuple[Cluster, ...] = ()
    admin: Admin = Admin()
    log: Log = Log()
    metrics: Metrics = Metrics()
    limits: Limits = Limits()
    rules: Rules | None = None
    capture: Capture | None = None
    state: State = State()
    audit: Audit | None = None
    traces: Traces | None = None
    workers: Count = Count(1)
    """Processes that serve the connections; with 1 klamm is one process."""
    handover: OutputFile | None = None
    """A UNIX socket by which the next klamm takes the place of this one; None: there is none."""
