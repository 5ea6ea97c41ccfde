"""`klamm dashboards`: lists the files, prints one, or writes all of them."""

import json
from pathlib import Path

import pytest
import yaml

from klamm.cli import main
from klamm.dashboards.files import described, text_of


def test_it_lists_each_file_and_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboards"]) == 0
    out = capsys.readouterr().out
    for name, text in described().items():
        assert any(line.split(maxsplit=1) == [name, text] for line in out.splitlines())


def test_it_prints_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboards", "grafana/overview.json"]) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "klamm-overview"
    assert main(["dashboards", "prometheus/alerts.yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["groups"]


def test_it_writes_all_files_over_those_of_an_older_klamm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        assert main(["dashboards", "--out", str(folder)]) == 0
        paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
        assert [str(path.relative_to(folder)) for path in paths] == list(described())
        assert [path.read_text() for path in paths] == [text_of(name) for name in described()]
        paths[0].write_text("old")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["prometheus/alert.yaml"],
            "there is no file 'prometheus/alert.yaml'; did you mean prometheus/alerts.yaml?",
        ),
        (
            ["grafana/api.json", "--out", "x"],
            "give either FILE, to print it, or --out DIR, to write all files",
        ),
    ],
)
def test_a_wrong_word_is_answered_with_what_to_write(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dashboards", *words]) == 2
    assert capsys.readouterr().err == f"klamm: {text}\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["dashboards", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == f"klamm: cannot write {tmp_path}/file/grafana: Not a directory\n"
