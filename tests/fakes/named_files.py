"""Files that klamm.yaml names, each with something of its kind in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from klamm.proxy.sasl.users import credential_of, line_of
from tests.fakes import tls

MECHANISM = "SCRAM-SHA-256"
KEY = {
    "kty": "EC",
    "crv": "P-256",
    "kid": "1",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}


@cache
def identity() -> str:
    """A certificate with its key, as PEM."""
    with TemporaryDirectory() as folder:
        tls.of_days(Path(folder), (-1, 40))
        return (Path(folder) / "broker.pem").read_text()


def make(folder: Path, names: Iterable[str]) -> None:
    """A certificate with its key for NAME.pem, users, a key set for NAME.json; any other has a secret."""
    alice = line_of("alice", MECHANISM, credential_of(MECHANISM, "secret", b"salt" * 4, 4096))
    kinds = {".pem": identity(), ".json": json.dumps({"keys": [KEY]})}
    for name in names:
        content = alice if name == "users" else kinds.get(Path(name).suffix, f"secret-of-{name}")
        (folder / name).write_text(content)
