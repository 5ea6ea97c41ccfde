"""The tables' marks and names, where Kafka's classes cannot judge them."""

from collections.abc import Iterator

import pytest

from klamm.decoders import API, ERRORS, UnknownApi
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, HOST, NODE_ID, PORT, SECRET, Field, Side, all_fields

SIDES: tuple[Side, Side] = ("request", "response")
NODE_ENDPOINTS = {"node_endpoints.node_id", "node_endpoints.host", "node_endpoints.port"}


def fields() -> Iterator[tuple[str, Side, str, Field]]:
    """Every field of every version: API, side, path, field."""
    for api in API:
        for side in SIDES:
            for version in range(api.versions.first, api.versions.last + 1):
                for path, f in all_fields(api.fields(side), version):
                    yield api.name, side, ".".join(path), f


def marked(*marks: str) -> dict[tuple[str, Side], set[str]]:
    found: dict[tuple[str, Side], set[str]] = {}
    for api, side, path, f in fields():
        if f.mark in marks:
            found.setdefault((api, side), set()).add(path)
    return found


def test_addresses_are_marked_where_clients_are_told_to_connect_to_them_and_nowhere_else() -> None:
    assert marked(NODE_ID, HOST, PORT) == {
        ("Metadata", "response"): {"brokers.node_id", "brokers.host", "brokers.port"},
        ("FindCoordinator", "response"): {
            "node_id",
            "host",
            "port",
            "coordinators.node_id",
            "coordinators.host",
            "coordinators.port",
        },
        ("DescribeCluster", "response"): {"brokers.broker_id", "brokers.host", "brokers.port"},
        ("DescribeQuorum", "response"): {"nodes.node_id", "nodes.listeners.host", "nodes.listeners.port"},
        ("Produce", "response"): NODE_ENDPOINTS,
        ("Fetch", "response"): NODE_ENDPOINTS,
        ("ShareFetch", "response"): NODE_ENDPOINTS,
        ("ShareAcknowledge", "response"): NODE_ENDPOINTS,
    }


def test_every_error_code_is_marked_and_nothing_else_is() -> None:
    named = {(api, side, path) for api, side, path, _ in fields() if path.endswith("error_code")}
    assert {(api, side, path) for (api, side), paths in marked(ERROR).items() for path in paths} == named


def test_what_must_not_be_shown_is_marked() -> None:
    secret = marked(SECRET)
    assert secret["SaslAuthenticate", "request"] == secret["SaslAuthenticate", "response"] == {"auth_bytes"}
    assert secret["AlterUserScramCredentials", "request"] == {"upsertions.salt", "upsertions.salted_password"}
    assert secret["DescribeConfigs", "response"] == {
        "results.configs.value",
        "results.configs.synonyms.value",
    }
    named = {(api, side, path) for api, side, path, _ in fields() if path.split(".")[-1] == "hmac"}
    assert {(api, side, path) for (api, side), paths in secret.items() for path in paths} >= named


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Offsets", 2),
        ("GroupCoordinator", 10),
        ("consumermetadata", 10),
        ("list_offsets", 2),
        ("AlterIsr", 56),
    ],
)
def test_an_api_is_found_by_older_names_in_any_case_with_or_without_underscores(name: str, key: int) -> None:
    assert API[name] is API[key]


def test_an_unknown_api_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownApi, match="no API is named 'Metdata'; nearest: Metadata"):
        API["Metdata"]
    with pytest.raises(UnknownApi, match="no API has the key 930"):
        API[930]


def test_an_error_is_found_by_older_names_and_an_unknown_code_still_has_a_name() -> None:
    assert ERRORS["not_leader_for_partition"] is ERRORS[6]
    assert (error_name(6), error_name(1234)) == ("NOT_LEADER_OR_FOLLOWER", "ERROR_1234")
    with pytest.raises(LookupError, match="nearest: NOT_LEADER_OR_FOLLOWER"):
        ERRORS["NOT_LEADER"]
