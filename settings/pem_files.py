"""PEM files of TLS, read so that each mistake names its file. OpenSSL's own errors name none."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE_KEY = b" PRIVATE KEY-----"  # the end of the line before a key, of any kind


class UnusableKey(OSError):
    """The private key of a certificate cannot be used; the text says why."""


def load_identity(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    """The certificate, with its chain, and its private key; None: it is in the same file. Raises OSError."""
    of_key = key or cert
    try:
        context.load_cert_chain(cert, key, password=lambda: _refuse(of_key))
    except ssl.SSLError as error:
        raise _why(error, cert, key) from None
    except OSError as error:
        if isinstance(error, UnusableKey):
            raise
        raise OSError(f"{_both(cert, key)}: {error.strerror}" if error.strerror else str(error)) from None


def _why(error: ssl.SSLError, cert: str, key: str | None) -> OSError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return UnusableKey(f"the private key in {key or cert} is not that of the certificate in {cert}")
    if error.reason:
        return OSError(f"{_both(cert, key)}: {error.reason}")
    advice = ": if the key is in a file of its own, name that one as key" if key is None else ""
    return OSError(f"no certificate with its private key is in {_both(cert, key)}, in PEM{advice}")


@contextmanager
def authorities_of(ca: str | None) -> Iterator[None]:
    """To load the file of certificates to trust. Raises OSError."""
    try:
        yield
    except ssl.SSLError:
        raise OSError(f"no certificate is in {ca}, in PEM") from None
    except OSError as error:
        raise OSError(f"{ca}: {error.strerror or error}") from None


def authority_fault(ca: str) -> str | None:
    """The reason why this file gives no certificates to trust."""
    try:
        with authorities_of(ca):
            ssl.create_default_context(cafile=ca)
    except OSError as error:
        return str(error)
    return None


def identity_faults(cert: str, key: str | None) -> Iterator[tuple[tuple[str], str]]:
    """The reasons why a certificate and its key cannot be used, each with `cert` or `key`."""
    apart = [] if key is None else list(_apart(cert, key))
    yield from apart
    if apart:
        return
    try:
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), cert, key)
    except OSError as error:
        of_key = key is not None and isinstance(error, UnusableKey)
        yield ("key" if of_key else "cert",), str(error)


def _apart(cert: str, key: str) -> Iterator[tuple[tuple[str], str]]:
    """The reasons that lie in one of two files alone."""
    reason = authority_fault(cert)
    if reason is not None:
        yield ("cert",), reason
    try:
        if PRIVATE_KEY not in Path(key).read_bytes():
            yield ("key",), f"no private key is in {key}, in PEM"
    except OSError as error:
        yield ("key",), f"{key}: {error.strerror}"


def _refuse(key: str) -> str:
    """In place of a password, for which OpenSSL would ask on the terminal."""
    advice = f"write it without one, with openssl pkey -in {key} -out FILE"
    raise UnusableKey(f"the private key in {key} is encrypted, and klamm takes no password: {advice}")


def _both(cert: str, key: str | None) -> str:
    return cert if key is None else f"{cert} and {key}"
