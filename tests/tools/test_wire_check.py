"""`make wire-check` tells what the tables lack of a Kafka, and what they have otherwise."""

import json
import runpy
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from klamm.decoders import API, ERRORS
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Api
from tools.wire_check.__main__ import DIFFERENT, SAME, USAGE, main
from tools.wire_check.check import Report, check, declared_in
from tools.wire_check.compare import differences
from tools.wire_check.declare import declaration
from tools.wire_check.early_access import known_changes
from tools.wire_check.jar import fetch
from tools.wire_check.schemas import read_schemas, schema_layout

Json = dict[str, Any]
KAFKAS = ("4.4.0", "3.9.1")
ALL_ERRORS = [(error.code, error.name, error.retriable) for error in ERRORS]


def f(name: str, kind: str, versions: str = "0+", **more: Any) -> Json:
    return {"name": name, "type": kind, "versions": versions} | more


REQUEST: Json = {
    "name": "HeartbeatRequest", "type": "request", "apiKey": 12,
    "validVersions": "0-4", "flexibleVersions": "4+",
    "fields": [
        f("GroupId", "string"), f("GenerationId", "int32"), f("MemberId", "string"),
        f("GroupInstanceId", "string", "3+", nullableVersions="3+", default="null"),
    ],
}  # fmt: skip
RESPONSE: Json = {
    "name": "HeartbeatResponse", "type": "response", "apiKey": 12,
    "validVersions": "0-4", "flexibleVersions": "4+",
    "fields": [f("ThrottleTimeMs", "int32", "1+"), f("ErrorCode", "int16")],
}  # fmt: skip


def checked(folder: Path, *schemas: Json, errors: list[tuple[int, str, bool]] = ALL_ERRORS) -> Report:
    jar = folder / "kafka-clients-9.9.9.jar"
    with ZipFile(jar, "w") as files:
        for schema in schemas:
            text = "// https://example.org says more.\n" + json.dumps(schema)
            files.writestr(f"common/message/{schema['name']}.json", text)
    return check(read_schemas(jar), errors)


def finding_lines(report: Report) -> list[str]:
    return [f"{finding.side} {finding.versions} {finding.text}" for finding in report.findings]


@pytest.mark.parametrize("kafka", KAFKAS)
def test_the_tables_have_all_that_the_kafkas_of_the_tests_have(
    kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([kafka]) == SAME
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"Kafka {kafka}: 95 APIs")
    assert "no differences" in first


def test_without_a_release_the_newest_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def check_release(kafka: str) -> int:
        asked.append(kafka)
        return SAME

    monkeypatch.setattr("tools.wire_check.__main__.check_release", check_release)
    assert main([]) == SAME
    assert asked == ["4.4.0"]


def test_what_is_no_release_is_refused_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trunk"]) == USAGE
    assert "'trunk' is no release of Kafka; write one such as 4.4.0" in capsys.readouterr().err


def test_what_changed_under_one_version_is_a_difference_unless_the_page_lists_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.wire_check.__main__.known_changes", lambda kafka: set())
    monkeypatch.setattr("tools.wire_check.__main__.error_codes", lambda jar: [])
    assert main(["3.9.1"]) == DIFFERENT
    lines = capsys.readouterr().out.splitlines()
    assert "  ReadShareGroupStateSummary (87)  decoders/apis/share_state.py" in lines
    assert "    response 0      results[].partitions[].leader_epoch is not in Kafka" in lines


@pytest.mark.parametrize(
    ("kafka", "apis"),
    [
        ("2.7.2", {"EndQuorumEpoch"}),
        ("2.8.0", set()),
        ("3.5.0", {"ConsumerGroupHeartbeat"}),
        ("3.6.2", {"ConsumerGroupHeartbeat"}),
        ("3.7.1", {"ConsumerGroupDescribe"}),
        ("3.8.1", set()),
        ("4.0.1", {"ReadShareGroupStateSummary"}),
        ("4.1.0", set()),
    ],
)
def test_the_page_of_early_access_is_read_by_release(kafka: str, apis: set[str]) -> None:
    assert {api for api, _, _ in known_changes(kafka)} == apis


