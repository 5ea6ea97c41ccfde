"""Addresses are spliced in place: what comes out is what an encoder would have written."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from klamm.decoders import API, DecodeError, decode, encode
from klamm.decoders.compile import UNREADABLE
from klamm.proxy.session.rewriting.addresses import Unbound, neutralise, rewrite
from klamm.rules.plan import Endpoints, endpoints
from tests.fakes.messages import values_of

LAYOUTS = [
    *[("Metadata", version) for version in range(14)],
    *[("FindCoordinator", version) for version in range(7)],
    *[("DescribeCluster", version) for version in range(3)],
    ("DescribeQuorum", 2),
    *[("Produce", version) for version in range(10, 14)],
    *[("Fetch", version) for version in range(16, 19)],
    *[(name, version) for name in ("ShareFetch", "ShareAcknowledge") for version in range(3)],
]
ALL = pytest.mark.parametrize(("name", "version"), LAYOUTS)
Asked = list[tuple[str, int, str, int]]


def spans(name: str, version: int) -> Endpoints:
    found = endpoints(API[name], version)
    assert found is not None
    return found


def standing(kind: str, node_id: int, host: str, port: int) -> tuple[str, int]:
    return (f"klamm-{kind}" * (1 + node_id % 12), 20000 + node_id)


def stood_for(values: Any, kind: str, asked: Asked, node_id: Any = -1) -> Any:
    """The slow, obvious way: decoded values with klamm's addresses in them."""
    if isinstance(values, list):
        return [stood_for(each, kind, asked, node_id) for each in values]
    if not isinstance(values, dict):
        return values
    node_id = values.get("node_id", values.get("broker_id", node_id))
    made = {name: stood_for(value, kind, asked, node_id) for name, value in values.items()}
    if made.get("host") and made["port"] > 0:
        asked.append((kind, node_id, made["host"], made["port"]))
        made["host"], made["port"] = standing(kind, node_id, made["host"], made["port"])
    return made


@ALL
def test_a_body_comes_out_as_if_it_had_been_written_with_these_addresses(name: str, version: int) -> None:
    where, random, changed = spans(name, version), Random(version), 0
    for _ in range(60):
        values = values_of(API[name].response, version, random)
        if name == "DescribeCluster" and version:
            values["endpoint_type"] = random.choice([1, 2])
        controllers = name == "DescribeQuorum" or values.get("endpoint_type") == 2
        kind = "controller" if controllers else "broker"
        nodes_asked: Asked = []
        expected = encode(stood_for(copy.deepcopy(values), kind, nodes_asked), name, version, "response")
        body, asked = encode(values, name, version, "response"), Asked()

        def noting(*node: Any, asked: Asked = asked) -> tuple[str, int]:
            asked.append(node)
            return standing(*node)

        pieces = rewrite(where, b"before" + body + b"behind", 6, 6 + len(body), noting)
        assert (pieces is None) == (not nodes_asked)
        assert set(asked) <= set(nodes_asked)
        assert {node[:2] for node in asked} == {node[:2] for node in nodes_asked}
        if pieces is not None:
            changed += 1
            assert b"".join(pieces) == expected
    assert changed > 5


def with_addresses(name: str, version: int) -> bytes:
    """A body that names nodes, each at a host in .internal."""
    random, changed = Random(version), None
    while changed is None:
        values = named(values_of(API[name].response, version, random), random)
        body = encode(values, name, version, "response")
        changed = rewrite(spans(name, version), body, 0, len(body), standing)
    return body


@ALL
def test_a_body_goes_on_wherever_it_is_cut_unless_that_is_within_an_address(name: str, version: int) -> None:
    body = with_addresses(name, version)
    pieces = rewrite(spans(name, version), body, 0, len(body), standing) or []
    whole, last = b"".join(pieces), len(body) - len(pieces[-1])
    cuts = {end: cut_at(body, end, spans(name, version)) for end in range(len(body))}
    for end, new in cuts.items():
        if end >= last:
            assert (new or b"") + body[end:] == whole
        else:
            assert new is None or b".internal" not in new
    assert None in cuts.values()


def cut_at(body: bytes, end: int, where: Endpoints) -> bytes | None:
    """The beginning of the body as klamm passes it on; None where klamm refuses it within an address."""
    try:
        pieces = rewrite(where, body[:end], 0, end, standing, tolerant=True)
    except DecodeError as refused:
        return None if "ends within an address" in refused.reason else b""
    return b"".join(pieces or [body[:end]])


