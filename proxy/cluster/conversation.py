"""klamm's own connections to nodes: one request at a time."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from klamm.decoders import API, encode
from klamm.decoders.body import decode_prefix, decode_so_far
from klamm.decoders.framing import tls_or_size
from klamm.decoders.headers import (
    read_response_header,
    refuses_version,
    request_frame,
    response_header_version,
)
from klamm.proxy.cluster.patience import within
from klamm.proxy.config_types import Address

API_VERSIONS = 18
CLIENT_ID = "klamm"
SOFTWARE = {"client_software_name": "klamm", "client_software_version": "0.1.0"}
UNDIALLED = (OSError, ValueError, OverflowError)  # the latter for hosts and ports that are nonsense
CLOSED = (ConnectionError, asyncio.IncompleteReadError)
OTHER_NAME = (62, 64)  # OpenSSL: the certificate is for another host, or address
OUT_OF_TIME = (9, 10)  # OpenSSL: the certificate is not valid yet, or has expired
LARGE = 64 * 1024  # bytes of an answer that is read in another thread: some thousand nodes
ANSWER_LIMIT = 64 * 1024 * 1024


class Unanswered(OSError):
    """A node gave no usable answer; the text says why, and which option may help."""


class Silent(Unanswered):
    """A node accepts connections, but does not answer."""


class Credentials(NamedTuple):
    """For SASL. `secret`: a password, the token of OAUTHBEARER, with which extensions go (KIP-342), or the
    keytab of Kerberos. `service`: the brokers' name there, or the region of AWS, where `username` is the
    profile. `host`: that the broker advertises.
    """

    mechanism: str
    username: str
    secret: str
    extensions: tuple[tuple[str, str], ...] = ()
    service: str = ""
    host: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism!r}, {self.username!r})"


class Way(NamedTuple):
    """Settings of klamm's connections to nodes. `credentials` is called for each connection, since they may
    have changed, and with True for one that goes on; it raises Unanswered. None: klamm has no credentials.
    `api_versions`: the newest version of ApiVersions that nodes are asked with.
    """

    timeout_s: float
    tls: ssl.SSLContext | None = None
    server_name: str | None = None  # in the certificate; None: the host that is dialled
    credentials: Callable[[bool], Awaitable[Credentials]] | None = None
    api_versions: int = 3

    def name_of(self, host: str) -> str | None:
        return (self.server_name or host) if self.tls else None


class Conversation:
    """One connection to one node, one request at a time. `name`: the host that the node advertises, which
    klamm may reach elsewhere.
    """

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter | asyncio.WriteTransport,
        name: str | None = None,
    ) -> None:
        self.address, self.reader, self.writer = address, reader, writer
        self.name = address.host if name is None else name
        self.correlation_id = 0

    async def ask(self, key: int, version: int, values: dict[str, Any]) -> dict[str, Any]:
        """Gives the answer; an empty one if the node does not know this version of ApiVersions, whose answer
        is read as far as it decodes.

        Raises Unanswered, ConnectionError, IncompleteReadError, DecodeError.
        """
        body = await self.exchange(key, version, encode(values, key, version, "request"))
        if key == API_VERSIONS and refuses_version(body):
            return {}
        if len(body) > LARGE:
            return await asyncio.to_thread(_values, body, key, version)
        return _values(body, key, version)

    async def exchange(self, key: int, version: int, body: bytes) -> bytes:
        """The body of the answer to a request with this body; neither is looked at. Raises as `ask` does."""
        self.correlation_id += 1
        api = API[key]
        self.writer.write(request_frame(api, version, self.correlation_id, CLIENT_ID, body))
        size = int.from_bytes(await self.reader.readexactly(4), "big", signed=True)
        wrong = tls_or_size(size, "broker", ANSWER_LIMIT)
        if wrong is not None:
            raise Unanswered(f"{self.address}: {wrong[1]}")
        frame = await self.reader.readexactly(size)
        header = read_response_header(frame, response_header_version(api, version))
        if header.correlation_id != self.correlation_id:
            raise Unanswered(f"{self.address} answers what was not asked: is it Kafka?")
        return frame[header.size :]

    async def ended(self) -> None:
        """Wait until the node ends the connection. What it sends is dropped."""
        with suppress(OSError):
            while await self.reader.read(LARGE):
                pass

    def close(self) -> None:
        self.writer.close()


def _values(body: bytes, key: int, version: int) -> dict[str, Any]:
    if key == API_VERSIONS:
        return decode_so_far(body, key, version, "response")
    return decode_prefix(body, key, version, "response")[0]


async def converse(address: Address, way: Way, name: str | None = None) -> Conversation:
    """Connect. Raises Unanswered, whose text says what happened and where."""
    try:
        dial = asyncio.open_connection(*address, ssl=way.tls, server_hostname=way.name_of(address.host))
        streams = await within(way.timeout_s, dial, lambda late: late[1].close())
    except UNDIALLED as error:
        raise Unanswered(why_unreachable(address, error, way)) from error
    return Conversation(address, *streams, name)


def why_unreachable(address: Address, error: Exception, way: Way) -> str:
    """One line: what happened, where, and the option that may help."""
    elsewhere = f"if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
    plain = "start klamm without --upstream-tls (clusters[].tls) if it is a plain port"
    match error:
        case ssl.SSLCertVerificationError():
            why = error.verify_message or error.reason
            if error.verify_code in OTHER_NAME:
                return f"{address}: {why} Set the name in it as clusters[].tls.server_name in klamm.yaml"
            if "mismatch" in str(why).lower():
                return f"{address}: {why}: name what it is for with clusters[].tls.server_name in klamm.yaml"
            if error.verify_code in OUT_OF_TIME:
                return (
                    f"{address}: {why}: the broker needs another one, or klamm's machine has the wrong time"
                )
            untrusted = f"{address}: its certificate is not trusted ({why})"
            return f"{untrusted}: name the authority with --upstream-ca (clusters[].tls.ca)"
        case ssl.SSLError():
            return f"{address} does not speak TLS as klamm does ({error.reason}): {plain}"
        case TimeoutError():
            asked = f"{address} does not answer within {way.timeout_s:g} s: {elsewhere}"
            return f"{asked}, or {plain}" if way.tls else asked
        case ConnectionRefusedError():
            return f"{address} refuses connections"
        case ConnectionError() if way.tls:
            return f"{address} ends the TLS handshake: {plain}"
        case ConnectionError():
            return f"{address}: {error or type(error).__name__}"
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return f"{address} is not dialled, klamm has too many open files: raise the limit (ulimit -n)"
        case OSError():
            return f"{address} cannot be reached ({error.strerror or error}): {elsewhere}"
    return f"{address} is no address ({error}): {elsewhere}"