def test_a_schema_like_the_table_is_no_difference(tmp_path: Path) -> None:
    report = checked(tmp_path, REQUEST, RESPONSE)
    assert (finding_lines(report), report.apis, report.layouts, report.compared) == ([], 1, 10, 10)
    assert "Metadata" in report.ours_only
    assert "Heartbeat" not in report.ours_only


def at(index: int, **change: Any) -> Callable[[Json], None]:
    return lambda schema: schema["fields"][index].update(change)


def added(index: int, field: Json) -> Callable[[Json], None]:
    return lambda schema: schema["fields"].insert(index, field)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (at(1, type="int64"), "0-4 generation_id is int64; in the table int32"),
        (at(1, name="Epoch"), "0-4 generation_id is called epoch"),
        (at(1, versions="0-2"), "3-4 generation_id is not in Kafka"),
        (at(1, default="-1"), "0-4 generation_id has the default -1; in the table 0"),
        (at(2, nullableVersions="2+"), "2-4 member_id may be null in Kafka only"),
        (at(3, nullableVersions="4+"), "3 group_instance_id may be null in the table only"),
        (at(2, type="[]string"), "0-4 member_id is array of string; in the table string"),
        (at(2, flexibleVersions="none"), "4 member_id is classic string; in the table string"),
        (at(1, taggedVersions="4+", tag=0), "4 generation_id is not in Kafka"),
        (added(0, f("Rack", "string", "2+")), "2-4 rack missing: string, first"),
        (added(2, f("Rack", "uuid", "4+")), "4 rack missing: uuid, after generation_id"),
        (added(4, f("Rack", "bool", "4+", taggedVersions="4+", tag="0")), "4 rack missing: boolean tag 0"),
        (lambda s: s["fields"].reverse(), "0-4 generation_id stands after member_id in Kafka"),
        (lambda s: s.update(flexibleVersions="3+"), "3 flexible in Kafka only"),
        (lambda s: s.update(latestVersionUnstable=True), "none version 4 is unstable in Kafka only"),
        (lambda s: s.update(validVersions="0-5"), "none missing version 5; the table has 0-4"),
        (lambda s: s.update(name="LivenessRequest"), "none called Liveness: add the alias"),
    ],
)
def test_a_change_of_a_schema_is_told_with_its_place(
    tmp_path: Path, change: Callable[[Json], None], expected: str
) -> None:
    changed = deepcopy(REQUEST)
    change(changed)
    report = checked(tmp_path, changed, RESPONSE)
    assert expected in [line.removeprefix("request").strip() for line in finding_lines(report)]
    assert {(x.key, x.title, x.file) for x in report.findings} == {
        (12, "Heartbeat", "decoders/apis/groups.py")
    }


def test_what_is_newer_than_this_kafka_is_told(tmp_path: Path) -> None:
    older = [schema | {"validVersions": "0-2"} for schema in (REQUEST, RESPONSE)]
    report = checked(tmp_path, *older)
    newer = {finding.title: finding.text for finding in report.newer}
    assert newer.pop("Heartbeat") == "version 3-4 is not in Kafka, which has 0-2"
    assert newer == {api.name: "the API is not in Kafka" for api in API if api.name != "Heartbeat"}


def test_what_kafka_dropped_is_not_newer(tmp_path: Path) -> None:
    dropped = [schema | {"validVersions": "none"} for schema in (REQUEST, RESPONSE)]
    report = checked(tmp_path, *dropped)
    assert "Heartbeat" not in {finding.title for finding in report.newer}
    assert "Heartbeat" in report.ours_only


def test_a_new_version_is_told_with_the_fields_that_it_adds(tmp_path: Path) -> None:
    changed = deepcopy(REQUEST)
    changed["validVersions"] = "0-5"
    changed["fields"].append(f("Rack", "string", "5+", nullableVersions="5+", default="null"))
    assert finding_lines(checked(tmp_path, changed, RESPONSE)) == [
        "request none missing version 5; the table has 0-4",
        "request 5 rack missing: string null default null, after group_instance_id",
    ]


