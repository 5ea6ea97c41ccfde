"""`klamm` itself: its help, its version, and what it says to words it does not know."""

import os
import re
import subprocess
import sys
from importlib import metadata

import pytest

from klamm.cli import COMMANDS, FAILED, FINE, HELP, USAGE, main
from klamm.proxy.session import session
from tests.brokers.jars import ROOT

HEAVY = {"asyncio", "aiohttp", "rich", "uvloop", "yaml", "msgspec", "klamm.decoders", "klamm.proxy"}


def output(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    captured = capsys.readouterr()
    return captured.out, captured.err


@pytest.mark.parametrize("word", ["-h", "--help", "help"])
def test_help_says_what_klamm_is_and_names_every_command(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == FINE
    out, err = output(capsys)
    assert (out, err) == (HELP, "")
    assert out.startswith("klamm: a transparent Kafka proxy")
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert max(map(len, out.splitlines())) <= 110


def test_help_with_a_command_is_the_help_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run"], ["rules", "check"]):
        assert main([*words, "--help"]) == FINE
        help_text = output(capsys)
        assert main(["help", *words]) == FINE
        assert output(capsys) == help_text


@pytest.mark.parametrize("word", ["docs/expressions.md", "expressions.md", "expressions"])
def test_help_with_a_page_prints_the_page(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", word]) == FINE
    assert output(capsys) == ((ROOT / "docs" / "expressions.md").read_text(), "")


def test_a_page_that_has_the_name_of_a_command_is_named_as_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "rules.md"]) == FINE
    assert output(capsys)[0].startswith("# Rules")
    assert main(["help", "rules"]) == FINE
    assert output(capsys)[0].startswith("usage: klamm rules")


def test_help_lists_the_pages_and_names_the_nearest_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "docs"]) == FINE
    pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    assert output(capsys)[0].split() == [f"docs/{name}" for name in pages]
    assert main(["help", "expresions"]) == USAGE
    assert "did you mean expressions?" in output(capsys)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_that_help_names_is_there_and_help_says_how_to_read_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == FINE
    text = output(capsys)[0]
    for page in re.findall(r"docs/[\w/-]+\.md", text):
        assert (ROOT / page).is_file()
        assert page in text.rpartition("`klamm help PAGE` prints ")[2]


def test_no_command_is_wrong_usage_and_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == USAGE
    assert output(capsys) == ("", HELP)


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == FINE
    out, err = output(capsys)
    assert out.startswith(f"klamm {metadata.version('klamm')}, session: ")
    assert err == ""


