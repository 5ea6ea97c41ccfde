"""`klamm diff`: what is printed, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.cli import main
from tests.captures.rows import Talk, lost, written

Says = Callable[..., tuple[int, str, str]]  # exit code, output, errors


@pytest.fixture(autouse=True)
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    written(tmp_path / "a.arrow", Talk().produce(acks=-1).heartbeat().rows)
    written(tmp_path / "b.arrow", Talk().metadata().produce(acks=1).heartbeat(27).rows)


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["diff", *words])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


def test_the_same_capture_is_no_difference(says: Says) -> None:
    code, out, errors = says("a.arrow", "a.arrow")
    assert (code, errors, out.splitlines()[-1]) == (0, "", "no difference")
    assert out.startswith("A  a.arrow: 2 exchanges of 1 client in 0.0 s from 2023-11-1")


def test_differences_are_a_table_the_gravest_first(says: Says) -> None:
    code, out, _ = says("a.arrow", "b.arrow")
    assert code == 1
    assert out.splitlines()[2:] == [
        "",
        "            client  what              A         B",
        "  errors    app     Heartbeat errors  none      REBALANCE_IN_PROGRESS x1 of 1",
        "  settings  app     Produce acks      -1 (all)  1",
        "",
        "as connections begin (ApiVersions, FindCoordinator, Metadata, SaslAuthenticate, SaslHandshake)",
        "        client  what      A  B",
        "  apis  app     Metadata  -  1 requests",
    ]
    assert "Metadata" not in says("a.arrow", "b.arrow", "--ignore", "start-up")[1]


def test_what_is_ignored_is_not_said(says: Says) -> None:
    assert says("a.arrow", "b.arrow", "--ignore", "apis, errors,settings")[0] == 0
    assert "Metadata" not in says("a.arrow", "b.arrow", "--ignore", "apis")[1]


def test_an_amount_has_changed_if_it_is_one_and_a_half_times_as_large_or_as_factor_says(
    says: Says, tmp_path: Path
) -> None:
    def work(fetches: int) -> str:
        talk = Talk()
        for number in range(100 + fetches):
            talk = talk.heartbeat() if number < 100 else talk.fetch()
        return str(written(tmp_path / f"{fetches}.arrow", talk.rows))

    few, some, many = work(40), work(56), work(80)
    assert says(few, some)[0] == 0
    assert "Fetch requests" in says(few, many)[1]
    assert "Fetch requests" in says(few, some, "--factor", "1.2")[1]
    assert says(few, many, "--factor", "3")[0] == 0


def test_json_is_an_object_for_each_difference(says: Says) -> None:
    code, out, _ = says("a.arrow", "b.arrow", "--json")
    assert code == 1
    assert json.loads(out.splitlines()[-1]) == {
        "aspect": "apis",
        "client": "app",
        "what": "Metadata",
        "before": None,
        "after": "1 requests",
        "at_start": True,
    }
    assert says("a.arrow", "a.arrow", "--json")[:2] == (0, "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a.arrow", "c.arrow"), "'c.arrow' is no file or folder"),
        (
            ("a.arrow", "b.arrow", "--ignore", "latncy"),
            "--ignore latncy: there is no such thing; did you mean latency",
        ),
        (("a.arrow", "b.arrow", "--factor", "0.5"), "--factor 0.5: must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_said(says: Says, words: tuple[str, ...], reason: str) -> None:
    code, out, errors = says(*words)
    assert (code, out) == (2, "")
    assert errors.startswith(f"klamm: {reason}")


def test_damage_is_said_and_is_no_sameness(says: Says, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, out, errors = says("empty", "empty")
    assert (code, out.splitlines()[-1]) == (1, "no difference")
    assert "empty" in errors
    assert "A  empty: no exchanges" in out


def test_frames_that_a_capture_has_lost_are_told(says: Says, tmp_path: Path) -> None:
    written(tmp_path / "c.arrow", [*Talk().produce(acks=-1).heartbeat().rows, lost(1234)])
    out = says("a.arrow", "c.arrow")[1]
    assert out.splitlines()[1].endswith("; 1,234 frames are missing in it")
