"""Made-up bodies of any API and version. The same draw gives the same body with other addresses."""

from __future__ import annotations

from functools import cache, lru_cache
from random import Random
from typing import Any, NamedTuple

from klamm.decoders import API, encode
from klamm.decoders.schema import SECRET, UNKNOWN_TAGS, Api, Field, Side, members, present
from tests.fakes.messages import value_of
from tests.simulation.nodes import NODES, NOWHERE, Addresses, Places, of_brokers, of_klamm
from tests.simulation.ruling import Sets

API_VERSIONS, FETCH, METADATA, PRODUCE = 18, 1, 3, 0
CONTROLLERS = 2  # DescribeCluster's endpoint_type
ERRORS = (0, 0, 0, 3, 6, 16, 29)
LARGE = 300_000  # bytes that a large answer has in a tagged field
# Names in a told exchange, and the fields of its request that they come from.
NAMES = {"group": "group_id", "transactional_id": "transactional_id"}
KEPT = 4096  # answers: a broker gives most of them several times
PASSWORD = "hunter2-of-the-simulation"  # stands in every field that holds a secret
# Of each SASL mechanism, the tokens of a client and what a broker answers; None: it sends nothing.
TOKENS: dict[str, tuple[tuple[bytes, bytes | None], ...]] = {
    "PLAIN": ((f"\0user\0{PASSWORD}".encode(), b""),),  # RFC 4616
    "SCRAM-SHA-256": (  # RFC 5802
        (f"n,,n=user,r={PASSWORD}".encode(), f"r={PASSWORD},s=QSXCR+Q6sek8bf92,i=4096".encode()),
        (f"c=biws,r={PASSWORD},p={PASSWORD}".encode(), b"v="),
    ),
    "GSSAPI": (  # RFC 4752
        (b"\x60\x82\x02\x01" + PASSWORD.encode(), b"\x60\x81" + PASSWORD.encode()),
        (b"", b"\x05\x04\x05\xff" + PASSWORD.encode()),
        (b"\x05\x04\x04\xff" + PASSWORD.encode(), None),
    ),
}
GREETED = ("PLAIN", "SCRAM-SHA-256")  # mechanisms behind SaslHandshake; GSSAPI came first in Kafka 0.9

# Where brokers tell addresses, by Kafka's protocol guide: the field that has them, or the response itself.
BEARERS: dict[str, tuple[str, ...]] = {
    "Metadata": ("brokers",),
    "FindCoordinator": ("coordinators", ""),
    "Produce": ("node_endpoints",),
    "Fetch": ("node_endpoints",),
    "ShareFetch": ("node_endpoints",),
    "ShareAcknowledge": ("node_endpoints",),
    "DescribeCluster": ("brokers",),
    "DescribeQuorum": ("nodes",),
}


@cache
def bears(api: Api, version: int) -> bool:
    """Do the responses of this version tell addresses of brokers?"""
    there = {f.name for fields in present(api.response, version) for f in fields}
    places = BEARERS.get(api.name, ())
    return any(place in there or (place == "" and "host" in there) for place in places)


class Asking(NamedTuple):
    """A request: its body, and what it says of itself at its top."""

    body: bytes
    acks: int | None
    named: dict[str, str | None]


@lru_cache(KEPT)
def request(api: Api, version: int, draw: int, sets: Sets | None = None) -> Asking:
    """`sets`: with this value of this field."""
    values = request_values(api, version, draw) | (dict([sets]) if sets is not None else {})
    named = {told: values.get(field) or None for told, field in NAMES.items()}
    return Asking(body(api, version, "request", values), values.get("acks"), named)


class Made(NamedTuple):
    """The body of an answer: as a broker writes it, and as its client has to get it. `endpoints`: it has
    `node_endpoints`, which klamm takes out of a large answer.
    """

    came: bytes
    goes: bytes
    errors: int
    endpoints: bool


@lru_cache(KEPT)
def answer(api: Api, version: int, draw: int, places: Places, large: bool, sets: Sets | None = None) -> Made:
    """`sets`: its client gets this value of this field, where the version has it."""
    came = response_values(api, version, draw, of_brokers(places))
    goes = response_values(api, version, draw, of_klamm)
    if sets is not None and sets[0] in goes:
        goes |= dict([sets])
    if api.key == API_VERSIONS:
        goes = offered(came)
    if large:
        came[UNKNOWN_TAGS] = goes[UNKNOWN_TAGS] = [(100, bytes(LARGE))]
    came_body, goes_body = (body(api, version, "response", values) for values in (came, goes))
    return Made(came_body, goes_body, errors_in(came), bool(came.get("node_endpoints")))


@cache
def has_endpoints(api: Api, version: int) -> bool:
    """May its responses have `node_endpoints`?"""
    return any(f.name == "node_endpoints" for fields in present(api.response, version) for f in fields)


