"""Every file that a page shows, and every expression, is read by what reads it in klamm or beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from klamm.cli.running import config_file
from klamm.pipeline.detectors import thresholds
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.proxy.log.audit import ALWAYS
from klamm.replay.client_config import properties
from klamm.rules.expressions import parse
from klamm.rules.file import rule_file
from klamm.scenarios.model import read_scenario
from tests.brokers.jars import ROOT
from tests.docs.blocks import Block, blocks, commands, helps, pages
from tests.docs.materials import block
from tests.docs.ways import first
from tests.fakes import named_files


def rules(text: str, folder: Path) -> None:
    (folder / "rules.yaml").write_text(text)
    (folder / "hurry.py").write_text(block("docs/rules.md", '"""hurry').text)
    found = rule_file.load(str(folder / "rules.yaml"))
    assert (found.mistakes, found.warnings) == ([], [])


def list_of_rules(text: str, folder: Path) -> None:
    """As tests/e2e/reactions/reactions.py writes them: the file has a name, and so has the first rule."""
    found = yaml.safe_load(text.replace("{name}", "orders"))
    found[0].setdefault("name", "orders")
    rules(json.dumps({"rules": found}), folder)


FILES_NAMED = (
    "ca.pem",
    "password",
    "klamm.pem",
    "clients.pem",
    "token",
    "secret",
    "idp.pem",
    "klamm.keytab",
    "proxy.pem",
    "users",
    "jwks.json",
    "rules.yaml",
)


def configuration(text: str, folder: Path) -> None:
    named_files.make(folder, FILES_NAMED)
    (folder / "klamm.yaml").write_text(text)
    assert config_file.load(str(folder / "klamm.yaml")).clusters


def administration(text: str, folder: Path) -> None:
    """A part of klamm.yaml: whom the admin API lets in."""
    named_files.make(folder, ("admin.pem", "people.pem", "admin.token", "viewer.token"))
    (folder / "klamm.yaml").write_text(f"clusters: [{{bootstrap: kafka-1:9092}}]\n{text}")
    admin = config_file.load(str(folder / "klamm.yaml")).admin
    assert admin.wants_credentials
    assert admin.tls is not None


def audit_lines(text: str, folder: Path) -> None:
    """Each begins as all do, and is of an event that the page lists (tests/e2e/commands/test_audit.py)."""
    page = (ROOT / "docs" / "audit.md").read_text()
    for line in map(json.loads, text.splitlines()):
        assert list(line)[:7] == ["time", "event", *ALWAYS]
        assert f"`{line['event']}`" in page


def scenario(text: str, folder: Path) -> None:
    found, mistakes = read_scenario(text, "scenario.yaml", "scenario")
    assert mistakes == []
    assert found is not None


def limits(text: str, folder: Path) -> None:
    (folder / "thresholds.yaml").write_text(text)
    assert thresholds.load(str(folder / "thresholds.yaml"), DETECTORS)


def prometheus(text: str, folder: Path) -> None:
    (folder / "prometheus.yml").write_text(text)
    promtool("check", "config", str(folder / "prometheus.yml"))


def provisioning(text: str, folder: Path) -> None:
    """Of Grafana: where it finds dashboards."""
    read = yaml.safe_load(text)
    (provider,) = read.pop("providers")
    assert read == {"apiVersion": 1}
    assert set(provider) == {"name", "folder", "options"}
    assert set(provider["options"]) == {"path"}


def queries(text: str, folder: Path) -> None:
    rows = [{"record": f"row:{n}", "expr": line} for n, line in enumerate(text.splitlines())]
    (folder / "queries.json").write_text(json.dumps({"groups": [{"name": "page", "rules": rows}]}))
    promtool("check", "rules", str(folder / "queries.json"))
    listed = (ROOT / "docs" / "metrics.md").read_text()
    for name in re.findall(r"klamm_\w+", text):
        assert f"`{name.removesuffix('_bucket')}`" in listed


def probes(text: str, folder: Path) -> None:
    """Of a pod: they ask for paths that klamm answers (tests/proxy/admin/test_admin.py)."""
    paths = {probe["httpGet"]["path"] for probe in yaml.safe_load(text).values()}
    assert paths == {"/readyz", "/healthz"}


