"""The lock files fit pyproject.toml, and the bill of materials lists what they install."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.brokers.jars import ROOT
from tools import build_backend

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WANTED = {
    "requirements.lock": [
        *PROJECT["dependencies"],
        *(each for extra in ("records", "oauthbearer") for each in PROJECT["optional-dependencies"][extra]),
    ],
    "requirements-build.lock": [*PYPROJECT["build-system"]["requires"], build_backend.MYPY],
}


def locked(text: str) -> dict[str, str]:
    """The versions, by name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.fixture(params=WANTED)
def lock(request: pytest.FixtureRequest) -> Path:
    return ROOT / str(request.param)


def test_every_dependency_is_locked_at_a_version_that_pyproject_allows(lock: Path) -> None:
    versions = locked(lock.read_text())
    for text in WANTED[lock.name]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), text


def test_every_locked_package_has_hashes(lock: Path) -> None:
    packages = re.findall(r"^\S+==.*(?:\n {4}\S.*)*", lock.read_text(), re.MULTILINE)
    assert len(packages) == len(locked(lock.read_text()))
    assert [package for package in packages if "    --hash=sha256:" not in package] == []


def test_a_lock_names_no_registry(lock: Path) -> None:
    assert re.findall(r".*(?:://|--index|--find-links|--trusted-host).*", lock.read_text()) == []


def test_the_tool_leaves_a_lock_that_fits_as_it_is(tmp_path: Path) -> None:
    """`make lock` is the same with --upgrade."""
    for name in ("tools", "pyproject.toml", *WANTED):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(
        [tmp_path / "tools" / "lock.sh"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for name in WANTED:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()


def test_the_bill_of_materials_lists_what_is_locked(tmp_path: Path) -> None:
    file = tmp_path / "klamm.cdx.json"
    done = subprocess.run(
        [ROOT / "tools" / "sbom.sh", file], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    bill = json.loads(file.read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "klamm")
    listed = {canonicalize_name(one["name"]): one["version"] for one in bill["components"]}
    versions = locked((ROOT / "requirements.lock").read_text())
    for text in PROJECT["dependencies"]:
        name = canonicalize_name(Requirement(text).name)
        assert listed[name] == versions[name]
    assert listed.items() <= versions.items()
    assert [one["name"] for one in bill["components"] if not one["licenses"]] == []
