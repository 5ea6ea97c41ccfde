"""Decrypts TLS with tshark and the secrets that one end wrote down (SSLKEYLOGFILE)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

NOISE = "Running as user"


class Plain(NamedTuple):
    """The plain bytes of the TLS records that end in packet `number`, counted from 1."""

    number: int
    data: bytes


class NotDecrypted(Exception):
    """tshark could not read the file; the text says why."""


def decrypted(path: Path, keys: Path) -> Iterator[Plain]:
    """Gives them in the order of the file's packets. FileNotFoundError without tshark."""
    command = [
        "tshark", "-n", "-r", str(path), "-o", f"tls.keylog_file:{keys}",
        "-o", "tcp.reassemble_out_of_order:TRUE", "-o", "tcp.try_heuristic_first:TRUE",
        "--disable-protocol", "kafka", "-d", "tls.port==1-65535,data",
        "-Y", "tls && data", "-T", "fields", "-e", "frame.number", "-e", "data.data",
    ]  # fmt: skip
    with TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as tshark:
            assert tshark.stdout is not None
            try:
                for line in tshark.stdout:
                    number, _, parts = line.strip().partition("\t")
                    yield Plain(int(number), bytes.fromhex(parts.replace(",", "")))
            except GeneratorExit:
                tshark.terminate()
                raise
        if tshark.returncode:
            errors.seek(0)
            lines = [line.strip() for line in errors if line.strip() and not line.startswith(NOISE)]
            raise NotDecrypted(lines[0] if lines else f"tshark ended with {tshark.returncode}")
