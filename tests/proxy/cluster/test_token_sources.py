"""Tokens of programs and of an OIDC server, and why there are none."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from klamm.proxy import config
from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.own_sasl.token_sources import Token, lifetime_of, of_command, of_server
from klamm.proxy.config_types import InputFile, Seconds, Text, Url
from tests.fakes import tls
from tests.fakes.oidc import Oidc
from tests.fakes.waiting import eventually, on_uvloop

SECRET = "s3cret/+ %:&"
PROGRAM = Text(sys.executable)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def prints(code: str, **more: Any) -> config.Sasl:
    command = (PROGRAM, Text("-c"), Text(code))
    return config.Sasl("OAUTHBEARER", token_command=command, **more)


def server(url: str, folder: Path, secret: str = SECRET, **more: Any) -> config.Sasl:
    (folder / "secret").write_text(secret + "\n")
    file = InputFile(str(folder / "secret"))
    named = {"client_id": Text("kl amm"), "client_secret_file": file, **more}
    return config.Sasl("OAUTHBEARER", token_endpoint_url=Url(url), **named)


def jwt(claims: dict[str, Any]) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def oidc(**more: Any) -> Oidc:
    return Oidc(lambda: "a.b.c", "kl amm", SECRET, **more)


@pytest.mark.parametrize(
    ("printed", "token"),
    [
        ("a.b.c", Token("a.b.c", None)),
        ('{"access_token": "abc", "expires_in": 300}', Token("abc", 300.0)),
        ('{"access_token": "abc", "expires_in": "300"}', Token("abc", 300.0)),
    ],
)
@on_uvloop
async def test_a_program_prints_a_token_or_what_a_server_would_give(printed: str, token: Token) -> None:
    assert await of_command(prints(f"print({printed!r})")) == token


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('oops, no token')", "prints something else than a token"),
        ("print()", "prints something else than a token"),
        ("print('{}')", "prints no access_token"),
        ("import sys; print('hush-hush'); sys.exit('hush-hush')", "ends with exit code 1"),
        ("print('a' * 2_000_000)", "more than 1048576 bytes"),
        ("print('a.b.c\\x01auth=x')", "prints something else than a token"),
    ],
)
@on_uvloop
async def test_a_program_without_a_token_is_explained_and_not_quoted(code: str, says: str) -> None:
    with pytest.raises(Unanswered, match=says) as caught:
        await of_command(prints(code))
    assert PROGRAM in str(caught.value)
    assert not any(word in str(caught.value) for word in ("oops", "hush", "aaa"))


@on_uvloop
async def test_a_program_that_is_not_there_is_named() -> None:
    own = config.Sasl("OAUTHBEARER", token_command=(Text("/nowhere/token"),))
    with pytest.raises(Unanswered, match=r"/nowhere/token .* cannot be started: No such file"):
        await of_command(own)


@on_uvloop
async def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(child.pid))\n"
        "time.sleep(600)"
    )
    with pytest.raises(Unanswered, match=r"is not done within 1\.5 s"):
        await of_command(prints(code, token_timeout_s=Seconds(1.5)))
    child = int(pid.read_text())

    def over() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    await eventually(over)
    assert child != os.getpid()


@on_uvloop
async def test_a_server_gives_a_token_to_who_knows_the_secret(tmp_path: Path) -> None:
    async with oidc(lifetime_s=300).listening() as there:
        own = server(there.url, tmp_path, scope=Text("kafka read"))
        assert await of_server(own) == Token("a.b.c", 300.0)
        assert there.forms == [{"grant_type": "client_credentials", "scope": "kafka read"}]


@on_uvloop
async def test_the_secret_may_be_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    async with oidc().listening() as there:
        more: dict[str, Any] = {"client_secret_file": None, "client_secret_env": Text("OIDC_SECRET")}
        assert (await of_server(server(there.url, tmp_path, **more))).text == "a.b.c"


@on_uvloop
async def test_the_server_is_known_by_its_certificate(tmp_path: Path) -> None:
    async with oidc().listening(tls.make(tmp_path)) as there:
        with pytest.raises(Unanswered, match=r"not trusted .*name its authority with sasl\.token_ca"):
            await of_server(server(there.url, tmp_path))
        ca = InputFile(str(tmp_path / "ca.pem"))
        assert (await of_server(server(there.url, tmp_path, token_ca=ca))).text == "a.b.c"
        (tmp_path / "ca.pem").write_text("nonsense")
        with pytest.raises(Unanswered, match=r"sasl\.token_ca cannot be used"):
            await of_server(server(there.url, tmp_path, token_ca=ca))


def told(status: int, **values: Any) -> Any:
    return lambda: web.json_response(values, status=status)


REFUSALS = {
    "wrong secret": (None, "status 401, invalid_client .no such.: look at client_id and the client's secret"),
    "scope": (told(400, error="invalid_scope"), "status 400, invalid_scope: look at scope"),
    "not allowed": (told(400, error="unauthorized_client"), "allow client credentials to this client"),
    "echo": (told(400, error="invalid_request", error_description=f"got {SECRET}"), "invalid_request$"),
    "wrong path": (lambda: web.Response(status=404, text="<html>"), "status 404: look at token_endpoint_url"),
    "elsewhere": (lambda: web.Response(status=302, headers={"Location": "/x"}), "wants klamm elsewhere"),
    "no token": (told(200, token="x"), "gives no access_token"),
    "a page": (lambda: web.Response(text="abc"), "gives no access_token"),
    "a line": (told(200, access_token="a b\r\nc"), "gives no access_token"),
    "much": (lambda: web.Response(text="a" * 2_000_000), "more than 1048576 bytes"),
}


@pytest.mark.parametrize("case", REFUSALS)
@on_uvloop
async def test_a_server_that_gives_no_token_is_explained_without_the_secret(
    tmp_path: Path, case: str
) -> None:
    answer, says = REFUSALS[case]
    async with oidc().listening() as there:
        there.answers = [answer] if answer else []
        with pytest.raises(Unanswered, match=says) as caught:
            await of_server(server(there.url, tmp_path, "wrong-one" if answer is None else SECRET))
        assert len(there.forms) == 1
        assert there.url in str(caught.value)
        assert SECRET not in str(caught.value)
        assert "wrong-one" not in str(caught.value)


@on_uvloop
async def test_the_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with oidc().listening() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/token"))
        own = server("http://oidc.invalid/token", tmp_path)
        assert (await of_server(own)).text == "a.b.c"
        monkeypatch.setenv("no_proxy", "oidc.invalid")
        with pytest.raises(Unanswered, match="cannot be reached"):
            await of_server(replace(own, token_timeout_s=Seconds(0.5)))


@on_uvloop
async def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    async with oidc().listening() as there:
        there.answers = [told(503), told(429)]
        assert (await of_server(server(there.url, tmp_path))).text == "a.b.c"
        assert len(there.forms) == 3


@on_uvloop
async def test_the_time_for_a_server_has_an_end(tmp_path: Path) -> None:
    short: dict[str, Any] = {"token_timeout_s": Seconds(0.5)}
    async with oidc().listening() as there:
        there.silent = True
        with pytest.raises(Unanswered, match=r"gives no token within 0.5 s \(token_timeout_s\)"):
            await of_server(server(there.url, tmp_path, **short))
    with pytest.raises(Unanswered, match="cannot be reached: Connection refused"):
        await of_server(server(there.url, tmp_path, **short))


@on_uvloop
async def test_a_secret_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    own = server("http://127.0.0.1:1/", tmp_path)
    (tmp_path / "secret").unlink()
    with pytest.raises(Unanswered, match="secret cannot be read: No such file"):
        await of_server(own)


@pytest.mark.parametrize(
    ("text", "said", "between"),
    [
        ("opaque", None, None),
        ("opaque", 60, (60, 60)),
        ("ends in 1000 s", None, (900, 1000)),
        ("ends in 1000 s", 20, (20, 20)),
        (jwt({"exp": 1}), None, (0, 0)),
        (jwt({}), None, None),
        ("a.!.c", None, None),
    ],
)
def test_the_time_of_a_token(text: str, said: Any, between: tuple[float, float] | None) -> None:
    token = jwt({"exp": time.time() + 1000}) if text == "ends in 1000 s" else text
    found = lifetime_of(token, said)
    if between is None:
        assert found is None
    else:
        assert found is not None
        assert between[0] <= found <= between[1]


def test_a_token_is_not_shown() -> None:
    assert "abc" not in repr(Token("abc", 3.0))


@on_uvloop
async def test_many_programs_run_side_by_side() -> None:
    found = await asyncio.gather(*[of_command(prints("print('a.b.c')")) for _ in range(3)])
    assert {token.text for token in found} == {"a.b.c"}
