"""Clients that authenticate with klamm: no broker is connected before they have."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders.headers import request_frame
from klamm.proxy import config
from klamm.proxy.cluster.reloading import prepare, take
from klamm.proxy.config_types import InputFile, Listen, Principal, Seconds, Text
from klamm.proxy.control import following
from klamm.proxy.control.audit import logins
from klamm.proxy.control.audit.auditing import Auditing
from klamm.proxy.control.audit.logins import Logins
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.edge.accepting import listener, login
from klamm.proxy.log.audit import Audit
from tests.fakes.broker import Broker, Cluster, Waiting
from tests.fakes.client import Client
from tests.fakes.edge import Edge, edge
from tests.fakes.waiting import eventually, on_uvloop, turns
from tests.proxy.control.test_auditing import Memory
from tests.proxy.edge.test_listen_tls import client as tls_client
from tests.proxy.edge.test_listen_tls import file, trusting
from tests.proxy.sasl_ground import PASSWORD, ScramClient, bearer, plain, write_users
from tests.tokens import AUDIENCE, ISSUER, Issuer

BEAT = {"group_id": "g", "member_id": "m"}
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
PLAIN: tuple[Any, ...] = ("PLAIN",)


@asynccontextmanager
async def guarded(
    folder: Path, mechanisms: tuple[Any, ...] = PLAIN, passwords: dict[str, str] | None = None, **more: Any
) -> AsyncIterator[tuple[Edge, Broker]]:
    """klamm with users, and a broker without SASL; what is not of the settings of SASL is the cluster's."""
    of_cluster = {name: more.pop(name) for name in ("listen_tls", "sasl", "listen") if name in more}
    users = write_users(folder, passwords) if mechanisms != ("OAUTHBEARER",) else None
    settings = config.ListenSasl(mechanisms, users, **more)
    async with (
        Broker(Cluster(), 1).listening() as broker,
        edge(broker, listen_sasl=settings, **of_cluster) as klamm,
    ):
        klamm.proxied.doors.logins = Logins(RuleBook(klamm.engine))
        yield klamm, broker


async def log_in(one: Client, token: bytes = plain(), mechanism: str = "PLAIN") -> dict[str, Any]:
    """The answer to the client's token."""
    assert (await one.ask("SaslHandshake", 1, {"mechanism": mechanism}))["error_code"] == 0
    return await one.ask("SaslAuthenticate", 2, {"auth_bytes": token})


def served(broker: Broker) -> list[str]:
    """The requests of clients that the broker has seen."""
    found = (each for connection in broker.connections for each in connection.requests)
    return [each.name for each in found if each.client_id == "app"]


