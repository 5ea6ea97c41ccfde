"""The admin API over TLS: who is let in, with which role, and how mistakes of callers are explained."""

from __future__ import annotations

import asyncio
import socket
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from klamm.client import ApiError, AsyncKlamm, Klamm, NoAnswer, Refused, Unusable
from klamm.proxy.admin.access import access_of
from klamm.proxy.config import Admin, AdminTls
from klamm.proxy.config_types import InputFile, Principal, Role, Text
from klamm.proxy.control import rule_book
from tests.brokers import certificates as certificates_of
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.admin.admin_api import Api, api

RULE = {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}
OTHER_HOST = "certificate is not accepted .*: ask a host that is among its names"
UNTRUSTED = "certificate is not accepted .*: name its authority with --admin-ca FILE"
OPEN = ("/", "/healthz", "/readyz", "/metrics")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """klamm's certificate (broker.pem) and its authority (ca.pem), certificates of callers; and others."""
    folder = tmp_path_factory.mktemp("admin-tls")
    certificates_of.make(folder, ["localhost", "127.0.0.1"])
    for name in ("ops", "viewer", "stranger"):
        certificates_of.of_client(folder, f"/O=Example/CN={name}", name)
    (folder / "other").mkdir()
    certificates_of.make(folder / "other", ["elsewhere.example"], "another authority")
    certificates_of.of_client(folder / "other", "/O=Example/CN=ops", "ops")
    (folder / "token").write_text("all of it\n")
    (folder / "read-only-token").write_text("to look\n")
    return folder


def file(path: Path) -> InputFile:
    return InputFile(str(path))


def settings(folder: Path, **more: Any) -> Admin:
    return Admin(tls=AdminTls(file(folder / "broker.pem")), **more)


def tokens(folder: Path) -> dict[str, Any]:
    return {
        "token_file": file(folder / "token"),
        "read_only_token_file": file(folder / "read-only-token"),
    }


def by_certificate(folder: Path, principals: dict[str, Role], **more: Any) -> Admin:
    tls = AdminTls(file(folder / "broker.pem"), ca=file(folder / "ca.pem"), **more)
    return Admin(tls=tls, principals={Principal(name): role for name, role in principals.items()})


class Caller:
    """A client of either kind, asked in the same way."""

    def __init__(self, kind: str, it: Api, **how: Any) -> None:
        self.kind, self.how = kind, {"admin": it.klamm.admin, **how}

    async def call(self, name: str, *arguments: Any) -> Any:
        if self.kind == "sync":
            return await asyncio.to_thread(lambda: getattr(Klamm(**self.how), name)(*arguments))
        async with AsyncKlamm(**self.how) as klamm:
            return await getattr(klamm, name)(*arguments)


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def behind(found: Admin, folder: Path) -> AsyncIterator[Api]:
    async with api(settings=found, ca=str(folder / "ca.pem")) as it:
        yield it


def ca(folder: Path) -> str:
    return str(folder / "ca.pem")


@on_uvloop
async def test_tokens_give_roles_over_tls(files: Path, kind: str) -> None:
    async with behind(settings(files, **tokens(files)), files) as it:
        full = Caller(kind, it, token="all of it", ca=ca(files), user="ada")
        made = await full.call("add_rule", RULE)
        reader = Caller(kind, it, token="to look", ca=ca(files))
        assert [rule.name for rule in await reader.call("rules")] == [made.name]
        with pytest.raises(Refused, match=r"the read-only token may only read: .*admin.token_file") as no:
            await reader.call("remove_rule", made.name)
        assert no.value.status == 403
        assert made.made_by == "ada (token, 127.0.0.1)"


