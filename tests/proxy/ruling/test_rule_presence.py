"""Rules that name clusters and brokers: refused by hand if there are none, of files said in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.client import Refused
from klamm.proxy.config import Rules
from klamm.proxy.config_types import Count, InputFile
from klamm.proxy.control.rule_files import RuleReload
from klamm.rules.file.presence import Known
from tests.fakes.edge import Lines
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

TWO: Known = {"a": frozenset({"1", "2"}), "b": frozenset({"2", "3"})}
DOWN = {"down": "true", "event": "connect"}


@pytest.mark.parametrize(
    ("rule", "path", "reason"),
    [
        ({"broker": "9"}, "broker", "there is no broker 9: a has 1 and 2; b has 2 and 3"),
        ({"broker": "1", "cluster": "b"}, "broker", "there is no broker 1: b has 2 and 3"),
        ({"cluster": "c"}, "cluster", "there is no cluster 'c': klamm knows a and b"),
        (
            {"broker": "2"},
            "broker",
            "broker 2 is in the clusters a and b: choose with cluster: a, or take all with cluster: '*'",
        ),
    ],
)
@on_uvloop
async def test_a_rule_by_hand_for_what_is_not_there_or_for_two_brokers_is_refused(
    rule: dict[str, str], path: str, reason: str
) -> None:
    async with api() as it:
        it.book.known = lambda: TWO
        with pytest.raises(Refused) as no:
            await it.klamm.add_rule({**rule, **DOWN})
        assert [(each.path, each.reason) for each in no.value.mistakes] == [(path, reason)]
        assert (no.value.status, await it.klamm.rules()) == (422, [])
        for cluster in ("a", "*"):
            made = await it.klamm.add_rule({"broker": "2", "cluster": cluster, **DOWN})
            assert made.warnings == []


@on_uvloop
async def test_while_no_broker_is_known_yet_a_rule_is_taken_and_warned_of_once_they_are() -> None:
    async with api() as it:
        known: Known = {"a": frozenset()}
        it.book.known = lambda: known
        made = await it.klamm.add_rule({"broker": "9", **DOWN})
        assert made.warnings == []
        known = {"a": frozenset({"1"})}
        assert [rule.warnings for rule in await it.klamm.rules()] == [
            ["broker: there is no broker 9: a has 1"]
        ]


@on_uvloop
async def test_a_warning_of_a_rule_by_hand_comes_with_the_rule() -> None:
    async with api() as it:
        made = await it.klamm.add_rule({"api": "Heartbeat", "error": "OFFSET_OUT_OF_RANGE"})
        assert made.warnings == [
            "error: Kafka's documents do not name OFFSET_OUT_OF_RANGE for Heartbeat: clients may not know it"
        ]


def test_a_file_that_names_what_is_not_there_is_told_in_the_log_when_that_is_known(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        "rules:\n  - {name: gone, broker: 9, down: true}\n  - {name: fine, broker: 1, down: true}\n"
        "  - {name: off, broker: 9, down: true, enabled: false}\n"
    )
    log, known = Lines(), {"a": frozenset[str]()}
    reload = RuleReload(Rules(InputFile(str(file)), Count(7)), log)
    reload.book.known = lambda: known
    reload.tell_unmet()
    assert log.of("rule_doubt") == []
    known = {"a": frozenset({"1", "2"})}
    for _ in range(3):
        reload.tell_unmet()
    (line,) = log.of("rule_doubt")
    assert (line.level, line.fields) == ("warning", {"rule": "gone"})
    assert line.message == (
        "the rule gone acts nowhere, or where it is not meant to: broker: there is no broker 9: a has 1 and 2"
    )
    known = {"a": frozenset({"1", "2", "9"})}
    reload.tell_unmet()
    known = {"a": frozenset({"1", "2"})}  # as of another cluster behind the same name
    reload.tell_unmet()
    assert len(log.of("rule_doubt")) == 2
