"""`klamm users`: the file of users."""

from __future__ import annotations

import io
import stat
import sys
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.proxy.sasl.mechanisms import Plain
from klamm.proxy.sasl.users import FEWEST, load_users
from klamm.proxy.sasl.verdicts import Check, Proven
from tests.docs.blocks import blocks, commands
from tests.proxy.sasl_ground import plain

SECRET = "planted password"
QUICK = ["--iterations", str(FEWEST)]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard input."""
    given = io.StringIO(f"{SECRET}\n")
    monkeypatch.setattr(sys, "stdin", given)
    return given


def proves(file: Path, name: str, password: str) -> bool:
    verdict = Plain(load_users(str(file)), b"key").answer(plain(name, password))
    return isinstance(verdict, Check) and isinstance(verdict.work(), Proven)


def test_set_makes_a_file_that_only_its_owner_reads_and_no_output_has_the_password(
    tmp_path: Path, typed: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    assert main(["users", "set", str(file), "alice", *QUICK]) == 0
    assert proves(file, "alice", SECRET)
    assert not proves(file, "alice", "another")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET not in file.read_text() + capsys.readouterr().out
    assert load_users(str(file)).secret != b""


def test_set_changes_a_password_and_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "users"
    for name, password in (("alice", "one"), ("bob", "two"), ("alice", "three")):
        monkeypatch.setattr(sys, "stdin", io.StringIO(password))
        assert main(["users", "set", str(file), name, *QUICK, "--mechanism", "SCRAM-SHA-512"]) == 0
        if name == "bob":
            with file.open("a") as stream:
                stream.write("# of the shop\n")
    assert [proves(file, "alice", each) for each in ("one", "three")] == [False, True]
    assert proves(file, "bob", "two")
    assert "# of the shop" in file.read_text()
    assert len(load_users(str(file)).credentials) == 2


def test_remove_takes_a_user_away_also_the_last(
    tmp_path: Path, typed: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    main(["users", "set", str(file), "alice", *QUICK])
    assert main(["users", "remove", str(file), "alice"]) == 0
    assert load_users(str(file)).credentials == {}
    assert main(["users", "remove", str(file), "alice"]) == 1
    assert "there is no user 'alice'" in capsys.readouterr().err


def test_list_names_users_and_no_hash(
    tmp_path: Path, typed: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    main(["users", "set", str(file), "alice", *QUICK])
    capsys.readouterr()
    assert main(["users", "list", str(file)]) == 0
    expected = "alice  SCRAM-SHA-256 (4096 iterations), SCRAM-SHA-512 (4096 iterations)\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        (["set", "{file}", "a b"], SECRET, "spaces"),
        (["set", "{file}", "#x"], SECRET, "taken"),
        (["set", "{file}", "alice"], "", "is empty"),
        (["set", "{file}", "alice"], "a\0b", "zero byte"),
        (["set", "{file}", "alice", "--iterations", "10"], SECRET, "--iterations"),
        (["list", "{file}"], "", "No such file"),
        (["remove", "{file}", "alice"], "", "No such file"),
    ],
)
def test_a_mistake_is_told_and_nothing_written(
    words: list[str],
    given: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "users"
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    assert main(["users", *(word.format(file=file) for word in words)]) == 1
    assert says in capsys.readouterr().err
    assert not file.exists()


def test_a_file_with_mistakes_is_left_as_it_is(
    tmp_path: Path, typed: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    file.write_text("alice:planted\n")
    assert main(["users", "set", str(file), "alice", *QUICK]) == 1
    assert "users:1: 1 words" in capsys.readouterr().err
    assert file.read_text() == "alice:planted\n"


def test_the_password_is_asked_for_twice_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file, answers = tmp_path / "users", [SECRET, "typo", SECRET, SECRET]
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("klamm.cli.running.users.getpass", lambda prompt: answers.pop(0))
    assert main(["users", "set", str(file), "alice", *QUICK]) == 1
    assert "differ" in capsys.readouterr().err
    assert main(["users", "set", str(file), "alice", *QUICK]) == 0
    assert proves(file, "alice", SECRET)


def test_the_commands_of_the_page_make_a_file_that_klamm_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_page = [block for block in blocks() if block.page == "docs/sasl.md" and block.language == "sh"]
    shown = [each.text for block in of_page for each in commands(block) if "users" in each.text]
    assert len(shown) == 2
    for text in shown:
        monkeypatch.setattr(sys, "stdin", io.StringIO(SECRET))
        assert main(text.partition(" <")[0].split()[1:]) == 0
    assert proves(tmp_path / "users", "billing", SECRET)
