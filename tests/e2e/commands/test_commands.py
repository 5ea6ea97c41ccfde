"""Every command that asks a running klamm, as people run it, while librdkafka works through that klamm."""

import getpass
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from confluent_kafka import KafkaError, KafkaException

from klamm.cli import COMMANDS
from klamm.cli.rules import live as rules_live
from klamm.client import Klamm as Client
from klamm.client.types import Connection
from tests.brokers.kraft import Cluster
from tests.brokers.processes import free_ports, wait_for
from tests.e2e.klamm_process import COMMAND, Klamm, get, klamm_in_front_of
from tests.e2e.light_traffic import (
    BILLING,
    LEADER,
    PATIENCE_S,
    PROBE,
    SHOP,
    Shop,
    leader,
    probing,
    shop_behind_klamm,
)

pytestmark = pytest.mark.brokers

REFUSED, OTHER = "POLICY_VIOLATION", "INVALID_RECORD"
MODULES = {name: import_module(f"klamm.cli.{command.module}") for name, command in COMMANDS.items()}
LIVE = [name for name, module in MODULES.items() if {"add_options", "add_selectors"} & vars(module).keys()]
LIVE += [f"rules {name}" for name in rules_live.COMMANDS]


class Said(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        assert (self.code, self.err) == (0, "")
        return self.out.splitlines()


class Desk:
    """Where commands are typed."""

    def __init__(self, klamm: Klamm, shop: Shop) -> None:
        self.klamm, self.shop, self.api = klamm, shop, Client(klamm.admin)

    def says(self, *words: str, **env: str) -> Said:
        done = subprocess.run(
            [str(COMMAND), *words],
            env={**os.environ, "KLAMM_ADMIN": self.klamm.admin, **env},
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def add(self, name: str = "refused", error: str = REFUSED, **more: Any) -> None:
        """A rule for the shop's records, without a command."""
        rule = {"name": name, "api": "Produce", "topic": self.shop.topic, "error": error, **more}
        self.api.add_rule(rule)


@pytest.fixture(scope="module")
def desk(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    log = tmp_path_factory.mktemp("commands") / "klamm.log"
    with shop_behind_klamm(kafka, log, "--log-format", "json") as (klamm, shop):
        yield Desk(klamm, shop)


def rules_list(it: Desk) -> None:
    assert it.says("rules", "list").lines == ["no rules"]
    assert it.shop.errors(3, lambda: it.add(times=2)) == [REFUSED, REFUSED, None]
    head, row = it.says("rules", "list").lines
    assert head.split() == ["rule", "of", "state", "matches", "hits", "by", "written"]
    name, origin, state, _, hits, *_ = row.split()
    assert (name, origin, state, hits) == ("refused", "hand", "over", "2")
    assert row.endswith("times: 2}   ends in 10 minutes")
    (rule,) = it.says("rules", "list", "--json").lines
    assert json.loads(rule)["hits"] == 2


def rules_add(it: Desk) -> None:
    began = time.time()
    written = f"{{name: refused, api: Produce, topic: {it.shop.topic}, error: {REFUSED}}}"
    assert it.says("rules", "add", written).lines == [f"refused: {written}   ends in 10 minutes"]
    assert it.shop.errors(3) == [REFUSED] * 3
    assert it.says("rules", "add", written.replace(REFUSED, "NOT_LEADER")) == (
        2,
        "",
        "klamm: error: unknown error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER?\n",
    )
    line = wait_for(lambda: changed(it, "POST /v1/rules"), "a line of the audit log")
    assert line["by"] == f"{getpass.getuser()} (127.0.0.1)"
    assert line["sent"]["error"] == REFUSED
    assert began - 1 < datetime.fromisoformat(line["time"]).timestamp() < time.time() + 1


def changed(it: Desk, change: str) -> dict[str, Any] | None:
    """The newest line of klamm's log about this."""
    lines = it.klamm.process.log.read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith('{"')]
    return next((each for each in reversed(events) if each.get("change") == change), None)


def rules_off(it: Desk) -> None:
    assert it.shop.errors(2, it.add) == [REFUSED] * 2
    assert it.says("rules", "off", "refused").lines == ["refused is off"]
    assert it.shop.errors(3) == [None] * 3
    assert it.says("rules", "list").lines[1].split()[2] == "off"
    it.add("other", OTHER)
    assert it.shop.errors(3) == [OTHER] * 3
    assert it.says("rules", "off", "--all").lines == ["other is off"]
    assert it.shop.errors(3) == [None] * 3
    assert it.api.rules() == []


def rules_on(it: Desk) -> None:
    it.add()
    it.api.switch_rule("refused", False)
    assert it.shop.errors(3) == [None] * 3
    assert it.says("rules", "on", "refused").lines == ["refused is on"]
    assert it.shop.errors(3) == [REFUSED] * 3


def rules_rm(it: Desk) -> None:
    it.add()
    it.add("other", topic="nobodys")
    assert it.shop.errors(2) == [REFUSED] * 2
    assert it.says("rules", "rm", "refused", "other").lines == ["refused is removed", "other is removed"]
    assert it.shop.errors(3) == [None] * 3
    assert it.says("rules", "rm", "refused") == (2, "", "klamm: there is no rule 'refused'\n")


def rules_reset(it: Desk) -> None:
    assert it.shop.errors(3, lambda: it.add(times=2)) == [REFUSED, REFUSED, None]
    reset: list[Said] = []
    assert it.shop.errors(3, lambda: reset.append(it.says("rules", "reset", "refused"))) == [
        REFUSED,
        REFUSED,
        None,
    ]
    assert reset[0].lines == ["refused begins anew"]


def connections(it: Desk) -> None:
    def of_the_shop() -> dict[str, Any] | None:
        found = [json.loads(line) for line in it.says("connections", "--json").lines]
        assert {each["client_id"] for each in found} >= {BILLING}
        mine = [each for each in found if (each["client_id"], each["broker"]) == (SHOP, str(LEADER))]
        return mine[0] if mine else None

    old = wait_for(of_the_shop, "the shop's connection")
    head, *rows = it.says("connections").lines
    assert head.split()[:2] == ["id", "client"]
    (row,) = (row for row in rows if row.split()[0] == str(old["id"]))
    assert row.split()[1:5] == [old["client"], SHOP, "kafka", str(LEADER)]
    it.shop.cut(lambda: it.says("connections", "--close", str(old["id"])))
    assert it.shop.errors(3) == [None] * 3
    assert wait_for(of_the_shop, "another connection")["id"] != old["id"]
    assert it.says("connections", "--close", str(old["id"])) == (
        2,
        "",
        f"klamm: there is no connection '{old['id']}'\n",
    )


def tail(it: Desk) -> None:
    of_the_shop = f'api == Produce and topic == "{it.shop.topic}"'
    clock, line, _ = (
        rf"\S+ Produce v\d+ client={SHOP} broker={LEADER} connection=\d+ {it.shop.topic}\[0\] \S+ -> \S+",
        "",
        "",
    )
    for exchange in it.says("tail", of_the_shop, "-n", "3").lines:
        assert re.match(clock, exchange), exchange
    tree = it.says("tail", of_the_shop, "-n", "1", "-v").out
    assert "    acks: -1\n" in tree
    assert "        error_code: 0\n" in tree
    marked = it.says("tail", of_the_shop, "-n", "1", "-x").out
    assert re.search(r"acks: -1\b", marked)
    assert re.search(r'"order \d+"', marked)
    (line,) = it.says("tail", "-n", "1", "--json", f'client_id == "{BILLING}"').lines
    assert json.loads(line)["client_id"] == BILLING
    assert it.says("tail", "acsk == 1").err.startswith(
        'klamm: unknown field "acsk" (column 1); did you mean acks?'
    )


def web(it: Desk) -> None:
    at = f"127.0.0.1:{free_ports()}"
    words = [str(COMMAND), "web", "--listen", at, "--admin", it.klamm.admin]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"klamm web: http://{at}/\n"
            assert get(f"http://{at}/healthz") == "ok\n"
            where = quote(f'client_id == "{SHOP}"')
            with urllib.request.urlopen(f"http://{at}/api/rows?where={where}", timeout=PATIENCE_S) as lines:
                batches = (json.loads(line) for line in lines)
                row = next(row for batch in batches for row in batch.get("rows", ()))
            assert (row["client_id"], row["topics"]) == (SHOP, {it.shop.topic: [0]})
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def top(it: Desk) -> None:
    lines = it.says("top", "--once", "--table", "clients").lines
    assert lines[4].split() == "CLIENT req/s▼ in/s out/s p50 p99 err/s total".split()
    assert {SHOP, BILLING} <= {line.split()[0] for line in lines[5:]}
    (row,) = [line for line in it.says("top", "--once").lines if line.startswith("Produce ")]
    assert float(row.split()[1]) > 0
    assert it.says("top").err.startswith("klamm: klamm top needs a terminal")


def inject(it: Desk) -> None:
    words = ("inject", "Prod", "POLICY", "--topic", it.shop.topic)
    printed: list[Said] = []
    errors = it.shop.errors(3, lambda: printed.append(it.says(*words, "--times", "2", "--follow", "0")))
    assert errors == [REFUSED, REFUSED, None]
    written = f"{{api: Produce, topic: {it.shop.topic}, times: 2, error: {REFUSED}}}"
    assert printed[0].lines == [f"hand-Produce-error-1: {written}   ends in 10 minutes"]
    made, hits = it.says(*words, "--times", "3", "--for", "forever", "--follow", "60").lines
    assert made.endswith(f"error: {REFUSED}}}")
    assert re.fullmatch(r"3 hits of \d+ matches", hits)
    _, instead = it.says("inject", "Produce", REFUSED, "--topic", "nobodys", "--follow", "2").lines
    seen = f"0 hits; Produce seen on {it.shop.topic} from 1 client"
    assert instead == f"{seen}; no topic nobodys, but {it.shop.topic}"
    unseen = it.says("inject", "DeleteTopics", REFUSED, "--follow", "2")
    doubt = f"Kafka's documents do not name {REFUSED} for DeleteTopics: clients may not know it"
    assert (unseen.code, unseen.err) == (0, f"klamm: warning: error: {doubt}\n")
    instead = unseen.out.splitlines()[-1]
    assert instead.startswith("0 hits; no DeleteTopics seen, but ")
    assert "Produce" in instead
    assert it.says("inject", "Fet", REFUSED).err == (
        "klamm: 'Fet' may be Fetch, FetchSnapshot: write more of it\n"
    )


def delay(it: Desk) -> None:
    words = ("delay", "Produce", "400ms", "--client", SHOP, "--times", "2", "--for", "1m", "--follow", "0")
    first, second, _ = it.shop.deliveries(3, lambda: it.says(*words))
    assert min(first.took_s, second.took_s) >= 0.4
    assert (first.error, second.error) == (None, None)
    (rule,) = it.api.rules()
    assert (rule.hits, rule.over, rule.written["for"]) == (2, True, "1m")


def block(it: Desk) -> None:
    words = ("block", "--client", PROBE, "--follow", "0", "--name", "nothing-for-probes")
    with probing(it.klamm.bootstrap) as ask_for:
        assert it.says(*words).lines == [
            f"nothing-for-probes: {{client: {PROBE}, name: nothing-for-probes, block: error}}"
            "   ends in 10 minutes"
        ]
        seen = ask_for(it.shop.topic).result(PATIENCE_S)
        assert seen.topics[it.shop.topic].error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert len(seen.brokers) == 3
        assert it.shop.errors(3) == [None] * 3


def down(it: Desk) -> None:
    words = ("down", "--broker", str(LEADER), "--for", "5m", "--follow", "0")
    printed: list[Said] = []
    it.shop.cut(lambda: printed.append(it.says(*words)))
    written = f"{{broker: {LEADER}, for: 5m, event: connect, down: true}}"
    assert printed[0].lines[0].endswith(f": {written}")
    wait_for(lambda: all(rule.hits for rule in it.api.rules()), "an attempt to connect")
    assert len(it.says("rules", "off", "--all").lines) == 2
    assert it.shop.errors(3) == [None] * 3


def pause(it: Desk) -> None:
    words = ("pause", "Metad", "--client", PROBE, "--timeout", "1s", "--times", "1", "--follow", "20")
    with probing(it.klamm.bootstrap) as ask_for:
        answer = ask_for  # asked below, once the rule is there
        process = subprocess.Popen(
            [str(COMMAND), *words],
            env={**os.environ, "KLAMM_ADMIN": it.klamm.admin},
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_for(it.api.rules, "the rule")
        seen = answer(it.shop.topic).result(PATIENCE_S)  # nobody resolves it: it goes on after its timeout
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert leader(seen, it.shop.topic) == LEADER
    assert out.splitlines()[1] == "1 hit of 1 match"


def intercept(it: Desk) -> None:
    topic = it.shop.topic
    assert it.says("intercept").lines == ["no frame is paused; `klamm pause API` makes frames wait"]
    assert it.says("intercept", "resume") == (1, "", "no frame is paused\n")
    with probing(it.klamm.bootstrap) as ask_for:

        def paused() -> tuple[str, Any]:
            """A Metadata answer waits: its number, and what the client is to get."""
            it.api.rules_off()
            it.says("pause", "Metadata", "--client", PROBE, "--side", "response", "--follow", "0")
            answer = ask_for(topic)
            head, row = it.says("intercept", "--wait").lines
            assert head.split()[:2] == ["id", "frame"]
            number, api, _, side, client, *_ = row.split()
            assert (api, side, client) == ("Metadata", "response", PROBE)
            return number, answer

        number, answer = paused()
        document = json.loads(it.says("intercept", "show", number).out)
        assert document["topics"][0]["partitions"][0]["leader_id"] == LEADER
        wrong = it.says("intercept", "edit", number, EDITOR="sed -i s/leader_id/leeder_id/", VISUAL="")
        assert wrong.code == 2
        assert "values.topics[0].partitions[0]: no field 'leeder_id' in version" in wrong.err
        assert wrong.err.endswith(f"klamm: {number} is still paused, unchanged\n")
        edit = f"""sed -i 's/"leader_id": {LEADER}/"leader_id": 3/'"""
        edited = it.says("intercept", "edit", number, EDITOR=edit, VISUAL="")
        assert edited.lines[1:] == [f"  topics[0].partitions[0].leader_id: {LEADER} -> 3"]
        assert leader(answer.result(PATIENCE_S), topic) == 3

        number, answer = paused()
        assert (
            it.says("intercept", "error", number, "TOPIC_AUTH")
            .lines[0]
            .endswith("TOPIC_AUTHORIZATION_FAILED")
        )
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            answer.result(PATIENCE_S)

        number, answer = paused()
        assert it.says("intercept", "resume").lines[0].startswith(f"{number} goes on: Metadata ")
        assert leader(answer.result(PATIENCE_S), topic) == LEADER

        number, answer = paused()
        assert it.says("intercept", "drop").lines[0].startswith(f"{number} is dropped: Metadata ")
        it.api.rules_off()
        assert not answer.done()
        for each in it.api.connections():
            if each.client_id == PROBE:
                it.api.close_connection(each.id)
        assert (
            answer.exception(PATIENCE_S) or leader(answer.result(), topic) == LEADER
        )  # on another connection


def scenario(it: Desk) -> None:
    words = ("--set", f"broker={LEADER}", "--speed", "100")
    assert it.says("scenario", "check", "slow-broker", *words[:2]).lines == [
        "slow-broker: 3 phases, 60 s, ready to play"
    ]
    played = it.says("scenario", "run", "slow-broker", *words)
    assert played.code in (0, 1)
    assert played.out.splitlines()[-1].startswith("slow-broker: ")
    assert it.api.rules() == []


CHECKS: Mapping[str, Callable[[Desk], None]] = {
    "rules list": rules_list,
    "rules add": rules_add,
    "rules on": rules_on,
    "rules off": rules_off,
    "rules rm": rules_rm,
    "rules reset": rules_reset,
    "connections": connections,
    "tail": tail,
    "web": web,
    "top": top,
    "inject": inject,
    "delay": delay,
    "block": block,
    "down": down,
    "pause": pause,
    "intercept": intercept,
    "scenario": scenario,
}


@pytest.mark.parametrize("command", LIVE)
def test_a_command_does_what_it_says(command: str, desk: Desk) -> None:
    """A command without a check fails here."""
    try:
        CHECKS[command](desk)
    finally:
        desk.api.rules_off()


def _at_leader(desk: Desk) -> list[Connection]:
    return [each for each in desk.api.connections() if each.broker == str(LEADER)]


def test_a_broker_is_down_for_one_client_id_and_there_for_the_others(desk: Desk) -> None:
    """The help's example, with a client that produces and another that fetches from the same broker."""
    words = ("down", "--broker", str(LEADER), "--client", f"{SHOP[:2]}*", "--for", "5m", "--follow", "0")
    before = {each.id for each in desk.api.connections()}  # one that says nothing is not cut: it may stay
    try:
        printed: list[Said] = []
        desk.shop.cut(lambda: printed.append(desk.says(*words)))
        (line,) = printed[0].lines
        assert line.endswith(
            f": {{client: {SHOP[:2]}*, broker: {LEADER}, for: 5m, event: frame, down: true}}"
        )
        (rule,) = desk.api.rules()
        hits = rule.hits
        wait_for(lambda: desk.api.rule(rule.name).hits > hits + 2, "attempts to come back")
        wait_for(lambda: BILLING in {each.client_id for each in _at_leader(desk)}, "the other client")
        trying = [each for each in _at_leader(desk) if each.client_id == SHOP and each.id not in before]
        assert not any(each.to_client_bytes for each in trying)
        tried = {each.id for each in trying}
        wait_for(lambda: not tried & {each.id for each in desk.api.connections()}, "the end of attempts")
    finally:
        desk.api.rules_off()
    assert desk.shop.errors(3) == [None] * 3


def test_a_broker_that_is_not_there_is_refused_at_once_with_those_that_are(desk: Desk) -> None:
    refused = "klamm: broker: there is no broker 9: kafka has 1, 2 and 3\n"
    for words in (("down",), ("delay", "Fetch", "1s")):
        assert desk.says(*words, "--broker", "9") == (2, "", refused)
    assert desk.says("down", "--broker", "2", "--cluster", "eu") == (
        2,
        "",
        "klamm: cluster: there is no cluster 'eu': klamm knows kafka\n",
    )
    assert desk.api.rules() == []


CHANGES: Mapping[str, tuple[str, ...]] = {
    "rules add": ("{api: Produce, delay: 1ms}",),
    "rules on": ("x",),
    "rules off": ("--all",),
    "rules rm": ("x",),
    "rules reset": ("x",),
    "connections": ("--close", "1"),
    "inject": ("Produce", "6"),
    "delay": ("Produce", "1ms"),
    "block": ("--client", "x"),
    "down": ("--broker", "2"),
    "pause": ("Produce",),
}
READS: Mapping[str, str] = {
    "rules list": "no rules",
    "tail": "",
    "top": "",
    "web": "",
    "intercept": "no frame is paused",
}


def test_a_klamm_that_is_read_only_refuses_every_command_that_changes_something(
    kafka: Cluster, log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from klamm.cli import main

    assert CHANGES.keys() | READS.keys() | {"scenario"} == set(LIVE)
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, "--read-only") as klamm:
        monkeypatch.setenv("KLAMM_ADMIN", klamm.admin)
        for command, words in CHANGES.items():
            assert main([*command.split(), *words]) == 2, command
            assert capsys.readouterr().err == "klamm: klamm runs with --read-only: nothing can be changed\n"
        assert main(["scenario", "run", "slow-broker"]) == 2
        refused = "slow-broker cannot be played: klamm runs with --read-only: no rule can be added\n"
        assert capsys.readouterr().err.startswith(f"klamm scenario: {refused}")
        with probing(klamm.bootstrap):
            assert main(["connections"]) == 0
            assert PROBE in capsys.readouterr().out
        for command, expected in READS.items():
            if expected:
                assert main(command.split()) == 0
                assert capsys.readouterr().out.startswith(expected)
