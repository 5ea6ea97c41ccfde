"""`klamm errors`."""

import json

import pytest

from klamm.cli import FINE, USAGE, main
from klamm.decoders import ERRORS


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["errors", *words.split()]) == FINE
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "word", ["6", "NOT_LEADER_OR_FOLLOWER", "not_leader_for_partition", "NotLeaderOrFollowerException"]
)
def test_an_error_is_explained_by_its_code_or_any_of_its_names(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(word, capsys) == [
        f"6 NOT_LEADER_OR_FOLLOWER: {ERRORS[6].meaning}",
        "retriable: clients may send the request again",
        "once called NOT_LEADER_FOR_PARTITION",
        "in Java: NotLeaderOrFollowerException",
    ]


def test_the_negative_code_is_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("-1", capsys)[0].startswith("-1 UNKNOWN_SERVER_ERROR: ")


def test_a_part_of_a_name_finds_all_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    codes = [int(line.split()[0]) for line in printed("leader", capsys)[1:]]
    assert {5, 6, 74} <= set(codes)
    assert codes == sorted(codes)


@pytest.mark.parametrize(("word", "codes"), [("unknown", {-1, 3, 25}), ("timeout", {7, 26, 50})])
def test_a_part_of_many_names_may_be_an_older_name_of_one(
    word: str, codes: set[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert codes <= {int(line.split()[0]) for line in printed(word, capsys)[1:]}


def test_an_exception_whose_name_is_of_its_own_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("org.apache.kafka.common.errors.RecordTooLargeException", capsys)[0].startswith("10 ")
    assert printed("TimeoutException", capsys)[0].startswith("7 REQUEST_TIMED_OUT")


def test_a_word_that_no_name_has_is_looked_for_in_the_meanings(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("disk", capsys)[0] == f"56 KAFKA_STORAGE_ERROR: {ERRORS[56].meaning}"


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in printed("6 --json", capsys)] == [
        {
            "code": 6,
            "name": "NOT_LEADER_OR_FOLLOWER",
            "retriable": True,
            "meaning": ERRORS[6].meaning,
            "aliases": ["NOT_LEADER_FOR_PARTITION"],
            "exception": "NotLeaderOrFollowerException",
        }
    ]
    everything = [json.loads(line) for line in printed("--json", capsys)]
    assert [one["code"] for one in everything] == [error.code for error in ERRORS]


def test_without_a_word_it_lists_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert [int(line.split()[0]) for line in printed("", capsys)[1:]] == [error.code for error in ERRORS]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "NOT_LEADER_OR_FOLOWER",
            "klamm errors: unknown error 'NOT_LEADER_OR_FOLOWER'; did you mean NOT_LEADER_OR_FOLLOWER?\n",
        ),
        ("9999", "klamm errors: unknown error '9999'; `klamm errors` lists them\n"),
        ("nosuch", "klamm errors: unknown error 'nosuch'; `klamm errors` lists them\n"),
    ],
)
def test_what_there_is_not_is_wrong_usage(
    word: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["errors", word]) == USAGE
    assert capsys.readouterr().err == expected
