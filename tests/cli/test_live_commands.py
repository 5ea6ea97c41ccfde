"""The commands that ask a running klamm: rules, inject, delay, block, down, connections, tail."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.live import asking, down
from klamm.rules.file.rule_file import read_text
from tests.proxy.admin.admin_api import Api, in_thread

BEAT = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
Says = Callable[..., tuple[int, str, str]]  # exit code, output, errors


@pytest.fixture
def it(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with in_thread() as running:
        monkeypatch.setenv("KLAMM_ADMIN", running.klamm.admin)
        yield running


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


async def beats(it: Api, times: int = 1) -> list[int]:
    client = await it.edge.client()
    return [(await client.ask("Heartbeat", 3, BEAT))["error_code"] for _ in range(times)]


class Beating:
    """Heartbeats all the time, while a command runs."""

    def __init__(self, it: Api) -> None:
        self.it, self.end = it, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        async def go() -> None:
            client = await self.it.edge.client()
            while not self.end.is_set():
                await client.ask("Heartbeat", 3, BEAT)
                await asyncio.sleep(0.01)

        self.it.do(go())

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join(20)


def test_inject_makes_a_rule_of_unique_beginnings_and_tells_its_hits(it: Api, says: Says) -> None:
    with Beating(it):
        code, out, _ = says(
            "inject", "Heartb", "REBALANCE", "--group", "billing", "--times", "3", "--follow", "3"
        )
    made, hits = out.splitlines()
    written = "{api: Heartbeat, group: billing, times: 3, error: REBALANCE_IN_PROGRESS}"
    assert (code, made) == (0, f"hand-Heartbeat-error-1: {written}   ends in 10 minutes")
    assert hits.startswith("3 hits of ")


def test_a_rule_that_hits_nothing_says_what_was_seen_instead(it: Api, says: Says) -> None:
    with Beating(it):
        _, out, _ = says("inject", "Heartbeat", "REBALANCE", "--group", "other", "--follow", "1")
        seen = "0 hits; Heartbeat seen from 1 client; no group other, but billing"
        assert out.splitlines()[1] == seen
        _, out, _ = says("inject", "Heartbeat", "REBALANCE", "--group", "biling", "--follow", "1")
        assert out.splitlines()[1].endswith("no group biling, but billing; did you mean billing?")
    _, out, _ = says("inject", "Produce", "NOT_LEADER_FOR", "--follow", "0.1")
    assert out.splitlines()[1] == "0 hits; no Produce seen"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("inject", "Fet", "6"), "klamm: 'Fet' may be Fetch, FetchSnapshot: write more of it\n"),
        (("inject", "Prodcue", "6"), "klamm: there is no API 'Prodcue'; did you mean Produce?\n"),
        (("inject", "Produce", "6", "--times", "no"), "klamm: times: 'no' is not a whole number from 0 on\n"),
        (("delay", "Fetch", "5"), "klamm: delay: 5 of what? write 5ms or 5s\n"),
        (
            ("delay", "Fetch", "-5ms"),
            "klamm: delay: '-5ms' is not a duration: write it as 500ms or 2s\n",
        ),
        (
            ("inject", "NOT_LEADER", "Produce"),
            "klamm: the API comes first, then the error: klamm inject Produce NOT_LEADER\n",
        ),
        (("inject", "6", "Produce"), "klamm: the API comes first, then the error: klamm inject Produce 6\n"),
        (("rules", "rm"), "klamm: name the rules, or say --all\n"),
        (("rules", "reset", "x", "--all"), "klamm: name the rules, or say --all\n"),
        (("rules", "rm", "x"), "klamm: there is no rule 'x'\n"),
        (("rules", "add", "x"), "klamm: write the rule as {api: Produce, error: NOT_LEADER_OR_FOLLOWER}\n"),
        (("rules", "off"), "klamm: name the rules, or say --all\n"),
        (("connections", "--close", "0"), "klamm: there is no connection '0'\n"),
        (
            ("rules", "list", "--token-file", "/nowhere"),
            "klamm: cannot read /nowhere: No such file or directory\n",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(
    words: tuple[str, ...], message: str, it: Api, says: Says
) -> None:
    code, _, errors = says(*words)
    assert (code, errors) == (2, message)
    assert it.do(it.klamm.rules()) == []


def test_without_a_klamm_there_is_one_line_and_exit_code_1(says: Says) -> None:
    code, _, errors = says("rules", "list", "--admin", "127.0.0.1:1")
    assert (code, errors) == (1, "klamm: no klamm answers at 127.0.0.1:1: connection refused\n")


def test_commands_that_are_named_lead_to_the_same_klamm(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KLAMM_ADMIN", *(variable for _, variable, _ in asking.CREDENTIALS)):
        monkeypatch.delenv(variable, raising=False)
    assert "`klamm top --once`, `klamm tail`" in says("top")[2].replace("\nklamm:", "")
    told = says("top", "--admin", "127.0.0.1:19291", "--token-file", "my token")[2].replace("\nklamm:", "")
    options = "--admin 127.0.0.1:19291 --token-file 'my token'"
    assert f"`klamm top --once {options}`, `klamm tail {options}`" in told


DEFAULT = "that is the default address: name another with --admin HOST:PORT, or KLAMM_ADMIN"
VARIABLE = "KLAMM_ADMIN names that address: --admin HOST:PORT names another"


@pytest.mark.parametrize(("variable", "source"), [(None, DEFAULT), ("127.0.0.1:1", VARIABLE)])
def test_an_address_that_was_not_given_is_told_with_its_source(
    variable: str | None, source: str, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(asking, "ADMIN", "127.0.0.1:1" if variable is None else "127.0.0.1:2")
    monkeypatch.setenv("KLAMM_ADMIN", variable or "")
    message = f"no klamm answers at 127.0.0.1:1: connection refused; {source}\n"
    assert says("rules", "list")[::2] == (1, f"klamm: {message}")
    assert says("tail")[::2] == (1, f"klamm: {message}")
    assert says("top", "--once")[::2] == (1, f"klamm: {message}")
    assert says("scenario", "run", "leader-election")[2] == f"klamm scenario: {message}"


def test_all_rules_are_begun_anew_and_those_made_by_hand_removed(it: Api, says: Says) -> None:
    assert says("rules", "rm", "--all")[1] == "no rules made by hand\n"
    for name in ("one", "two"):
        says("rules", "add", f"{{name: {name}, api: Heartbeat, delay: 1ms}}")
    it.do(beats(it))
    assert says("rules", "reset", "--all")[1] == "one begins anew\ntwo begins anew\n"
    assert [rule.hits for rule in it.do(it.klamm.rules())] == [0, 0]
    assert says("rules", "rm", "--all")[1] == "one is removed\ntwo is removed\n"
    assert it.do(it.klamm.rules()) == []


def test_rules_are_listed_switched_and_removed(it: Api, says: Says) -> None:
    assert says("rules", "list")[1] == "no rules\n"
    says("rules", "add", "{name: late, api: Heartbeat, delay: 1ms, for: forever}")
    it.do(beats(it, 2))
    head, row = says("rules", "list")[1].splitlines()
    assert head.split() == ["rule", "of", "state", "matches", "hits", "by", "written"]
    [rule] = it.do(it.klamm.rules())
    assert rule.made_by.endswith("(127.0.0.1)")
    assert row.split()[:7] == ["late", "hand", "on", "2", "2", *rule.made_by.split()]
    assert row.endswith("{api: Heartbeat, delay: 1ms, for: forever}")
    assert says("rules", "off", "late")[1] == "late is off\n"
    assert says("rules", "list")[1].splitlines()[1].split()[2] == "off"
    assert says("rules", "on", "late")[1] == "late is on\n"
    assert says("rules", "reset", "late")[1] == "late begins anew\n"
    assert json.loads(says("rules", "list", "--json")[1])["hits"] == 0
    assert says("rules", "rm", "late")[1] == "late is removed\n"
    says("delay", "Heartbeat", "1ms", "--follow", "0")
    assert says("rules", "off", "--all")[1] == "hand-Heartbeat-delay-1 is off\n"
    assert says("rules", "list")[1] == "no rules\n"


def test_block_and_down_act_at_once(it: Api, says: Says) -> None:
    assert says("block", "--client", "app", "--follow", "0")[0] == 0
    assert it.do(beats(it)) == [30]  # GROUP_AUTHORIZATION_FAILED
    says("rules", "off", "--all")
    code, out, _ = says("down", "--broker", "bootstrap", "--for", "30s", "--follow", "0")
    assert (code, len(out.splitlines())) == (0, 2)

    async def refused() -> str:
        client = await it.edge.client()
        return await client.ended()

    assert it.do(refused()) == "RST"


def test_a_broker_is_down_for_the_client_that_the_help_names_and_for_no_other(it: Api, says: Says) -> None:
    assert "klamm down --broker 2 --client 'orders-*'" in down.EXAMPLES
    code, out, _ = says("down", "--broker", "1", "--client", "orders-*", "--follow", "0")
    made = "hand-any-down-1: {client: orders-*, broker: 1, event: frame, down: true}   ends in 10 minutes"
    assert (code, out.splitlines()) == (0, [made])

    async def beat() -> int:
        client = await it.edge.client(1)
        return int((await client.ask("Heartbeat", 3, BEAT))["error_code"])

    async def ended() -> str:
        client = await it.edge.client(1)
        client.send("Heartbeat", 3, BEAT)
        return await client.ended()

    assert it.do(beat()) == 0  # its client id is app
    assert says("down", "--broker", "1", "--client", "orders-*,ap*", "--follow", "0")[0] == 0
    assert it.do(ended()) == "RST"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("down", "--broker", "9"), "klamm: broker: there is no broker 9: kafka has 1\n"),
        (("delay", "Fetch", "1s", "--broker", "7"), "klamm: broker: there is no broker 7: kafka has 1\n"),
        (
            ("down", "--broker", "1", "--cluster", "eu"),
            "klamm: cluster: there is no cluster 'eu': klamm knows kafka\n",
        ),
        (
            ("inject", "Produce", "NOT_LEADER_FOR", "--chance", "200%"),
            "klamm: chance: chance must be 0% to 100%\n",
        ),
    ],
)
def test_what_is_not_there_is_said_at_once(words: tuple[str, ...], message: str, it: Api, says: Says) -> None:
    assert says(*words) == (2, "", message)
    assert it.do(it.klamm.rules()) == []


def test_a_broker_of_two_clusters_is_asked_for_with_its_cluster(it: Api, says: Says) -> None:
    it.book.known = lambda: {"a": frozenset({"1", "2"}), "b": frozenset({"2"})}
    choose = "choose with cluster: a, or take all with cluster: '*'"
    message = f"klamm: broker: broker 2 is in the clusters a and b: {choose}\n"
    assert says("down", "--broker", "2", "--follow", "0") == (2, "", message)
    for command in ("down", "delay Fetch 1s", "inject Fetch 6", "pause Fetch", "block --client x"):
        code, out, errors = says(*command.split(), "--broker", "2", "--cluster", "a", "--follow", "0")
        assert (code, "cluster: a" in out, errors) == (0, True, "")


def test_a_warning_comes_with_the_rule_and_stands_in_the_list(it: Api, says: Says) -> None:
    warning = (
        "error: Kafka's documents do not name OFFSET_OUT_OF_RANGE for Heartbeat: clients may not know it\n"
    )
    code, _, errors = says("inject", "Heartbeat", "OFFSET_OUT", "--follow", "0")
    assert (code, errors) == (0, f"klamm: warning: {warning}")
    assert says("rules", "list")[1].splitlines(True)[-1] == f"warning: hand-Heartbeat-error-1: {warning}"


def test_the_list_says_that_the_file_was_rejected_and_prints_no_words_of_python(it: Api, says: Says) -> None:
    good = "rules:\n  - {name: slow, api: [Fetch], do: [{delay: {time: 1ms}}, {count: true}]}\n"
    it.book.of_file(read_text(good, "rules.yaml"))
    it.do(it.klamm.add_rule({"name": "late", "api": ["Produce"], "error": {"code": 6, "applied": True}}))
    table = says("rules", "list")[1]
    assert "{api: [Fetch], do: [{delay: {time: 1ms}}, {count: true}]}" in table
    assert "{api: [Produce], error: {code: 6, applied: true}}" in table
    assert "rejected" not in table
    it.book.reject(read_text("rules:\n  - {api: Fetsch, delay: 1ms}\n", "rules.yaml"))
    *rows, summary, mistake = says("rules", "list")[1].splitlines()
    assert (*rows,) == tuple(table.splitlines())
    assert re.fullmatch(
        r"rules.yaml was rejected at [\d:]{8}: 1 mistake; the file's rules are those of [\d:]{8}", summary
    )
    assert mistake == "  rules.yaml:2:11: rules[0].api: unknown API 'Fetsch'; did you mean Fetch?"
    code, out, errors = says("rules", "list", "--json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["slow", "late"]
    assert (code, errors.splitlines()) == (0, [summary, mistake])


def test_rules_check_asks_a_klamm_for_brokers_and_clusters(it: Api, says: Says, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n  - {broker: 9, down: true}\n  - {cluster: eu, down: true}\n")
    it.control.state.clusters = lambda: [it.edge.proxied.state()]  # type: ignore[method-assign]
    assert says("rules", "check", str(file)) == (0, f"{file}: 2 rules, ready to use\n", "")
    assert says("rules", "check", str(file), "--admin", it.klamm.admin)[:2] == (
        0,
        f"{file}:2:5: rules[0].broker: warning: there is no broker 9: kafka has 1\n"
        f"{file}:3:5: rules[1].cluster: warning: there is no cluster 'eu': klamm knows kafka\n"
        f"{file}: 2 rules, 2 warnings, ready to use\n",
    )
    message = "klamm: no klamm answers at 127.0.0.1:1: connection refused\n"
    assert says("rules", "check", str(file), "--admin", "127.0.0.1:1") == (1, "", message)


def test_connections_are_listed_and_closed(it: Api, says: Says) -> None:
    assert says("connections")[1] == "no client is connected\n"
    it.do(beats(it))
    row = says("connections")[1].splitlines()[1].split()
    assert row[2:5] == ["app", "kafka", "bootstrap"]
    assert says("connections", "--close", row[0])[1] == f"connection {row[0]} is closed\n"


def test_tail_prints_exchanges_as_lines_trees_bytes_and_json(it: Api, says: Says) -> None:
    with Beating(it):
        numbered = re.search(
            r"Heartbeat v3 client=app broker=bootstrap connection=(\d+) group=billing",
            says("tail", "-n", "1")[1],
        )
        assert numbered is not None
        number = numbered[1]
        assert number in [line.split()[0] for line in says("connections")[1].splitlines()]
        for more in ([], ["-v"]):
            followed = says("tail", "-n", "1", f"connection == {number} and client_port > 0", *more)[1]
            assert f"connection={number} " in followed
        assert json.loads(says("tail", "-n", "1", "--json", "duration >= 0")[1])["connection_id"] == int(
            number
        )
        tree = says("tail", "-n", "1", "-v", 'group == "billing"')[1]
        assert "    group_id: billing\n" in tree
        assert "    error_code: 0\n" in tree
        marked = says("tail", "-n", "1", "-x", "api == Heartbeat")[1]
        assert 'group_id: "billing"' in marked
        assert "error_code: 0 NONE" in marked
        assert json.loads(says("tail", "-n", "1", "--json")[1])["api"] == "Heartbeat"
    code, _, errors = says("tail", "gruop == 'x'")
    assert (code, errors.startswith('klamm: unknown field "gruop" (column 1)')) == (2, True)


RULES = {  # what is warned of, by the options
    ("--rule", "la*"): (),
    ("--rule", "other*, late"): ("other*, but late",),
    ("--rule", "late", "--rule", "fade*"): ("fade*, but late",),
    ("--rule", "fade*,latte", "--rule", "late"): ("fade*, but late", "latte, but late; did you mean late?"),
    ("--rule", "la*,!latte"): ("latte, but late; did you mean late?",),
}

NO_RULE = {"latte": "latte, but late; did you mean late?", "la*, !late": "la* or !late, but late"}


def test_tail_has_the_exchanges_of_a_rule_and_says_where_none_has_the_name(it: Api, says: Says) -> None:
    assert says("rules", "add", "{name: late, api: Heartbeat, delay: 1ms}")[0] == 0
    with Beating(it):
        for wanted, none in RULES.items():
            code, line, errors = says("tail", "-n", "1", *wanted)
            warnings = [f"klamm: warning: no rule {each}" for each in none]
            assert (code, line.endswith(" rules=late\n"), errors.splitlines()) == (0, True, warnings)
    for rules, warning in NO_RULE.items():
        command = [sys.executable, "-m", "klamm.cli", "tail", "--rule", rules, "--admin", it.klamm.admin]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            assert child.stderr.readline() == f"klamm: warning: no rule {warning}\n"
            child.terminate()


@pytest.mark.parametrize("command", [("rules", "list"), ("tail",), ("down",), ("scenario", "run")])
def test_help_says_what_the_token_file_is(says: Says, command: tuple[str, ...]) -> None:
    code, help_text, _ = says(*command, "--help")
    assert (code, "file with the admin token [" in " ".join(help_text.split())) == (0, True)


def test_the_token_file_is_read(says: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("secret\n")
    with in_thread(token="secret") as running:
        monkeypatch.setenv("KLAMM_ADMIN", running.klamm.admin)
        assert says("rules", "list")[0] == 2
        assert says("rules", "list", "--token-file", str(tmp_path / "token"))[:2] == (0, "no rules\n")
