"""Every command of README.md, docs/ and the help texts runs as it is written, and prints what is shown."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klamm.cli import main
from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Thresholds
from klamm.pipeline.report.report import Report
from klamm.pipeline.report.reporting import Step, reported
from klamm.rules.expressions import Expression
from tests.brokers.processes import wait_for
from tests.docs import ways
from tests.docs.blocks import Block, Command, blocks, commands
from tests.docs.materials import block
from tests.docs.stage import Stage, with_klamm
from tests.docs.ways import first

SHELL = [block for block in blocks() if block.language == "sh"]


def here(block: Block) -> list[Command]:
    """The commands of a block that no other test runs."""
    return [command for command in commands(block) if first(ways.ELSEWHERE, command.text) is None]


def any_of(pattern: str, block: Block) -> bool:
    return any(re.match(pattern, command.text) for command in here(block))


TRIED = [block for block in SHELL if here(block)]
WITH_SPARK = [block for block in TRIED if any_of(ways.SPARK, block)]
WITHOUT = [block for block in TRIED if block not in WITH_SPARK]


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """Where the commands of a block run, one after the other."""
    return Path(shutil.copytree(files, tmp_path / "here", symlinks=True))


@pytest.mark.parametrize("block", WITHOUT, ids=lambda block: block.where)
def test_the_commands_of_a_block_run(block: Block, stage: Stage, folder: Path) -> None:
    asks = any_of(ways.LIVE, block) and not any_of(ways.ITSELF, block)
    with with_klamm(stage) if asks else stage.alone():
        for command in here(block):
            tried(command, stage, folder)


@pytest.fixture(scope="module")
def reported_once() -> Callable[..., Report]:
    """`reported`, where commands of several pages ask the same of captures that hold the same. A report with
    the data of plots serves a command without plots too.
    """
    known: dict[tuple[object, ...], Report] = {}

    def report(
        spark: SparkSession,
        paths: Sequence[str],
        detectors: Sequence[Detector],
        thresholds: Thresholds,
        where: Expression | None,
        plots: bool,
        on_step: Step,
        asked_for: Collection[str],
    ) -> Report:
        segments = [part.read_bytes() for path in paths for part in sorted(Path(path).iterdir())]
        asked = (*segments, *(one.name for one in detectors), str(thresholds), str(where), *asked_for)
        key = (*asked, plots or (*asked, True) in known)
        if key not in known:
            known[key] = reported(spark, paths, detectors, thresholds, where, plots, on_step, asked_for)
        return dataclasses.replace(known[key], captures=paths)

    return report


@pytest.mark.parametrize("block", WITH_SPARK, ids=lambda block: block.where)
def test_the_analyses_of_a_block_run(
    block: Block,
    spark: SparkSession,
    folder: Path,
    reported_once: Callable[..., Report],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this process, whose Spark runs already. 1 is for findings as grave as --fail-on."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", reported_once)
    for command in here(block):
        assert main(shlex.split(command.text)[1:]) in (0, 1)


def tried(command: Command, stage: Stage, folder: Path) -> None:
    """Run one command. AssertionError, with all that it printed, where it does not end as the page says."""
    for prepare in (ways.BEFORE[pattern] for pattern in ways.BEFORE if re.match(pattern, command.text)):
        code, printed = stage.run(prepare, folder)
        assert code == 0, f"$ {prepare}\n{printed}"
    for made in re.findall(r"^klamm import .* -o ([\w.-]+)", command.text):
        shutil.rmtree(folder / made, ignore_errors=True)
    text = ways.as_it_is(command.text, lambda script: stage.run(script, folder)[1])
    if text.endswith("&"):
        stage.start("background", f"cd {folder}; exec {text[:-1]}", "metrics and health")
        return
    until = first(ways.ENDLESS, command.text)
    code, printed = stage.run(text, folder, until)
    fine = first(ways.EXIT_CODES, command.text) or {0}
    if until is not None:
        fine = fine | ways.INTERRUPTED
    assert code in fine, f"$ {text}\nexit code {code}\n{printed}"
    assert_lines_printed(command, printed)


def assert_lines_printed(command: Command, printed: str) -> None:
    """The lines that the page shows of its output, where they do not tell of one run alone, are printed."""
    for line in ways.lasting(command):
        assert line in ways.plain(printed), f"$ {command.text}\n{printed}"


def test_what_klamm_run_prints_is_what_the_readme_shows(stage: Stage, folder: Path) -> None:
    _, printed = stage.run("klamm run kafka-1:9092", folder, "metrics and health")
    expected = block("README.md", "klamm stands in front of kafka (id").text
    for line in ways.plain(expected).splitlines():
        if not re.match(r" ?(klamm stands|bootstrap |broker |controller )", line):
            assert line in ways.plain(printed).splitlines()
    nodes = [
        line.split()[:-2] for line in printed.splitlines() if re.match(r"  (bootstrap|broker \d) ", line)
    ]
    assert nodes == [["bootstrap"], ["broker", "1"], ["broker", "2"], ["broker", "3"]]


LOGGED = re.compile(
    r"[\d:.]+ \w+ v\d+ client=\S+ broker=\w+ (connection=\d+ )(\S+\[[\d,]+\] |orders )?"
    r"\d+B -> \d+B [\d.]+m?s"
)


def test_what_klamm_run_logs_is_what_the_readme_shows(stage: Stage, folder: Path) -> None:
    for page, begins in (("README.md", "22:07:28"), ("docs/sasl.md", "22:07:42")):
        lines = [line for line in block(page, begins).text.splitlines() if " info " not in line]
        assert [line for line in lines if not LOGGED.fullmatch(line)] == []
    with with_klamm(stage, "--log-format console --log Produce,Metadata"):
        wait_for(lambda: LOGGED.search((stage.folder / "klamm.log").read_text()), "a line of the log")
