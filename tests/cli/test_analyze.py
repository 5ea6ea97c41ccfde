"""`klamm analyze`: words that cannot be meant, what is missing, and a run in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from klamm.cli import main
from klamm.cli.analyze import analyze
from klamm.cli.analyze.progress import progress
from klamm.cli.analyze.window import window_s
from klamm.pipeline.detectors.finding import Findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.report.gathering import Traffic
from klamm.pipeline.report.report import Report
from klamm.settings.extras import installing
from tests.captures.rows import Talk, connection, in_time, written
from tests.e2e.klamm_process import COMMAND
from tests.pipeline.report.reports import finding

Says = Callable[..., tuple[int, str, str]]  # exit code, output, errors
PATIENCE_S = 900.0
OF_SPARK = ["pyspark", "pandas", "numpy", "pyarrow", "vl_convert", "jinja2"]


def busy(number: int, client_id: str) -> Talk:
    """A client that asks for metadata over and over."""
    made = Talk(connection(number), client_id).opened()
    for _ in range(600):
        made.metadata()
        made.now_ms += 20.0
    return made


def capture_in(folder: Path) -> Path:
    """A client that asks for metadata over and over, and one that does not."""
    (folder / "capture").mkdir()
    calm = Talk(connection(2, broker="2"), "calm").opened().metadata().produce().heartbeat(27)
    written(folder / "capture" / "20231114T221320Z-a-000001.arrow", in_time(busy(1, "busy"), calm))
    return folder / "capture"


def earlier_in(folder: Path) -> Path:
    """Three clients that ask for metadata over and over, of which one is not seen later."""
    (folder / "earlier").mkdir()
    talks = [busy(number, name) for number, name in enumerate(("busy", "calm", "retired"), 1)]
    written(folder / "earlier" / "20231113T221320Z-a-000001.arrow", in_time(*talks))
    return folder / "earlier"


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.arrow", Talk().produce().rows)


@pytest.fixture
def says(capture: None, capsys: pytest.CaptureFixture[str]) -> Says:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["analyze", *words])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nothing/"], "'nothing/' is no file or folder; the first word is a capture: a file or a folder"),
        (
            ["a.arrow", "client_id = 1"],
            "= is not known here: write == (column 11)",
        ),
        (
            ["a.arrow", "any(p.index > 3 for t in topic_data for p in t.partition_dat)"],
            "Produce requests have no topic_data.partition_dat (column 46); did you mean partition_data?",
        ),
        (["a.arrow", 'api == "Prodcue"'], 'unknown API "Prodcue" (column 8); did you mean Produce?'),
        (["a.arrow", 'topic == "orders" and "x" == api'], 'unknown API "x" (column 23)'),
        (["a.arrow", 'api == "fetch"'], "API names are case-sensitive: Fetch"),
        (["a.arrow", 'api in ["Fetch", "Metdata"]'], 'unknown API "Metdata" (column 18); did you mean'),
        (["a.arrow", "record.size == 3"], "a record has no size"),
        (
            ["a.arrow", "--only", "tiny_batch"],
            "--only tiny_batch: there is no such detector; did you mean tiny_batches?",
        ),
        (
            ["a.arrow", "--fail-on", "hihg"],
            "--fail-on hihg: must be high or medium or low; did you mean high?",
        ),
        (
            ["a.arrow", "--before", "a.arrow", "--fail-on-new", "lo"],
            "--fail-on-new lo: must be high or medium or low; did you mean low?",
        ),
        (["a.arrow", "--fail-on-new", "low"], "--fail-on-new: new to what? say --before CAPTURE too"),
        (["a.arrow", "--inspector", "http://a:1"], "--inspector is of the links of --html: say both"),
        (["a.arrow", "--window", "5m"], "--window is of --follow: say both"),
        (["a.arrow", "--follow", "--window", "5"], "--window 5: 5 of what? write 5ms or 5s"),
        (["a.arrow", "--follow", "--html", "x.html"], "leave out EXPR and --html"),
        (["a.arrow", "--follow", "--before", "a.arrow"], "--follow compares nothing: leave out --before"),
        (["a.arrow", "--before", "b.arrow"], "--before b.arrow: there is no such file or folder"),
        (["a.arrow", "--follow", "--spark", "sc://localhost"], "give a master to --spark, not sc://"),
        (
            ["a.arrow", "--thresholds", "none.yaml"],
            "none.yaml: cannot be read: No such file or directory",
        ),
    ],
)
def test_words_that_cannot_be_meant_are_one_line_and_exit_code_2(
    says: Says, words: list[str], reason: str
) -> None:
    code, out, errors = says(*words)
    assert (code, out) == (2, "")
    assert reason in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tiny_batch: {a: 1}\n", "t.yaml:1:1: tiny_batch: unknown key; did you mean tiny_batches?"),
        ("metadata_storm:\n  {}: many\n", "t.yaml:2:"),
        ("metadata_storm:\n  {}: -1\n", "-1 is not a number from 0"),
        ("metadata_storm:\n  {}x: 1\n", "unknown key; did you mean {}?"),
    ],
)
def test_a_mistake_in_a_file_of_thresholds_is_told_with_its_place(says: Says, text: str, reason: str) -> None:
    name = next(iter(next(one for one in DETECTORS if one.name == "metadata_storm").thresholds))
    Path("t.yaml").write_text(text.replace("{}", name) if "a: 1" not in text else text)
    code, out, errors = says("a.arrow", "--thresholds", "t.yaml")
    assert (code, out) == (2, "")
    assert reason.replace("{}", name) in errors
    assert errors.startswith("klamm: t.yaml:")


@pytest.mark.parametrize(
    ("exchanges", "message"), [(0, "klamm: 0 exchanges matched: topic == 'other'\n"), (3, "")]
)
def test_an_expression_that_matches_nothing_is_said(
    exchanges: int, message: str, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Report(["a.arrow"], Traffic(exchanges=exchanges), Findings(), DETECTORS)
    monkeypatch.setattr(analyze, "_spark", lambda *_: nullcontext())
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", lambda *_: found)
    code, _, errors = says("a.arrow", 'topic == "other"')
    assert (code, errors) == (0, message)


@pytest.mark.parametrize(
    ("damaged", "failed", "fail_on", "code"),
    [
        ([], {}, None, 0), ([], {}, "high", 0), ([], {}, "medium", 1), ([], {}, "low", 1),
        (["a.arrow: damaged"], {}, None, 1), ([], {"tiny_batches": "no way"}, None, 1),
    ],
)  # fmt: skip
def test_the_exit_code_is_1_for_grave_findings_and_where_something_failed(
    damaged: list[str],
    failed: dict[str, str],
    fail_on: str | None,
    code: int,
    says: Says,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Findings([finding(severity="medium")], failed=failed)
    made = Report(["a.arrow"], Traffic(exchanges=3, damaged=damaged), found, DETECTORS)
    monkeypatch.setattr(analyze, "_spark", lambda *_: nullcontext())
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", lambda *_: made)
    assert says("a.arrow", *([] if fail_on is None else ["--fail-on", fail_on]))[0] == code


@pytest.mark.parametrize(
    ("now", "fail_on_new", "code"),
    [
        ([("medium", "a"), ("high", "b")], "high", 0),  # the high one was there before
        ([("medium", "a"), ("high", "b")], "medium", 1),
        ([("medium", "a"), ("high", "b"), ("high", "c")], "high", 1),
        ([], "low", 0),
    ],
)
def test_fail_on_new_is_for_findings_that_the_earlier_capture_has_not(
    now: list[tuple[Any, str]],
    fail_on_new: str,
    code: int,
    says: Says,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written(Path("b.arrow"), Talk().produce().rows)

    def reported(_: object, paths: list[str], *__: Any) -> Report:
        pairs = [("high", "b")] if paths == ["b.arrow"] else now
        found = Findings([finding(severity=severity, subject=subject) for severity, subject in pairs])
        return Report(paths, Traffic(exchanges=3), found, DETECTORS)

    monkeypatch.setattr(analyze, "_spark", lambda *_: nullcontext())
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", reported)
    assert says("a.arrow", "--before", "b.arrow", "--fail-on-new", fail_on_new)[0] == code


def test_what_is_asked_for_holds_for_both_captures_and_fail_on_for_the_later_one(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(Path("b.arrow"), Talk().produce().rows)
    Path("t.yaml").write_text("tiny_batches:\n  batches: 3\n")
    asked: list[tuple[Any, ...]] = []

    def reported(_: object, paths: list[str], *asked_for: Any) -> Report:
        asked.append((paths, *asked_for[:3]))
        found = Findings([finding(severity="high")] if paths == ["b.arrow"] else [])
        return Report(paths, Traffic(exchanges=3), found, DETECTORS)

    monkeypatch.setattr(analyze, "_spark", lambda *_: nullcontext())
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", reported)
    words = ['client_id == "x"', "--only", "tiny_batches", "--thresholds", "t.yaml", "--fail-on", "high"]
    assert says("a.arrow", *words, "--before", "b.arrow")[0] == 0
    assert [paths for paths, *_ in asked] == [["b.arrow"], ["a.arrow"]]
    assert asked[0][1:] == asked[1][1:]
    assert [one.name for one in asked[0][1]] == ["tiny_batches"]
    assert says("b.arrow", *words, "--before", "a.arrow")[0] == 1


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ([], "http://127.0.0.1:19090/"),
        (["--inspector", "https://klamm.example:8080"], "https://klamm.example:8080/"),
    ],
)
def test_links_of_the_page_lead_to_the_inspector_that_is_named(
    words: list[str], address: str, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Report(["a.arrow"], Traffic(exchanges=3), Findings([finding()]), DETECTORS)
    monkeypatch.setattr(analyze, "_spark", lambda *_: nullcontext())
    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", lambda *_: made)
    assert says("a.arrow", "--html", "a.html", *words)[0] == 0
    links = re.findall(r'<a class="screen" href="(.*?)#exchanges', Path("a.html").read_text())
    assert links
    assert set(links) == {address}


def test_the_address_of_an_inspector_says_its_scheme(says: Says) -> None:
    _, _, errors = says("a.arrow", "--html", "a.html", "--inspector", "klamm.example:8080")
    assert "'klamm.example:8080' is no address of a page: write http://klamm.example:8080" in errors


def test_follow_looks_at_ten_minutes_unless_told_otherwise() -> None:
    assert (window_s(None), window_s("30m")) == (600, 1800)


def test_every_threshold_has_its_reason() -> None:
    assert [one.name for one in DETECTORS for each in one.thresholds.values() if not each.source] == []


def test_a_page_that_cannot_be_written_is_said_before_spark_starts(says: Says) -> None:
    assert says("a.arrow", "--html", "no/where.html") == (
        1,
        "",
        "klamm: no/where.html: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("missing", "words", "reason"),
    [
        ("pyspark", [], "klamm analyze needs pyspark"),
        ("vl_convert", ["--html", "x.html"], "klamm analyze --html needs vl_convert"),
    ],
)
def test_what_is_not_installed_is_one_line(
    says: Says, monkeypatch: pytest.MonkeyPatch, missing: str, words: list[str], reason: str
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(analyze, "find_spec", lambda name: None if name == missing else found(name))
    assert says("a.arrow", *words) == (1, "", f"klamm: {reason}: {installing('spark')}\n")


@pytest.mark.parametrize(
    ("words", "code", "out", "errors"),
    [
        (["--help"], 0, "usage: klamm analyze", ""),
        ([str(Path(__file__).parent)], 1, "", "klamm: klamm analyze needs pyspark: "),
    ],
)
def test_help_and_advice_need_nothing_of_the_extra(
    words: list[str], code: int, out: str, errors: str
) -> None:
    """In a Python where nothing of it can be imported, as after `pip install .`."""
    script = f"""import importlib.util, sys
