"""`klamm scenario` as people run it; the runs are in front of librdkafka's mock cluster."""

import json
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.demo.traffic import TOPICS
from klamm.cli.live.asking import add_options
from klamm.scenarios import ready
from klamm.scenarios.expectations import KINDS
from tests.brokers.processes import Process, wait_for
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.scenarios.ground import FOLDER, run

MET = """\
about: records are refused, and then taken
phases:
  - name: steady
    for: 4s
    expect:
      - rate: {api: Produce, at_least: 1}
      - answered: {api: Produce, within: 500ms}
  - name: refused
    for: 6s
    flap: 2s
    rules:
      - {name: refused, api: Produce, error: NOT_LEADER_OR_FOLLOWER}
    expect:
      - hits: {rule: refused}
      - errors: {api: Produce, above: 1%}
  - name: recovery
    for: 6s
    expect:
      - resumes: {api: Produce, within: 5s}
expect:
  - pause: {api: Produce, at_most: 8s}
  - requests: {api: Produce, at_least: 10}
  - connections: {at_most: 20}
"""

NOT_MET = """\
about: everything is expected in vain
phases:
  - name: refused
    for: 4s
    rules:
      - {name: refused, api: Produce, error: NOT_LEADER_OR_FOLLOWER}
      - {name: felt by nobody, api: Produce, topic: nobodys, error: NOT_LEADER_OR_FOLLOWER}
    expect:
      - errors: {api: Produce, below: 1%}
      - requests: {api: Produce, at_most: 1}
      - rate: {api: Produce, at_least: 10000}
      - connections: {at_least: 1000}
      - hits: {rule: felt by nobody}
  - name: silent
    for: 12s
    rules:
      - {name: silent, api: Produce, drop: true}
    expect:
      - answered: {api: Produce, within: 1s}
      - resumes: {api: Produce, within: 1s, after: 2s}
      - pause: {api: Produce, at_most: 1s, after: 2s}
"""

SHORT = "phases:\n  - {name: short, for: 1s, expect: [{requests: {at_least: 0}}]}\n"


@pytest.fixture(scope="module")
def klamm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    """klamm in front of the mock cluster, and librdkafka at work through it."""
    folder = tmp_path_factory.mktemp("scenarios")
    with ExitStack() as stack:
        cluster = Process([sys.executable, "-m", "klamm.cli.demo.cluster"], folder / "cluster.log")
        stack.callback(cluster.kill)
        bootstrap = wait_for(lambda: _address(cluster.log), "the mock cluster", [cluster])
        log = folder / "klamm.log"
        klamm = stack.enter_context(klamm_in_front_of(bootstrap, "127.0.0.1", log))
        program = [
            sys.executable,
            str(FOLDER / "librdkafka_workload.py"),
            klamm.bootstrap,
            TOPICS[0],
            "plain",
        ]
        work = Process(program, folder / "client.log")
        stack.callback(work.kill)
        wait_for(lambda: _produced(klamm) > 20, "librdkafka at work", [work])
        yield klamm


def _address(log: Path) -> str | None:
    """The line with the mock cluster's addresses; librdkafka logs beside it."""
    lines = log.read_text().splitlines()
    return next((line for line in lines if re.fullmatch(r"(127\.0\.0\.1:\d+,?)+", line)), None)


def _produced(klamm: Klamm) -> int:
    return sum(row["responses"] for row in klamm.counters()["requests"] if row["api"] == "Produce")


def test_a_scenario_whose_expectations_are_met_ends_with_0(klamm: Klamm, tmp_path: Path) -> None:
    file = tmp_path / "refused.yaml"
    file.write_text(MET)
    outcome = run(klamm, str(file), 2.0, tmp_path / "report.json")
    assert outcome.code == 0, outcome.output
    assert outcome.output.endswith("\nrefused: met, all 8 expectations\n")
    assert outcome.report["verdict"] == "met"
    events = [event["what"] for event in outcome.report["phases"][1]["events"]]
    assert events == ["added refused", "off refused", "on refused", "removed refused"]
    assert klamm.counters()["rules"] == []


def test_every_kind_of_expectation_is_not_met_in_a_run_that_deserves_it(klamm: Klamm, tmp_path: Path) -> None:
    file = tmp_path / "in-vain.yaml"
    file.write_text(NOT_MET)
    outcome = run(klamm, str(file), 2.0, tmp_path / "report.json")
    assert outcome.code == 1
    assert outcome.output.endswith("\nin-vain: 8 of 8 expectations not met\n"), outcome.output
    expectations = [each for phase in outcome.report["phases"] for each in phase["expectations"]]
    assert {each["kind"] for each in expectations} == set(KINDS)
    assert [each for each in expectations if each["met"]] == []
    assert klamm.counters()["rules"] == []


