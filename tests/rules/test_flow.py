"""A rule as one line of YAML is read as the same rule."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from klamm.settings.yaml_line import flow

ODD = ["", "null", "~", "a: b", "'", "- x", "#", "*", "a,b", "{", "x #y", "\n", "\u2028", 'a"b\\\x00']
TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(ODD)
VALUES = st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=5)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_written_is_read_again(written: dict[str, Any]) -> None:
    line = flow(written)
    assert "\n" not in line
    assert yaml.load(line, yaml.BaseLoader) == written


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (
            {"api": ["Produce", "Fetch"], "error": {"code": "POLICY_VIOLATION", "applied": True}, "times": 3},
            "{api: [Produce, Fetch], error: {code: POLICY_VIOLATION, applied: true}, times: 3}",
        ),
        ({"chance": 0.5, "dry": False, "client": None}, "{chance: 0.5, dry: false, client: null}"),
        ({"topic": "*", "where": 'topic == "a"'}, "{topic: '*', where: topic == \"a\"}"),
        (
            {"client": "null", "group": "a, b", "name": "it's: so"},
            "{client: 'null', group: 'a, b', name: 'it''s: so'}",
        ),
    ],
)
def test_a_rule_is_one_line_without_words_of_python(written: dict[str, Any], line: str) -> None:
    assert flow(written) == line
