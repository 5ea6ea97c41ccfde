"""Answers of any API that klamm edits, as no broker would write them: strategies of hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from klamm.decoders import API, encode
from klamm.decoders.headers import response_header_version
from klamm.decoders.schema import HOST, NODE_ID, PORT, UNKNOWN_TAGS, Api, Field, all_fields, present
from klamm.rules.plan import endpoints
from tests.fakes.messages import values_of
from tests.strangers.parts import (
    Address,
    Edited,
    Form,
    Part,
    Sent,
    Total,
    held,
    sent,
    size_of,
    split,
    uvarint,
)

ALL = [(api, version) for api in API for version in range(api.versions.first, api.versions.last + 1)]
BEARING = [(api, version) for api, version in ALL if endpoints(api, version) is not None]
EDITED = {api.key for api, _ in BEARING} | {18}
# The first version of ControlledShutdown tells no client id, by which the server knows what to answer.
UNUSUAL = {"ControlledShutdown", "ApiVersions", "SaslHandshake", "SaslAuthenticate"}
AS_THEY_ARE = [
    (api, version) for api, version in ALL if (api, version) not in BEARING and api.name not in UNUSUAL
]
BLANKED = 256 * 1024  # larger answers have their addresses at the end blanked
NODES = [0, 1, 2, 3, 7, 1000, -30, 2**31 - 61]  # each gets the port that is meant for it
NAMES = ["a", "kafka-1.internal", "kafka-22.internal", f"{'k' * 50}.{'internal' * 7}", "127.0.0.9", "::1"]
NONSENSE = [None, "", "internal" * 40, "kafka\udcff.internal", "k\0internal", "fe80::1%internal"]
PORTS = [9092, 1, 65535]
NO_PORTS = [0, -1]
TOO_HIGH = [65536, 2**31 - 1]

Standing = Callable[[str, int], Address]


@dataclass
class Answer:
    """To a request of this API version: how it comes, and how it goes, from behind the correlation id on.
    `lists`: nodes stand in it, with an address or without.
    """

    api: Api
    version: int
    sent: Sent
    lists: bool = False

    @property
    def large(self) -> bool:
        """Is it so large that klamm blanks its addresses?"""
        tail = self.api.name in ("Produce", "Fetch", "ShareFetch", "ShareAcknowledge")
        return tail and (self.api, self.version) in BEARING and len(self.sent.came) + 4 > BLANKED


def addresses(own: Address) -> st.SearchStrategy[Address]:
    """Of brokers, which klamm finds at NAMES and PORTS, or without asking DNS nowhere. `own`: of klamm."""
    found = st.tuples(st.sampled_from(NAMES), st.sampled_from(PORTS + NO_PORTS))
    nowhere = st.tuples(st.sampled_from(NONSENSE), st.sampled_from(PORTS + NO_PORTS + TOO_HIGH))
    high = st.tuples(st.sampled_from(["127.0.0.9", "::1"]), st.sampled_from(TOO_HIGH))
    where = st.one_of(found, found, found, nowhere, high, st.just((own.host, own.port)))
    padded = st.sampled_from([0, 0, 0, 1, 2])
    return st.builds(
        lambda node, at, more: Address(node, at[0], at[1], more), st.sampled_from(NODES), where, padded
    )


tags = st.dictionaries(st.sampled_from([5, 126, 127, 128, 100_000]), st.binary(max_size=9), max_size=2).map(
    lambda found: sorted(found.items())
)


def carrier(api: Api, version: int) -> Field | None:
    """The array of a response that has its addresses; None where they stand in the response itself."""
    for f in present(api.response, version)[0] + present(api.response, version)[1]:
        if isinstance(f.of, tuple) and any(inner.mark == HOST for _, inner in all_fields(f.of, version)):
            return f
    return None


@st.composite
def bearing(draw: st.DrawFn, standing: Standing, own: Address) -> Answer:
    """One with addresses."""
    api, version = draw(st.sampled_from(BEARING))
    flexible = version in api.flexible
    told = draw(st.lists(addresses(own), max_size=5))
    values = values_of(api.response, version, Random(draw(st.integers(0, 999))))
    values.pop("endpoint_type", None)
    kind = "controller" if api.name == "DescribeQuorum" else "broker"
    if api.name == "DescribeCluster" and version and draw(st.booleans()):
        values["endpoint_type"], kind = 2, "controller"
    port = next(f for _, f in all_fields(api.response, version) if f.mark == PORT)
    form = Form(flexible, 2 if port.kind == "uint16" else 4)
    told = [one if flexible else one._replace(padded=0) for one in told]
    if form.port == 2:
        told = [one._replace(port=one.port % 65536) for one in told]
    f = carrier(api, version)
    large = draw(st.integers(0, 19)) == 0
    if flexible:
        values[UNKNOWN_TAGS] = draw(tags)
    if f is None:
        told = told[:1] or [Address(-1, "", -1)]
        values |= {"node_id": told[0].node_id, **held(0)}
        parts = split(encode(values, api.key, version, "response"), form, _pairs(told, kind, standing))
    else:
        assert isinstance(f.of, tuple)
        rows, pairs = _rows(draw, f.of, version, told, flexible, large and f.tag is None)
        replaced = [(one, standing(kind, one.node_id)) for one in pairs]
        if large and f.name == "node_endpoints":
            first = api.response[[each.name for each in api.response].index("responses")]
            assert isinstance(first.of, tuple)
            row = values_of(first.of, version, Random(1))
            values["responses"] = [row | {UNKNOWN_TAGS: [(9, bytes(BLANKED))]}]
        if f.tag is not None:
            parts = _tagged(draw, api, version, values, f, rows, form, replaced)
        elif draw(st.integers(0, 9)) == 0:
            parts = [_with_null(api, version, values, f, form)]
        else:
            whole = encode(values | {f.name: rows}, api.key, version, "response")
            parts = split(whole, form, replaced)
    parts = [*_header(draw, api, version), *parts, draw(st.just(b"") | st.binary(max_size=9))]
    if large and (f is None or not flexible):
        parts.append(bytes(BLANKED))
    return Answer(api, version, _cut(draw, parts), bool(told))


def _pairs(told: list[Address], kind: str, standing: Standing) -> list[tuple[Address, Address]]:
    return [(one, standing(kind, one.node_id)) for one in told]


def _rows(
    draw: st.DrawFn, of: tuple[Field, ...], version: int, told: list[Address], flexible: bool, large: bool
) -> tuple[list[dict[str, Any]], list[Address]]:
    """Rows with placeholders for the addresses, in order; a controller has up to two of them."""
    node = next(f.name for f in of if f.mark == NODE_ID)
    nested = next((f for f in of if f.name == "listeners"), None)
    rows: list[dict[str, Any]] = []
    pairs: list[Address] = []
    for one in told:
        row = values_of(of, version, Random(len(rows))) | {node: one.node_id}
        if nested is None:
            row |= held(len(pairs))
            pairs.append(one)
        else:
            assert isinstance(nested.of, tuple)
            row["listeners"] = []
            for _ in range(draw(st.integers(0, 2))):
                row["listeners"].append({"name": "CONTROLLER", **held(len(pairs))})
                pairs.append(one)
        if flexible:
            row[UNKNOWN_TAGS] = [(9, bytes(BLANKED))] if large and not rows else draw(tags)
        rows.append(row)
    return rows, pairs


def _with_null(api: Api, version: int, values: dict[str, Any], f: Field, form: Form) -> bytes:
    """A body whose array is null, though that is not allowed."""
    assert isinstance(f.of, tuple)
    one = values_of(f.of, version, Random(0))
    bodies = [encode(values | {f.name: rows}, api.key, version, "response") for rows in ([], [one])]
    at = next(at for at, (byte, other) in enumerate(zip(*bodies, strict=False)) if byte != other)
    none, first = (b"\0", at) if form.compact else (b"\xff" * 4, at - 3)
    return bodies[0][:first] + none + bodies[0][at + 1 :]


def _tagged(
    draw: st.DrawFn,
    api: Api,
    version: int,
    values: dict[str, Any],
    f: Field,
    rows: list[dict[str, Any]],
    form: Form,
    replaced: list[tuple[Address, Address]],
) -> list[Part]:
    """A body whose addresses are in a tagged field, which may be there twice, anywhere in its section."""
    unknown = values.pop(UNKNOWN_TAGS)
    head = encode(values | {f.name: []}, api.key, version, "response")[:-1]
    whole = encode(values | {f.name: rows}, api.key, version, "response")[len(head) :]
    size = next(size for size in range(1, 6) if not rows or whole[1 + size] < 0x80)
    inner: list[Part] = (
        split(whole[2 + size :], form, replaced) if rows else [draw(st.sampled_from([b"\0", b"\1"]))]
    )
    lies = draw(st.sampled_from([0] * 19 + [1]))
    padded = draw(st.sampled_from([0, 0, 0, 1]))
    fields: list[list[Part]] = [[uvarint(tag), uvarint(len(data)), data] for tag, data in unknown]
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
        fields.append([b"\0", Total(size_of(inner), "size", inner, padded, lies)])
    fields = draw(st.permutations(fields))
    return [head, uvarint(len(fields)), *(part for each in fields for part in each)]


def _header(draw: st.DrawFn, api: Api, version: int) -> list[Part]:
    """The tagged fields of a response's header."""
    if not response_header_version(api, version):
        return []
    found = draw(st.just([]) | tags)
    return [uvarint(len(found)), *(uvarint(tag) + uvarint(len(data)) + data for tag, data in found)]


