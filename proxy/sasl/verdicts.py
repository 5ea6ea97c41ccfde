"""The verdict of a mechanism on a client's message."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from klamm.proxy.sasl.users import ScramCredential

WRONG, FORBIDDEN = "wrong_credentials", "not_allowed"


class Failed(NamedTuple):
    """`told` goes to the client, `why` to the log. `user`: as the client has named it, if it has. `outcome`:
    in a word, for metrics.
    """

    told: str
    why: str
    user: str | None = None
    outcome: str = WRONG


class Challenge(NamedTuple):
    """Another message of the client is due; this one goes to it before. `failed`: it tells that the client is
    refused, and many clients send no message any more.
    """

    token: bytes
    failed: Failed | None = None


class KnownPassword(NamedTuple):
    """A keyed hash of a password, and the credential that it was checked against."""

    keyed_hash: bytes
    credential: ScramCredential


class Proven(NamedTuple):
    """The client is this user. `token` is the last message to it. `until`: seconds since 1970 after which
    its token is no longer valid. `password`: that of PLAIN, to be known again.
    """

    user: str
    token: bytes = b""
    until: float | None = None
    password: KnownPassword | None = None


class Check(NamedTuple):
    """The verdict takes long: `work` gives it, in any thread."""

    work: Callable[[], Proven | Failed]


Verdict = Challenge | Proven | Failed | Check
