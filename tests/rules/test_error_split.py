"""Requests without their refused parts, and answers with them again: nothing is lost on the way."""

from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.schema import Api
from klamm.rules.errors.answers import NoPlace, places
from klamm.rules.errors.split import SPLITS, merge_answers, partial, split_request
from tests.rules.telling import answered, codes_at, request_of, told_parts, versions

SPLIT = [(api, v) for api in API for v in versions(api) if partial(api, v) == "split"]


@pytest.mark.parametrize(("api", "version"), SPLIT, ids=lambda value: getattr(value, "name", value))
def test_a_split_request_and_the_merged_answers_lose_nothing(api: Api, version: int) -> None:
    request = request_of(api, version)
    asked: list[Any] = []
    nothing = split_request(api, version, request, lambda part: bool(asked.append(part)))
    assert nothing == (request, None)
    assert split_request(api, version, request, lambda part: True) == (None, request)
    chosen = asked[0], asked[-2]  # of the first topic and of the last, where there are topics
    rest, refused = split_request(api, version, request, lambda part: part in chosen)
    assert rest is not None
    assert refused is not None
    asked_for = [p for p in places(api, version) if p.asked and p.path[-1] != "topic_config_error_code"]
    place = max(asked_for, key=lambda place: len(place.path))
    served, refusal = answered(api, version, rest, 0, place), answered(api, version, refused, 29, place)
    merged = merge_answers(api, version, served, refusal, request, lambda part: part in chosen)
    codes = codes_at(served, place.path) + codes_at(refusal, place.path)
    assert sorted(codes_at(merged, place.path)) == sorted(codes)
    whole = answered(api, version, request, 29, place)
    assert {of for _, of, _ in told_parts(api, version, merged)} == {
        of for _, of, _ in told_parts(api, version, whole)
    }
    encode(rest, api.key, version, "request")
    encode(merged, api.key, version, "response")


def test_every_api_that_can_be_split_has_parts() -> None:
    assert {api.name for api, _ in SPLIT} == SPLITS
    assert (partial("Fetch", 12), partial("Metadata", 12), partial("JoinGroup", 9)) == (
        "edit",
        "edit",
        "whole",
    )
    assert (partial("LeaveGroup", 2), partial("LeaveGroup", 3)) == ("whole", "split")


def test_answers_without_names_stay_in_the_order_of_the_request() -> None:
    request = request_of("CreateAcls", 3)
    request["creations"] *= 2
    names = [f"topic-{number}" for number in range(4)]
    request["creations"] = [
        a | {"resource_name": n} for a, n in zip(request["creations"], names, strict=True)
    ]

    def only(part: Any) -> bool:
        return part["resource_name"] in ("topic-0", "topic-2")

    rest, refused = split_request("CreateAcls", 3, request, only)
    assert rest is not None
    assert refused is not None
    served, refusal = answered("CreateAcls", 3, rest, 0), answered("CreateAcls", 3, refused, 29)
    merged = merge_answers("CreateAcls", 3, served, refusal, request, only)
    assert codes_at(merged, ("results", "error_code")) == [29, 0, 29, 0]


def test_the_group_of_a_request_is_in_its_parts() -> None:
    seen: list[Any] = []
    split_request("OffsetCommit", 8, request_of("OffsetCommit", 8), lambda part: bool(seen.append(part)))
    assert {part["group"] for part in seen} == {"group_id-1"}
    assert len({(part["topic"], part["partition"]) for part in seen}) == 4


def test_a_refusal_is_merged_in_the_place_of_what_the_broker_says_of_the_same_part() -> None:
    request = request_of("Fetch", 12)
    served = answered("Fetch", 12, request, 0, ("responses", "partitions", "error_code"))
    partition = request["topics"][0]["partitions"][1]["partition"]
    refusal = answered("Fetch", 12, request, 1, only=lambda part: part["partition"] == partition)
    merged = merge_answers("Fetch", 12, served, refusal, request, lambda part: True)
    assert codes_at(merged, ("responses", "partitions", "error_code")) == [0, 1, 0, 0]


def test_a_request_that_asks_for_all_or_has_no_parts_cannot_be_split() -> None:
    everything = request_of("ElectLeaders", 2) | {"topic_partitions": None}
    with pytest.raises(NoPlace, match="ElectLeaders v2: the request asks for all"):
        split_request("ElectLeaders", 2, everything, lambda part: True)
    with pytest.raises(NoPlace, match="JoinGroup v9: the request has no parts"):
        split_request("JoinGroup", 9, request_of("JoinGroup", 9), lambda part: True)
