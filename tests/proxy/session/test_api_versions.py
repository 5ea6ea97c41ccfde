"""The ApiVersions answers that clients get through klamm."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import refuses_version
from klamm.proxy.session.connection import MOST_OFFERS
from klamm.proxy.session.rewriting.api_versions import clamped, range_of, unsupported
from klamm.rules.plan import bears_addresses
from tests.fakes.messages import values_of
from tests.proxy.traffic import ground

Row = tuple[int, int, int]
BEARING = {
    "Produce",
    "Fetch",
    "Metadata",
    "FindCoordinator",
    "DescribeQuorum",
    "DescribeCluster",
    "ShareFetch",
}
BEARING |= {"ShareAcknowledge"}


def answer(rows: list[Row], version: int = 3, **more: Any) -> bytes:
    keys = [{"api_key": key, "min_version": first, "max_version": last} for key, first, last in rows]
    return encode({"api_keys": keys, **more}, "ApiVersions", version, "response")


def kept(rows: list[Row], allow_unknown: bool = False, version: int = 3) -> list[Row]:
    values = decode(
        clamped(answer(rows, version), version, allow_unknown), "ApiVersions", version, "response"
    )
    return [(row["api_key"], row["min_version"], row["max_version"]) for row in values["api_keys"]]


def test_the_apis_with_addresses_are_these() -> None:
    known = {api.name for api in API if bears_addresses(api)}
    assert known >= BEARING
    assert not {"ListOffsets", "Heartbeat", "JoinGroup", "ApiVersions", "DescribeAcls"} & known


@pytest.mark.parametrize("name", sorted(BEARING))
@pytest.mark.parametrize("version", range(5))
def test_an_api_with_addresses_is_offered_up_to_what_klamm_knows(name: str, version: int) -> None:
    key, last = API[name].key, API[name].versions.last
    assert kept([(key, 0, last)], version=version) == [(key, 0, last)]
    assert kept([(key, 0, last + 1)], version=version) == [(key, 0, last)]
    assert kept([(key, last, 32767)], version=version) == [(key, last, last)]
    assert kept([(key, last + 1, last + 2)], version=version) == []


@pytest.mark.parametrize("version", range(5))
def test_the_range_of_an_api_is_read_from_an_answer_however_damaged(version: int) -> None:
    rows = [(key, key % 3, key % 3 + 5) for key in range(40)]
    whole, random = answer(rows, version), Random(version)
    assert [range_of(key, whole, version) for key, *_ in rows] == [(first, last) for _, first, last in rows]
    assert range_of(99, whole, version) is None
    for _ in range(300):
        damaged = bytearray(whole[: random.randrange(len(whole))])
        for _ in range(random.randrange(3) if damaged else 0):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        found = range_of(39, bytes(damaged), version)
        assert found is None or len(found) == 2


def test_versions_are_kept_of_so_many_brokers_at_most() -> None:
    at = ground()
    for number in range(MOST_OFFERS + 1):
        at.offered(str(number), 0, b"")
    assert 0 < len(at.offers) <= MOST_OFFERS


def test_another_api_keeps_versions_that_klamm_does_not_know() -> None:
    assert kept([(12, 0, 99)]) == [(12, 0, 99)]


@pytest.mark.parametrize("version", range(5))
def test_api_versions_itself_is_offered_up_to_what_klamm_answers(version: int) -> None:
    last = API["ApiVersions"].versions.last
    assert kept([(18, 0, last)], version=version) == [(18, 0, last)]
    assert kept([(18, 0, last + 1)], version=version) == [(18, 0, last)]
    assert kept([(18, 0, last + 1)], allow_unknown=True, version=version) == [(18, 0, last)]


def test_an_unknown_api_is_left_out_unless_it_is_allowed() -> None:
    rows = [(3, 0, 12), (999, 0, 1), (10000, 0, 0), (32767, 0, 0)]
    assert kept(rows) == [(3, 0, 12)]
    assert kept(rows, allow_unknown=True) == rows


@pytest.mark.parametrize("version", range(5))
def test_an_answer_that_needs_no_change_is_the_same_object(version: int) -> None:
    body = answer([(api.key, *api.versions) for api in API if api.versions.last >= 0], version)
    assert clamped(body, version, False) is body


@pytest.mark.parametrize("version", [3, 4])
def test_features_and_unknown_tags_stay(version: int) -> None:
    random = Random(1)
    for _ in range(30):
        values = values_of(API[18].response, version, random)
        values |= {"error_code": 0, "unknown_tagged_fields": [(99, b"x")]}
        values["api_keys"] = [{"api_key": 9999, "min_version": 0, "max_version": 1}]
        values["api_keys"] += [{"api_key": 12, "min_version": 0, "max_version": 4}]
        body = encode(values, "ApiVersions", version, "response")
        after = decode(clamped(body, version, False), "ApiVersions", version, "response")
        before = decode(body, "ApiVersions", version, "response")
        assert after == {**before, "api_keys": before["api_keys"][1:]}


def test_an_answer_that_refuses_the_version_passes_in_layout_0() -> None:
    body = encode(
        {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 2}]},
        18,
        0,
        "response",
    )
    assert refuses_version(body)
    assert clamped(body, 4, False) is body


@pytest.mark.parametrize("version", range(5))
def test_an_answer_that_is_cut_short_loses_only_the_entries_that_may_not_pass(version: int) -> None:
    """Wherever it is cut: what is left is the beginning of the whole answer's, but for the count."""
    rows = [(3, 0, 12), (999, 0, 1), (1, 0, 32767), (0, 0, 9)]
    body = answer(rows, version)
    whole, entry = clamped(body, version, False), 7 if version >= 3 else 6
    start = 2 + (1 if version >= 3 else 4)
    for end in range(len(body)):
        new, read = clamped(body[:end], version, False), max(end - start, 0) // entry
        if read < 2:
            assert new == body[:end]
        else:
            assert new[start:] == whole[start : len(new)] or read == 2
            assert int.from_bytes(new[2:start], "big") == int.from_bytes(body[2:start], "big") - 1
            assert len(new) == end - entry


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("behind", [b"\0", b"\0" * 4, b"\xff" * 30])
def test_bytes_behind_an_answer_stay(version: int, behind: bytes) -> None:
    for rows in ([(3, 0, 12)], [(999, 0, 1), (1, 0, 32767)]):
        body = answer(rows, version)
        assert clamped(body + behind, version, False) == clamped(body, version, False) + behind


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("body", ["", "00", "001d", "0000ffffffff", "000000", "00000000000a"])
def test_an_answer_without_entries_is_the_same_object(version: int, body: str) -> None:
    short = bytes.fromhex(body)
    assert clamped(short, version, False) is short


@pytest.mark.parametrize("asked", [0, 1, 2])
@pytest.mark.parametrize("laid_out", [3, 4])
def test_an_answer_in_the_layout_of_a_flexible_version_stays_as_it_came(asked: int, laid_out: int) -> None:
    """As nafka gives it to any version."""
    body = answer([(api.key, *api.versions) for api in API if api.versions.last >= 0], laid_out)
    assert clamped(body, asked, False) is body


def test_klamms_own_answer_offers_its_range_in_layout_0() -> None:
    assert refuses_version(unsupported())
    last = API["ApiVersions"].versions.last
    assert decode(unsupported(), "ApiVersions", 0, "response") == {
        "error_code": 35,
        "api_keys": [{"api_key": 18, "min_version": 0, "max_version": last}],
    }
