"""JSON web tokens and key sets for tests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://issuer.example.com/", "kafka"


class Issuer:
    """Makes tokens; `jwks` is the key set of its one key."""

    def __init__(self, kid: str | None = "one", algorithm: str = "RS256") -> None:
        self.kid, self.algorithm = kid, algorithm
        if algorithm.startswith("ES"):
            self.key: Any = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        else:
            self.key = rsa.generate_private_key(65537, 2048)
            public = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        public.pop("key_ops", None)
        named = {} if kid is None else {"kid": kid}
        self.jwks = json.dumps({"keys": [{**public, **named}]})

    def token(self, user: str = "alice", **claims: Any) -> str:
        """A token that is good for ten minutes; a claim that is None is left out."""
        now = int(time.time())
        told: dict[str, Any] = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600}
        told |= claims
        headers = {} if self.kid is None else {"kid": self.kid}
        payload = {name: value for name, value in told.items() if value is not None}
        return jwt.encode(payload, self.key, self.algorithm, headers)

    def write(self, folder: Path) -> Path:
        """The key set, as a file."""
        file = folder / "jwks.json"
        file.write_text(self.jwks)
        return file
