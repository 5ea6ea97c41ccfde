"""TLS of the client and the fake broker. The proxies have the broker's certificate too: RSA of 2048 bits."""

import multiprocessing
import ssl
from ctypes import Array, c_char
from pathlib import Path
from typing import NamedTuple

from tests.brokers import certificates

HOST, NAME = "127.0.0.1", "localhost"
TEXT_BYTES = 80


class Tls(NamedTuple):
    """The folder of the certificates. `upstream`: the broker speaks TLS too."""

    folder: Path
    upstream: bool = True

    @property
    def identity(self) -> Path:
        """The certificate and its key."""
        return self.folder / "broker.pem"

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"


class BrokerTls(NamedTuple):
    """The broker's context, and what its last connection negotiated, in memory that both processes see."""

    context: ssl.SSLContext
    last: "Array[c_char]"


def make(folder: Path, upstream: bool = True) -> Tls:
    """Write the authority and the certificate into `folder`."""
    folder.mkdir(exist_ok=True)
    certificates.make(folder, [HOST, NAME])
    return Tls(folder, upstream)


def of_broker(tls: Tls) -> BrokerTls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.identity)
    return BrokerTls(context, multiprocessing.RawArray(c_char, TEXT_BYTES))


def of_client(tls: Tls) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(tls.authority))


def negotiated(sock: ssl.SSLSocket) -> str:
    """Version and cipher: TLSv1.3 TLS_AES_256_GCM_SHA384."""
    cipher = sock.cipher()
    return f"{sock.version()} {cipher[0] if cipher else 'no cipher'}"
