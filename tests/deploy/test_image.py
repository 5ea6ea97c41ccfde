"""The Dockerfile: its steps make a klamm that runs as no root, writes nothing, and finds its own health."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.jars import ROOT
from tests.brokers.processes import Process, wait_for
from tests.deploy.dockerfile import let_in, stages
from tests.deploy.image import Image, built

NOBODY = "127.0.0.1:9"  # where no broker is
FILE = """\
clusters: [{bootstrap: 127.0.0.1:9}]
admin: none
metrics: {listen: 0.0.0.0:9191}
state: none
"""


@pytest.fixture(
    scope="module", params=["0", pytest.param("1", marks=pytest.mark.long)], ids=["python", "compiled"]
)
def image(request: pytest.FixtureRequest) -> Iterator[Image]:
    """Compiled, it takes a minute; without, the tests of the compiled session are those of `make test`."""
    with built(KLAMM_COMPILE=request.param) as made:
        made.arguments["KLAMM_COMPILE"] = request.param
        yield made


def test_the_steps_make_a_klamm(image: Image) -> None:
    compiled = image.arguments["KLAMM_COMPILE"] == "1"
    told = image.do(*image.inside(["klamm", "--version"]))
    assert told.endswith("session: compiled\n" if compiled else "session: pure Python\n")


def test_it_is_as_small_as_the_page_says(image: Image) -> None:
    packed = image.do("sh", "-c", f"tar -C {image.root} -cz klamm | wc -c")
    (megabytes,) = re.findall(r"it has (\d+) MB, compressed", (ROOT / "docs" / "deploy.md").read_text())
    assert int(packed) < (int(megabytes) + 2) * 1_000_000  # libraries are larger for some Pythons


def test_it_has_no_package_manager_and_no_compiler(image: Image) -> None:
    names = image.do(
        "sh", "-c", f"ls {image.root}/klamm/bin {image.root}/klamm/lib/python*/site-packages"
    ).split()
    assert "aiohttp" in names
    assert {"pip", "setuptools", "mypy", "mypyc"}.isdisjoint(names)


def test_with_no_argument_it_says_how_to_run_it(image: Image) -> None:
    told = image.do(*image.inside([*image.words("ENTRYPOINT"), *image.words("CMD")]))
    assert told.startswith("usage: klamm run ")


@contextmanager
def healthy(image: Image, log: Path, *arguments: str) -> Iterator[Process]:
    """A container, once its health check passes."""
    with image.running(log, *arguments) as process:
        check = image.words("HEALTHCHECK")
        wait_for(lambda: image.beside(process, *check)[0] == 0, "a healthy klamm", [process])
        yield process


@pytest.mark.parametrize(
    "arguments",
    [
        [NOBODY],
        [NOBODY, "--admin", "127.0.0.1:8080"],
        [NOBODY, "--admin", "none", "--metrics", "0.0.0.0:9090"],
    ],
    ids=["as it is", "admin", "metrics"],
)
def test_its_health_check_finds_the_address_in_the_arguments(
    image: Image, arguments: list[str], tmp_path: Path
) -> None:
    with healthy(image, tmp_path / "log", *arguments) as process:
        assert image.beside(process, "klamm", "health", "--ready")[0] == 1


def test_clients_come_after_a_while_though_klamm_is_not_ready(image: Image, tmp_path: Path) -> None:
    connect = "import socket; socket.create_connection(('127.0.0.1', 19092))"
    log = tmp_path / "log"
    with healthy(image, log, NOBODY) as process:
        wait_for(lambda: '"event":"not_found"' in log.read_text(), "a line about the cluster", [process])
        assert image.beside(process, "python", "-c", connect) == (0, "")
        assert image.beside(process, "klamm", "health", "--ready")[0] == 1


def test_its_health_check_finds_the_address_in_the_file(image: Image, tmp_path: Path) -> None:
    image.do("tee", f"{image.root}/klamm.yaml", given=FILE.encode())
    with healthy(image, tmp_path / "log", "--config", "/klamm.yaml"):
        pass


def test_its_health_check_fails_where_nothing_answers(image: Image, tmp_path: Path) -> None:
    with healthy(image, tmp_path / "log", NOBODY) as process:
        code, told = image.beside(process, "env", "KLAMM_ADMIN=127.0.0.1:9", *image.words("HEALTHCHECK"))
    assert (code, "klamm does not answer at 127.0.0.1:9" in told) == (1, True)


def test_it_runs_as_no_root_and_writes_nothing(image: Image, tmp_path: Path) -> None:
    with healthy(image, tmp_path / "log", NOBODY, "--state", "none") as process:
        assert image.beside(process, "id", "-u") == (0, f"{image.user.partition(':')[0]}\n")
        code, told = image.beside(process, "touch", f"{image.environment['STATE_DIRECTORY']}/file")
        assert (code, "Read-only file system" in told) == (1, True)
    events = re.findall(r'"event":"(\w+)"', (tmp_path / "log").read_text())
    assert set(events) <= {"unreachable", "not_found"}


def test_where_it_may_write_the_folder_of_its_state_is_its_own(image: Image) -> None:
    folder = image.environment["STATE_DIRECTORY"]
    image.do(*image.inside(["touch", f"{folder}/file"]))
    image.do(*image.inside(["rm", f"{folder}/file"]))


def test_sigterm_ends_it_as_its_first_process(image: Image, tmp_path: Path) -> None:
    assert image.said["STOPSIGNAL"] == "SIGTERM"
    with healthy(image, tmp_path / "log", NOBODY) as process:
        image.signal(process, "TERM")
        assert process.child.wait(timeout=20) == 0


def test_its_user_is_a_number_and_its_base_one_release() -> None:
    build, final = stages(ROOT / "Dockerfile", {})
    assert re.fullmatch(r"python:3\.\d+\.\d+-[a-z]+", build.base)
    version, debian = build.base.split("-")
    assert final.base == f"{version}-slim-{debian}"
    (user,) = [instruction.text for instruction in final.instructions if instruction.name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_everything_is_installed_by_the_lock_files() -> None:
    steps = [
        one.text
        for stage in stages(ROOT / "Dockerfile", {})
        for one in stage.instructions
        if one.name == "RUN"
    ]
    installs = [
        part for step in steps for part in step.split("&&") if re.search(r"pip\b.* (install|wheel)\b", part)
    ]
    assert len(installs) == 4
    for part in installs:
        assert "--require-hashes" in part or {"--no-deps", "--no-cache-dir"} <= set(part.split()), part
    assert "--no-build-isolation" in "".join(installs)


@pytest.mark.parametrize(
    "path",
    [
        *(".git/HEAD", ".venv/bin/python", "tests/conftest.py", "deploy/compose/compose.yaml"),
        *("build/tree/mypy.ini", "proxy/__pycache__/serve.pyc", "tools/lock.sh", "klamm.cdx.json"),
    ],
)
def test_the_context_is_given_no_more_than_is_built(path: str) -> None:
    assert let_in([path, "proxy/serve.py"], ROOT / ".dockerignore") == ["proxy/serve.py"]
