"""klamm authenticates itself with the brokers, for clients that bring no credentials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from klamm.proxy import config
from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster import own_sessions, reloading
from klamm.proxy.config_types import InputFile, Listen, Seconds, Text, Url
from tests.fakes.broker import Broker, Cluster, Waiting
from tests.fakes.edge import edge, proxied, started
from tests.fakes.guarded import Guarded, guarded, sasl
from tests.fakes.oidc import Oidc
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}


@on_uvloop
async def test_a_client_without_credentials_reaches_brokers_that_ask_for_them(tmp_path: Path) -> None:
    async with guarded(sasl(tmp_path)) as (klamm, broker, _):
        assert not klamm.proxied.context.asks_sasl
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        [row] = (await client.ask("Metadata", 12, {"topics": []}))["brokers"]
        assert row["port"] == klamm.port_of(1)
        asked = [request.name for request in broker.connections[-1].requests]
        assert asked == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Heartbeat", "Metadata"]


@on_uvloop
async def test_a_password_that_has_changed_is_read_for_the_next_connection(tmp_path: Path) -> None:
    async with guarded(sasl(tmp_path)) as (klamm, _, guard):
        guard.token = b"\0alice\0changed"
        refused = await klamm.client(1)
        assert await refused.ended() == "RST"
        [line] = await klamm.logged("broker_unreachable")
        assert "refuses alice: Authentication failed" in line.message
        (tmp_path / "password").write_text("changed")
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_broker_that_refuses_the_password_is_down_until_it_takes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    async with guarded(sasl(tmp_path)) as (klamm, broker, guard):
        guard.token = b"\0alice\0changed"
        assert await (await klamm.client(1)).ended() == "RST"
        before = len(broker.connections)
        await eventually(lambda: len(broker.connections) > before + 5)  # klamm itself looks again
        assert [node.up for node in klamm.proxied.state().nodes] == [False]
        assert klamm.log.of("broker_reachable") == []
        (tmp_path / "password").write_text("changed")
        await klamm.logged("broker_reachable")
        before = len(broker.connections)
        await eventually(lambda: len(broker.connections) > before + 5)
        assert [node.up for node in klamm.proxied.state().nodes] == [True]
        assert len(klamm.log.of("broker_reachable")) == 1


@on_uvloop
async def test_the_password_may_be_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    own = sasl(tmp_path, password_file=None, password_env=Text("KAFKA_PASSWORD"))
    async with guarded(own) as (klamm, _, _):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_oauthbearer_sends_the_token_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    own = config.Sasl("OAUTHBEARER", token_file=InputFile(str(file)))
    async with guarded(own, token=b"n,,\x01auth=Bearer a.b.c\x01\x01") as (klamm, _, _):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)


@pytest.mark.parametrize(
    ("secret", "says"), [("wrong", "refuses alice"), ("", "is empty")], ids=["wrong", "empty"]
)
@on_uvloop
async def test_credentials_of_no_use_are_said_while_klamm_looks_for_the_cluster(
    tmp_path: Path, secret: str, says: str
) -> None:
    broker = await Broker(Cluster(), 1).start()
    Guarded(broker)
    made, log = proxied(broker, sasl=sasl(tmp_path, secret))
    try:
        async with started(made, log, ready=False) as klamm:
            [line] = await klamm.logged("unreachable")
            assert says in line.message
            assert "secret" not in line.message
    finally:
        await broker.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
@on_uvloop
async def test_klamm_warns_where_everybody_can_use_its_credentials(tmp_path: Path, host: str) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        Guarded(broker)
        async with edge(broker, sasl=sasl(tmp_path), listen=Listen(host, 0)) as klamm:
            warned = klamm.log.of("open_to_all")
            assert bool(warned) == (host == "0.0.0.0")
            assert all("acts as alice" in line.message for line in warned)


@on_uvloop
async def test_a_connection_ends_between_two_exchanges_before_its_session_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_sessions, "LEAST_S", 120.0)
    monkeypatch.setattr(own_sessions, "EARLY", 0.04)
    async with guarded(sasl(tmp_path), lifetime_ms=60_000) as (klamm, broker, _):
        client = await klamm.client(1)
        waiting = Waiting(broker)
        client.send("Heartbeat", 4, BEAT)
        await waiting.came()
        [link] = await klamm.links(1)
        await eventually(lambda: link.draining is not None)
        waiting.answer()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        client.close()
        await eventually(lambda: klamm.closed() == {"its SASL session ends": 1})


@on_uvloop
async def test_extensions_go_with_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    extensions = {Text("logicalCluster"): Text("lkc-1"), Text("b"): Text("2")}
    own = config.Sasl("OAUTHBEARER", token_file=InputFile(str(file)), extensions=extensions)
    sent = b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01b=2\x01\x01"
    async with guarded(own, token=sent) as (klamm, _, _):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_tokens_of_a_server_are_used_for_the_nodes_and_for_clients(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    async with Oidc(lambda: "a.b.c", "klamm", "s3cret", 300).listening() as oidc:
        own = config.Sasl(
            "OAUTHBEARER",
            token_endpoint_url=Url(oidc.url),
            client_id=Text("klamm"),
            client_secret_file=InputFile(str(tmp_path / "secret")),
        )
        async with guarded(own, token=b"n,,\x01auth=Bearer a.b.c\x01\x01") as (klamm, _, _):
            for _ in range(3):
                await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        assert len(oidc.forms) == 1


@on_uvloop
async def test_a_client_is_told_by_the_log_why_there_is_no_token(tmp_path: Path) -> None:
    program = (Text("/bin/false"),)
    async with Broker(Cluster(), 1).listening() as broker:
        Guarded(broker)
        made, log = proxied(broker, sasl=config.Sasl("OAUTHBEARER", token_command=program))
        async with started(made, log, ready=False) as klamm:
            [line] = await klamm.logged("token_failed")
            assert "the program /bin/false of sasl.token_command ends with exit code 1" in line.message
            assert "exit code 1" in (await klamm.logged("unreachable"))[0].message
        assert broker.connections == []


@on_uvloop
async def test_a_reload_of_other_settings_keeps_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c\n")
    counted = tmp_path / "counted"
    script = f"echo x >> {counted}; cat {tmp_path / 'token'}"
    program = tuple(map(Text, ("/bin/sh", "-c", script)))
    own = config.Sasl("OAUTHBEARER", token_command=program)
    async with guarded(own, token=b"n,,\x01auth=Bearer a.b.c\x01\x01") as (klamm, _, _):
        settings = replace(klamm.proxied.settings, connect_timeout_s=Seconds(7.0))
        reloading.take(reloading.prepare(klamm.proxied, settings))
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        assert counted.read_text() == "x\n"
        other = replace(own, token_timeout_s=Seconds(7.0))
        reloading.take(reloading.prepare(klamm.proxied, replace(settings, sasl=other)))
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        assert counted.read_text() == "x\nx\n"
