"""docs/testing.md: its commands run, and its tables name what there is."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klamm.client.front import Front, in_front_of
from tests.brokers.jars import ROOT
from tests.client.mock_cluster import mock_cluster


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as klamm:
        yield klamm


TEXT = (ROOT / "docs" / "testing.md").read_text()
COMMANDS = re.search(r"```sh\n(.*?)```", TEXT, re.DOTALL)


def test_every_method_of_the_tables_is_there_and_the_tables_have_all() -> None:
    methods = set(re.findall(r"^\| `(?:await )?(\w+)[(`]", TEXT, re.MULTILINE))
    there = {name for name in vars(Front) if not name.startswith("_")} | {"api"}
    assert methods == there - {"bootstrap", "admin", "close"}


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


@pytest.mark.parametrize(
    "slip",
    [
        lambda klamm: klamm.inject("Prodce", "NOT_LEADER_OR_FOLLOWER"),
        lambda klamm: klamm.inject("Produce", "NOT_A_LEADER"),
        lambda klamm: klamm.delay("Prodce", "1s"),
        lambda klamm: klamm.delay("Produce", "soon"),
        lambda klamm: klamm.block(api="Prodce"),
        lambda klamm: klamm.rules({"api": "Produce", "dely": "1s"}),
        lambda klamm: klamm.exchanges("Prodce"),
        lambda klamm: klamm.exchanges("Prodce*"),
        lambda klamm: klamm.exchanges(error="NOT_A_*"),
        lambda klamm: klamm.assert_no("Produce", where="acsk != -1"),
        lambda klamm: klamm.wait_for(error="NOT_A_LEADER"),
        lambda klamm: klamm.api.exchanges(where="acsk != -1 +"),
    ],
)
def test_a_slip_of_the_pen_is_a_value_error(slip: Callable[[Front], object], front: Front) -> None:
    with pytest.raises(ValueError):
        slip(front)
    assert front.api.rules() == []


def test_a_rule_file_is_named_by_its_path_as_text_too(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules: [{name: late, api: Produce, delay: 1s}]")
    with mock_cluster() as bootstrap, in_front_of(bootstrap) as klamm:
        klamm.rules(str(file))
        assert [rule.name for rule in klamm.api.rules()] == ["late"]
        with pytest.raises(FileNotFoundError, match=r"nowhere\.yaml"):
            klamm.rules("nowhere.yaml")
        with pytest.raises(ValueError, match="the one key `rules`"):
            klamm.rules("[late]")


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
    document = json.loads(body)
    assert document["mistakes"][0]["path"] == "api"
    assert "did you mean Produce?" in document["mistakes"][0]["reason"]
