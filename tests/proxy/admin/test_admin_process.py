"""The admin API of `klamm run` as a process, and its guide."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from klamm.client import Klamm, Refused
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import api
from tests.proxy.test_serve import run
from tools.admin_api_doc import GUIDE, written

BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
RULES = "rules:\n  - {name: late, api: Heartbeat, delay: 1ms}\n"
ERROR = {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}


@on_uvloop
async def test_rules_by_hand_stand_beside_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    options = ("--rules", str(tmp_path / "rules.yaml"), "--log-format", "json")
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            it = Klamm(f"127.0.0.1:{klamm.admin}", user="ada")
            made = it.add_rule(ERROR)
            client = await connect("127.0.0.1", klamm.port)
            assert (await client.ask("Heartbeat", 3, BEAT))["error_code"] == 27
            found = [(rule.name, rule.origin, rule.hits, rule.written) for rule in it.rules()]
            late = {"name": "late", "api": "Heartbeat", "delay": "1ms"}
            assert found == [("late", "file", 1, late), (made.name, "hand", 1, ERROR)]
            await eventually(lambda: klamm.lines("changed"))
            assert [line["by"] for line in klamm.lines("changed")] == ["ada (127.0.0.1)"]
            with it.live() as lines:
                await client.ask("Heartbeat", 3, BEAT)
                line = next(lines)
            assert line.exchange is not None
            assert (line.exchange.origin, line.exchange.errors) == ("klamm", {"REBALANCE_IN_PROGRESS": 1})
            assert {rule["name"] for rule in it.counters()["rules"]} == {"late", made.name}
            client.transport.abort()


@on_uvloop
async def test_read_only_and_tokens_are_options_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    options = ("--read-only", "--admin-token-file", str(tmp_path / "token"))
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            address = f"127.0.0.1:{klamm.admin}"
            with pytest.raises(Refused, match=r"the token is missing or wrong.*--token-file FILE"):
                Klamm(address).rules()
            with pytest.raises(Refused, match="nothing can be changed"):
                Klamm(address, "secret").add_rule(ERROR)
            assert Klamm(address, "secret").config()["admin"]["read_only"]


@on_uvloop
async def test_an_address_that_others_reach_is_not_served_without_a_token(tmp_path: Path) -> None:
    async with run(tmp_path / "log", "127.0.0.1:1", options=("--admin", "0.0.0.0:0")) as klamm:
        await eventually(lambda: not klamm.process.running)
        first = klamm.text().splitlines()[0]
        assert first.startswith("--admin: others than this machine can reach 0.0.0.0:0, and see the traffic")


@on_uvloop
async def test_tokens_in_plain_text_beyond_this_machine_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    options = ("--admin", "0.0.0.0:0", "--admin-token-file", str(tmp_path / "token"))
    async with Broker(Cluster(), 1).listening() as broker:
        async with run(tmp_path / "log", f"127.0.0.1:{broker.port}", options=options) as klamm:
            await klamm.announced()
            await eventually(lambda: klamm.lines("admin_in_plain_text"))
            assert "--admin-tls-cert FILE" in klamm.lines("admin_in_plain_text")[0]["message"]


@on_uvloop
async def test_what_cannot_be_used_for_the_admin_api_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("nothing\n")
    (tmp_path / "token").write_text("\n")
    for options, says in (
        (("--admin-tls-cert", str(tmp_path / "pem")), "no certificate with its private key is in"),
        (("--admin-token-file", str(tmp_path / "token")), "the token file"),
    ):
        async with run(tmp_path / "log", "127.0.0.1:1", options=options) as klamm:
            await eventually(lambda it=klamm: not it.process.running)
            assert klamm.process.child.returncode == 2
            assert f"{options[0]}: {says}" in klamm.text()


@on_uvloop
async def test_what_is_too_large_to_be_a_rule_is_refused() -> None:
    async with api() as it:
        body = b'{"name": "' + b"x" * (1 << 20) + b'"}'
        status, problem = await it.send("POST", "/v1/rules", BytesIO(body), Content_Type="application/json")
        assert (status, "error" in problem) == (413, True)


def test_the_guide_has_every_route() -> None:
    text = GUIDE.read_text()
    assert written(text) == text, "run python -m tools.admin_api_doc"
