"""klamm as an archive that Spark sends to its executors."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.brokers.jars import ROOT

CODE = (
    "import sys; sys.path += sys.argv[1:]; from klamm.pipeline.reading import source; print(source.__file__)"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with klamm, as pip lays it out."""
    folder = tmp_path_factory.mktemp("packed")
    for part in sorted(path.parent for path in ROOT.glob("*/py.typed")):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(part, folder / "packed" / "klamm" / part.name, ignore=ignored)
    return folder


def imported(archive: Path) -> subprocess.CompletedProcess[str]:
    """With the installed packages, but not with klamm among them."""
    paths = [str(archive), sysconfig.get_path("purelib")]
    command = [sys.executable, "-I", "-S", "-c", CODE, *paths]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_python_finds_klamm_in_an_archive_that_names_its_folders(packed: Path) -> None:
    archive = packed / "klamm.zip"
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", archive, "packed/klamm"], cwd=packed, timeout=60, check=True
    )
    done = imported(archive)
    assert (done.returncode, done.stdout.startswith(str(archive))) == (0, True), done.stderr


def test_python_does_not_find_it_in_one_that_has_files_only_as_a_wheel(packed: Path) -> None:
    archive = packed / "wheel.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for folder, _, files in os.walk(packed / "packed"):
            for name in files:
                zipped.write(Path(folder, name), Path(folder, name).relative_to(packed / "packed"))
    assert "No module named 'klamm'" in imported(archive).stderr
