"""`klamm wire`."""

import json

import pytest

from klamm.cli import FINE, USAGE, main
from klamm.decoders import API
from klamm.decoders.payloads import PAYLOADS
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


@pytest.mark.parametrize("words", ["Heartbeat 4", "Heartbeat v4", "heartbeat 4", "12 4", "Heartbeat"])
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
    apis, inside = printed("", capsys).split("\n\n")
    assert [line.split()[1] for line in apis.splitlines()] == ["API", *(api.name for api in API)]
    assert [line.split()[0] for line in inside.splitlines()[1:]] == [payload.name for payload in PAYLOADS]


def test_what_stands_inside_fields_has_a_layout_too(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("consumer_protocol_assignment 1", capsys).splitlines()
    assert lines[0].startswith("ConsumerProtocolAssignment v1 payload (versions ")
    assert [line.split()[0] for line in lines[2:-1]] == [
        "version", "assigned_partitions", "topic", "partitions", "user_data",
    ]  # fmt: skip


def test_a_diff_says_what_changed_on_each_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        printed("Metadata 12 --diff 11", capsys)
        == """\
Metadata v11 -> v12 request
  the same layout

Metadata v11 -> v12 response
     field          type
  ~  topics[].name  string -> string, or null

"""
    )


def test_a_diff_tells_added_removed_and_moved_to_tags_and_the_way_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed("Fetch 15 --diff 14 --side request", capsys).splitlines()[2:] == [
        "  +  replica_state                struct, tag 1",
        "  +  replica_state.replica_id     int32",
        "  +  replica_state.replica_epoch  int64",
        "  -  replica_id                   int32",
        "",
    ]
    back = printed("Fetch 14 --diff 15 --side request", capsys).splitlines()[2:]
    assert [line.split()[:2] for line in back if line] == [
        ["+", "replica_id"], ["-", "replica_state"], ["-", "replica_state.replica_id"],
        ["-", "replica_state.replica_epoch"],
    ]  # fmt: skip


def test_a_diff_says_that_a_version_became_flexible(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        printed("Heartbeat 4 --diff 3 --side response", capsys)
        == """\
Heartbeat v3 -> v4 response
  flexible: no -> yes
  header: v0 -> v1

"""
    )


def test_the_diff_as_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    request, response = map(json.loads, printed("Metadata 12 --diff 11 --json", capsys).splitlines())
    assert (request["side"], request["changes"]) == ("request", [])
    assert response == {
        "name": "Metadata", "side": "response", "from": 11, "to": 12,
        "changes": [
            {"what": "changed", "path": "topics[].name", "before": "string", "after": "string, or null"}
        ],
    }  # fmt: skip


def test_a_layout_as_json_has_all_that_the_table_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed("Heartbeat 4 --side response --json", capsys)) == {
        "api": "Heartbeat", "key": 12, "version": 4, "side": "response", "flexible": True,
        "header": 1, "released": True,
        "fields": [
            {"name": "throttle_time_ms", "type": "int32", "null": False, "default": 0},
            {"name": "error_code", "type": "int16", "null": False, "default": 0, "mark": "ERROR"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("name", [*(api.name for api in API), *(payload.name for payload in PAYLOADS)])
def test_every_layout_is_json_in_all_its_versions(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = API.get(name) or PAYLOADS[name]
    for version in range(found.versions.first, found.versions.last + 1):
        objects = [json.loads(line) for line in printed(f"{name} {version} --json", capsys).splitlines()]
        assert {one["version"] for one in objects} == {version}


def test_the_list_as_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    objects = [json.loads(line) for line in printed("--json", capsys).splitlines()]
    assert [one["key"] for one in objects if "api" in one] == [api.key for api in API]
    assert [one["payload"] for one in objects if "payload" in one] == [payload.name for payload in PAYLOADS]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Metdata", "klamm wire: unknown API 'Metdata'; did you mean Metadata?\n"),
        ("930", "klamm wire: unknown API '930'; `klamm wire` lists them\n"),
        ("-1", "klamm wire: unknown API '-1'; `klamm wire` lists them\n"),
        ("nosuch", "klamm wire: unknown API 'nosuch'; `klamm wire` lists them\n"),
        ("Heartbeat 9", "klamm wire: Heartbeat has versions 0-4, not 9\n"),
        ("Heartbeat 4 --diff 9", "klamm wire: Heartbeat has versions 0-4, not 9\n"),
        (
            "ConsumerProtocolSubscripton",
            "klamm wire: unknown API 'ConsumerProtocolSubscripton'; "
            "did you mean ConsumerProtocolSubscription?\n",
        ),
        (
            "Heartbeat x",
            "klamm wire: argument VERSION: 'x' is not a version: write 12\nsee klamm wire --help\n",
        ),
    ],
)
def test_what_there_is_not_is_wrong_usage(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wire", *words.split()]) == USAGE
    assert capsys.readouterr().err == expected
