"""The rules in force: at the start, after a change, and with a mistake in it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy.config import Rules
from klamm.proxy.config_types import Count, InputFile
from klamm.proxy.control.rule_files import LOOK_S, RuleReload
from klamm.settings.mistakes import ConfigError
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.edge import Lines
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.test_serve import run

ERROR = "rules:\n  - {api: Heartbeat, error: REBALANCE_IN_PROGRESS, times: 2}\n"
OTHER = "rules:\n  - {api: Heartbeat, error: UNKNOWN_MEMBER_ID}\n"
WRONG = "rules:\n  - {api: Heartbeat, error: UNKNOWN_MEMBER}\n"


def names(reload: RuleReload) -> list[str]:
    return [counted.rule.name for counted in reload.engine.counted_rules]


def written(folder: Path, text: str, file: str = "rules.yaml") -> Rules:
    (folder / file).write_text(text)
    return Rules(InputFile(str(folder / file)), Count(7))


async def looked(reload: RuleReload) -> bool:
    """Two looks at the files, and what follows."""
    reload.watched.changed()
    changed = reload.watched.changed()
    if changed:
        await reload.reload()
    return changed


def test_without_settings_there_are_no_rules() -> None:
    log = Lines()
    reload = RuleReload(None, log)
    assert (names(reload), reload.summary(), reload.watched.changed(), log.lines) == ([], "", False, [])


def test_the_start_says_rules_file_and_seed(tmp_path: Path) -> None:
    log = Lines()
    reload = RuleReload(written(tmp_path, ERROR), log)
    assert names(reload) == ["Heartbeat-error-1"]
    assert reload.summary() == f"rules: 1 from {tmp_path}/rules.yaml, seed 7"
    assert [line.message for line in log.of("rules_loaded")] == [reload.summary()]


def test_the_seed_of_the_settings_goes_before_that_of_the_file(tmp_path: Path) -> None:
    settings = written(tmp_path, "seed: 5\n" + ERROR)
    assert RuleReload(settings, Lines()).engine.seed == 7
    assert RuleReload(Rules(settings.file), Lines()).engine.seed == 5


def test_a_seed_is_made_up_where_none_is_given(tmp_path: Path) -> None:
    file = written(tmp_path, ERROR).file
    seeds = {RuleReload(Rules(file), Lines()).engine.seed for _ in range(3)}
    assert len(seeds) == 3


def test_a_mistake_at_the_start_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean UNKNOWN_MEMBER_ID"):
        RuleReload(written(tmp_path, WRONG), Lines())


def test_a_change_is_taken_when_two_looks_see_the_same(tmp_path: Path) -> None:
    async def go() -> None:
        reload = RuleReload(written(tmp_path, ERROR), Lines())
        assert not await looked(reload)
        written(tmp_path, OTHER + "\n")
        assert not reload.watched.changed()
        assert reload.watched.changed()
        await reload.reload()
        assert [counted.rule.do[0].code for counted in reload.engine.counted_rules] == [25]  # type: ignore[attr-defined]
        assert not await looked(reload)

    asyncio.run(go())


def test_with_a_mistake_the_rules_stay_and_the_log_says_why_once(tmp_path: Path) -> None:
    async def go() -> None:
        log = Lines()
        reload = RuleReload(written(tmp_path, ERROR), log)
        before = reload.engine.counted_rules
        written(tmp_path, WRONG)
        assert await looked(reload)
        assert reload.engine.counted_rules == before
        assert reload.rejected
        (line,) = log.of("rules_rejected")
        assert f"{tmp_path}/rules.yaml:2:29: rules[0].error: unknown error 'UNKNOWN_MEMBER'" in line.message
        assert not await looked(reload)
        written(tmp_path, OTHER)
        assert await looked(reload)
        assert reload.engine.counted_rules != before
        assert reload.rejected is False

    asyncio.run(go())


def test_a_file_that_is_gone_leaves_the_rules_as_they_were(tmp_path: Path) -> None:
    async def go() -> None:
        log = Lines()
        reload = RuleReload(written(tmp_path, ERROR), log)
        (tmp_path / "rules.yaml").unlink()
        assert await looked(reload)
        assert names(reload) == ["Heartbeat-error-1"]
        assert "No such file" in log.of("rules_rejected")[0].message
        written(tmp_path, OTHER)
        assert await looked(reload)

    asyncio.run(go())


def test_a_config_map_that_is_swapped_behind_its_links_is_seen(tmp_path: Path) -> None:
    async def go() -> None:
        for name, text in (("one", ERROR), ("two", OTHER)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "rules.yaml").write_text(text)
        (tmp_path / "..data").symlink_to("one")
        (tmp_path / "rules.yaml").symlink_to("..data/rules.yaml")
        reload = RuleReload(Rules(InputFile(str(tmp_path / "rules.yaml")), Count(1)), Lines())
        (tmp_path / "..new").symlink_to("two")
        os.replace(tmp_path / "..new", tmp_path / "..data")
        assert await looked(reload)
        assert reload.engine.counted_rules[0].rule.do[0].code == 25  # type: ignore[attr-defined]

    asyncio.run(go())


def test_a_plugin_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    plugin = (
        "class Mine:\n    name = 'mine'\n    mark = {}\n    def act(self, frame, draw):\n        return []\n"
    )

    async def go() -> None:
        (tmp_path / "mine.py").write_text(plugin.format(1))
        reload = RuleReload(written(tmp_path, "plugins: [mine.py]\nrules: [{mine: true}]"), Lines())
        (tmp_path / "mine.py").write_text(plugin.format(22))
        assert await looked(reload)
        assert reload.engine.counted_rules[0].rule.do[0].mark == 22  # type: ignore[attr-defined]

    asyncio.run(go())


def test_a_rule_that_did_not_change_keeps_its_counts(tmp_path: Path) -> None:
    async def go() -> None:
        reload = RuleReload(written(tmp_path, ERROR), Lines())
        reload.engine.counted_rules[0].hits = 2
        written(tmp_path, "rules:\n  - {drop: true, enabled: false}\n" + ERROR.removeprefix("rules:\n"))
        assert await looked(reload)
        assert [counted.hits for counted in reload.engine.counted_rules] == [0, 2]

    asyncio.run(go())


def test_the_seed_stays_when_the_file_has_another(tmp_path: Path) -> None:
    async def go() -> None:
        file = written(tmp_path, "seed: 5\n" + ERROR).file
        reload = RuleReload(Rules(file), Lines())
        written(tmp_path, "seed: 66\n" + OTHER)
        assert await looked(reload)
        assert reload.engine.counted_rules[0].rule.do[0].code == 25  # type: ignore[attr-defined]
        assert reload.engine.seed == 5

    asyncio.run(go())


def test_files_are_looked_at_twice_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reload = RuleReload(written(tmp_path, ERROR), Lines())
    calls: list[object] = []

    async def sleep(seconds: float) -> None:
        calls.append(seconds)
        if len(calls) > 4:
            raise asyncio.CancelledError

    def look() -> bool:
        calls.append("look")
        return False

    monkeypatch.setattr(reload.watched, "changed", look)
    monkeypatch.setattr("klamm.proxy.control.rule_files.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reload.follow())
    assert calls == [0.5, "look", 0.5, "look", 0.5]


def test_what_an_action_raised_is_said_with_its_rule(tmp_path: Path) -> None:
    log = Lines()
    reload = RuleReload(written(tmp_path, ERROR), log)
    reload.engine.failed += [("one", "KeyError: 'x'"), ("", "TypeError: y")]
    reload.tell_failures()
    assert [line.message for line in log.of("rule_failed")] == [
        "the rule one failed: KeyError: 'x'",
        "a rule failed: TypeError: y",
    ]
    assert reload.engine.failed == []


def test_a_doubt_is_a_warning_in_the_log(tmp_path: Path) -> None:
    log = Lines()
    RuleReload(written(tmp_path, "rules:\n  - {api: Produce, error: NOT_COORDINATOR}\n"), log)
    assert "Kafka's documents do not name NOT_COORDINATOR" in log.of("rule_doubt")[0].message


@on_uvloop
async def test_klamm_run_answers_as_its_rules_say_and_follows_their_file(tmp_path: Path) -> None:
    rules = written(tmp_path, ERROR).file
    async with Broker(Cluster(), 1).listening() as broker:
        options = ("--rules", rules, "--seed", "42")
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            assert f"rules: 1 from {rules}, seed 42" in klamm.text()
            client = await connect("127.0.0.1", klamm.port + 2)
            codes: list[Any] = [(await client.ask("Heartbeat", 4, {}))["error_code"] for _ in range(3)]
            assert codes == [27, 27, 0]
            written(tmp_path, WRONG)
            await eventually(lambda: klamm.lines("rules_rejected"))
            assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0
            written(tmp_path, OTHER)
            await eventually(lambda: len(klamm.lines("rules_loaded")) == 2)
            assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 25
            status, text = await klamm.get("/metrics")
            assert status == 200
            assert 'klamm_rule_hits_total{rule="Heartbeat-error-1"} 1.0' in text
            assert 'error="UNKNOWN_MEMBER_ID",origin="klamm"} 1.0' in text
            client.close()
    assert LOOK_S < 1


@on_uvloop
async def test_klamm_run_does_not_start_with_mistakes_in_its_rules(tmp_path: Path) -> None:
    rules = written(tmp_path, WRONG).file
    async with run(tmp_path / "log", "127.0.0.1:1", options=("--rules", rules)) as klamm:
        assert await asyncio.to_thread(klamm.process.child.wait, 20) == 2
        assert "did you mean UNKNOWN_MEMBER_ID?" in klamm.text()
        assert "1 mistake, nothing was started" in klamm.text()


def test_a_file_that_was_rejected_is_told_with_its_mistakes_until_it_is_mended(tmp_path: Path) -> None:
    async def go() -> None:
        reload = RuleReload(written(tmp_path, ERROR), Lines())
        rule_file = reload.book.rule_file
        assert (rule_file.file, rule_file.rules, rule_file.rejected, rule_file.mistakes) == (
            f"{tmp_path}/rules.yaml",
            1,
            None,
            [],
        )
        written(tmp_path, WRONG + "\n")
        assert await looked(reload)
        rule_file = reload.book.rule_file
        assert (rule_file.rules, names(reload)) == (1, ["Heartbeat-error-1"])
        assert rule_file.rejected is not None
        assert rule_file.mistakes == [
            f"{tmp_path}/rules.yaml:2:29: rules[0].error: unknown error 'UNKNOWN_MEMBER'; "
            "did you mean UNKNOWN_MEMBER_ID?"
        ]
        written(tmp_path, OTHER + "\n\n")
        assert await looked(reload)
        assert (reload.book.rule_file.rejected, reload.book.rule_file.mistakes) == (None, [])

    asyncio.run(go())


def test_without_settings_there_is_no_rule_file() -> None:
    assert RuleReload(None, Lines()).book.rule_file.file == ""
