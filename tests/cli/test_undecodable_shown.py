"""Bodies that do not end as their layouts do, in the lines of `klamm show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.decoders import encode
from tests.captures.rows import Talk, written

BEAT = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
OF_VERSION_1 = bytes.fromhex("00000000 001b")
REASON = "the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit"
REFUSED = encode({"error_code": 35, "api_keys": []}, "ApiVersions", 0, "response")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """An answer in another version's layout, one in that of a refusal, and one as it should be."""
    talk = Talk().exchange("Heartbeat", 0, BEAT, OF_VERSION_1)
    asked = {"client_software_name": "app", "client_software_version": "1"}
    talk.exchange("ApiVersions", 4, asked, REFUSED).heartbeat()
    return written(tmp_path / "a.arrow", talk.rows)


@pytest.mark.parametrize("bodies", [[], ["-v"]])
def test_the_line_of_an_exchange_says_where_and_why(
    capture: Path, bodies: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(capture), *bodies]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "client=app" in line]
    assert [line.partition("response does not decode: ")[2] for line in lines] == [REASON, "", ""]


def test_programs_get_it_beside_the_errors(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(capture), "--json"]) == 0
    found = [json.loads(line).get("undecodable") for line in capsys.readouterr().out.splitlines()]
    assert found == [{"response": REASON}, None, None]
