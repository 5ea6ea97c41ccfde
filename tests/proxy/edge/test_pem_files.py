"""Files of TLS that cannot be used: one line that names the file, and never a question on the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.proxy.edge.accepting.server_tls import Files, server_context
from klamm.proxy.edge.sockets import tls_context

KLAMM = Path(sys.executable).parent / "klamm"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate with its key, the key encrypted too, another key, and files that are none."""
    folder = tmp_path_factory.mktemp("pem")
    make = "req -x509 -newkey rsa:2048 -nodes -days 2 -batch -subj /CN=klamm -keyout"
    for command in (
        f"{make} key.pem -out cert.pem",
        f"{make} other.pem -out unused.pem",
        "pkcs8 -topk8 -in key.pem -out encrypted.pem -passout pass:secret",
        "rsa -aes128 -traditional -in key.pem -out old.pem -passout pass:secret",
        "x509 -in cert.pem -outform DER -out cert.der",
        "req -x509 -newkey rsa:512 -nodes -days 2 -batch -subj /CN=small -keyout small.key -out small.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True, timeout=30)
    (folder / "cert-and-encrypted.pem").write_text(
        (folder / "cert.pem").read_text() + (folder / "encrypted.pem").read_text()
    )
    return folder


CASES = {  # certificate, key, authorities -> the line
    (
        "cert.pem",
        "encrypted.pem",
        None,
    ): r"the private key in \S+/encrypted.pem is encrypted, and klamm takes no "
    r"password: write it without one, with openssl pkey -in \S+/encrypted.pem -out FILE",
    ("cert.pem", "old.pem", None): r"the private key in \S+/old.pem is encrypted, .*",
    ("cert-and-encrypted.pem", None, None): r"the private key in \S+/cert-and-encrypted.pem is encrypted, .*",
    (
        "cert.pem",
        "other.pem",
        None,
    ): r"the private key in \S+/other.pem is not that of the certificate in \S+/cert.pem",
    ("cert.pem", None, None): r"no certificate with its private key is in \S+/cert.pem, in PEM: "
    "if the key is in a file of its own, name that one as key",
    (
        "cert.der",
        "key.pem",
        None,
    ): r"no certificate with its private key is in \S+/cert.der and \S+/key.pem, in PEM",
    ("small.pem", "small.key", None): r"\S+/small.pem and \S+/small.key: EE_KEY_TOO_SMALL",
    ("cert.pem", "gone.pem", None): r"\S+/cert.pem and \S+/gone.pem: No such file or directory",
    ("cert.pem", "key.pem", "key.pem"): r"no certificate is in \S+/key.pem, in PEM",
    ("cert.pem", "key.pem", "gone.pem"): r"\S+/gone.pem: No such file or directory",
}


CONTEXT: dict[str, Callable[[str, str | None, str | None], object]] = {
    "listen_tls": lambda cert, key, ca: server_context(Files(cert, key, ca)),
    "tls": lambda cert, key, ca: tls_context(ca, cert, key, verify=True),
}


@pytest.mark.parametrize("side", CONTEXT)
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(filter(None, case)))
def test_a_file_that_cannot_be_used_is_named(
    pem: Path, side: str, case: tuple[str, str | None, str | None]
) -> None:
    cert, key, ca = (None if name is None else str(pem / name) for name in case)
    assert cert is not None
    with pytest.raises(OSError) as refused:
        CONTEXT[side](cert, key, ca)
    assert re.fullmatch(CASES[case], str(refused.value))


@pytest.mark.parametrize("side", ["listen_tls", "tls"])
def test_klamm_with_an_encrypted_key_ends_with_2_and_one_line_and_asks_nothing(
    pem: Path, side: str, tmp_path: Path
) -> None:
    (tmp_path / "klamm.yaml").write_text(
        "clusters:\n  - bootstrap: 127.0.0.1:1\n    listen: 127.0.0.1:0\n"
        f"    {side}: {{cert: {pem}/cert.pem, key: {pem}/encrypted.pem}}\nadmin: none\nstate: none\n"
    )
    terminal, of_klamm = pty.openpty()
    try:
        done = subprocess.run(
            [KLAMM, "run", "--config", tmp_path / "klamm.yaml"],
            stdin=of_klamm,
            capture_output=True,
            text=True,
            timeout=30,
            start_new_session=True,
            preexec_fn=_take_terminal,
            check=False,
        )
        os.set_blocking(terminal, False)
        with pytest.raises(BlockingIOError):
            os.read(terminal, 1000)
    finally:
        os.close(of_klamm)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        rf"\S+:\d+:\d+: clusters\[0\]\.{side}\.key: the private key in \S+ is encrypted, .*\n"
        "klamm run: 1 mistake, nothing was started\n",
        done.stderr,
    )


def _take_terminal() -> None:
    """Standard input is the terminal that OpenSSL would ask on."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
