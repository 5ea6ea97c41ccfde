"""docs/deploy.md: its commands name files, objects and arguments that are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from klamm.proxy.config_types import Address
from tests.brokers.jars import ROOT
from tests.deploy.given import DEPLOY, IMAGE, configured, parsed, state_folder
from tests.docs.blocks import blocks, commands

PAGE = "docs/deploy.md"
COMMANDS = [
    command.text
    for block in blocks()
    if block.page == PAGE and block.language == "sh"
    for command in commands(block)
]
INSIDE = [text for text in COMMANDS if re.search(r"\bexec\b", text)]


def the(begin: str) -> list[str]:
    """The words of the only command that begins so."""
    (text,) = [text for text in COMMANDS if text.startswith(begin)]
    return shlex.split(text)


def objects(name: str) -> dict[str, dict[str, str]]:
    """The names of the objects in a manifest, by kind."""
    found = yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())
    return {one["kind"]: one["metadata"] for one in found}


def test_every_file_that_a_command_names_is_there() -> None:
    named = {
        word for text in COMMANDS for word in re.findall(r"(?<!/)\b(?:deploy/\S+\.\w+|requirements\S+)", text)
    }
    assert len(named) >= 6
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_docker_run_gives_klamm_arguments_that_it_takes(tmp_path: Path) -> None:
    words = the("docker run ")
    options, arguments = words[2 : words.index(IMAGE)], words[words.index(IMAGE) + 1 :]
    (cluster,) = configured(arguments, [], tmp_path).clusters
    assert cluster.bootstrap == (Address("kafka-1", 9092),)
    ports = f"{cluster.listen.first}-{cluster.listen.ports[-1]}"
    assert options == ["--read-only", "-v", f"klamm-state:{state_folder()}", "-p", f"{ports}:{ports}"]
    assert the("docker build ")[3] == IMAGE


@pytest.mark.parametrize("text", INSIDE)
def test_a_command_in_a_container_is_one_of_klamm(text: str) -> None:
    """kubectl has it behind --, docker behind the name of the service."""
    outside, mark, inside = text.partition(" -- " if text.startswith("kubectl") else " exec klamm ")
    assert mark
    parsed(shlex.split(inside))
    manifests = {"deploy/orders": "sidecar.yaml", "deploy/klamm": "deployment.yaml"}
    for name in re.findall(r"exec (deploy/\w+)", outside):
        found = objects(manifests[name])["Deployment"]
        assert name == f"deploy/{found['name']}"
        assert found.get("namespace") == next(iter(re.findall(r"-n (\w+)", outside)), None)


def test_what_is_installed_for_systemd_is_what_the_unit_names() -> None:
    unit = (DEPLOY / "systemd" / "klamm.service").read_text()
    (started,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, _, _, settings = started.split()
    assert program == f"{the('python3 -m venv')[-1]}/bin/klamm"
    pip = str(Path(program).with_name("pip"))
    assert [text.split()[0] for text in COMMANDS if "/bin/pip" in text] == [pip, pip]
    assert the("install -D")[-1] == settings
    assert Path(the("install -m")[-1]).name == Path(the("install -m")[-2]).name == "klamm.service"
    assert the("systemctl ")[-1] == "klamm"
