"""Reads klamm.yaml: every mistake is reported, with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import NamedTuple

from klamm.cli.running import name_faults
from klamm.cli.running.named_files import file_faults, rule_file
from klamm.cli.running.sasl_faults import listen_sasl_faults, sasl_faults
from klamm.cli.running.scalars import scalars
from klamm.proxy.config import (
    MOST_WORKERS,
    Admin,
    AdminTls,
    Cluster,
    Config,
    Limits,
    ListenSasl,
    Metrics,
    ProxyProtocol,
    Sasl,
    Tls,
    Transparent,
)
from klamm.proxy.config_types import Address, Listen
from klamm.settings.loopback import is_loopback
from klamm.settings.mistakes import ConfigError, Mistake, Path, Place
from klamm.settings.typed_yaml import BROKEN, Document, read_file

WILDCARDS = {"0.0.0.0", "::"}
BOOTSTRAPS = "port {port} is the first of listen, which no broker has: let listen begin at another port"
LOOPBACK = {"localhost": "127.0.0.1"}
LAST_PORT = 65535
LARGEST_FRAME = 2**31 - 1  # the size before a frame is an int32


def load(file: str) -> Config:
    """The configuration of a file. Raises ConfigError with all of its mistakes."""
    document = parse(file)
    return checked(document.value, document.places, document.mistakes)


def parse(file: str) -> Document:
    """The values of a file, each key by itself; relative paths in it start from its folder."""
    document = read_file(file, Config, scalars(FilePath(file).parent))
    document.places.setdefault((), Place(file, 1, 1))  # an empty file has nothing with a place
    return document


def checked(config: Config, places: Mapping[Path, Place], mistakes: list[Mistake]) -> Config:
    """The configuration if nothing is wrong with it, else ConfigError; `mistakes` are those known already."""
    if not isinstance(config, Config):
        raise ConfigError(mistakes)
    wrong = (*faults(config), *file_faults(config))
    found = mistakes + [Mistake(place_of(path, places), path, reason) for path, reason in wrong]
    if found:
        rules = rule_file(config.rules)  # where nothing else is wrong, the start itself reads them
        raise ConfigError(found + (rules.mistakes if rules else []))
    return config


def place_of(path: Path, places: Mapping[Path, Place]) -> Place:
    """Where a path, or else the nearest thing around it, was written."""
    around = (path[:length] for length in range(len(path), -1, -1))
    return next((places[part] for part in around if part in places), Place("klamm run"))


def faults(config: Config) -> Iterator[tuple[Path, str]]:
    """Keys that contradict each other: path and reason. Values that could not be read (BROKEN) are left
    out.
    """
    written = config.clusters if isinstance(config.clusters, tuple) else (BROKEN,)
    clusters = [(index, cluster) for index, cluster in enumerate(written) if isinstance(cluster, Cluster)]
    if not written:
        yield ("clusters",), "no cluster: say `klamm run kafka-1:9092`, or name its bootstrap under clusters"
    names: dict[str, int] = {}
    for index, cluster in clusters:
        path: Path = ("clusters", index)
        if names.setdefault(cluster.name, index) != index and isinstance(cluster.name, str):
            yield (*path, "name"), f"clusters[{names[cluster.name]}] has the name {cluster.name!r} already"
        for key, reason in _cluster_faults(cluster):
            yield path + key, reason
    yield from _port_faults(list(_claims(config, clusters)), list(_brokers(clusters)), config.clusters)
    yield from name_faults.shared_faults(clusters)
    yield from _admin_faults(config.admin)
    yield from _limit_faults(config.limits)
    if isinstance(config.workers, int) and not 1 <= config.workers <= MOST_WORKERS:
        yield ("workers",), f"must be 1 to {MOST_WORKERS}: as many as klamm may use cores"


def _cluster_faults(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    if cluster.bootstrap == ():
        yield ("bootstrap",), "needs at least one HOST:PORT"
    if cluster.advertise in WILDCARDS:
        yield ("advertise",), f"clients cannot connect to {cluster.advertise}: name this machine"
    if isinstance(cluster.tls, Tls) and isinstance(cluster.tls.key, str) and cluster.tls.cert is None:
        yield ("tls", "key"), "a key without a certificate: add cert"
    if isinstance(cluster.sasl, Sasl):
        yield from ((("sasl", *key), reason) for key, reason in sasl_faults(cluster.sasl))
    if isinstance(cluster.listen_sasl, ListenSasl):
        faults = listen_sasl_faults(cluster.listen_sasl)
        yield from ((("listen_sasl", *key), reason) for key, reason in faults)
    if isinstance(cluster.proxy_protocol, ProxyProtocol) and cluster.proxy_protocol.from_ == ():
        yield ("proxy_protocol", "from"), "names no network: name those of the load balancers"
    if cluster.names is not None:
        yield from name_faults.cluster_faults(cluster)
    elif isinstance(cluster.transparent, Transparent):
        for key in ("advertise", "ports"):
            if getattr(cluster, key):
                yield (
                    (key,),
                    "means nothing with transparent: clients keep the brokers' addresses; take it out",
                )
    listen = cluster.listen
    if isinstance(listen, Listen) and listen.first and isinstance(cluster.bootstrap, tuple):
        hosts = {"127.0.0.1", "::1", "localhost"} if listen.host in WILDCARDS else {listen.host}
        for node, port in cluster.ports.items() if isinstance(cluster.ports, Mapping) else ():
            if port == listen.first:
                yield ("ports", str(node)), BOOTSTRAPS.format(port=port)
        ports = _ports(cluster)
        for broker in cluster.bootstrap:
            if isinstance(broker, Address) and broker.host in hosts and broker.port in ports:
                change = "narrow" if broker.port > listen.first + 1 else "move"
                taken = f"{ports[0]}-{ports[-1]}"
                yield ("bootstrap",), f"{broker} lies in klamm's range {taken}; {change} --listen"


class _Claim(NamedTuple):
    """Ports that somebody wants; `cluster` is an index."""

    path: Path
    owner: str
    host: str
    ports: range
    cluster: int | None = None


def _claims(config: Config, clusters: list[tuple[int, Cluster]]) -> Iterator[_Claim]:
    """In the order of precedence: a later claim has to move."""
    http: list[tuple[Path, str, object]] = [
        (("admin",), "admin", config.admin.listen if isinstance(config.admin, Admin) else None),
        (
            ("metrics", "listen"),
            "metrics",
            config.metrics.listen if isinstance(config.metrics, Metrics) else None,
        ),
    ]
    for path, owner, address in http:
        if isinstance(address, Address) and address.port:
            yield _Claim(path, owner, address.host, _one(address.port))
    ready = [(index, cluster) for index, cluster in clusters if isinstance(cluster.listen, Listen)]
    for index, cluster in ready:
        path = ("clusters", index, "listen")
        yield _Claim(path, f"cluster {cluster.name}", cluster.listen.host, _ports(cluster), index)
    for index, cluster in ready:
        for node, port in cluster.ports.items() if isinstance(cluster.ports, Mapping) else ():
            if isinstance(port, int):
                path = ("clusters", index, "ports", str(node))
                owner = f"node {node} of cluster {cluster.name}"
                yield _Claim(path, owner, cluster.listen.host, _one(port), index)


def _brokers(clusters: list[tuple[int, Cluster]]) -> Iterator[_Claim]:
    """The ports of brokers, which may be on this machine."""
    for index, cluster in clusters:
        for broker in cluster.bootstrap if isinstance(cluster.bootstrap, tuple) else ():
            if isinstance(broker, Address):
                path = ("clusters", index, "bootstrap")
                yield _Claim(path, f"broker {broker}", broker.host, _one(broker.port), index)


def _ports(cluster: Cluster) -> range:
    """The ports on which it listens; with names it is one."""
    listen = cluster.listen
    return listen.ports if cluster.names is None else _one(listen.first)


def _one(port: int) -> range:
    return range(port, port + 1)


def _port_faults(
    claims: list[_Claim], brokers: list[_Claim], clusters: Sequence[Cluster]
) -> Iterator[tuple[Path, str]]:
    taken = claims + brokers
    for number, late in enumerate(claims):
        for early in claims[:number]:
            if _meet(early, late) and not _together(early, late, clusters):
                free = _free(early, late, taken)
                taken += [] if free is None else [free]  # no two claims are to have the same advice
                yield late.path, _clash(early, late, free)
                break


def _free(early: _Claim, late: _Claim, taken: Sequence[_Claim]) -> _Claim | None:
    """So many ports as the later claim has, and nobody else: behind the earlier one, if there is room."""
    behind = sorted(each.ports[-1] + 1 for each in taken if each.ports[-1] >= early.ports[-1])
    for first in (*behind, Listen().first):
        found = late._replace(ports=range(first, first + len(late.ports)))
        others = (each for each in taken if each is not late)
        if found.ports[-1] <= LAST_PORT and not any(_meet(found, each) for each in others):
            return found
    return None


def _together(early: _Claim, late: _Claim, clusters: Sequence[Cluster]) -> bool:
    """May both have the port: a node in the range of its own cluster, or clusters with names?"""
    if early.cluster is None or late.cluster is None or early.path[-1] != "listen":
        return False
    pair = clusters[early.cluster], clusters[late.cluster]
    return early.cluster == late.cluster or (late.path[-1] == "listen" and name_faults.shares_port(*pair))


def _meet(one: _Claim, other: _Claim) -> bool:
    hosts = {LOOPBACK.get(host, host) for host in (one.host, other.host)}
    if len(hosts) > 1 and not WILDCARDS & hosts:
        return False
    return max(one.ports[0], other.ports[0]) <= min(one.ports[-1], other.ports[-1])


def _clash(early: _Claim, late: _Claim, free: _Claim | None) -> str:
    taken = f"{early.ports[0]}-{early.ports[-1]}" if len(early.ports) > 1 else f"{early.ports[0]}"
    if len(late.ports) == 1:
        narrow = ", or let that range end earlier" if len(early.ports) > 1 else ""
        return f"port {late.ports[0]} is taken by {early.owner} ({taken}): choose another{narrow}"
    such = "" if free is None else f", such as {Address(free.host, free.ports[0])}-{free.ports[-1]}"
    return (
        f"ports {late.ports[0]}-{late.ports[-1]} meet those of {early.owner} ({taken}): "
        f"give each a range of its own{such}"
    )


def _admin_faults(admin: Admin) -> Iterator[tuple[Path, str]]:
    if not isinstance(admin, Admin):
        return
    for role in ("", "read_only_"):
        keys = f"{role}token_file", f"{role}token_env"
        if all(getattr(admin, key) is not None for key in keys):
            yield ("admin", keys[1]), f"the token comes from one place: leave out {keys[0]} or {keys[1]}"
    ca = admin.tls.ca if isinstance(admin.tls, AdminTls) else None
    if admin.principals and admin.tls is not BROKEN and ca is None:
        yield ("admin", "principals"), "principals are those of client certificates: add admin.tls.ca"
    if ca is not None and admin.principals == {}:
        advice = 'add admin.principals, such as {"User:CN=ops": full, "*": read_only}'
        yield ("admin", "tls", "ca"), f"which role have the callers with a certificate? {advice}"
    if isinstance(admin.listen, Address) and not (is_loopback(admin.listen.host) or admin.wants_credentials):
        can = "see the traffic" if admin.read_only else "see the traffic and change what klamm does"
        yield (
            ("admin",),
            f"others than this machine can reach {admin.listen}, and {can}: add --admin-token-file FILE; "
            "for metrics and health alone there is --metrics HOST:PORT",
        )


def _limit_faults(limits: Limits) -> Iterator[tuple[Path, str]]:
    if not isinstance(limits, Limits):
        return
    if isinstance(limits.connections, int) and limits.connections < 0:
        yield ("limits", "connections"), "0 (as many as can be) or more"
    frame, held = limits.frame_bytes, limits.held_frame_bytes
    if isinstance(frame, int) and frame > LARGEST_FRAME:
        yield ("limits", "frame_bytes"), f"Kafka's frames have at most {LARGEST_FRAME} bytes"
    if isinstance(frame, int) and isinstance(held, int) and held > frame:
        if held == Limits().held_frame_bytes:
            other = f"held_frame_bytes, which is {held} unless it is set"
            yield ("limits", "frame_bytes"), f"less than {other}: set that one too, to {frame} or less"
        else:
            yield ("limits", "held_frame_bytes"), f"more than frame_bytes ({frame})"
