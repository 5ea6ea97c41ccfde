"""The key of a FindCoordinator request names a group, or something else, as its `key_type` says."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.proxy.session.observing.summaries import logged_fields
from klamm.rules.engine import Engine, Gate
from klamm.rules.expressions import parse
from klamm.rules.frame import Frame, Peer
from klamm.rules.glob import Glob
from klamm.rules.parts import parts
from klamm.rules.plan import Planner, Wishes
from klamm.rules.rule import Rule
from klamm.rules.subjects import subjects
from tests.rules.acting import PEER
from tests.rules.acting import asks as asked_of

GROUP, TRANSACTION, SHARE = 0, 1, 2
FIND = API["FindCoordinator"]
VERSIONS = range(FIND.versions.first, FIND.versions.last + 1)
TYPES = pytest.mark.parametrize(
    ("version", "key_type"),
    [(version, kind) for version in VERSIONS for kind in (GROUP, TRANSACTION, SHARE) if version or not kind],
)


def asks(version: int, key_type: int, *keys: str) -> Frame:
    values: dict[str, Any] = {"coordinator_keys": list(keys)} if version >= 4 else {"key": keys[0]}
    return asked_of("FindCoordinator", version, values | ({"key_type": key_type} if version else {}))


@TYPES
def test_its_parts_are_groups_where_the_type_says_so(version: int, key_type: int) -> None:
    keys = ("billing", "ledger") if version >= 4 else ("billing",)
    frame = asks(version, key_type, *keys)
    groups = [{"group": key} for key in keys] if key_type == GROUP else []
    assert list(parts(FIND.request, version, frame.values, lambda _: None)) == groups
    assert subjects(frame, None).groups == [part["group"] for part in groups]


@TYPES
def test_expressions_know_its_group(version: int, key_type: int) -> None:
    frame = asks(version, key_type, *(("other", "billing") if version >= 4 else ("billing",)))
    says = {
        text: parse(text).on(FIND, version, "request")(frame)
        for text in ('group == "billing"', 'group != "x"')
    }
    assert set(map(bool, says.values())) == {key_type == GROUP}
    answer = Frame(FIND, version, "response", encode({}, 10, version, "response"), "app", PEER, 0, frame)
    assert bool(parse('group == "billing"').on(FIND, version, "response")(answer)) == (key_type == GROUP)


@TYPES
def test_the_log_shows_its_group(version: int, key_type: int) -> None:
    plan = Planner(Wishes("header", None)).plan(FIND.key, version)
    frame = asks(version, key_type, "billing")
    assert plan.request is not None
    columns = plan.request.pick(frame.body, 0, len(frame.body))
    fields = logged_fields(plan, plan.request, columns, lambda _: None)
    assert fields == {"topics": {}} | ({"group": "billing"} if key_type == GROUP else {})


@TYPES
def test_a_rule_with_a_group_is_for_its_group_alone(version: int, key_type: int) -> None:
    engine, peer = Engine(seed=1), Peer("test", "1", "10.0.0.7:50000", "test/1/10.0.0.7/1")
    rule = Rule("r", (), keys=frozenset({FIND.key}), group=Glob("billing"))
    engine.load([rule], 0)
    gate = Gate(engine, peer, lambda _: None)
    for key, is_met in (("ledger", False), ("billing", key_type == GROUP)):
        frame = asks(version, key_type, key)
        look = engine.concerned(FIND, version, "request", peer, "app")
        gate.orders(frame, look, 0)
        assert engine.by_name["r"].matches == is_met
