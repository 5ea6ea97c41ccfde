"""`klamm errors`."""

import pytest

from klamm.cli import FINE, USAGE, main
from klamm.decoders import ERRORS


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["errors", *words.split()]) == FINE
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "word", ["6", "NOT_LEADER_OR_FOLLOWER", "not_leader_for_partition", "not-leader-or-follower"]
)
def test_an_error_is_explained_by_its_code_or_any_of_its_names(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(word, capsys) == [
        f"6 NOT_LEADER_OR_FOLLOWER: {ERRORS[6].meaning}",
        "retriable: clients may send the request again",
        "once called NOT_LEADER_FOR_PARTITION",
    ]


def test_the_negative_code_is_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("-1", capsys)[0].startswith("-1 UNKNOWN_SERVER_ERROR: ")


def test_a_part_of_a_name_finds_all_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    codes = [int(line.split()[0]) for line in printed("leader", capsys)[1:]]
    assert {5, 6, 74} <= set(codes)
    assert codes == sorted(codes)


def test_without_a_word_it_lists_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert [int(line.split()[0]) for line in printed("", capsys)[1:]] == [error.code for error in ERRORS]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            "NOT_LEADER_OR_FOLOWER",
            "klamm errors: unknown error 'NOT_LEADER_OR_FOLOWER'; did you mean NOT_LEADER_OR_FOLLOWER?\n",
        ),
        ("9999", "klamm errors: unknown error '9999'\n"),
    ],
)
def test_what_there_is_not_is_wrong_usage(
    word: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["errors", word]) == USAGE
    assert capsys.readouterr().err == expected