sys.modules.update(dict.fromkeys({OF_SPARK}))
importlib.util.find_spec = lambda name: None
from klamm.cli import main
sys.exit(main(sys.argv[1:]))"""
    ended = subprocess.run([sys.executable, "-c", script, "analyze", *words], capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.startswith(out)
    assert bool(ended.stdout) == bool(out)
    assert ended.stderr.startswith(errors)
    assert ended.stderr.count("\n") == bool(errors)


def test_without_java_one_line_says_what_to_do(
    says: Says, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, errors = says("a.arrow")
    assert (code, out) == (1, "")
    assert errors.startswith("klamm: no Java is on the path. Spark needs Java 17")
    assert errors.count("\n") == 1


class Ran(NamedTuple):
    code: int
    found: dict[str, Any]
    errors: str
    page: str


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """JSON and the page of one run."""
    folder = tmp_path_factory.mktemp("analyze")
    page = folder / "report.html"
    command = [
        str(COMMAND),
        "analyze",
        str(capture_in(folder)),
        "--before",
        str(earlier_in(folder)),
        "--html",
        str(page),
        "--json",
        "--fail-on",
        "low",
    ]
    done = subprocess.run(
        [*command, "--spark", "local[2]"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.stdout, done.stderr
    return Ran(done.returncode, json.loads(done.stdout), done.stderr, page.read_text())


def test_a_run_finds_who_does_what_and_fails_for_it(ran: Ran) -> None:
    assert ran.code == 1
    assert ran.found["failed"] == {}
    assert ran.found["read"]["exchanges"] == 603
    assert ran.found["read"]["damaged"] == []
    storms = [one for one in ran.found["findings"] if one["detector"] == "metadata_storm"]
    assert [one["client_id"] for one in storms] == ["busy"]
    assert "metadata.max.age.ms" in storms[0]["settings"]
    assert len(ran.found["detectors"]) == len(DETECTORS)


def test_a_run_tells_what_became_of_the_findings_of_an_earlier_capture(ran: Ran) -> None:
    before = ran.found["before"]
    assert before["read"]["exchanges"] == 1800
    told = {
        one["client_id"]: state
        for state in ("gone", "absent", "new", "still")
        for one in before[state]
        if one["detector"] == "metadata_storm"
    }
    assert told == {"calm": "gone", "retired": "absent", "busy": "still"}
    assert "Compared with an earlier capture" in ran.page


def test_a_run_says_nothing_but_its_result(ran: Ran) -> None:
    assert ran.errors == ""


def test_a_run_writes_the_page(ran: Ran) -> None:
    assert '<article class="card finding' in ran.page
    assert "metadata_storm" in ran.page


def test_for_programs_each_step_is_a_line_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    with progress(for_programs=True) as step:
        step("reading", 1, 8)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert lines == [
        {"step": "starting Spark", "done": 0, "of": 0},
        {"step": "reading", "done": 1, "of": 8},
    ]


@pytest.mark.long
def test_follow_tells_findings_and_ends_with_a_summary_at_ctrl_c(tmp_path: Path) -> None:
    command = [str(COMMAND), "analyze", str(capture_in(tmp_path)), "--follow", "--only", "metadata_storm"]
    log, errors = tmp_path / "log", tmp_path / "errors"
    with log.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(
            [*command, "--spark", "local[2]"], stdout=out, stderr=err, start_new_session=True
        )
    deadline = time.monotonic() + PATIENCE_S
    while "klamm show" not in log.read_text() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to Spark too
    assert process.wait(PATIENCE_S) == 0, errors.read_text()
    lines = log.read_text().splitlines()
    assert re.fullmatch(r"(high|medium|low)  .*  metadata_storm", lines[0])
    assert lines[1] == "  busy"
    assert re.fullmatch(r"603 requests read; findings: 1 (high|medium|low)", lines[-1])
    assert errors.read_text() == ""


@pytest.mark.parametrize(("problem", "printed"), [("RuntimeError", True), ("KeyboardInterrupt", False)])
def test_what_spark_writes_is_shown_where_it_fails_and_not_after_ctrl_c(problem: str, printed: bool) -> None:
    code = f"""
import os
from klamm.cli.analyze.progress import without_chatter
with without_chatter():
    os.write(2, b"from Spark")
    raise {problem}
"""
    ran = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert ("from Spark" in ran.stderr) is printed
