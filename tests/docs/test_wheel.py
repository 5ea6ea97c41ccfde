"""A wheel in an environment of its own: what its help names is there, and what it advises can be run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from klamm.cli import COMMANDS
from klamm.dashboards.files import described, text_of
from tests.brokers.jars import ROOT


def output(*command: str | Path, folder: Path, code: int = 0) -> str:
    """All that a command prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a new environment with klamm from a wheel, as the README has it."""
    folder = tmp_path_factory.mktemp("wheel")
    output(sys.executable, "-m", "venv", "clean", folder=folder)
    output("git", "clone", "--quiet", ROOT, "clone", folder=folder)
    changed = output("git", "ls-files", "--modified", "--others", "--exclude-standard", folder=ROOT).split()
    for name in changed:  # changes that are not committed are tried too
        if (ROOT / name).is_file():
            (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "clone" / name).write_bytes((ROOT / name).read_bytes())
    output(folder / "clean/bin/pip", "install", "--quiet", ".", folder=folder / "clone")
    return folder / "clean" / "bin"


def test_a_page_that_help_names_is_installed(installed: Path, tmp_path: Path) -> None:
    named = set()
    for command in COMMANDS:
        text = output(installed / "klamm", command, "--help", folder=tmp_path)
        named |= set(re.findall(r"docs/[\w-]+\.md", text))
    assert len(named) > 5
    pages = output(installed / "klamm", "help", "docs", folder=tmp_path).split()
    assert pages == [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
    for page in named:
        assert output(installed / "klamm", "help", page, folder=tmp_path) == (ROOT / page).read_text()


def test_dashboards_and_alerts_are_installed(installed: Path, tmp_path: Path) -> None:
    names = output(installed / "klamm", "dashboards", "--out", "new", folder=tmp_path).split()
    assert names == [f"new/{name}" for name in described()]
    assert [(tmp_path / "new" / name).read_text() for name in described()] == [*map(text_of, described())]


def test_the_advice_for_a_missing_extra_names_the_clone(installed: Path, tmp_path: Path) -> None:
    clone = installed.parents[1] / "clone"
    (tmp_path / "capture").mkdir()
    needs = "klamm: klamm show needs pyarrow: "
    here = output(installed / "klamm", "show", tmp_path / "capture", folder=clone, code=1)
    assert re.fullmatch(rf"{needs}{installed}/python\S* -m pip install '\.\[capture\]'\n", here)
    elsewhere = output(installed / "klamm", "show", "capture", folder=tmp_path, code=1)
    assert elsewhere.endswith(f" -m pip install '{clone}[capture]'\n")
    command = here.removeprefix(needs).replace(" install ", " install --quiet --dry-run ")
    output("bash", "-c", command, folder=clone)
