"""docs/testing.md: its commands run, and its tables name what there is."""

import json
import re
import subprocess

import pytest

from klamm.client.front import Front, in_front_of
from tests.brokers.jars import ROOT
from tests.client.mock_cluster import mock_cluster

TEXT = (ROOT / "docs" / "testing.md").read_text()
COMMANDS = re.search(r"```sh\n(.*?)```", TEXT, re.DOTALL)


def test_every_method_of_the_tables_is_there_and_the_tables_have_all() -> None:
    told = set(re.findall(r"^\| `(?:await )?(\w+)[(`]", TEXT, re.MULTILINE))
    there = {name for name in vars(Front) if not name.startswith("_")} | {"api"}
    assert told == there - {"bootstrap", "admin", "close"}


def test_the_commands_for_other_languages_run() -> None:
    assert COMMANDS is not None
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as klamm:
        script = COMMANDS[1].replace("127.0.0.1:19091", klamm.admin)
        done = subprocess.run(
            ["bash", "-e", "-x", "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert '"name":"moved"' in done.stdout
        assert klamm.api.rules() == []


@pytest.mark.parametrize("wrong", [{"api": "Prodce", "delay": "1s"}])
def test_what_is_refused_says_why_in_the_form_that_is_told(wrong: dict[str, str]) -> None:
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as klamm:
        command = [
            "curl",
            "-s",
            "-w",
            "\n%{http_code}",
            f"http://{klamm.admin}/v1/rules",
            "-d",
            json.dumps(wrong),
        ]
        done = subprocess.run(
            [*command, "-H", "Content-Type: application/json"], capture_output=True, text=True, check=True
        )
    body, status = done.stdout.rsplit("\n", 1)
    assert int(status) == 422
    told = json.loads(body)
    assert told["mistakes"][0]["path"] == "api"
    assert "did you mean Produce?" in told["mistakes"][0]["reason"]