@on_uvloop
async def test_a_client_that_has_authenticated_reaches_the_broker(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        one = await klamm.client(1)
        assert (await log_in(one))["error_code"] == 0
        assert await one.ask("Heartbeat", 4, BEAT) == {"throttle_time_ms": 0, "error_code": 0}
        assert served(broker) == ["Heartbeat"]
        [link] = await klamm.links(1)
        assert link.principal == "User:alice"
        assert klamm.stats.logins == {("kafka", "PLAIN", "success"): 1}
        assert klamm.stats.principals == {("kafka", "User:alice"): 1}
        assert not klamm.log.bad()


@on_uvloop
async def test_requests_that_follow_at_once_are_not_lost(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, _):
        one = await klamm.client(1)
        one.send("SaslHandshake", 1, {"mechanism": "PLAIN"})
        one.send("SaslAuthenticate", 2, {"auth_bytes": plain()})
        one.send("Heartbeat", 4, BEAT)
        await one.answer("SaslHandshake", 1)
        assert (await one.answer("SaslAuthenticate", 2))["error_code"] == 0
        assert (await one.answer("Heartbeat", 4))["error_code"] == 0


@on_uvloop
async def test_bytes_may_come_one_by_one(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, _):
        one = await klamm.client(1)
        whole = Client()
        sent: list[bytes] = []
        whole.transport = type("Kept", (), {"write": lambda _, data: sent.append(data)})()
        whole.send("SaslHandshake", 1, {"mechanism": "PLAIN"})
        whole.send("SaslAuthenticate", 2, {"auth_bytes": plain()})
        one.correlation_id = whole.correlation_id
        for byte in b"".join(sent):
            one.transport.write(bytes([byte]))
            await asyncio.sleep(0)
        await one.answer("SaslHandshake", 1)
        assert (await one.answer("SaslAuthenticate", 2))["error_code"] == 0


@on_uvloop
async def test_no_broker_is_connected_for_a_client_that_has_not_authenticated(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        before = len(broker.connections)
        clients = [await klamm.client(1) for _ in range(20)]
        for one in clients:
            await one.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        assert len(broker.connections) == before
        assert not klamm.proxied.links


@on_uvloop
async def test_api_versions_are_those_of_the_broker_which_is_asked_once_for_all(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        broker.cluster.versions["Produce"] = (0, 7)
        before = len(broker.connections)
        clients = [await klamm.client(1) for _ in range(20)]
        for one in clients:
            one.send("ApiVersions", 3, SOFTWARE)
        answers = [await one.answer("ApiVersions", 3) for one in clients]
        rows = {row["api_key"]: (row["min_version"], row["max_version"]) for row in answers[0]["api_keys"]}
        assert all(answer == answers[0] for answer in answers)
        assert (rows[0], rows[17], rows[36]) == ((0, 7), (0, 1), (0, 2))
        assert len(broker.connections) == before + 1
        assert klamm.stats.software == {("kafka", "test", "1"): 20}
        [one] = clients[:1]
        assert (await log_in(one))["error_code"] == 0
        assert [link.software for link in klamm.proxied.links] == ["test 1"]
        assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 0


@on_uvloop
async def test_a_client_is_closed_where_no_broker_can_be_asked_for_its_versions(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        await broker.stop()
        one = await klamm.client(1)
        one.send("ApiVersions", 3, SOFTWARE)
        assert await one.ended()
        [line] = await klamm.logged("client_sasl_failed")
        assert "refuses connections" in line.message


@pytest.mark.parametrize("token", [plain(password="wrong"), plain("nobody")])
@on_uvloop
async def test_a_wrong_password_is_told_and_the_connection_ended(tmp_path: Path, token: bytes) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        one = await klamm.client(1)
        answer = await log_in(one, token)
        assert answer["error_code"] == 58
        assert answer["error_message"] == "Authentication failed: Invalid username or password"
        assert await one.ended() == "FIN"
        assert klamm.stats.logins == {("kafka", "PLAIN", "wrong_credentials"): 1}
        [line] = await klamm.logged("client_sasl_failed")
        assert "wrong" not in line.message.replace("is wrong", "")
        assert klamm.problems() == {"client_sasl_failed": 1}
        assert served(broker) == []


@on_uvloop
async def test_a_refusal_comes_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float, result: Any = None) -> Any:
        slept.append(delay)
        return await sleep(0 if delay == login.FAILED_S else delay, result)

    async with guarded(tmp_path) as (klamm, _):
        monkeypatch.setattr(asyncio, "sleep", noted)
        assert (await log_in(await klamm.client(1), plain(password="wrong")))["error_code"] == 58
        assert slept.count(login.FAILED_S) == 1


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"\x7f\xff\xff\xff", "announces a frame"),
        (bytes(12), "announces a frame"),
    ],
)
@on_uvloop
async def test_a_client_that_speaks_something_else_is_told_in_the_log(
    tmp_path: Path, first: bytes, says: str
) -> None:
    async with guarded(tmp_path) as (klamm, _):
        one = await klamm.client(1)
        one.transport.write(first)
        assert await one.ended()
        [line] = await klamm.logged("client_sasl_failed")
        assert says in line.message


@on_uvloop
async def test_a_client_that_does_not_authenticate_in_time_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "LOGIN_S", 0.05)
    async with guarded(tmp_path) as (klamm, _):
        silent, slow = await klamm.client(1), await klamm.client(1)
        slow.send("SaslHandshake", 1, {"mechanism": "PLAIN"})
        assert await silent.ended()
        assert await slow.ended()
        [line] = await klamm.logged("client_sasl_failed")  # the silent one may be a health check
        assert "within" in line.message


@on_uvloop
async def test_a_user_that_is_not_named_may_not_use_the_cluster(tmp_path: Path) -> None:
    allow = (Principal("User:orders-*"), Principal("User:alice"))
    both = {"alice": PASSWORD, "bob": "x"}
    async with guarded(tmp_path, passwords=both, allow=allow) as (klamm, _):
        assert (await log_in(await klamm.client(1)))["error_code"] == 0
        refused = await log_in(await klamm.client(1), plain("bob", "x"))
        assert refused["error_code"] == 58
        assert "User:bob may not use this cluster" in refused["error_message"]
        assert klamm.stats.logins["kafka", "PLAIN", "not_allowed"] == 1
        [line] = await klamm.logged("client_sasl_failed")
        assert "listen_sasl.allow" in line.message


