"""Conditions made for every layout, evaluated over picked columns and, slowly, over values read in full."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.decoders import API
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Api
from klamm.rules.expressions import parse
from klamm.rules.frame import Frame, Peer
from tests.decoders.hostile import LAYOUTS, layouts, message
from tests.rules.expressions.random_expressions import condition, of_several, several
from tests.rules.expressions.slow_expressions import Slow

PEER = Peer("c", "1", "127.0.0.1:1", "k")
ROUNDS = 3


def judged(seed: int, of: Layout, text: str = "") -> bool | None:
    random = Random(seed)
    text = text or condition(of, random)
    body = message(of, random, alike=random.random() < 0.3)
    api = API[of.api]
    frame = Frame(api, of.version, of.side, body, None, PEER, 0)
    frame.names = lambda topic_id: "k" if topic_id[0] % 2 else None
    expression = parse(text, secrets=True)
    assert parse(str(expression), secrets=True) == expression, text
    found = expression.on(api, of.version, of.side)(frame)
    assert found is Slow(frame)(expression.tree), (text, frame.values)
    return found


@pytest.mark.sampled(40)
@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_a_condition_over_columns_is_what_it_is_over_all_values(api: Api) -> None:
    for of in layouts(api):
        for seed in range(ROUNDS):
            judged(seed, of)


@given(st.integers(0, 2**64), st.sampled_from(LAYOUTS))
def test_whatever_the_condition_and_the_body(seed: int, of: Layout) -> None:
    judged(seed, of)


def test_the_conditions_that_are_judged_come_out_in_all_three_ways() -> None:
    found = [judged(seed, of) for seed, of in enumerate(LAYOUTS)]
    assert min(found.count(value) for value in (True, False, None)) > len(found) / 20


@pytest.mark.sampled(40)
@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_a_name_for_several_values_is_true_if_it_is_for_any_of_them(api: Api) -> None:
    for of in layouts(api):
        for seed, name in enumerate(several(of) * 3):
            judged(seed, of, of_several(name, Random(seed)))