@on_uvloop
async def test_a_missing_and_a_wrong_token_get_the_same_answer(files: Path) -> None:
    async with behind(settings(files, **tokens(files)), files) as it:
        trusting = ssl.create_default_context(cafile=ca(files))
        answers = set()
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer "},
            {"Authorization": "Basic all of it"},
            {"Authorization": "all of it"},
            {"Authorization": "Bearer all of i"},
            {"Authorization": "Bearer " + "all of it" * 500},
        ):
            async with it.http.get("/v1/rules", headers=headers, ssl=trusting) as answer:
                known = {name: value for name, value in answer.headers.items() if name != "Date"}
                answers.add((answer.status, await answer.text(), str(sorted(known.items()))))
        [(status, text, _)] = answers
        assert status == 401
        assert "the token is missing or wrong: send Authorization: Bearer TOKEN" in text
        assert "all of it" not in text


@on_uvloop
async def test_health_and_metrics_need_no_credentials(files: Path) -> None:
    async with behind(settings(files, **tokens(files)), files) as it:
        trusting = ssl.create_default_context(cafile=ca(files))
        for path in OPEN:
            async with it.http.get(path, ssl=trusting) as answer:
                assert answer.status == 200
        for path in ("/v1/counters", "/v1/openapi.json", "/v1/config"):
            async with it.http.get(path, ssl=trusting) as answer:
                assert answer.status == 401


@on_uvloop
async def test_the_principal_of_a_certificate_gives_a_role(files: Path, kind: str) -> None:
    roles: dict[str, Role] = {"User:CN=ops,O=Example": "full", "User:CN=viewer,O=Example": "read_only"}
    async with behind(by_certificate(files, roles), files) as it:
        ops = Caller(kind, it, ca=ca(files), cert=str(files / "ops.pem"), user="ada")
        made = await ops.call("add_rule", RULE)
        assert made.made_by == "ada (User:CN=ops,O=Example, 127.0.0.1)"
        viewer = Caller(kind, it, ca=ca(files), cert=str(files / "viewer.pem"))
        assert len(await viewer.call("rules")) == 1
        with pytest.raises(Refused, match=r"the User:CN=viewer,O=Example may only read"):
            await viewer.call("rules_off")
        with pytest.raises(Refused, match=r"User:CN=stranger,O=Example has no role: ") as no:
            await Caller(kind, it, ca=ca(files), cert=str(files / "stranger.pem")).call("rules")
        assert no.value.status == 403
        with pytest.raises(Refused, match=r"a client certificate is missing: .*--admin-cert FILE") as no:
            await Caller(kind, it, ca=ca(files)).call("rules")
        assert no.value.status == 401


@on_uvloop
async def test_each_other_principal_has_the_role_of_the_asterisk(files: Path) -> None:
    async with behind(
        by_certificate(files, {"User:CN=ops,O=Example": "full", "*": "read_only"}), files
    ) as it:
        stranger = Caller("sync", it, ca=ca(files), cert=str(files / "stranger.pem"))
        assert await stranger.call("rules") == []
        with pytest.raises(Refused, match=r"may only read"):
            await stranger.call("rules_off")


@on_uvloop
async def test_a_token_goes_before_a_certificate(files: Path) -> None:
    by_both = by_certificate(files, {"*": "read_only"})
    found = Admin(tls=by_both.tls, principals=by_both.principals, token_file=file(files / "token"))
    async with behind(found, files) as it:
        how = {"ca": ca(files), "cert": str(files / "viewer.pem")}
        assert (await Caller("sync", it, token="all of it", **how).call("add_rule", RULE)).name
        with pytest.raises(Refused, match=r"the token is missing or wrong: .* or show a client certificate"):
            await Caller("sync", it, token="to look", **how).call("rules")


@on_uvloop
async def test_a_certificate_of_another_authority_is_refused_and_named(files: Path, kind: str) -> None:
    async with behind(by_certificate(files, {"*": "full"}), files) as it:
        other = Caller(kind, it, ca=ca(files), cert=str(files / "other" / "ops.pem"))
        with pytest.raises(NoAnswer, match=r"refuses the client certificate: .*admin.tls.ca"):
            await other.call("rules")
        await eventually(lambda: it.log.of("admin_tls_failed"))
        assert (
            "the caller's certificate is not of an authority in admin.tls.ca"
            in it.log.of("admin_tls_failed")[0].message
        )


