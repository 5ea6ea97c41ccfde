"""The loop around the pictures, without a clock and without a network; and questions over a socket."""

import asyncio
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from klamm.dashboards.terminal.watch import NoAnswer, View, ask, watch
from klamm.proxy.admin.server import start
from tests.dashboards.fake_state import FakeState, answer


def screen(width: int = 100, height: int = 30) -> Console:
    return Console(file=StringIO(), width=width, height=height, force_terminal=True, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_it_draws_once_a_second_until_told_to_end() -> None:
    state, console = FakeState(), screen()
    clock, pauses = [0.0], []

    def next_answer(admin: str) -> dict[str, Any]:
        assert admin == "127.0.0.1:19091"
        clock[0] += 0.25
        state.run(1)
        return answer(state)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    def over() -> bool:
        return len(pauses) == 3

    watch("127.0.0.1:19091", console, over, answer=next_answer, sleep=sleep, now=lambda: clock[0])
    assert pauses == [0.75] * 3
    assert written(console).count("klamm 0.1.0") == 3


def test_silence_is_said_and_the_last_picture_stays() -> None:
    state, console = FakeState(), screen()
    state.run(1)
    answers = [answer(state), None, None]
    clock = [0.0]

    def next_answer(_: str) -> dict[str, Any]:
        found = answers.pop(0)
        if found is None:
            raise NoAnswer("Connection refused")
        return found

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    watch("a:1", console, lambda: not answers, answer=next_answer, sleep=sleep, now=lambda: clock[0])
    assert "no answer from a:1 for 1 s: Connection refused" in written(console)
    assert written(console).count("legacy-importer") == 3


def test_before_the_first_answer_it_says_that_it_waits() -> None:
    console = screen()
    console.print(View().picture("no answer from a:1 for 0 s: Connection refused"))
    assert "Connection refused" in written(console)


def test_rates_are_of_the_last_five_seconds_only() -> None:
    state, view, console = FakeState(), View(), screen()
    for speed in (50, 50, 1, 1, 1, 1, 1):
        state.run(1, speed)
        view.add(answer(state))
    console.print(view.picture())
    assert "510 req/s" in written(console)


def test_a_restart_starts_the_view_anew() -> None:
    state, view = FakeState(), View()
    state.run(1)
    view.add(answer(state))
    view.add(answer(state) | {"pid": 2})
    assert [found["pid"] for found in view.answers] == [2]


def test_it_reads_a_running_server_whatever_the_environment_says_of_proxies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://203.0.113.7:1")
    state = FakeState()
    state.run(1)

    async def run() -> dict[str, Any]:
        admin = await start(state, "127.0.0.1", 0)
        try:
            return await asyncio.to_thread(ask, str(admin.address))
        finally:
            await admin.close()

    assert asyncio.run(run())["clusters"][0]["name"] == "demo"


def test_nobody_there_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="Connection refused"):
        ask("127.0.0.1:1")
