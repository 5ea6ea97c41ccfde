"""Plans: the treatment of each version of each API, decided before its first frame is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from klamm.decoders import API
from klamm.decoders.schema import ERROR, HOST, PARTITION, TOPIC, TOPIC_ID, Api, all_fields, marked
from klamm.rules.plan import Plan, Planner, Wishes, bears_addresses, endpoints

HEADER, FULL, LOGGED = Planner(Wishes("header")), Planner(Wishes("full")), Planner(Wishes("header", None))
TAILED = {"Produce", "Fetch", "ShareFetch", "ShareAcknowledge"}


def every_version() -> Iterator[tuple[Api, int]]:
    for api in API:
        for version in range(api.versions.first, api.versions.last + 1):
            yield api, version


def read(plan: Plan) -> tuple[set[str], set[str]]:
    """The first names of what is read of requests and responses."""
    return tuple(
        {path[0] for path in picked.paths} if picked is not None else set()
        for picked in (plan.request, plan.response)
    )  # type: ignore[return-value]


def test_every_version_of_every_api_has_a_plan_at_every_level() -> None:
    for planner in (HEADER, FULL, LOGGED):
        for api, version in every_version():
            plan = planner.plan(api.key, version)
            assert (plan.name, plan.version) == (api.name, version)
            assert (plan.unknown, plan.refuse) == (None, None)


def test_a_response_is_held_or_looked_at_to_its_end_exactly_where_it_may_carry_addresses() -> None:
    for api, version in every_version():
        plan = HEADER.plan(api.key, version)
        carries = bool(marked(api.response, version, frozenset({HOST})))
        assert (plan.endpoints is not None) == carries, (api.name, version)
        assert plan.hold == (api.name == "ApiVersions" or (carries and api.name not in TAILED))
        assert (plan.tail is not None) == (carries and api.name in TAILED)


def test_endpoints_at_a_tail_are_tagged_in_produce_and_fetch_only() -> None:
    tagged = {
        (api.name, version)
        for api, version in every_version()
        if (plan := HEADER.plan(api.key, version)).tail is not None and plan.tail_tagged
    }
    assert tagged == {("Produce", v) for v in range(10, 14)} | {("Fetch", v) for v in range(16, 19)}


def test_the_tail_is_the_last_field_before_the_tagged_ones() -> None:
    for api, version in every_version():
        plan = HEADER.plan(api.key, version)
        if plan.tail is None:
            continue
        there = [f for f in api.response if version in f.versions]
        in_place = [f.name for f in there if f.tag is None]
        assert plan.tail == "node_endpoints"
        assert plan.tail_tagged or in_place[-1] == plan.tail


def test_with_header_metering_only_what_decides_the_path_of_frames_is_read() -> None:
    read_of = {
        (api.name, side): names
        for api, version in every_version()
        for side, names in zip(("request", "response"), read(HEADER.plan(api.key, version)), strict=True)
        if names
    }
    assert read_of == {
        ("Produce", "request"): {"acks"},
        ("SaslHandshake", "request"): {"mechanism"},
        ("ApiVersions", "request"): {"client_software_name", "client_software_version"},
        **{(name, "response"): {"node_endpoints"} for name in TAILED},
    }


def test_nothing_reads_records_where_no_rule_asks_for_them() -> None:
    found = 0
    for api, version in every_version():
        sides = (api.request, api.response)
        held = [
            {path for path, field in all_fields(side, version) if field.kind == "records"} for side in sides
        ]
        found += sum(map(len, held))
        for planner in (FULL, Planner(Wishes("full", None))):
            plan = planner.plan(api.key, version)
            for picked, records in zip((plan.request, plan.response), held, strict=True):
                assert picked is None or not records & set(picked.paths), (api.name, version)
    assert found > 0


def test_with_full_metering_every_topic_asked_for_and_every_error_is_read() -> None:
    for api, version in every_version():
        plan = FULL.plan(api.key, version)
        topics = set(marked(api.request, version, frozenset({TOPIC, TOPIC_ID})))
        topics = {path for path in topics if path[0] != "forgotten_topics_data"}
        errors = set(marked(api.response, version, frozenset({ERROR})))
        assert topics <= set(plan.request.paths if plan.request else ())
        assert errors <= set(plan.response.paths if plan.response else ())


def test_what_is_logged_is_read_though_metering_does_not_want_it() -> None:
    planner = Planner(Wishes("header", frozenset({"Fetch"})))
    fetch = planner.plan(1, 12)
    assert fetch.logged
    assert fetch.request is not None
    assert PARTITION in fetch.request.marks
    other = planner.plan(2, 6)
    assert not other.logged
    assert (other.request, other.response) == (None, None)


@pytest.mark.parametrize("name", sorted(api.name for api in API if bears_addresses(api)))
def test_a_newer_version_of_an_api_with_addresses_is_refused(name: str) -> None:
    api = API[name]
    plan = FULL.plan(api.key, api.versions.last + 1)
    assert plan.refuse == (
        f"{name} v{api.versions.last + 1} is not known, only {api.versions}, "
        "and its answer may carry broker addresses"
    )
    assert not plan.hold


def test_a_newer_version_of_another_api_passes_and_is_counted_as_unknown() -> None:
    plan = FULL.plan(12, 99)
    assert (plan.name, plan.refuse, plan.answer) == ("Heartbeat", None, False)
    assert plan.unknown == "Heartbeat v99 is not known, only 0-4"


@pytest.mark.parametrize("version", [-1, 6, 32767])
def test_klamm_answers_api_versions_of_a_version_that_it_does_not_know(version: int) -> None:
    plan = FULL.plan(18, version)
    assert plan.answer
    assert plan.refuse is None


@pytest.mark.parametrize("key", [-1, 930, 10000, 32767])
def test_an_unknown_key_passes(key: int) -> None:
    plan = FULL.plan(key, 0)
    assert (plan.name, plan.unknown, plan.refuse) == ("unknown", f"API key {key} is not known", None)
    assert not plan.hold


def test_header_layouts_follow_the_version() -> None:
    assert FULL.plan(7, 0).request_header == 0  # ControlledShutdown v0
    assert FULL.plan(7, 1).request_header == 1
    assert [FULL.plan(3, version).request_header for version in (8, 9)] == [1, 2]
    assert [FULL.plan(3, version).response_tags for version in (8, 9)] == [False, True]
    assert FULL.plan(18, 3).request_header == 2
    assert not FULL.plan(18, 3).response_tags


def test_a_plan_is_made_once() -> None:
    assert FULL.plan(3, 12) is FULL.plan(3, 12)


def test_made_up_versions_do_not_fill_the_memory() -> None:
    planner = Planner(Wishes("header"))
    for version in range(10_000):
        planner.plan(12, version % 30000)
    assert len(planner._plans) <= 4097


def test_endpoints_say_whose_they_are() -> None:
    kinds = {
        (api.name, found.kind)
        for api, version in every_version()
        if (found := endpoints(api, version)) is not None
    }
    assert {name for name, kind in kinds if kind == "controller"} == {"DescribeQuorum"}
