"""docs/migrating.md names settings, rules, routes and metrics that klamm has, and its examples are taken."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from klamm.cli.running import config_file
from klamm.cli.running.run import OPTIONS
from klamm.proxy.session.rewriting.topology import NodeKey, Topology
from klamm.rules.actions import ACTIONS as BUILT_IN
from klamm.rules.file import rule_file
from tests.brokers.jars import ROOT
from tests.docs.blocks import Block, blocks
from tests.docs.test_files import FILES_NAMED
from tests.fakes import named_files

PAGE = (ROOT / "docs/migrating.md").read_text()
TABLES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("|--")]
OURS = [span for line in TABLES for span in re.findall(r"`([^`]+)`", line.split(" | ", 1)[1])]
EVENTS = ("frame", "connect")


def test_each_option_is_one_of_klamm_run() -> None:
    known = {option for option, *_ in OPTIONS}
    named = {
        option
        for span in OURS
        for option in re.findall(r"--[a-z-]+", span)
        if not span.startswith("klamm rules")
    }
    of_commands = {"--broker", "--config"}
    assert "--listen-tls-ca" in named
    assert named - of_commands <= known


def test_each_key_is_one_of_the_configuration() -> None:
    text = (ROOT / "docs/configuration.md").read_text()
    keys = {span for span in OURS if re.fullmatch(r"(clusters\[\]|limits|metrics)\.[.a-z_]*|workers", span)}
    assert "clusters[].sasl.password_env" in keys
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_each_metric_is_one_that_klamm_has() -> None:
    text = (ROOT / "docs/metrics.md").read_text()
    named = {name for span in OURS for name in re.findall(r"klamm_[a-z_]+", span)}
    assert len(named) > 3
    assert {name for name in named if f"`{name}`" not in text} == set()


ACTIONS = [span for span in OURS if re.match(r"(?!side|chance|event|cluster)[a-z_]+: ", span)]
RULES = [span for span in OURS if span.startswith("{") and '"' not in span]


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_is_one(action: str, tmp_path: Path) -> None:
    """For frames or for connections as they open."""
    mistakes = []
    for event in EVENTS:
        api = "api: DeleteTopics, " if event == "frame" else ""
        mistakes.append(mistakes_of(f"rules:\n  - {{event: {event}, {api}{action}}}\n", tmp_path))
    assert [] in mistakes


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_one(rule: str, tmp_path: Path) -> None:
    assert mistakes_of(f"rules:\n  - {rule}\n", tmp_path) == []


@pytest.mark.parametrize("written", [span for span in OURS if span.startswith("{") and '"' in span])
def test_each_rule_for_the_admin_api_is_one(written: str) -> None:
    found = rule_file.read_rule(json.loads(written), "the admin API", BUILT_IN, ())
    assert (found.mistakes, found.warnings, len(found.rules)) == ([], [], 1)


def mistakes_of(text: str, folder: Path) -> list[object]:
    """Of a rule file, with its warnings."""
    (folder / "rules.yaml").write_text(text)
    found = rule_file.load(str(folder / "rules.yaml"))
    return [*found.mistakes, *found.warnings]


def test_each_route_is_one_of_the_admin_api() -> None:
    text = (ROOT / "docs/admin-api.md").read_text()
    named = {span for span in OURS if re.match(r"(GET|POST|PUT|PATCH|DELETE) /v1/", span)}
    assert len(named) > 5
    assert {route for route in named if f"`{route}`" not in text} == set()


EXAMPLES = [block for block in blocks() if block.page == "docs/migrating.md" and block.language == "yaml"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: block.where)
def test_each_example_is_taken(example: Block, tmp_path: Path) -> None:
    """klamm.yaml with the files that it names, or a rule file without a mistake or a warning."""
    if example.text.startswith("rules:"):
        assert mistakes_of(example.text, tmp_path) == []
        return
    named_files.make(tmp_path, FILES_NAMED)
    (tmp_path / "klamm.yaml").write_text(example.text)
    config = config_file.load(str(tmp_path / "klamm.yaml"))
    assert all(cluster.listen_tls for cluster in config.clusters)


@pytest.mark.parametrize("proxy", ["grepplabs/kafka-proxy", "Kroxylicious", "Envoy", "Toxiproxy"])
def test_each_proxy_has_an_example(proxy: str) -> None:
    section = PAGE.split(f"\n## {proxy}\n")[1].split("\n## ")[0]
    assert [example.text for example in EXAMPLES if example.text in section] != []


@pytest.mark.parametrize(
    ("first", "ports"),
    [
        (9999, {0: 10000, 1: 10001}),
        (19092, {0: 19093, 1: 19094}),
        (19090, {1: 19092, 2: 19093, 3: 19094}),
    ],
)
def test_a_range_gives_the_ports_that_the_page_says(first: int, ports: dict[int, int]) -> None:
    topology = Topology(first, first + 99)
    assert {node: topology.port_for(NodeKey("broker", node)) for node in ports} == ports
    assert [port for port in (first, *ports.values()) if str(port) not in PAGE] == []


FLAGS = """
bootstrap-server-mapping default-listener-ip dial-address-mapping external-server-mapping
deterministic-listeners dynamic-advertised-listener dynamic-listeners-disable dynamic-sequential-min-port
tls-enable tls-ca-chain-cert-file tls-client-cert-file tls-client-key-file tls-insecure-skip-verify
tls-same-client-cert-enable proxy-listener-tls-enable proxy-listener-ca-chain-cert-file
proxy-listener-tls-required-client-subject-
sasl-enable sasl-method sasl-username sasl-password sasl-jaas-config-file sasl-plugin-enable
auth-local-enable auth-local-mechanism auth-local-command authz-enable auth-gateway-client-
auth-gateway-server-
forbidden-api-keys forward-proxy kafka-client-id kafka-dial-timeout kafka-max-open-requests kafka-read-timeout
kafka-write-timeout producer-acks-0-disabled log-format log-level
http-disable http-listen-address debug-enable
"""


def test_each_flag_of_kafka_proxy_has_its_row() -> None:
    """Those of its server, but for sizes of buffers, parts of plugins, and names of fields and paths."""
    rows = PAGE.split("## grepplabs/kafka-proxy")[1].split("\n## ")[0]
    assert [flag for flag in FLAGS.split() if f"`--{flag}" not in rows] == []


def test_no_row_is_about_a_day_that_has_not_come() -> None:
    """Such a row is forgotten when klamm has learned it."""
    assert [line for line in TABLES if re.search(r"none yet|not yet", line)] == []


def test_each_toxic_of_toxiproxy_has_its_row() -> None:
    toxics = {"latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data"}
    table = PAGE.split("## Toxiproxy")[1]
    assert {toxic for toxic in toxics if f"| `{toxic}`" not in table} == set()
