"""The requests of a client up to the end of its authentication: ApiVersions, SaslHandshake, SaslAuthenticate,
and the tokens without headers that follow SaslHandshake v0 (KIP-43, KIP-152). Pure: a frame in, a step out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from klamm.decoders import API, DecodeError, decode, encode
from klamm.decoders.failures import UnknownApi
from klamm.decoders.framing import SIZE
from klamm.decoders.headers import (
    RequestHeader,
    read_request_header,
    request_header_version,
    response_header_version,
    shown_client_id,
)
from klamm.decoders.sasl_tokens import GSSAPI_FIRST
from klamm.proxy.sasl.mechanisms import Mechanism
from klamm.proxy.sasl.realm import Realm
from klamm.proxy.sasl.verdicts import Challenge, Check, Failed, Proven, Verdict
from klamm.proxy.session.rewriting.api_versions import unsupported

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58
MOST_FRAMES = 20  # of a client before it is authenticated: SCRAM takes five
SHOWN = 50  # characters of a mechanism
ADVICE = "set its security.protocol to SASL_PLAINTEXT or, with TLS, to SASL_SSL"


class Answer(NamedTuple):
    """Send it, and go on. `failed`: it refuses the client."""

    data: bytes
    failed: Failed | None = None


class Versions(NamedTuple):
    """Answer ApiVersions in this version. `software`: name and version of the client's, or empty."""

    version: int
    correlation_id: int
    software: tuple[str, str]


class Work(NamedTuple):
    """Let a thread do it, and give the verdict to `checked`."""

    check: Check


class Admit(NamedTuple):
    """Send the data, and let the client go on. Its session ends after so long; 0: never."""

    data: bytes
    proven: Proven
    lifetime_ms: int


class Refuse(NamedTuple):
    """Send the data after a while, and close. `user` and `why` for the log, `outcome` for metrics; of an
    empty `outcome` nothing is counted as an authentication, and an empty `why` has been told already.
    """

    data: bytes
    why: str
    user: str | None = None
    outcome: str = ""


Step = Answer | Versions | Work | Admit | Refuse