@on_uvloop
async def test_a_caller_that_does_not_trust_klamm_learns_which_setting_to_change(
    files: Path, kind: str
) -> None:
    async with behind(settings(files), files) as it:
        with pytest.raises(NoAnswer, match=UNTRUSTED):
            await Caller(kind, it, ca=str(files / "other" / "ca.pem")).call("rules")
        await eventually(lambda: it.log.of("admin_tls_failed"))
        assert "--admin-ca of klamm's commands" in it.log.of("admin_tls_failed")[0].message


@on_uvloop
async def test_a_certificate_for_another_host_is_explained(files: Path, kind: str) -> None:
    async with behind(settings(files / "other"), files / "other") as it:
        with pytest.raises(NoAnswer, match=OTHER_HOST):
            await Caller(kind, it, ca=str(files / "other" / "ca.pem")).call("rules")


@on_uvloop
async def test_plain_http_to_a_port_with_tls_is_explained_and_the_reverse(files: Path, kind: str) -> None:
    async with behind(settings(files), files) as it:
        at = it.klamm.admin.removeprefix("https://")
        with pytest.raises(Refused, match=r"this port speaks TLS: write https:// before its address") as no:
            await Caller(kind, it, admin=at).call("rules_off")
        assert no.value.status == 400
        await eventually(lambda: it.log.of("admin_without_tls"))
    async with api() as it:
        with pytest.raises(NoAnswer, match=r"it speaks plain HTTP there: write it without https"):
            await Caller(kind, it, admin=f"https://{it.klamm.admin}").call("rules")