@ALL
def test_bytes_behind_a_body_stay(name: str, version: int) -> None:
    body, where = with_addresses(name, version), spans(name, version)
    for tolerant in (False, True):
        whole = b"".join(rewrite(where, body, 0, len(body), standing, tolerant) or [])
        longer = rewrite(where, body + b"\xff" * 9, 0, len(body) + 9, standing, tolerant)
        assert b"".join(longer or []) == whole + b"\xff" * 9


def test_an_address_whose_tag_lies_about_its_size_is_refused() -> None:
    """Kafka's clients read a known tagged field by its layout, librdkafka by its size."""
    rows = [{"node_id": 1, "host": "h", "port": 9092, "rack": None}]
    body = encode({"node_endpoints": rows}, "Fetch", 16, "response")
    size = body.index(b"\x01\x00\x0d") + 2
    for wrong in (12, 14, 0):
        lying = body[:size] + bytes([wrong]) + body[size + 1 :]
        with pytest.raises(DecodeError, match=f"tag 0 announces {wrong} bytes, its value takes 13"):
            rewrite(spans("Fetch", 16), lying + b"\0", 0, len(lying) + 1, standing, tolerant=True)


def test_the_size_of_a_tag_stays_as_it_was_written_where_its_value_is_as_long_as_before() -> None:
    rows = [{"node_id": 1, "host": "k" * len(standing("broker", 1, "", 0)[0]), "port": 9092, "rack": None}]
    body = encode({"node_endpoints": rows}, "Fetch", 16, "response")
    size = body.index(b"\x01\x00", 10) + 2
    longer = body[:size] + bytes([body[size] | 0x80, 0]) + body[size + 1 :]
    new = b"".join(rewrite(spans("Fetch", 16), longer, 0, len(longer), standing) or [])
    assert len(new) == len(longer)
    assert new[: size + 2] == longer[: size + 2]


@pytest.mark.parametrize("end", range(8))
def test_a_body_that_ends_in_the_length_of_a_host_tells_nothing_of_it(end: int) -> None:
    body = encode({"node_id": 1, "host": "kafka", "port": 9092}, "FindCoordinator", 0, "response")
    assert rewrite(spans("FindCoordinator", 0), body[:end], 0, end, standing, tolerant=True) is None


def named(values: Any, random: Random) -> Any:
    """The same with hosts that are told from other text."""
    if isinstance(values, list):
        return [named(each, random) for each in values]
    if not isinstance(values, dict):
        return values
    made = {name: named(value, random) for name, value in values.items()}
    if "port" in made:
        made |= {"host": f"kafka-{random.randrange(99)}.internal", "port": 9092}
    return made


