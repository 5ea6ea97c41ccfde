"""Where the tokens of OAUTHBEARER come from: a program, or an OIDC server that gives them to its clients.

Errors name the program or the server, the answer's code and the setting to change; never a secret, nor the
output of a program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from klamm.proxy import config
from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.cluster.http_failures import untrusted, why
from klamm.proxy.cluster.own_sasl.secret_files import secret_of
from klamm.proxy.edge.sockets import tls_context

LARGEST = 1 << 20  # bytes of an answer
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1
CODE = re.compile(r"[a-z_]{1,40}")  # RFC 6749, 5.2
LONGEST_WORDS = 300  # characters of the server's own words
DRAIN_S = 1.0  # for what a program that was killed has printed
RETRY_S = 0.2  # before the second try; twice as long before each later one
BUSY = (429, 500, 502, 503, 504)  # answers of a server that may answer better soon
ADVICE = {
    "invalid_client": "look at client_id and the client's secret",
    "unauthorized_client": "allow client credentials to this client, there",
    "unsupported_grant_type": "allow client credentials to this client, there",
    "invalid_scope": "look at scope",
}


class Token(NamedTuple):
    """`lifetime_s` None: it does not say when it ends."""

    text: str
    lifetime_s: float | None

    def __repr__(self) -> str:
        return f"Token(lifetime_s={self.lifetime_s})"


Source = Callable[[], Awaitable[Token]]


class Passing(Unanswered):
    """No token this time; to ask again may help."""


async def of_command(sasl: config.Sasl) -> Token:
    """The output of the program: a token, or a JSON object as an OIDC server gives it. Raises Unanswered."""
    program, limit = sasl.token_command[0], sasl.token_timeout_s
    name = f"the program {program} of sasl.token_command"
    pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *sasl.token_command, stdin=none, stdout=pipe, stderr=none, start_new_session=True
        )
    except OSError as error:
        raise Unanswered(f"{name} cannot be started: {error.strerror}") from None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(limit):
            printed = await _read(process.stdout)
            code = await process.wait() if len(printed) <= LARGEST else 0
    except TimeoutError:
        raise Unanswered(f"{name} is not done within {limit:g} s (token_timeout_s)") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            with contextlib.suppress(TimeoutError):  # a pipe is closed at its end only
                async with asyncio.timeout(DRAIN_S):
                    while await process.stdout.read(1 << 16):
                        pass
    if code:
        raise Unanswered(f"{name} ends with exit code {code}: run it by hand, as klamm's user")
    return _token(printed, f"{name} prints")


async def _read(stream: asyncio.StreamReader) -> bytes:
    """All of it, or some more than LARGEST bytes."""
    data = b""
    while len(data) <= LARGEST and (more := await stream.read(1 << 16)):
        data += more
    return data


async def of_server(sasl: config.Sasl) -> Token:
    """Raises Unanswered."""
    url, wait_s = sasl.token_endpoint_url, RETRY_S
    limit = sasl.token_timeout_s
    failed = Passing(f"{url} gives no token within {limit:g} s (token_timeout_s)")
    try:
        async with asyncio.timeout(limit):
            while True:
                try:
                    return await _ask_server(sasl)
                except Passing as error:
                    failed = error
                await asyncio.sleep(wait_s)
                wait_s *= 2
    except TimeoutError:
        raise failed from None


async def _ask_server(sasl: config.Sasl) -> Token:
    url, identity = str(sasl.token_endpoint_url), str(sasl.client_id)
    secret = secret_of(sasl.client_secret_file, sasl.client_secret_env)
    form = {"grant_type": "client_credentials", **({"scope": sasl.scope} if sasl.scope else {})}
    named = f"{quote_plus(identity)}:{quote_plus(secret)}"  # RFC 6749, 2.3.1
    headers = {"Accept": "application/json", "Authorization": f"Basic {b64encode(named.encode()).decode()}"}
    try:
        tls = tls_context(sasl.token_ca, None, None, True) if url.startswith("https:") else True
    except OSError as error:
        raise Unanswered(f"sasl.token_ca cannot be used: {error}") from None
    try:
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.post(url, data=form, ssl=tls, proxy=_proxy_of(url), allow_redirects=False) as answer,
        ):
            status, body = answer.status, await _read(answer.content)  # type: ignore[arg-type]
    except aiohttp.ClientConnectorCertificateError as error:
        raise Unanswered(untrusted(url, error, "sasl.token_ca")) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Passing(f"{url} cannot be reached: {why(error)}") from None
    if status in BUSY:
        raise Passing(f"{url} answers with status {status}")
    if status != 200:
        raise Unanswered(_refused(url, status, body, secret))
    return _token(body, f"{url} gives", strict=True)


def _proxy_of(url: str) -> str | None:
    """As the environment says: HTTPS_PROXY, NO_PROXY. aiohttp itself would read ~/.netrc, too."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def _refused(url: str, status: int, body: bytes, secret: str) -> str:
    """With the server's error code, and its words unless the secret is in them."""
    told = _object(body) or {}
    code, words = str(told.get("error", "")), str(told.get("error_description", ""))
    said = f"{url} answers with status {status}"
    if CODE.fullmatch(code):
        said += f", {code}"
    forms = (secret, quote_plus(secret), b64encode(secret.encode()).decode().rstrip("="))
    if words.isprintable() and not any(form in words for form in forms):
        said += f" ({words[:LONGEST_WORDS]})" if words else ""
    if 300 <= status < 400:
        return f"{said}: it wants klamm elsewhere, set the address of its tokens as token_endpoint_url"
    advice = ADVICE.get(code) or ("look at token_endpoint_url" if status in (404, 405) else "")
    return f"{said}: {advice}" if advice else said


def _token(data: bytes, gives: str, strict: bool = False) -> Token:
    """`strict`: it has to be a JSON object."""
    if len(data) > LARGEST:
        raise Unanswered(f"{gives} more than {LARGEST} bytes, which is no token")
    told = _object(data)
    text: Any = "" if strict else data.decode("latin-1").strip()
    lifetime = None
    if told is not None:
        text, lifetime = told.get("access_token"), told.get("expires_in")
    if not isinstance(text, str) or not TOKEN.fullmatch(text):
        form = "no access_token" if strict or told is not None else "something else than a token"
        raise Unanswered(f"{gives} {form}")
    return Token(text, lifetime_of(text, lifetime))


def lifetime_of(text: str, said: Any = None) -> float | None:
    """The seconds until a token ends: as the server says, else as a JWT does (RFC 7519, 4.1.4)."""
    if isinstance(said, str) and said.isdigit():
        said = int(said)
    if isinstance(said, int | float) and not isinstance(said, bool) and said > 0:
        return float(said)
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = _object(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    ends = (claims or {}).get("exp")
    return max(0.0, ends - time.time()) if isinstance(ends, int | float) else None


def _object(data: bytes) -> dict[str, Any] | None:
    """A JSON object; None for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
