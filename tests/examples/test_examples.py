"""The game day, in front of librdkafka's mock cluster; see tests/e2e/commands for the others."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.mock_cluster import mock_cluster
from tests.examples.programs import EXAMPLES, output_of


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with mock_cluster() as bootstrap:
        yield bootstrap


def test_without_a_cluster_the_game_day_says_how_it_is_run() -> None:
    ran = subprocess.run([sys.executable, EXAMPLES / "game_day.py"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "\n    python examples/game_day.py localhost:9092\n" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_game_day_is_good_when_no_order_is_lost(cluster: str, tmp_path: Path) -> None:
    patient = tmp_path / "game_day.py"
    patient.write_text(
        (EXAMPLES / "game_day.py").read_text().replace("PATIENCE_S = 5.0", "PATIENCE_S = 60.0")
    )
    (tmp_path / "orders").symlink_to(EXAMPLES / "orders")
    output = output_of(sys.executable, str(patient), cluster)
    assert output.splitlines()[-1] == "a good day"
    assert len(re.findall(r"^\S.* orders +0 lost", output, re.MULTILINE)) == 6, output


def test_a_game_day_is_bad_when_customers_would_not_have_waited(cluster: str, tmp_path: Path) -> None:
    text = (EXAMPLES / "game_day.py").read_text()
    impatient = tmp_path / "game_day.py"
    impatient.write_text(text.replace("PATIENCE_S = 5.0", "PATIENCE_S = 0.05").replace("= 3.0", "= 1.0"))
    (tmp_path / "orders").symlink_to(EXAMPLES / "orders")
    output = output_of(sys.executable, str(impatient), cluster, exit_code=1)
    assert "rules that fired" in output
    assert output.splitlines()[-1] == "a bad day"
