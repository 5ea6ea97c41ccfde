"""`klamm replay --to`: what it refuses, in one line, before anything is sent."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from klamm.cli import USAGE, main
from klamm.decoders.records import Batch, Record, write
from tests.captures.rows import Talk, written
from tests.fakes.broker import Broker, Cluster
from tests.fakes.waiting import on_uvloop

NOWHERE = "127.0.0.1:1"
DATA = write(Batch(), [Record(value=b"v")])
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def capture(tmp_path: Path) -> str:
    talk = Talk().heartbeat().produce(records=DATA).metadata()
    talk.rows[2] = talk.rows[2]._replace(blanks=((60, 8),))
    return str(written(tmp_path / "a.arrow", talk.rows))


def refused(capsys: Printed, *words: str) -> str:
    assert main(["replay", *words]) == USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_records_that_are_blank_are_not_produced(capture: str, capsys: Printed) -> None:
    assert refused(capsys, capture, "--to", NOWHERE) == (
        "klamm: the records of 1 Produce request are blank in the capture: capture with --capture-records"
        " keep (klamm import: --records keep), or replay with --without Produce\n"
    )
    for words in (["--without", "Prod"], ["api == Heartbeat"]):
        reason = refused(capsys, capture, *words, "--to", NOWHERE)
        assert reason == "klamm: nothing was sent: 127.0.0.1:1 refuses connections\n"


def test_a_capture_without_requests_to_send_is_told_with_the_reasons(capture: str, capsys: Printed) -> None:
    reason = refused(capsys, capture, "--to", NOWHERE, "--without", "Produce,Metadata,Heartbeat")
    assert reason == (
        "klamm: no request of the capture can be sent (3 are left out: as was asked for (--without))\n"
    )


def test_nothing_found_is_said_and_nothing_is_sent(capture: str, capsys: Printed) -> None:
    assert refused(capsys, capture, 'group == "nosuch"', "--to", NOWHERE) == (
        "klamm: 0 of 3 exchanges matched\nklamm: no request of the capture can be sent\n"
    )


@on_uvloop
async def test_the_exit_code_says_whether_answers_differ(tmp_path: Path) -> None:
    path = str(written(tmp_path / "a.arrow", Talk().heartbeat().rows))
    async with Broker(Cluster(), 1).listening() as broker:
        words = ["replay", path, "--to", f"127.0.0.1:{broker.port}", "--asap"]
        assert await asyncio.to_thread(main, words) == 0
        broker.answers["Heartbeat"] = lambda *_: {"error_code": 25}
        assert await asyncio.to_thread(main, words) == 1


def test_a_capture_that_cannot_be_served_is_told(capture: str, capsys: Printed) -> None:
    reason = refused(capsys, "--serve", capture, 'group == "nosuch"')
    assert reason == "klamm: the capture has no exchange that can be served\n"


def test_a_range_of_ports_to_serve_on_is_answered_with_the_port_to_write(
    capture: str, capsys: Printed
) -> None:
    reason = refused(capsys, "--serve", capture, "--listen", "[::1]:19092-19191")
    assert reason == (
        "klamm: --listen: write the first port alone, as [::1]:19092: "
        "the other brokers of the capture get the ports behind it\n"
    )


@pytest.mark.parametrize(("unanswered", "code"), [({}, 0), ({"Metadata": 2}, 1)])
def test_at_the_end_it_is_said_how_many_requests_were_answered(
    capture: str, unanswered: dict[str, int], code: int, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(answered=Counter(Fetch=3), unanswered=Counter(unanswered))
    monkeypatch.setattr("klamm.replay.serving.serving.serve", lambda *_: ended)
    assert main(["replay", "--serve", capture]) == code
    assert f"3 requests answered, {2 * code} not\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "kafka-1"], "klamm: --to: 'kafka-1' has no port: write it as kafka-1:9092"),
        (
            ["--to", NOWHERE, "--without", "Fet"],
            "klamm: --without: 'Fet' may be Fetch, FetchSnapshot: write more",
        ),
        (
            ["--to", NOWHERE, "--speed", "0"],
            "klamm replay: argument --speed: '0' is not a number above 0, up to 1000",
        ),
        (["--to", NOWHERE, "--speed", "2", "--asap"], "--asap: not allowed with argument --speed"),
        (["--to", NOWHERE, "--client-config", "nowhere"], "klamm: --client-config: nowhere: No such file"),
        ([], "one of the arguments --to --serve is required"),
    ],
)
def test_wrong_words_are_told(capture: str, words: list[str], message: str, capsys: Printed) -> None:
    assert message in refused(capsys, capture, *words)


def test_client_properties_that_cannot_be_meant_are_told(
    capture: str, tmp_path: Path, capsys: Printed
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL\n")
    reason = refused(capsys, capture, "--to", NOWHERE, "--without", "Produce", "--client-config", str(file))
    assert reason.startswith("klamm: --client-config: security.protocol=SASL: klamm knows PLAINTEXT, SSL")