@pytest.mark.parametrize("least", ["TLSv1.2", "TLSv1.3"])
@on_uvloop
async def test_older_versions_of_tls_are_refused(files: Path, least: Any) -> None:
    async with behind(by_certificate(files, {"*": "full"}, min_version=least), files) as it:
        at = ("127.0.0.1", int(it.klamm.admin.rpartition(":")[2]))
        for version in (ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            trusting = ssl.create_default_context(cafile=ca(files))
            trusting.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            trusting.set_ciphers("DEFAULT@SECLEVEL=0")
            with warnings.catch_warnings():  # of Python, about TLS 1.1
                warnings.simplefilter("ignore", DeprecationWarning)
                trusting.maximum_version = version
            accepted = version.name.replace("_", ".") >= least

            def meet(trusting: ssl.SSLContext = trusting) -> str | None:
                with (
                    socket.create_connection(at, 10) as plain,
                    trusting.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
                ):
                    return secured.version()

            if accepted:
                assert await asyncio.to_thread(meet) == version.name.replace("_", ".")
            else:
                with pytest.raises(ssl.SSLError):
                    await asyncio.to_thread(meet)
        await eventually(lambda: it.log.of("admin_tls_failed"))
        assert f"klamm takes {least} and newer" in it.log.of("admin_tls_failed")[0].message


@on_uvloop
async def test_new_files_are_for_the_next_connection_and_bad_ones_change_nothing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    for name in ("broker.pem", "token", "read-only-token", "ca.pem"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    async with behind(settings(tmp_path, **tokens(tmp_path)), tmp_path) as it:
        old = Caller("sync", it, token="all of it", ca=ca(tmp_path))
        assert await old.call("rules") == []
        (tmp_path / "token").write_text("the next one\n")
        await eventually(lambda: it.log.of("token_loaded"))
        with pytest.raises(Refused, match=r"the token is missing or wrong"):
            await old.call("rules")
        new = Caller("sync", it, token="the next one", ca=ca(tmp_path))
        assert await new.call("rules") == []
        (tmp_path / "token").write_text("\n")
        await eventually(lambda: it.log.of("token_rejected"))
        assert "is empty" in it.log.of("token_rejected")[0].message
        assert await new.call("rules") == []
        (tmp_path / "broker.pem").write_text("no certificate")
        await eventually(lambda: it.log.of("tls_rejected"))
        assert await new.call("rules") == []
        certificates_of.make(tmp_path, ["127.0.0.1"], "the next authority")
        await eventually(lambda: it.log.of("tls_loaded"))
        assert await Caller("sync", it, token="the next one", ca=ca(tmp_path)).call("rules") == []
        with pytest.raises(NoAnswer, match=r"--admin-ca"):
            await Caller("sync", it, token="the next one", ca=ca(files)).call("rules")
        lines = [str(line) for line in it.log.lines]
        assert not [line for line in lines if "all of it" in line or "the next one" in line]


@on_uvloop
async def test_callers_who_begin_a_handshake_and_do_not_end_it_take_no_place(files: Path) -> None:
    async with behind(settings(files), files) as it:
        at = ("127.0.0.1", int(it.klamm.admin.rpartition(":")[2]))
        silent = [await asyncio.open_connection(*at) for _ in range(5)]
        for _, writer in silent:
            writer.write(b"\x16\x03\x01")
        assert await Caller("sync", it, ca=ca(files)).call("rules") == []
        assert len(it.connections.since) <= 1
        for _, writer in silent:
            writer.close()


@on_uvloop
async def test_a_reader_over_tls_gets_the_live_stream(files: Path) -> None:
    async with behind(settings(files, **tokens(files)), files) as it:
        async with (
            AsyncKlamm(it.klamm.admin, "to look", ca=ca(files)) as klamm,
            klamm.live("api == Heartbeat") as lines,
        ):
            client = await it.edge.client()
            await client.ask("Heartbeat", 4, {"group_id": "g", "member_id": "m"})
            line = await anext(lines)
            assert line.exchange is not None
            assert line.exchange.api == "Heartbeat"
        assert len(it.connections.since) >= 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            {"admin": "ftp://a:1"},
            "'ftp://a:1' is no address of klamm's: write HOST:PORT, or https://HOST:PORT",
        ),
        ({"admin": "http://a:1", "ca": "ca.pem"}, "write https://a:1"),
        ({"key": "a.key"}, "a key without a certificate: add --admin-cert FILE"),
        ({"ca": "missing.pem"}, "missing.pem: No such file"),
        ({"ca": "token"}, "no certificate is in .*token"),
        ({"ca": "ca.pem", "cert": "ca.pem"}, "no certificate with its private key is in .*ca.pem"),
    ],
)
def test_a_mistake_in_what_a_client_is_given_is_explained(
    files: Path, how: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    with pytest.raises(Unusable, match=says) as wrong:
        Klamm(**how)
    assert isinstance(wrong.value, ApiError)


def test_tokens_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", " all of it ")
    found = access_of(Admin(token_env=Text("ADMIN_TOKEN")))
    assert found.caller("Bearer all of it", None).role == "full"
    monkeypatch.setenv("ADMIN_TOKEN", "")
    with pytest.raises(OSError, match=r"the environment variable ADMIN_TOKEN is empty"):
        access_of(Admin(token_env=Text("ADMIN_TOKEN")))


def test_a_token_that_no_header_can_have_is_refused_on_both_sides(tmp_path: Path) -> None:
    for text in ("two\nlines", "T\u00f6ken", "a\x00b"):
        (tmp_path / "token").write_text(text)
        with pytest.raises(OSError, match="printable ASCII in one line: openssl rand -hex 32 makes one"):
            access_of(Admin(token_file=file(tmp_path / "token")))
        for kind in (Klamm, AsyncKlamm):
            with pytest.raises(Unusable, match="the token is not printable ASCII in one line"):
                kind("127.0.0.1:1", text)


def test_tokens_of_any_length_are_compared_by_digests(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def equal(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("hmac.compare_digest", equal)
    found = access_of(Admin(**tokens(files)))
    for sent in ("", "all of i", "to look", "all of it", "x" * 5000):
        with suppress(rule_book.Refused):
            found.caller(f"Bearer {sent}", None)
    assert len(compared) == 10  # both, whichever it is
    assert {len(each) for pair in compared for each in pair} == {32}


def test_one_token_does_not_stand_for_two_roles(files: Path) -> None:
    same = file(files / "token")
    with pytest.raises(OSError, match=r"is that of admin"):
        access_of(Admin(token_file=same, read_only_token_file=same))