class Server:
    """One client. `raw`: tokens have no headers; `failed`: it is refused, and may send a message more. The
    other fields are of the last request.
    """

    def __init__(self, realm: Realm) -> None:
        self.realm = realm
        self.mechanism: Mechanism | None = None
        self.named = ""  # the mechanism, as the client names it
        self.client_id: str | None = None
        self.raw = self.failed = False
        self.version = self.correlation_id = self.frames = 0

    def frame(self, frame: bytes, now: float) -> Step:
        """`frame` is what follows the size; `now`: seconds since 1970."""
        self.frames += 1
        if self.frames > MOST_FRAMES:
            return Refuse(b"", f"{MOST_FRAMES} requests, and it has not authenticated")
        if self.raw:
            return self._token(frame, now)
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        if self.frames == 1 and frame[:1] == bytes([GSSAPI_FIRST]):
            return Refuse(b"", f"it speaks GSSAPI; klamm takes {self._enabled()}")
        due = (SASL_AUTHENTICATE,) if self.mechanism else (API_VERSIONS, SASL_HANDSHAKE)
        if len(frame) < 8 or key not in API:
            return Refuse(b"", f"its bytes are no request of Kafka; {ADVICE}")
        if self.failed and key not in due:
            return Refuse(b"", "")
        if key not in due:
            return Refuse(b"", f"it sends {API[key].name} before it has authenticated: {ADVICE}")
        return self._request(key, version, frame, now)

    def checked(self, verdict: Proven | Failed, now: float) -> Step:
        """The verdict of a `Work`."""
        return self._told(self.realm.judge(verdict), now)

    def versions(self, asked: Versions, body: bytes) -> bytes:
        """The frame of an answer to ApiVersions; its header never has tags (KIP-511)."""
        return SIZE.pack(4 + len(body)) + SIZE.pack(asked.correlation_id) + body

    def _request(self, key: int, version: int, frame: bytes, now: float) -> Step:
        api = API[key]
        if version not in api.versions:
            if key == API_VERSIONS:
                correlation = int.from_bytes(frame[4:8], "big", signed=True)
                return Answer(self.versions(Versions(0, correlation, ("", "")), unsupported()))
            return Refuse(b"", f"it sends {api.name} v{version}, and klamm knows {api.versions}")
        try:
            header = read_request_header(frame, request_header_version(api, version))
            values = decode(frame[header.size :], key, version, "request")
        except (DecodeError, UnknownApi):
            return Refuse(b"", f"its {api.name} v{version} request cannot be read")
        self._note(header)
        if key == API_VERSIONS:
            software = [str(values.get(f"client_software_{part}") or "") for part in ("name", "version")]
            return Versions(version, header.correlation_id, (software[0], software[1]))
        if key == SASL_HANDSHAKE:
            return self._handshake(version, str(values["mechanism"]))
        self.version = version
        return self._token(values["auth_bytes"], now)

    def _note(self, header: RequestHeader) -> None:
        self.correlation_id = header.correlation_id
        self.client_id = shown_client_id(header, self.client_id)

    def _handshake(self, version: int, mechanism: str) -> Step:
        self.named = mechanism[:SHOWN]
        self.mechanism = self.realm.begin(mechanism)
        values = {"error_code": 0, "mechanisms": list(self.realm.mechanisms)}
        if self.mechanism is None:
            refused = self._answer(SASL_HANDSHAKE, version, {**values, "error_code": UNSUPPORTED_MECHANISM})
            why = f"it asks for the mechanism {self.named!r}; klamm takes {self._enabled()}"
            return Refuse(refused, why, None, "unsupported_mechanism")
        self.raw = version == 0
        return Answer(self._answer(SASL_HANDSHAKE, version, values))

    def _token(self, token: bytes, now: float) -> Step:
        assert self.mechanism is not None
        return self._told(self.realm.judge(self.mechanism.answer(token)), now)

    def _told(self, verdict: Verdict, now: float) -> Step:
        """The verdict as a step: a raw token has no place for an error, and tells no lifetime."""
        if isinstance(verdict, Check):
            return Work(verdict)
        if isinstance(verdict, Failed):
            told = b"" if self.raw else self._answer(SASL_AUTHENTICATE, self.version, refusal(verdict))
            return Refuse(told, "") if self.failed else Refuse(told, *verdict[1:])
        lifetime_ms = self.realm.lifetime_ms(verdict, now) if isinstance(verdict, Proven) else 0
        if self.raw:
            data = SIZE.pack(len(verdict.token)) + verdict.token
        else:
            data = self._answer(SASL_AUTHENTICATE, self.version, approval(verdict, lifetime_ms, self.version))
        if isinstance(verdict, Proven):
            return Admit(data, verdict, lifetime_ms)
        self.failed = verdict.failed is not None
        return Answer(data, verdict.failed)

    def _answer(self, key: int, version: int, values: dict[str, Any]) -> bytes:
        tags = b"\0" if response_header_version(API[key], version) else b""
        body = SIZE.pack(self.correlation_id) + tags + encode(values, key, version, "response")
        return SIZE.pack(len(body)) + body

    def _enabled(self) -> str:
        return ", ".join(self.realm.mechanisms)


def refusal(failed: Failed) -> dict[str, Any]:
    """The values of SaslAuthenticate's response."""
    return {"error_code": AUTHENTICATION_FAILED, "error_message": failed.told, "auth_bytes": b""}


def approval(verdict: Challenge | Proven, lifetime_ms: int, version: int) -> dict[str, Any]:
    """The same for a client that goes on; version 0 tells no lifetime."""
    lifetime = {} if version == 0 else {"session_lifetime_ms": lifetime_ms}
    return {"error_code": 0, "error_message": None, "auth_bytes": verdict.token, **lifetime}