def test_a_new_header_version_is_told(tmp_path: Path) -> None:
    fields = [f("CorrelationId", "int32"), f("Sender", "int32", "2+")]
    header = {"name": "ResponseHeader", "type": "header", "validVersions": "0-2", "flexibleVersions": "1+"}
    assert finding_lines(checked(tmp_path, header | {"fields": fields})) == [
        "header none missing version 2; klamm knows 0-1",
        "header 2 sender missing: int32, after correlation_id",
    ]


def test_errors_that_are_new_renamed_or_changed_are_told(tmp_path: Path) -> None:
    errors = [(0, "NONE", False), (1, "OFFSET_GONE", False), (6, "NOT_LEADER_FOR_PARTITION", True)]
    errors += [(7, "REQUEST_TIMED_OUT", False), (999, "NEW_ONE", True)]
    assert finding_lines(checked(tmp_path, REQUEST, RESPONSE, errors=errors)) == [
        " none 1 OFFSET_OUT_OF_RANGE is called OFFSET_GONE: add the alias",
        " none 6 NOT_LEADER_OR_FOLLOWER is called NOT_LEADER_FOR_PARTITION",
        " none 7 REQUEST_TIMED_OUT is not retriable in Kafka",
        " none 999 NEW_ONE missing: retriable",
    ]


def test_a_jar_from_before_the_schemas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"kafka-clients-9\.9\.9\.jar holds no message schemas"):
        checked(tmp_path)


def test_a_new_api_is_given_as_the_text_to_add(tmp_path: Path) -> None:
    shared = [{"name": "Spot", "versions": "0+", "fields": [f("TopicId", "uuid"), f("Blob", "bytes", "1+")]}]
    fields = [
        f("GroupId", "string", entityType="groupId"),
        f("Spots", "[]Spot", nullableVersions="0+", default="null"),
        f("Seats", "[]int32", "1+", default="-1"),
    ]
    facts = {"apiKey": 200, "validVersions": "0-1", "flexibleVersions": "0+", "latestVersionUnstable": True}
    request = facts | {
        "name": "FindSpotRequest",
        "type": "request",
        "fields": fields,
        "commonStructs": shared,
    }
    answer = facts | {"name": "FindSpotResponse", "type": "response", "fields": [f("ErrorCode", "int16")]}
    report = checked(tmp_path, request, answer)
    assert [finding.text for finding in report.findings] == ["missing", "missing"]
    assert report.declarations == ["""\
FIND_SPOT = api(
    200, "FindSpot", versions="0-1", flexible="0+", unstable="1",
    request=[
        string("group_id", mark=GROUP),
        array("spots", null="0+", default=None, of=[
            uuid("topic_id", mark=TOPIC_ID),
            bytestring("blob", "1+"),
        ]),
        array("seats", "1+", default=-1, of="int32"),
    ],
    response=[
        int16("error_code", mark=ERROR),
    ],
)"""]  # fmt: skip


@pytest.mark.parametrize("kafka", KAFKAS)
def test_the_text_to_add_declares_just_what_the_schema_says(kafka: str, tmp_path: Path) -> None:
    schemas = {(s.key, s.type): s for s in read_schemas(fetch(kafka)) if s.versions.last >= s.versions.first}
    keys = [key for key, kind in schemas if kind == "request"]
    texts = [declaration(schemas[key, "request"], schemas[key, "response"]) for key in keys]
    module = tmp_path / "declared.py"
    module.write_text("\n".join(["from klamm.decoders.schema import *", *texts]))
    apis = [value for value in runpy.run_path(str(module)).values() if isinstance(value, Api)]
    assert [api.name for api in apis] == [schemas[key, "request"].name for key in keys]
    for schema in (schemas[api.key, side] for api in apis for side in ("request", "response")):
        api = next(api for api in apis if api.key == schema.key)
        for version in range(schema.versions.first, schema.versions.last + 1):
            ours = Layout(api.name, version, schema.side, version in api.flexible, api.fields(schema.side))
            assert differences(schema_layout(schema, version), ours) == []


def test_every_api_is_found_in_the_file_that_declares_it() -> None:
    root = Path(__file__).resolve().parents[2]
    for api in API:
        assert f'{api.key}, "{api.name}", versions=' in (root / declared_in(api)).read_text()
