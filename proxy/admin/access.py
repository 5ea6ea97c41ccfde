"""The callers of the admin API: how they show who they are, and the role that they have for it."""

from __future__ import annotations

import hmac
import os
import ssl
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from klamm.proxy import config
from klamm.proxy.config_types import EVERY_PRINCIPAL, Principal, Role
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.edge.accepting.principal import client_principal
from klamm.settings.followed_files import FollowedFiles

BY_TOKEN = "send Authorization: Bearer TOKEN; klamm's commands take --token-file FILE"
BY_CERTIFICATE = "show a client certificate; klamm's commands take --admin-cert FILE"
UNREADABLE = "the subject of the client certificate cannot be read"


class Caller(NamedTuple):
    """`name`: "token", "read-only token", or a principal; None for a caller who needs to show nothing."""

    role: Role
    name: str | None = None


class Tokens(NamedTuple):
    """The digests of the tokens of each role: those of one length take the same time to compare."""

    full: bytes | None = None
    read_only: bytes | None = None


class Access:
    """Knows the role of a caller. Without tokens and principals everybody may do everything."""

    def __init__(self, tokens: FollowedFiles[Tokens], principals: Mapping[Principal, Role]) -> None:
        self.tokens, self.principals = tokens, principals

    @property
    def needs_credentials(self) -> bool:
        return bool(any(self.tokens.value) or self.principals)

    def caller(self, authorization: str | None, tls: ssl.SSLObject | None) -> Caller:
        """The caller with this header and connection. A token goes before a certificate. Raises Refused."""
        if not self.needs_credentials:
            return Caller("full")
        principal = None
        if authorization is None and self.principals:
            try:
                principal = client_principal(tls)
            except ValueError:
                raise Refused(403, UNREADABLE) from None
        if principal is not None:
            return self._by_principal(principal)
        return self._by_token(authorization or "")

    def _by_principal(self, principal: str) -> Caller:
        role = self.principals.get(Principal(principal)) or self.principals.get(EVERY_PRINCIPAL)
        if role is None:
            raise Refused(403, f"{principal} has no role: klamm's setting admin.principals gives roles")
        return Caller(role, principal)

    def _by_token(self, authorization: str) -> Caller:
        """The same answer, in the same time, for a missing and a wrong token."""
        scheme, _, given = authorization.partition(" ")
        sent = digest(given if scheme.lower() == "bearer" else "")
        tokens = self.tokens.value
        full = hmac.compare_digest(sent, tokens.full or b"")
        read_only = hmac.compare_digest(sent, tokens.read_only or b"")
        if full:
            return Caller("full", "token")
        if read_only:
            return Caller("read_only", "read-only token")
        if not any(tokens):
            raise Refused(401, f"a client certificate is missing: {BY_CERTIFICATE}")
        more = f", or {BY_CERTIFICATE}" if self.principals else ""
        raise Refused(401, f"the token is missing or wrong: {BY_TOKEN}{more}")


def access_of(settings: config.Admin) -> Access:
    """Raises OSError for tokens that cannot be read, with a text for people."""
    files = settings.token_file, settings.read_only_token_file
    make = partial(_tokens, settings)
    return Access(
        FollowedFiles(
            "token", "tokens of the admin API", "callers of the admin API need the tokens of", files, make
        ),
        settings.principals,
    )


def _tokens(settings: config.Admin) -> Tokens:
    """Raises OSError."""
    full = _digest_of(settings.token_file, settings.token_env)
    read_only = _digest_of(settings.read_only_token_file, settings.read_only_token_env)
    if full is not None and full == read_only:
        raise OSError("the token of admin.token_file is that of admin.read_only_token_file: make another one")
    return Tokens(full, read_only)


def _digest_of(file: str | None, variable: str | None) -> bytes | None:
    if file is not None:
        where = f"the token file {file}"
        try:
            token = Path(file).read_text().strip()
        except OSError as error:
            raise OSError(f"{where} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise OSError(f"{where} cannot be read: {error}") from None
    elif variable is not None:
        where = f"the environment variable {variable}"
        token = os.environ.get(variable, "").strip()
    else:
        return None
    if not token:
        raise OSError(f"{where} is empty")
    if not (token.isascii() and token.isprintable()):
        raise OSError(
            f"{where} has no token, which is printable ASCII in one line: openssl rand -hex 32 makes one"
        )
    return digest(token)


def digest(token: str) -> bytes:
    """Of a token, in one length."""
    return sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