def test_a_rule_of_the_same_name_ends_the_run_with_2_and_leaves_that_rule(
    klamm: Klamm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from klamm.client import Klamm as Client

    client = Client(klamm.admin)
    client.add_rule({"name": "refused", "api": "Produce", "topic": "nobodys", "delay": "1s"})
    file = tmp_path / "refused.yaml"
    file.write_text(MET)
    try:
        assert main(["scenario", "run", str(file), "--admin", klamm.admin, "--speed", "20"]) == 2
        assert [rule.name for rule in client.rules()] == ["refused"]
    finally:
        client.remove_rule("refused")
    assert "there is a rule 'refused' already, made by " in capsys.readouterr().err


def test_a_scenario_that_another_one_is_in_the_way_of_says_so(
    klamm: Klamm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from klamm.client import Klamm as Client

    text = "there is a rule 'refused' already, made by scenario refused (127.0.0.1), which may be playing: "
    colleague = Client(klamm.admin, user="scenario refused")
    rule = {"name": "refused", "api": "Produce", "topic": "nobodys", "delay": "1s"}
    file = tmp_path / "refused.yaml"
    file.write_text(MET)
    command = ["scenario", "run", str(file), "--admin", klamm.admin, "--speed", "20"]
    colleague.add_rule(rule)
    try:
        assert main(command) == 2
    finally:
        colleague.remove_rule("refused")
    assert f"klamm scenario: refused cannot be played: {text}" in capsys.readouterr().err
    sleep, added = time.sleep, list[object]()

    def add_and_sleep(seconds: float) -> None:
        if not added:
            added.append(colleague.add_rule(rule))
        sleep(seconds)

    monkeypatch.setattr("klamm.cli.live.scenario.time.sleep", add_and_sleep)
    try:
        assert main(command) == 2
    finally:
        colleague.remove_rule("refused")
    found = capsys.readouterr()
    assert f"klamm scenario: {text}" in found.err
    assert found.out.endswith("\nrefused: broken off\n")


def test_rules_that_are_in_force_are_named_before_a_scenario_begins(
    klamm: Klamm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from klamm.client import Klamm as Client

    client = Client(klamm.admin, user="ada")
    client.add_rule({"name": "late", "api": "Produce", "topic": "nobodys", "delay": "1s"})
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    try:
        assert main(["scenario", "run", str(file), "--admin", klamm.admin]) == 0
    finally:
        client.remove_rule("late")
    others = "other rules are in force: 'late' of ada (127.0.0.1); expectations may fail because of them"
    assert capsys.readouterr().err == f"klamm scenario: warning: {others}\n"


def test_a_run_that_is_broken_off_ends_with_2_and_its_report_says_so(
    klamm: Klamm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("klamm.cli.live.scenario.time.sleep", interrupt)
    file, report = tmp_path / "short.yaml", tmp_path / "report.json"
    file.write_text(SHORT)
    assert main(["scenario", "run", str(file), "--admin", klamm.admin, "--json", str(report)]) == 2
    found = capsys.readouterr()
    assert found.out == "short\n  not reached  all requests: requests at least 0\n\nshort: broken off\n"
    assert found.err == "klamm scenario: interrupted\n"
    document = json.loads(report.read_text())
    assert (document["verdict"], document["complete"]) == ("broken off", False)


def test_the_klamm_of_the_environment_is_played_on(
    klamm: Klamm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KLAMM_ADMIN", klamm.admin)
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    assert main(["scenario", "run", str(file)]) == 0
    assert capsys.readouterr().out.endswith("\nshort: met, all 1 expectations\n")


def test_the_klamm_that_is_asked_is_that_of_the_option_or_the_environment_or_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(*words: str) -> str:
        parser = ArgumentParser()
        add_options(parser)
        return str(parser.parse_args(words).admin)

    monkeypatch.delenv("KLAMM_ADMIN", raising=False)
    assert asked() == "127.0.0.1:19091"
    monkeypatch.setenv("KLAMM_ADMIN", "127.0.0.1:2")
    assert asked() == "127.0.0.1:2"
    assert asked("--admin", "127.0.0.1:3") == "127.0.0.1:3"


def test_a_scenario_that_cannot_apply_says_so_before_it_starts(
    klamm: Klamm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KLAMM_ADMIN", klamm.admin)
    for command in ("run", "check"):
        for words, message in (
            (["slow-broker", "--set", "broker=9"], "there is no broker 9: kafka has 1, 2 and 3"),
            (["slow-broker", "--cluster", "eu"], "there is no cluster 'eu': klamm knows kafka"),
            (["expired-sasl-session"], "expects SaslAuthenticate requests, and brokers here want no SASL"),
        ):
            assert main(["scenario", command, *words]) == 2
            found = capsys.readouterr()
            assert (found.out, f"klamm scenario: {words[0]} cannot be played: " in found.err) == ("", True)
            assert message in found.err
    assert klamm.counters()["rules"] == []


def test_check_says_what_can_be_played(
    klamm: Klamm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KLAMM_ADMIN", klamm.admin)
    assert main(["scenario", "check", "rolling-restart", "--cluster", "kafka"]) == 0
    assert capsys.readouterr().out == "rolling-restart: 7 phases, 95 s, ready to play\n"
    assert main(["scenario", "check", "fenced-producer"]) == 0
    found = capsys.readouterr()
    assert found.out.endswith(", ready to play\n")
    assert (
        "klamm scenario: warning: no client has sent EndTxn so far, and the scenario expects it\n"
        in found.err
    )
    file = tmp_path / "wrong.yaml"
    file.write_text(MET.replace("for: 4s", "for: 4"))
    assert main(["scenario", "check", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}:4:10: ")
    assert main(["scenario", "check", "slow-broker", "--admin", "127.0.0.1:1"]) == 2
    assert "no klamm answers at 127.0.0.1:1" in capsys.readouterr().err


def test_check_reads_a_file_where_no_klamm_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KLAMM_ADMIN", raising=False)
    monkeypatch.setattr("klamm.cli.live.asking.ADMIN", "127.0.0.1:1")
    monkeypatch.setattr("klamm.cli.live.scenario.ADMIN", "127.0.0.1:1")
    assert main(["scenario", "check", "slow-broker"]) == 0
    assert "the file is right, and no klamm answers at 127.0.0.1:1" in capsys.readouterr().out


def test_without_a_klamm_the_exit_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "run", "leader-election", "--admin", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == "klamm scenario: no klamm answers at 127.0.0.1:1: connection refused\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "leader-electio"], "did you mean leader-election?"),
        (["run", "missing.yaml"], "cannot read missing.yaml: No such file or directory"),
        (["show", "full-disc"], "did you mean full-disk?"),
        (["run", "full-disk", "--set", "brokr=1"], "there is no parameter 'brokr'; did you mean broker?"),
        (["run", "full-disk", "--set", "broker=one"], "full-disk.yaml:"),
        (["run", "full-disk", "--set", "broker"], "'broker' is no KEY=VALUE"),
        (["run", "full-disk", "--speed", "fast"], "'fast' is not a number above 0, up to 1000"),
        (["run", "full-disk", "--speeed", "2"], "unknown option --speeed; did you mean --speed?"),
        (["run", "full-disk", "--json", "/nowhere/report.json"], "cannot use /nowhere/report.json: No such"),
        (["run", "full-disk", "--token-file", "/nowhere"], "cannot use /nowhere: No such file"),
        (["run", "nope"], "there is no file and no ready scenario 'nope'; `klamm scenario list` lists them"),
        (["show", "nope"], "there is no ready scenario 'nope'; `klamm scenario list` lists them"),
        (["play", "full-disk"], "argument COMMAND: unknown 'play'; known are list, show, run, check"),
        (["rum", "full-disk"], "argument COMMAND: unknown 'rum'; did you mean run?"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_reason(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenario", *words]) == 2
    assert message in capsys.readouterr().err


def test_mistakes_of_a_file_are_printed_and_nothing_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(MET.replace("for: 4s", "for: 4").replace("resumes", "resume"))
    assert main(["scenario", "run", str(file)]) == 2
    assert [line.partition(": ")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"{file}:4:10",
        f"{file}:19:9",
    ]


def test_list_and_show_tell_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "list"]) == 0
    listed = capsys.readouterr().out
    for name in ready.names():
        assert f"  {name} " in listed
        assert main(["scenario", "show", name]) == 0
        printed = capsys.readouterr().out
        assert ready.page(name) in printed
        assert ready.text(name) in printed
    assert main(["scenario", "show", "full-disk", "--yaml"]) == 0
    assert capsys.readouterr().out == ready.text("full-disk")


def test_the_report_goes_to_standard_output_where_that_is_asked_for(
    klamm: Klamm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.yaml"
    file.write_text("phases: [{name: one, for: 1s}]")
    assert main(["scenario", "run", str(file), "--admin", klamm.admin, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["scenario"] == "short"
    assert "short: met" in err
