"""The file of users."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.sasl.scram import DIGESTS
from klamm.proxy.sasl.users import Users, credential_of, line_of, load_users, parse_users
from tests.proxy.sasl_ground import ALICE, FEW, PASSWORD, SALT

LINE = line_of("alice", "SCRAM-SHA-256", credential_of("SCRAM-SHA-256", PASSWORD, SALT, FEW))


def test_lines_say_what_was_written() -> None:
    text = "# users\n\nunknown-users c2VjcmV0\n" + "\n".join(
        line_of(*key, each) for key, each in ALICE.credentials.items()
    )
    assert parse_users(text, "users") == ALICE


def test_the_form_is_that_of_kafka() -> None:
    assert LINE.startswith("alice SCRAM-SHA-256 salt=c2FsdC1vZi0xNi1ieXRlcw==,stored_key=")
    assert LINE.endswith(",iterations=4096")


def changed(before: str, after: str) -> str:
    assert before in LINE
    return LINE.replace(before, after)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no user is in it"),
        ("alice:secret", "a user takes three"),
        (changed("SCRAM-SHA-256", "PLAIN"), "no mechanism"),
        (changed("SCRAM-SHA-256", "SCRAM-SHA-512"), "the keys have 32 and 32 bytes"),
        (changed("iterations=4096", "iterations=1000"), "from 4,096"),
        (changed("iterations=4096", "iterations=many"), "from 4,096"),
        (changed("salt=", "pepper="), "not of the form"),
        (changed("c2FsdC1vZi0xNi1ieXRlcw==", "c2FsdA=="), "the salt has 4 bytes"),
        (changed("c2FsdC1vZi0xNi1ieXRlcw==", "*"), "Base64"),
        (f"{LINE}\n{LINE}", "users:2: the user alice has SCRAM-SHA-256 already"),
        ("unknown-users *", "unknown-users is not in Base64"),
        (f"{'x' * 300} {LINE.split(' ', 1)[1]}", "300 characters"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, says: str) -> None:
    with pytest.raises(OSError, match=says) as refused:
        parse_users(text, "users")
    for hashed in LINE.split(",")[1:3]:
        assert hashed.split("=", 1)[1] not in str(refused.value)


def test_all_mistakes_are_told_up_to_some() -> None:
    with pytest.raises(OSError, match=r"users:1: .*users:10: .*and 2 more"):
        parse_users("x\n" * 12, "users")


def test_a_file_whose_last_user_was_removed_lets_nobody_in() -> None:
    assert parse_users("unknown-users c2VjcmV0\n", "users").credentials == {}


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        load_users(str(tmp_path / "none"))
    (tmp_path / "latin-1").write_bytes(b"\xe4")
    with pytest.raises(OSError, match="UTF-8"):
        load_users(str(tmp_path / "latin-1"))


@given(text=st.text(max_size=200))
def test_any_text_is_users_or_a_mistake(text: str) -> None:
    found: Users | None = None
    with contextlib.suppress(OSError):
        found = parse_users(text, "users")
    assert found is None or not found.credentials  # hypothesis finds no hash


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_a_credential_does_not_show_its_hashes(mechanism: str) -> None:
    assert repr(credential_of(mechanism, PASSWORD, SALT, FEW)) == "ScramCredential(4096 iterations)"