def request_values(api: Api, version: int, draw: int) -> dict[str, Any]:
    """Values of a request; `acks` of Produce are 0, 1 or -1."""
    random = Random(f"request {draw}")
    values = _struct(api.request, version, random)
    if api.key == PRODUCE:
        values["acks"] = random.choice([-1, -1, 1, 0])
    if (api.name, version) == ("SaslHandshake", 0):
        values["mechanism"] = GREETED[draw % len(GREETED)]
    return values


def response_values(api: Api, version: int, draw: int, addresses: Addresses) -> dict[str, Any]:
    """Values of a response. `addresses` gives those that stand in it."""
    random = Random(f"response {draw}")
    values = _struct(api.response, version, random)
    if (api.name, version) == ("SaslHandshake", 0):
        values["error_code"] = 0
    if not bears(api, version):
        return _offer(values, random) if api.key == API_VERSIONS else values
    kind = "controller" if api.name == "DescribeQuorum" else "broker"
    if "endpoint_type" in values:
        values["endpoint_type"] = random.choice([1, CONTROLLERS])
        kind = "controller" if values["endpoint_type"] == CONTROLLERS else kind
    for place in BEARERS[api.name]:
        if place == "" and "host" in values:
            _tell(values, kind, random, addresses)
        for row in values.get(place) or ():
            _tell(row, kind, random, addresses)
    return values


def mangled(data: bytes, draw: int) -> bytes:
    """A body that is cut short, or has some bytes too many, or both."""
    random = Random(f"mangled {draw}")
    kept = data[: random.choice([len(data), random.randrange(len(data) + 1)])]
    return kept + random.randbytes(random.choice([0, 1, 9]))


def anything(draw: int) -> bytes:
    """A body whose layout klamm does not know."""
    random = Random(f"anything {draw}")
    return random.randbytes(random.choice([0, 1, 20, 300]))


def body(api: Api, version: int, side: Side, values: dict[str, Any]) -> bytes:
    return encode(values, api.key, version, side)


def _struct(fields: tuple[Field, ...], version: int, random: Random) -> dict[str, Any]:
    in_place, tagged = present(fields, version)
    return {f.name: _value(f, version, random) for f in (*in_place, *tagged)}


def _value(f: Field, version: int, random: Random) -> Any:
    if f.kind == "struct":
        return _struct(members(f), version, random)
    if f.kind == "array" and isinstance(f.of, tuple):
        if version in f.null and random.random() < 0.2:
            return None
        return [_struct(f.of, version, random) for _ in range(random.randrange(4))]
    if f.mark == SECRET and f.kind in ("string", "bytes"):
        return PASSWORD if f.kind == "string" else PASSWORD.encode()
    if f.name == "error_code":
        return random.choice(ERRORS)
    return value_of(f, version, random)


def _tell(row: dict[str, Any], kind: str, random: Random, addresses: Addresses) -> None:
    """Put a node into a struct that tells one: with several listeners, or with one address, or none."""
    node = random.choice(NODES)
    row["broker_id" if "broker_id" in row else "node_id"] = node
    address = addresses(kind, node) if random.random() < 0.9 else NOWHERE
    for where in row.get("listeners", [row]):
        where["host"], where["port"] = address
        if "listeners" in row:
            where["port"] = max(0, where["port"])  # an unsigned number there


def _offer(values: dict[str, Any], random: Random) -> dict[str, Any]:
    """An answer to ApiVersions: APIs that klamm knows and others, up to versions that it knows or not."""
    keys = random.sample([api.key for api in API], random.randrange(8)) + [900] * random.randrange(2)
    rows = [_range(key, random) for key in keys]
    return values | {"error_code": 0, "api_keys": rows}


def _range(key: int, random: Random) -> dict[str, Any]:
    last = 3 if key not in API else API[key].versions.last + random.choice([-1, 0, 1, 5])
    first = last if random.random() < 0.1 else 0
    return {"api_key": key, "min_version": max(0, first), "max_version": max(0, last)}


def offered(values: dict[str, Any]) -> dict[str, Any]:
    """The answer to ApiVersions that a client has to get: APIs whose answers tell addresses, and ApiVersions
    itself, in versions that klamm knows, and no API that it does not know.
    """
    rows = []
    for row in values["api_keys"]:
        if row["api_key"] not in API:
            continue
        api = API[row["api_key"]]
        limited = api.name in BEARERS or api.key == API_VERSIONS
        newest = min(row["max_version"], api.versions.last) if limited else row["max_version"]
        if row["min_version"] <= newest:
            rows.append(row | {"max_version": newest})
    return values | {"api_keys": rows}


def errors_in(values: Any) -> int:
    """How many error codes, other than 0, stand in these values."""
    if isinstance(values, dict):
        codes = sum(bool(value) for name, value in values.items() if name.endswith("error_code"))
        return codes + sum(map(errors_in, values.values()))
    return sum(map(errors_in, values)) if isinstance(values, list) else 0
