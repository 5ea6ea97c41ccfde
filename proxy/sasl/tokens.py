"""JSON web tokens (RFC 7519) of clients, verified with the keys of a JSON web key set (RFC 7517)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from klamm.settings.extras import installing

ALGORITHMS = {  # by the kind of key; none of them is symmetric
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}
LEEWAY_S = 30  # between the clocks, as Kafka's sasl.oauthbearer.clock.skew.seconds
LONGEST = 255  # characters of a user
Verifier = Callable[[str], tuple[str, float]]


class BadToken(ValueError):
    """A token that proves nothing; the text says why, and has nothing of it."""


class Expected(NamedTuple):
    """The claims that a token must have. `claim` is that of the user."""

    issuer: str
    audience: Sequence[str]
    claim: str = "sub"


class Key(NamedTuple):
    """A public key, and the algorithms that it may be used with."""

    key: Any
    algorithms: Sequence[str]


Keys = Mapping[str | None, Key]


def need_library() -> None:
    """Raises OSError, which says how to install it, where PyJWT or cryptography is missing."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise OSError(f"OAUTHBEARER needs PyJWT and cryptography: {installing('oauthbearer')}")


def load_keys(file: str) -> Keys:
    """The keys of a file, by their ids. Raises OSError, whose text says what to change."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise OSError(f"{file}: {error.strerror or error}") from None
    return parse_keys(content, file)


def parse_keys(content: bytes, source: str) -> Keys:
    """Raises OSError, as above."""
    need_library()
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    try:
        written = msgspec.json.decode(content)["keys"]
        if not isinstance(written, list) or not written:
            raise ValueError("`keys` is an empty list")
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        form = 'a JSON web key set is {"keys": [...]}, as the jwks_uri of the issuer gives it'
        raise OSError(f"{source}: no key set ({error}): {form}") from None
    found: dict[str | None, Key] = {}
    for number, each in enumerate(written):
        try:
            if isinstance(each, dict) and each.get("use", "sig") != "sig":
                continue
            name = each.get("kid")
            algorithms = _algorithms(each)
            key = PyJWK(each, algorithm=algorithms[0])
        except (PyJWTError, ValueError, AttributeError, TypeError, KeyError) as error:
            raise OSError(f"{source}: keys[{number}]: {error}") from None
        if name in found:
            raise OSError(f"{source}: keys[{number}]: another key has the same kid")
        found[name] = Key(key.key, algorithms)
    if not found:
        raise OSError(f'{source}: no key in it is for signatures ("use": "sig")')
    return found


def _algorithms(written: Mapping[str, Any]) -> Sequence[str]:
    """Raises ValueError for a key that is not for signatures of others."""
    kind = written.get("crv") if written.get("kty") in ("EC", "OKP") else written.get("kty")
    possible = ALGORITHMS.get(str(kind))
    if possible is None:
        kinds = ", ".join(ALGORITHMS)
        raise ValueError(f"a key of the kind {kind!r}: it takes a public one of {kinds}")
    if "d" in written:
        raise ValueError("a private key: whoever has it can make tokens; leave only its public part here")
    named = written.get("alg")
    if named is not None and named not in possible:
        raise ValueError(f"its alg {named!r} is none of {', '.join(possible)}")
    return possible if named is None else (named,)


class Tokens:
    """Verifies tokens with the keys that `keys` gives now. `missing` is called for one that is not there."""

    def __init__(
        self, keys: Callable[[], Keys], expected: Expected, missing: Callable[[], None] = lambda: None
    ) -> None:
        self.keys, self.expected, self.missing = keys, expected, missing

    def __call__(self, token: str) -> tuple[str, float]:
        """The user of a token, and when it expires (seconds since 1970). Raises BadToken."""
        import jwt

        expected, user = self.expected, None
        try:
            key = self._key_of(jwt.get_unverified_header(token))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=list(expected.audience),
                issuer=expected.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", expected.claim]},
            )
            user = claims[expected.claim]
            until = float(claims["exp"])
        except jwt.PyJWTError as error:
            raise self._bad(error) from None
        except BadToken:
            raise
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise BadToken(f"the token cannot be read ({type(error).__name__})") from None
        if not isinstance(user, str) or not 0 < len(user) <= LONGEST or not user.isprintable():
            raise BadToken(f"its claim {expected.claim} is no name of 1 to {LONGEST} printable characters")
        return user, until

    def _key_of(self, header: Mapping[str, Any]) -> Key:
        keys = self.keys()
        name = header.get("kid")
        if name is None and len(keys) == 1:
            return next(iter(keys.values()))
        if not isinstance(name, str | None) or name not in keys:
            self.missing()
            raise BadToken("it is signed with a key that is not in the key set (kid)")
        return keys[name]

    def _bad(self, error: Exception) -> BadToken:
        """Why, in words of klamm's own: those of the library may have parts of the token."""
        import jwt

        expected = self.expected
        reasons: tuple[tuple[type[Exception], str], ...] = (
            (jwt.ExpiredSignatureError, "it has expired (exp)"),
            (jwt.ImmatureSignatureError, "it is not valid yet (nbf, iat)"),
            (jwt.InvalidIssuerError, f"its issuer (iss) is not {expected.issuer}"),
            (jwt.InvalidAudienceError, f"its audience (aud) is none of {', '.join(expected.audience)}"),
            (jwt.MissingRequiredClaimError, f"one of exp, iss, aud and {expected.claim} is missing"),
            (jwt.InvalidAlgorithmError, "its algorithm (alg) is none of its key's"),
            (jwt.InvalidSignatureError, "its signature is not that of the key"),
        )
        found = (text for kind, text in reasons if isinstance(error, kind))
        return BadToken(next(found, f"it is no valid token ({type(error).__name__})"))
