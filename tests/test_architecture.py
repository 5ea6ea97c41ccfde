"""Promises of ARCHITECTURE.md about the tree that no lint tool can check."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
INSTALLED: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
PAGES = "klamm.docs"  # installed for `klamm help PAGE`, without any code
FOLDERS = {package: folder for package, folder in INSTALLED.items() if package != PAGES}
BESIDE_THE_PRODUCT = {"benchmarks", "build", "deploy", "dist", "docs", "examples", "tests", "tools"}
MOST_LINES = 400
NAMES_THAT_SAY_NOTHING = {"base", "common", "core", "helpers", "manager", "misc", "utils"}

PRODUCT_FILES = sorted(path for folder in FOLDERS.values() for path in (ROOT / folder).rglob("*.py"))
AS_TEXT = [str(path.relative_to(ROOT)) for path in PRODUCT_FILES]


def test_every_folder_of_product_code_is_installed() -> None:
    on_disk = {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and path.name not in BESIDE_THE_PRODUCT and any(path.glob("**/*.py"))
    }
    assert on_disk == set(FOLDERS.values())


def test_every_package_on_disk_is_listed_in_pyproject() -> None:
    on_disk = {
        ".".join([package, *path.parent.relative_to(ROOT / folder).parts])
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert on_disk | {PAGES} == set(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_folder_is_under_the_import_contracts_and_the_import_ban() -> None:
    assert set(PYPROJECT["tool"]["importlinter"]["root_packages"]) == set(FOLDERS)
    banned = PYPROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(FOLDERS.values()) <= banned.keys()


def test_every_installed_folder_says_that_it_is_typed() -> None:
    assert [folder for folder in FOLDERS.values() if not (ROOT / folder / "py.typed").exists()] == []


def test_the_container_image_is_given_every_folder() -> None:
    given = (ROOT / ".dockerignore").read_text().splitlines()
    assert [folder for folder in INSTALLED.values() if f"!{folder}" not in given] == []


def test_a_product_file_has_one_subject_and_so_is_short() -> None:
    lines = {name: len((ROOT / name).read_text().splitlines()) for name in AS_TEXT}
    longer = {name: count for name, count in lines.items() if count > MOST_LINES}
    assert longer == {}, f"over {MOST_LINES} lines: move one of their subjects into a file of its own"


def test_a_file_is_named_for_what_it_holds() -> None:
    assert [name for name in AS_TEXT if Path(name).stem in NAMES_THAT_SAY_NOTHING] == []


def test_the_rules_of_the_architecture_are_silenced_nowhere() -> None:
    silenced = re.compile(r"#\s*noqa(?!:)|#\s*noqa:.*\b(S102|S307|T20\d|TID251)\b")
    assert [name for name in AS_TEXT if silenced.search((ROOT / name).read_text())] == []


def test_ci_runs_the_commands_that_the_readme_names() -> None:
    commands = re.findall(r"^make .*$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    readme = (ROOT / "README.md").read_text()
    assert commands == ["make check", "make test"]
    assert [command for command in commands if command not in readme] == []
