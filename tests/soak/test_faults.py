"""The rules that a soak switches on and off are rules."""

import json

from klamm.rules.file.rule_file import read_text
from tests.soak.faults import RULES


def test_each_rule_can_be_used() -> None:
    found = read_text(json.dumps({"rules": [dict(rule) for rule in RULES]}), "soak")
    assert (len(found.rules), found.mistakes, found.warnings) == (len(RULES), [], [])