def test_the_version_says_whether_the_session_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == FINE
    native = not str(session.__file__).endswith(".py")
    assert output(capsys)[0].endswith("session: compiled\n" if native else "session: pure Python\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnu"], "klamm: unknown command 'rnu'; did you mean run?\n"),
        (["zebra"], "klamm: unknown command 'zebra'\n"),
        (["up"], "klamm: unknown command 'up'; `klamm rules rm NAME` ends what `klamm down` began\n"),
        (["--vresion"], "klamm: unknown option --vresion; did you mean --version?\n"),
        (
            ["run", "--lisen=0.0.0.0:20000"],
            "klamm run: unknown option --lisen; did you mean --listen?\nsee klamm run --help\n",
        ),
        (
            ["scenario", "run", "full-disk", "--speeed", "2"],
            "klamm scenario run: unknown option --speeed; did you mean --speed?\n"
            "see klamm scenario run --help\n",
        ),
        (
            ["rules", "check", "--plugn=x.py", "a.yaml"],
            "klamm rules check: unknown option --plugn; did you mean --plugin?\n"
            "see klamm rules check --help\n",
        ),
        (
            ["connections", "close", "9"],
            "klamm connections: one word too many: 'close'; did you mean --close?\n"
            "see klamm connections --help\n",
        ),
        (
            ["demo", "--listen", "127.0.0.1:20000-20099"],
            "klamm demo: argument --listen: the demo takes the ports from 20000 on: write 127.0.0.1:20000\n"
            "see klamm demo --help\n",
        ),
        (["run", "a:1", "b:2"], "klamm run: one word too many: 'b:2'\nsee klamm run --help\n"),
        (
            ["run", "a:1", "--admin"],
            "klamm run: argument --admin: expected one argument\nsee klamm run --help\n",
        ),
        (
            ["tail", "--admin", "19091"],
            "klamm tail: argument --admin: '19091' is a port without a host: write it as 127.0.0.1:19091\n"
            "see klamm tail --help\n",
        ),
        (
            ["connections", "--close", "abc"],
            "klamm connections: argument --close: 'abc' is not a whole number\n"
            "see klamm connections --help\n",
        ),
        (
            ["inject", "Produce", "NOT_LEADER", "--follow", "abc"],
            "klamm inject: argument --follow: 'abc' is not a number\nsee klamm inject --help\n",
        ),
        (
            ["rules", "list", "--admin", "ftp://127.0.0.1:19091"],
            "klamm rules list: argument --admin: write '127.0.0.1:19091' without 'ftp://'\n"
            "see klamm rules list --help\n",
        ),
        (
            ["scenario", "run", "slow-broker", "--admin", "127.0.0.1:19091/v1"],
            "klamm scenario run: argument --admin: '19091/v1' is not a port number\n"
            "see klamm scenario run --help\n",
        ),
        (
            ["rules", "lst"],
            "klamm rules: argument COMMAND: unknown 'lst'; did you mean list?\nsee klamm rules --help\n",
        ),
        (
            ["rules", "end", "slow"],
            "klamm rules: argument COMMAND: unknown 'end'; `klamm rules rm NAME` removes a rule made by "
            "hand, `klamm rules off NAME` ends one of a file\nsee klamm rules --help\n",
        ),
        (
            ["rules", "--admin", "127.0.0.1:1", "rm", "slow"],
            "klamm rules: --admin comes after the command: klamm rules rm --admin ...\n"
            "see klamm rules --help\n",
        ),
        (
            ["rules", "--admin=127.0.0.1:1"],
            "klamm rules: --admin comes after the command: klamm rules COMMAND --admin ...\n"
            "see klamm rules --help\n",
        ),
        (
            ["intercept", "sho"],
            "klamm intercept: argument action: unknown 'sho'; did you mean show?\n"
            "see klamm intercept --help\n",
        ),
        (
            ["tail", "-n", "0"],
            "klamm tail: argument --count/-n: '0' is not a number from 1 on\nsee klamm tail --help\n",
        ),
        (
            ["tail", "-n", "-3"],
            "klamm tail: argument --count/-n: '-3' is not a number from 1 on\nsee klamm tail --help\n",
        ),
        (
            ["tail", "--rule", ""],
            "klamm tail: argument --rule: '' names no rule: write --rule 'NAME,GLOB', or leave it out\n"
            "see klamm tail --help\n",
        ),
        (
            ["tail", "--rule", "slow", "--rule", " ,"],
            "klamm tail: argument --rule: ' ,' names no rule: write --rule 'NAME,GLOB', or leave it out\n"
            "see klamm tail --help\n",
        ),
        (
            ["demo", "--seconds", "soon"],
            "klamm demo: argument --seconds: 'soon' is not a number of seconds: write 30\n"
            "see klamm demo --help\n",
        ),
        (
            ["wire", "Fetch", "latest"],
            "klamm wire: argument VERSION: 'latest' is not a version: write 12\nsee klamm wire --help\n",
        ),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_right_one(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USAGE
    assert output(capsys) == ("", expected)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == FINE
    out, err = output(capsys)
    assert out.startswith(f"usage: klamm {command}")
    assert "examples:" in out
    assert err == ""


def test_an_option_is_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a:1", "--listen-", "x"]) == USAGE
    assert main(["run", "a:1", "--meter", "full"]) == USAGE
    assert "unknown option --meter; did you mean --metering?" in output(capsys)[1]


LINES = ["wire", "wire --help", "--help", "--version", "help", "help wire", "help docs"]


@pytest.mark.parametrize("line", LINES)
def test_a_reader_that_goes_away_is_no_failure(line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        command = [sys.executable, "-m", "klamm.cli", *line.split()]
        ran = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (FINE, "")


@pytest.mark.parametrize("line", LINES)
def test_a_full_disk_under_the_output_is_one_line(line: str) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "klamm.cli", *line.split()]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (FAILED, "klamm: cannot write: No space left on device\n")


def test_without_an_output_nothing_is_printed() -> None:
    ran = subprocess.run(
        ["sh", "-c", '"$0" -m klamm.cli errors 6 >&-', sys.executable], stderr=subprocess.PIPE, text=True
    )
    assert (ran.returncode, ran.stderr) == (FINE, "")


def test_help_loads_nothing_that_is_slow_to_load() -> None:
    code = f"import sys, klamm.cli; klamm.cli.main(['--help']); print({HEAVY!r} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("set()\n"), ran.stdout
