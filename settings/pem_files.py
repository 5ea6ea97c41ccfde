"""PEM files of TLS, read so that each mistake names its file. OpenSSL's own errors name none."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def load_identity(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    """The certificate, with its chain, and its private key; None: it is in the same file. Raises OSError."""
    of_key = key or cert
    try:
        context.load_cert_chain(cert, key, password=lambda: _refuse(of_key))
    except ssl.SSLError as error:
        raise OSError(_why(error, cert, key)) from None
    except OSError as error:
        raise OSError(f"{_both(cert, key)}: {error.strerror}" if error.strerror else str(error)) from None


def _why(error: ssl.SSLError, cert: str, key: str | None) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the private key in {key or cert} is not that of the certificate in {cert}"
    if error.reason:
        return f"{_both(cert, key)}: {error.reason}"
    advice = ": if the key is in a file of its own, name that one as key" if key is None else ""
    return f"no certificate with its private key is in {_both(cert, key)}, in PEM{advice}"


@contextmanager
def authorities_of(ca: str | None) -> Iterator[None]:
    """To load the file of certificates to trust. Raises OSError."""
    try:
        yield
    except ssl.SSLError:
        raise OSError(f"no certificate is in {ca}, in PEM") from None
    except OSError as error:
        raise OSError(f"{ca}: {error.strerror or error}") from None


def _refuse(key: str) -> str:
    """In place of a password, for which OpenSSL would ask on the terminal."""
    advice = f"write it without one, with openssl pkey -in {key} -out FILE"
    raise OSError(f"the private key in {key} is encrypted, and klamm takes no password: {advice}")


def _both(cert: str, key: str | None) -> str:
    return cert if key is None else f"{cert} and {key}"
