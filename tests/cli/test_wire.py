"""`klamm wire`."""

import pytest

from klamm.cli import FINE, USAGE, main
from klamm.decoders import API
from klamm.decoders.schema import Api


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["wire", *words.split()]) == FINE
    return capsys.readouterr().out


HEARTBEAT = """\
Heartbeat v4 request (key 12, versions 0-4, header v2, compact, with tagged fields)
  field              type    null  mark
  group_id           string        GROUP
  generation_id      int32
  member_id          string
  group_instance_id  string  null  CLIENT_TEXT

Heartbeat v4 response (key 12, versions 0-4, header v1, compact, with tagged fields)
  field             type   mark
  throttle_time_ms  int32
  error_code        int16  ERROR

"""


@pytest.mark.parametrize("words", ["Heartbeat 4", "heartbeat 4", "12 4", "Heartbeat"])
def test_a_layout_is_found_by_name_or_key_and_is_the_newest_without_a_version(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(words, capsys) == HEARTBEAT


def test_nested_and_tagged_fields_stand_below_and_last(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("Fetch 16 --side response", capsys).splitlines()
    tagged = next(index for index, line in enumerate(lines) if "node_endpoints" in line)
    assert lines[tagged].split() == ["node_endpoints", "array", "tag", "0"]
    assert [line.split()[0] for line in lines[tagged + 1 :] if line] == ["node_id", "host", "port", "rack"]
    assert lines[tagged + 1].startswith("    node_id")


def test_one_side_is_enough_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("Heartbeat 4 --side response", capsys) in HEARTBEAT


def test_the_source_is_what_reads_this_version(capsys: pytest.CaptureFixture[str]) -> None:
    source = printed("Heartbeat 4 --source --side response", capsys)
    assert source.startswith("def read(data, pos, end):\n")
    assert "'error_code'" in source


@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_every_api_prints_at_its_oldest_and_newest_version(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in {api.versions.first, api.versions.last}:
        assert printed(f"{api.key} {version}", capsys).count(f"{api.name} v{version} re") == 2


def test_without_an_api_it_lists_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("", capsys).splitlines()
    assert [line.split()[1] for line in lines] == ["API", *(api.name for api in API)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Metdata", "klamm wire: unknown API 'Metdata'; did you mean Metadata?\n"),
        ("12345", "klamm wire: unknown API '12345'\n"),
        ("Heartbeat 9", "klamm wire: Heartbeat has versions 0-4, not 9\n"),
        (
            "Heartbeat x",
            "klamm wire: argument VERSION: invalid int value: 'x'\nsee klamm wire --help\n",
        ),
    ],
)
def test_what_there_is_not_is_wrong_usage(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wire", *words.split()]) == USAGE
    assert capsys.readouterr().err == expected