def test_every_node_of_a_body_is_asked_for_before_it_is_unbound() -> None:
    rows = [{"node_id": n, "host": f"kafka-{n}", "port": 9092, "rack": None} for n in range(5)]
    body, asked = encode({"brokers": rows, "topics": []}, "Metadata", 12, "response"), []

    def missing(kind: str, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        asked.append((kind, node_id, host, port))
        return None if node_id % 2 else ("klamm", 1)

    with pytest.raises(Unbound):
        rewrite(spans("Metadata", 12), body, 0, len(body), missing)
    assert asked == [("broker", n, f"kafka-{n}", 9092) for n in range(5)]


def test_no_coordinator_is_left_as_it_is() -> None:
    answers: list[tuple[int, dict[str, Any]]] = [
        (2, {"node_id": -1, "host": "", "port": -1, "error_code": 15}),
        (5, {"coordinators": [{"key": "g", "node_id": -1, "host": "", "port": -1, "error_code": 15}]}),
    ]
    for version, values in answers:
        body = encode(values, "FindCoordinator", version, "response")
        assert rewrite(spans("FindCoordinator", version), body, 0, len(body), standing) is None


def test_a_controller_with_two_listeners_stands_at_its_first() -> None:
    """Both become klamm's one listener, which leads to one of them: always the same."""
    two = [{"name": name, "host": "c", "port": port} for name, port in (("PLAIN", 9093), ("TLS", 9094))]
    values = {"topics": [], "nodes": [{"node_id": 1, "listeners": two}]}
    body, asked = encode(values, "DescribeQuorum", 2, "response"), []

    def noting(kind: str, node_id: int, host: str, port: int) -> tuple[str, int]:
        asked.append((kind, node_id, host, port))
        return "klamm", 20001

    pieces = rewrite(spans("DescribeQuorum", 2), body, 0, len(body), noting)
    assert pieces is not None
    listeners = decode(b"".join(pieces), "DescribeQuorum", 2, "response")["nodes"][0]["listeners"]
    assert [(row["host"], row["port"]) for row in listeners] == [("klamm", 20001)] * 2
    assert asked == [("controller", 1, "c", 9093)]


def parts(name: str, version: int, values: dict[str, Any]) -> tuple[bytes, bytes]:
    """A body, cut where its tail begins: at the tagged section, or at the array that stands before it."""
    body = encode(values, name, version, "response")
    empty = {**values, "node_endpoints": [], "unknown_tagged_fields": []}
    start = len(encode(empty, name, version, "response")) - (2 if name.startswith("Share") else 1)
    return body[:start], body[start:]


def blanked(name: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
    head, tail = parts(name, version, values)
    new = neutralise(tail, not name.startswith("Share"))
    assert len(new) == len(tail)
    return decode(head + new, name, version, "response")


ENDPOINTS = [
    [{"node_id": n, "host": "h" * size, "port": 9092, "rack": rack} for n in range(count)]
    for count, size, rack in [
        (1, 0, None),
        (1, 1, ""),
        (1, 90, None),
        *[(1, size, "r") for size in range(104, 120)],
        (3, 40, "rack"),
        (200, 75, "r" * 10),
        (200, 120, None),
    ]
]
FURTHER = [[], [(9, b"")], [(5, b"x" * 200), (126, b"y"), (128, b"z" * 20)]]


@pytest.mark.parametrize("further", FURTHER)
@pytest.mark.parametrize("rows", ENDPOINTS)
@pytest.mark.parametrize(("name", "version"), [("Produce", 10), ("Fetch", 16), ("Fetch", 18)])
def test_tagged_endpoints_are_blanked_at_the_same_length(
    name: str, version: int, rows: list[dict[str, Any]], further: list[tuple[int, bytes]]
) -> None:
    after = blanked(name, version, {"node_endpoints": rows, "unknown_tagged_fields": further})
    assert after["node_endpoints"] == []
    kept = dict(after["unknown_tagged_fields"])
    assert not any(kept.pop(127))
    assert kept == dict(further)


@pytest.mark.parametrize("further", FURTHER)
@pytest.mark.parametrize("rows", ENDPOINTS)
@pytest.mark.parametrize("name", ["ShareFetch", "ShareAcknowledge"])
def test_endpoints_in_an_array_are_blanked_at_the_same_length(
    name: str, rows: list[dict[str, Any]], further: list[tuple[int, bytes]]
) -> None:
    values = {"responses": [], "node_endpoints": rows, "unknown_tagged_fields": further}
    after = blanked(name, 2, values)
    assert after["node_endpoints"] == []
    kept = dict(after["unknown_tagged_fields"])
    assert not any(kept.pop(127))
    assert kept == dict(further)


@pytest.mark.parametrize(
    ("tail", "in_tag"),
    [
        *[(tail, False) for tail in ("", "00", "01", "0000", "0100", "0002", "010002", "010000ffff")],
        *[(tail, True) for tail in ("", "00", "01", "0107", "010702", "01070201", "0000ffff")],
        *[(tail, True) for tail in ("0100", "010000", "010001", "01000100", "01000101", "02000101000101ff")],
    ],
)
def test_a_tail_without_endpoints_stays_as_it_is(tail: str, in_tag: bool) -> None:
    assert neutralise(bytes.fromhex(tail), in_tag) == bytes.fromhex(tail)


@pytest.mark.parametrize("name", ["Fetch", "ShareFetch"])
def test_a_tail_with_bytes_behind_it_or_with_less_is_blanked(name: str) -> None:
    """Whatever is left of it has no address, the same length, and no endpoint in any layout."""
    _, tail = parts(name, 18 if name == "Fetch" else 2, {"responses": [], "node_endpoints": ENDPOINTS[-3]})
    longer = neutralise(tail + b"\xff" * 9, name == "Fetch")
    assert longer == neutralise(tail, name == "Fetch") + b"\xff" * 9
    for end in range(len(tail) - 1 if name == "ShareFetch" else 0, len(tail)):
        new = neutralise(tail[:end], name == "Fetch")
        assert len(new) == end
        assert b"hhhh" not in new


STRANGE_TAILS = [b"\xff" * 20, b"\2" + b"\x80" * 29]


@pytest.mark.parametrize(("name", "version"), [("Fetch", 18), ("ShareFetch", 2)])
def test_a_tail_whose_addresses_cannot_be_found_is_refused(name: str, version: int) -> None:
    _, tail = parts(name, version, {"responses": [], "node_endpoints": ENDPOINTS[-3]})
    cut = (tail[:end] for end in range(2, len(tail) - 1)) if name == "ShareFetch" else ()
    for wrong in (*cut, *STRANGE_TAILS):
        with pytest.raises(UNREADABLE):
            neutralise(wrong, name == "Fetch")