def promtool(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def log_line(text: str, folder: Path) -> None:
    """Its keys are those of proxy/log/lines.py, which tests/proxy/test_log.py holds."""
    assert {"time", "event", "api", "latency_ms", "request_bytes", "connection"} <= json.loads(text).keys()


def client_properties(text: str, folder: Path) -> None:
    assert properties(text)["security.protocol"] == "SASL_SSL"


def librdkafka_properties(text: str, folder: Path) -> None:
    from confluent_kafka import Producer

    pairs = [line.split("=", 1) for line in text.splitlines() if not line.startswith("#")]
    Producer(dict(pairs)).flush(0)


def expression(text: str, folder: Path) -> None:
    assert parse(text)


def haproxy(text: str, folder: Path) -> None:
    (folder / "haproxy.cfg").write_text(text + "\n")
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin") or "haproxy"
    command = [program, "-c", "-q", "-f", str(folder / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# How a file begins, and what reads it.
READERS: dict[str, Callable[[str, Path], None]] = {
    r"(plugins: .*\n)?rules:\n": rules,
    r"- \{": list_of_rules,
    r"clusters:": configuration,
    r"admin:\n": administration,
    r"about:": scenario,
    r"tiny_batches:": limits,
    r"# prometheus.yml": prometheus,
    r"# /etc/grafana/provisioning/": provisioning,
    r"sum by": queries,
    r"readinessProbe:": probes,
    r'\{"time":"[^"]+","event":"started"': audit_lines,
    r'\{"time"': log_line,
    r"security.protocol=": client_properties,
    r"# the client": librdkafka_properties,
    r"frontend kafka": haproxy,
    r"acks == -1": expression,
}


def reader(block: Block) -> Callable[[str, Path], None] | None:
    """The function that reads this block."""
    return first(READERS, block.text) if block.language not in ("sh", "python") else None


FILES = [block for block in blocks() if reader(block)]


@pytest.mark.parametrize("block", FILES, ids=lambda block: block.where)
def test_a_file_of_a_page_is_one(block: Block, tmp_path: Path) -> None:
    read_by = reader(block)
    assert read_by is not None
    read_by(block.text, tmp_path)


WORD = re.compile(r"`(klamm (?:\w[\w-]* ?)+[^`]*)`")


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{path.name}" for path in sorted(ROOT.glob("docs/*.md")))]
)
def test_a_command_within_a_sentence_has_the_words_that_klamm_knows(page: str) -> None:
    from klamm.cli import COMMANDS

    help_texts = helps()
    for text in WORD.findall(re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)):
        words = text.split()
        if words[1].startswith("-") or words[1] == "help":
            continue
        assert words[1] in COMMANDS, text
        inner = help_texts.get(f"klamm {words[1]} {words[2]} --help") if len(words) > 2 else None
        known = help_texts[f"klamm {words[1]} --help"] + (inner or "")
        for option in re.findall(r"(?<= )--[a-z-]+", text):
            assert f"{option} " in known or f"{option}\n" in known or f"{option}," in known, text


def test_a_target_that_a_page_names_is_one_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        command.text.split()[1]
        for block in blocks()
        if block.language == "sh"
        for command in commands(block)
        if command.text.startswith("make ")
    }
    assert named
    assert named - targets == set()


def test_a_benchmark_that_a_page_names_is_one() -> None:
    from benchmarks.__main__ import KINDS

    named = {
        word
        for page in ["ARCHITECTURE.md", *pages()]
        for word in re.findall(r"python -m benchmarks ([a-z][a-z-]+)", (ROOT / page).read_text())
    }
    assert "end-to-end" in named
    assert named <= set(KINDS)


SETTINGS = {  # columns of a table in docs/sidecar.md -> the programs of tests/e2e/test_listen_tls.py
    "Java": "java/kafka_4/Client.java",
    "librdkafka": "librdkafka_client.py",
    "franz-go": "go/options.go",
    "kafkajs": "js/client.js",
    "aiokafka": "aiokafka_client.py",
}


@pytest.mark.parametrize("client", SETTINGS)
def test_the_settings_of_tls_are_those_that_the_client_programs_have(client: str) -> None:
    lines = (ROOT / "docs" / "sidecar.md").read_text().splitlines()
    head = lines.index(f"| | {' | '.join(SETTINGS)} |")
    rows = [line.strip("|").split("|") for line in takewhile(lambda line: line, lines[head + 2 :])]
    program = (ROOT / "tests" / "clients" / SETTINGS[client]).read_text()
    column = 1 + list(SETTINGS).index(client)
    names = {name for row in rows for name in re.findall(r"`(?:kgo\.)?([\w.]+)(?:=\w+)?`", row[column])}
    names -= {"SASL_PLAINTEXT", "SASL_SSL", "connections.max.reauth.ms"}
    assert len(names) >= 3
    assert [name for name in names if name not in program] == []
