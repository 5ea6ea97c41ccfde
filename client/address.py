"""The address of klamm's admin API, the TLS to it, and why that fails."""

from __future__ import annotations

import errno
import ssl
from typing import NamedTuple

from klamm.client.failures import Unusable
from klamm.settings.pem_files import authorities_of, load_identity

HTTP, HTTPS = "http", "https"
UNTRUSTED = "name its authority with --admin-ca FILE (KLAMM_ADMIN_CA, in Python ca=)"
OTHER_HOST = "ask a host that is among its names"
PLAIN = "it speaks plain HTTP there: write it without https, and without --admin-ca and --admin-cert"
REFUSED = "klamm refuses the client certificate: it has to be of an authority in admin.tls.ca"
OF_HOST = frozenset({62, 64})  # OpenSSL's codes: the certificate is not for this name, or IP address


class Target(NamedTuple):
    """`at`: host:port. `tls` None: plain HTTP."""

    at: str
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"{HTTP if self.tls is None else HTTPS}://{self.at}"


def target(admin: str, ca: str | None = None, cert: str | None = None, key: str | None = None) -> Target:
    """The klamm at "host:port" or "https://host:port"; the files imply TLS. `ca`: authorities to trust, None:
    those of the system; `cert`: the client's certificate; `key`: its key, None: it is in the same file.
    Raises Unusable.
    """
    scheme, mark, rest = admin.rpartition("://")
    if mark and scheme not in (HTTP, HTTPS):
        raise Unusable(f"{admin!r} is no address of klamm's: write HOST:PORT, or https://HOST:PORT")
    if key is not None and cert is None:
        raise Unusable(
            "a key without a certificate: add --admin-cert FILE (KLAMM_ADMIN_CERT, in Python cert=)"
        )
    at = rest.rstrip("/")
    if scheme == HTTP and (ca or cert):
        raise Unusable(
            f"{admin} is plain HTTP, and --admin-ca and --admin-cert are for TLS: write https://{at}"
        )
    if scheme != HTTPS and not (ca or cert):
        return Target(at)
    try:
        with authorities_of(ca):
            context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            load_identity(context, cert, key)
    except OSError as wrong:
        raise Unusable(str(wrong)) from None
    return Target(at, context)


def why(problem: BaseException) -> str:
    """The reason for people, and for TLS the setting to change."""
    failure = _of_tls(problem)
    if isinstance(failure, ssl.SSLCertVerificationError):
        advice = OTHER_HOST if failure.verify_code in OF_HOST else UNTRUSTED
        return f"its certificate is not accepted ({failure.verify_message}): {advice}"
    if failure is not None and failure.reason is not None:
        if failure.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return PLAIN
        return f"{REFUSED} ({failure.reason})" if "ALERT" in failure.reason else failure.reason
    if getattr(problem, "errno", None) == errno.ECONNREFUSED:
        return "connection refused"  # asyncio has other words, with the address once more
    reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return str(reason).lower()


def _of_tls(problem: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS that is at the bottom of this one. Those of aiohttp are without its reason."""
    while problem is not None:
        if isinstance(problem, ssl.SSLError) and hasattr(problem, "reason"):
            return problem
        problem = problem.__cause__ or problem.__context__
    return None