def _cut(draw: st.DrawFn, parts: list[Part]) -> Sent:
    size = size_of(parts)
    return sent(parts, draw(st.just(size) | st.integers(0, size)))


@st.composite
def versions(draw: st.DrawFn) -> Answer:
    """One of ApiVersions."""
    api = API["ApiVersions"]
    version = draw(st.integers(api.versions.first, api.versions.last))
    flexible = version in api.flexible
    error = draw(st.sampled_from([0, 0, 0, 0, 35, 41]))
    keys = st.sampled_from([each.key for each in API]) | st.sampled_from([0, 1, 3, 18, 55, -1, 93, 9999])
    entries: list[Part] = []
    rows = draw(st.lists(st.tuples(keys, st.integers(0, 20), st.integers(0, 20)), max_size=6))
    for key, first, last in rows:
        entries.append(_entry(key, first, last, uvarint(0) if flexible else b""))
        if flexible and draw(st.integers(0, 9)) == 0:
            entries[-1] = _entry(key, first, last, uvarint(1) + uvarint(3) + uvarint(1) + b"x")
    count = Total(len(rows), "array" if flexible else "int32", entries, draw(st.sampled_from([0, 0, 1])))
    parts: list[Part] = [error.to_bytes(2, "big"), count, draw(st.binary(max_size=9))]
    if draw(st.integers(0, 9)) == 0:
        parts = [error.to_bytes(2, "big"), b"\0" if flexible else b"\xff" * 4, draw(st.binary(max_size=9))]
    made = _cut(draw, parts)
    if made.came[:2] == b"\0\x23":
        made.goes = made.came
    return Answer(api, version, made)


def _entry(key: int, first: int, last: int, behind: bytes) -> Part:
    """Up to the newest version that klamm knows, of APIs whose answers have addresses."""
    words = [number.to_bytes(2, "big", signed=True) for number in (key, first, last)]
    came = b"".join(words) + behind
    known = API.get(key)
    if known is not None and (key not in EDITED or last <= known.versions.last):
        return came
    if known is None or first > known.versions.last:
        return Edited(came, b"", len(came), -1)
    return Edited(came, b"".join(words[:2]) + known.versions.last.to_bytes(2, "big") + behind, len(came), 0)


@st.composite
def others(draw: st.DrawFn) -> Answer:
    """One that nobody edits, whatever its bytes."""
    api, version = draw(st.sampled_from(AS_THEY_ARE))
    values = values_of(api.response, version, Random(draw(st.integers(0, 9))))
    body = draw(st.just(encode(values, api.key, version, "response")) | st.binary(max_size=20))
    return Answer(api, version, _cut(draw, [*_header(draw, api, version), body, draw(st.binary(max_size=9))]))


def any_answer(standing: Standing, own: Address) -> st.SearchStrategy[Answer]:
    strange = bearing(standing, own)
    return st.one_of(strange, strange, strange, versions(), others())