@on_uvloop
async def test_a_client_authenticates_over_tls(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    tls = config.ListenTls(file(certificates / "broker.pem"), ca=file(certificates / "ca.pem"))
    async with guarded(tmp_path, listen_tls=tls) as (klamm, _):
        port = klamm.port_of(1)
        one = await tls_client(klamm, trusting(certificates, cert=True), port)
        assert (await log_in(one))["error_code"] == 0
        assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        [link] = await klamm.links(1)
        assert link.principal == "User:alice"  # as Kafka's SASL_SSL: not that of the certificate
        two = await tls_client(klamm, trusting(certificates, cert=True), port)
        assert (await log_in(two, plain(password="wrong")))["error_code"] == 58
        await two.changed.until(lambda: two.lost)


@on_uvloop
async def test_klamm_authenticates_itself_with_the_brokers_after_the_client_has(tmp_path: Path) -> None:
    from tests.proxy.cluster.test_own_sasl import Guarded

    (tmp_path / "password").write_text("secret")
    own = config.Sasl("PLAIN", Text("alice"), InputFile(str(tmp_path / "password")))
    async with Broker(Cluster(), 1).listening() as broker:
        Guarded(broker)
        settings = config.ListenSasl(PLAIN, write_users(tmp_path))
        async with edge(broker, listen_sasl=settings, sasl=own) as klamm:
            one = await klamm.client(1)
            await one.ask("ApiVersions", 3, SOFTWARE)
            assert (await log_in(one))["error_code"] == 0
            assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 0
            assert served(broker) == ["Heartbeat"]


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
@on_uvloop
async def test_klamm_warns_where_passwords_of_clients_cross_a_network(tmp_path: Path, host: str) -> None:
    async with guarded(tmp_path, listen=Listen(host, 0)) as (klamm, _):
        warned = klamm.log.of("secrets_in_plain_text")
        assert bool(warned) == (host == "0.0.0.0")
        assert klamm.log.of("open_to_all") == []


@on_uvloop
async def test_users_are_those_of_the_file_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    async with guarded(tmp_path) as (klamm, _):
        write_users(tmp_path, {"bob": "another", "carol": "x"})
        await klamm.logged("users_loaded")
        assert (await log_in(await klamm.client(1)))["error_code"] == 58
        assert (await log_in(await klamm.client(1), plain("bob", "another")))["error_code"] == 0
        (tmp_path / "users").write_text("bob: another\n")
        [line] = await klamm.logged("users_rejected")
        assert "users:1: 2 words" in line.message
        assert "another" not in line.message
        assert (await log_in(await klamm.client(1), plain("bob", "another")))["error_code"] == 0


@on_uvloop
async def test_keys_of_tokens_are_those_of_the_file_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    one, two = Issuer(), Issuer("the second")
    more: dict[str, Any] = {"issuer": Text(ISSUER), "audience": (AUDIENCE,)}
    more["jwks"] = file(one.write(tmp_path))
    async with guarded(tmp_path, ("OAUTHBEARER",), **more) as (klamm, _):
        answer = await log_in(await klamm.client(1), bearer(one.token("shop")), "OAUTHBEARER")
        assert answer["error_code"] == 0
        assert 0 < answer["session_lifetime_ms"] <= 600_000
        two.write(tmp_path)
        await klamm.logged("jwks_loaded")
        refused = await klamm.client(1)
        answer = await log_in(refused, bearer(one.token("shop")), "OAUTHBEARER")
        assert answer["auth_bytes"] == b'{"status":"invalid_token"}'
        assert klamm.stats.logins["kafka", "OAUTHBEARER", "wrong_credentials"] == 1
        assert len(klamm.log.of("client_sasl_failed")) == 1
        answer = await refused.ask("SaslAuthenticate", 2, {"auth_bytes": b"\x01"})
        assert answer["error_code"] == 58
        answer = await log_in(await klamm.client(1), bearer(two.token("shop")), "OAUTHBEARER")
        assert answer["error_code"] == 0


@on_uvloop
async def test_the_audit_log_has_who_authenticated_and_who_could_not(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, _):
        memory, book = Memory(), RuleBook(klamm.engine)
        audit = Audit(memory, klamm.log)
        klamm.proxied.auditing, klamm.proxied.doors.logins = Auditing(audit, book), Logins(book)
        await log_in(await klamm.client(1), plain(password="planted-wrong"))
        await log_in(await klamm.client(1))
        await eventually(lambda: len(memory.of("authentication")) == 2 and memory.of("connected"))
        failed, done = memory.of("authentication")
        assert (failed["outcome"], failed["reason"]) == ("SASL_AUTHENTICATION_FAILED", "wrong_credentials")
        assert (failed["user"], failed["principal"]) == ("alice", None)
        assert (done["outcome"], done["principal"], done["mechanism"]) == ("success", "User:alice", "PLAIN")
        assert done["client_id"] == "app"
        assert memory.of("connected")[0]["principal"] == "User:alice"
        await log_in(klamm.clients[-1])  # again, on the same connection
        await eventually(lambda: len(memory.of("authentication")) == 3)
        again = memory.of("authentication")[-1]
        assert (again["outcome"], again["principal"]) == ("success", "User:alice")
        assert again["connection_id"] is not None
        assert b"planted" not in memory.data
        audit.close()


@on_uvloop
async def test_hashing_a_password_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a hash is made, which here waits for the other client, that one is served."""
    import threading

    from klamm.proxy.sasl import mechanisms
    from klamm.proxy.sasl.scram import salted

    served_meanwhile, hashed = threading.Event(), salted

    def slow(*parts: Any) -> bytes:
        assert served_meanwhile.wait(20)
        return hashed(*parts)

    async with guarded(tmp_path, ("PLAIN", "SCRAM-SHA-256")) as (klamm, _):
        monkeypatch.setattr(mechanisms, "salted", slow)
        waiting = await klamm.client(1)
        await waiting.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        waiting.send("SaslAuthenticate", 2, {"auth_bytes": plain()})
        other, scram = await klamm.client(1), ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
        challenge = (await log_in(other, scram.first(), "SCRAM-SHA-256"))["auth_bytes"]
        last = await other.ask("SaslAuthenticate", 2, {"auth_bytes": scram.final(challenge)})
        assert last["error_code"] == 0
        assert (await other.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        served_meanwhile.set()
        assert (await waiting.answer("SaslAuthenticate", 2))["error_code"] == 0


@on_uvloop
async def test_a_client_that_goes_while_it_authenticates_leaves_nothing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        before = len(broker.connections)
        for end in ("reset", "close", "send_fin"):
            one = await klamm.client(1)
            await one.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
            getattr(one, end)()
        [port] = [each for each in klamm.proxied.ports.by_port.values() if each.target is not None]
        await eventually(lambda: not port.server.entrants.count)
        await turns()
        assert not klamm.proxied.links
        assert len(broker.connections) == before
        assert not klamm.log.bad()


@on_uvloop
async def test_the_oldest_of_too_many_that_have_not_authenticated_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST", 2)
    async with guarded(tmp_path) as (klamm, _):
        clients = [await klamm.client(1) for _ in range(3)]
        await clients[0].ended()
        for one in clients[1:]:
            assert (await log_in(one))["error_code"] == 0
        assert not klamm.log.bad()


# Clients that authenticate again on the connection that they have (KIP-368).


@on_uvloop
async def test_a_client_authenticates_again_on_its_connection(tmp_path: Path) -> None:
    async with guarded(tmp_path, max_reauth_s=Seconds(3600.0)) as (klamm, broker):
        one = await klamm.client(1)
        assert (await log_in(one))["session_lifetime_ms"] == 3_600_000
        [link] = await klamm.links(1)
        before = link.timers["login"]
        await one.ask("Heartbeat", 4, BEAT)
        again = await log_in(one)
        assert (again["error_code"], again["session_lifetime_ms"]) == (0, 3_600_000)
        assert before.cancelled()
        assert not link.timers["login"].cancelled()
        assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert served(broker) == ["Heartbeat", "Heartbeat"]


@on_uvloop
async def test_scram_is_done_again_in_two_requests(tmp_path: Path) -> None:
    async with guarded(tmp_path, ("SCRAM-SHA-512",)) as (klamm, broker):
        one = await klamm.client(1)
        for _ in range(2):
            scram = ScramClient("SCRAM-SHA-512", "alice", PASSWORD)
            challenge = (await log_in(one, scram.first(), "SCRAM-SHA-512"))["auth_bytes"]
            last = await one.ask("SaslAuthenticate", 2, {"auth_bytes": scram.final(challenge)})
            assert last["error_code"] == 0
            await one.ask("Heartbeat", 4, BEAT)
        assert served(broker) == ["Heartbeat", "Heartbeat"]


@on_uvloop
async def test_another_user_or_mechanism_is_refused_and_the_connection_ended(tmp_path: Path) -> None:
    both = {"alice": PASSWORD, "bob": "x"}
    mechanisms = ("SCRAM-SHA-256", "PLAIN")
    async with guarded(tmp_path, mechanisms, both) as (klamm, _):
        one, scram = await klamm.client(1), ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
        challenge = (await log_in(one, scram.first(), "SCRAM-SHA-256"))["auth_bytes"]
        await one.ask("SaslAuthenticate", 2, {"auth_bytes": scram.final(challenge)})
        bob = ScramClient("SCRAM-SHA-256", "bob", "x")
        challenge = (await log_in(one, bob.first(), "SCRAM-SHA-256"))["auth_bytes"]
        refused = await one.ask("SaslAuthenticate", 2, {"auth_bytes": bob.final(challenge)})
        assert refused["error_code"] == 58
        assert "Cannot change principals" in refused["error_message"]
        assert await one.ended() == "FIN"
        two = await klamm.client(1)
        await log_in(two)
        assert (await two.ask("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"}))["error_code"] == 34
        assert await two.ended() == "FIN"


@on_uvloop
async def test_a_password_that_has_changed_is_proven_on_a_new_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)
    async with guarded(tmp_path) as (klamm, _):
        one = await klamm.client(1)
        await log_in(one)
        write_users(tmp_path, {"alice": "changed"})
        await klamm.logged("users_loaded")
        await one.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        one.send("SaslAuthenticate", 2, {"auth_bytes": plain(password="changed")})
        assert await one.ended() == "FIN"
        assert one.received == b""
        assert (await log_in(await klamm.client(1), plain(password="changed")))["error_code"] == 0


@on_uvloop
async def test_settings_that_have_changed_hold_for_new_clients_and_for_those_that_authenticate_again(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path, ("SCRAM-SHA-256",)) as (klamm, _):
        one, cluster = await klamm.client(1), klamm.proxied
        scram = ScramClient("SCRAM-SHA-256", "alice", PASSWORD)
        challenge = (await log_in(one, scram.first(), "SCRAM-SHA-256"))["auth_bytes"]
        await one.ask("SaslAuthenticate", 2, {"auth_bytes": scram.final(challenge)})
        assert cluster.settings.listen_sasl is not None
        others = replace(cluster.settings.listen_sasl, allow=(Principal("User:bob"),))
        take(prepare(cluster, replace(cluster.settings, listen_sasl=others)))
        assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        for client in (await klamm.client(1), one):
            challenge = (await log_in(client, scram.first(), "SCRAM-SHA-256"))["auth_bytes"]
            refused = await client.ask("SaslAuthenticate", 2, {"auth_bytes": scram.final(challenge)})
            assert "User:alice may not use this cluster" in refused["error_message"]
            assert await client.ended() == "FIN"


@on_uvloop
async def test_a_client_that_does_not_authenticate_again_is_ended_between_two_exchanges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "LATE_S", 0.0)
    async with guarded(tmp_path, max_reauth_s=Seconds(0.3)) as (klamm, broker):
        one = await klamm.client(1)
        await log_in(one)
        waiting = Waiting(broker)
        one.send("Heartbeat", 4, BEAT)
        [link] = await klamm.links(1)
        await eventually(lambda: link.draining is not None)
        waiting.answer()
        assert (await one.answer("Heartbeat", 4))["error_code"] == 0
        assert await one.ended() == "FIN"
        one.close()
        await eventually(lambda: klamm.closed() == {"its SASL session has ended": 1})


@on_uvloop
async def test_any_bytes_on_an_authenticated_connection_reach_the_broker_as_they_did(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (klamm, broker):
        one = await klamm.client(1)
        await log_in(one)
        one.transport.write(request_frame_of("SaslAuthenticate"))
        with contextlib.suppress(AssertionError):
            assert (await one.answer("SaslAuthenticate", 2))["error_code"] == 34
        assert await one.ended() == "FIN"
        assert "SaslAuthenticate" not in served(broker)


def request_frame_of(name: str) -> bytes:
    """A token for which no handshake has come."""
    from klamm.decoders import API, encode

    body = encode({"auth_bytes": b"x"}, API[name].key, 2, "request")
    return request_frame(API[name], 2, 1, "app", body)
