"""Finds what is missing, twice there or of no use in the settings of SASL, of both sides."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from klamm.proxy.config import ListenSasl, Sasl
from klamm.settings.extras import installing
from klamm.settings.mistakes import Path
from klamm.settings.typed_yaml import BROKEN

PASSWORD = ("password_file", "password_env")
TOKEN = ("token_file", "token_command", "token_endpoint_url")
SECRET = ("client_secret_file", "client_secret_env")
OF_SERVER = ("client_id", *SECRET, "scope", "token_ca")
OF_TOKENS = (*TOKEN, *OF_SERVER, "extensions")
OF_KERBEROS = ("principal", "keytab")
OF_AWS = ("aws_profile", "aws_region")
LIBRARIES = {"GSSAPI": ("gssapi", "python-gssapi", "gssapi"), "AWS_MSK_IAM": ("botocore", "botocore", "aws")}


def sasl_faults(sasl: Sasl) -> Iterator[tuple[Path, str]]:
    """Paths below `sasl`, and reasons. Values that could not be read count as written; without a mechanism
    nothing is known of them.
    """
    if sasl.mechanism is BROKEN:
        return
    for mechanism, keys in (("GSSAPI", OF_KERBEROS), ("AWS_MSK_IAM", OF_AWS)):
        if sasl.mechanism != mechanism:
            yield from _useless(sasl, keys, f"is of {mechanism}, and the mechanism is {sasl.mechanism}")
    if sasl.mechanism in LIBRARIES:
        module, library, extra = LIBRARIES[sasl.mechanism]
        others = ("username", *PASSWORD, *OF_TOKENS)
        yield from _useless(sasl, others, f"means nothing with {sasl.mechanism}")
        if find_spec(module) is None:
            yield ("mechanism",), f"{sasl.mechanism} needs {library}: {installing(extra)}"
        if sasl.keytab and not sasl.principal:
            yield ("principal",), "whose key of the keytab? add principal, such as klamm@EXAMPLE.COM"
        return
    if sasl.mechanism == "OAUTHBEARER":
        yield from _one_of(sasl, TOKEN, "OAUTHBEARER needs a token")
        yield from _useless(sasl, PASSWORD, "OAUTHBEARER sends a token and no password")
        yield from _server_faults(sasl)
        command = sasl.token_command
        if isinstance(command, tuple) and len(command) == 1 and " " in str(command[0]):
            words = ", ".join(str(command[0]).split())
            yield ("token_command",), f"no shell reads it: write the program and its arguments as [{words}]"
        return
    if sasl.username is None:
        yield ("username",), f"{sasl.mechanism} needs a user: add username"
    yield from _one_of(sasl, PASSWORD, f"{sasl.mechanism} needs a password")
    yield from _useless(sasl, OF_TOKENS, f"is of OAUTHBEARER, and the mechanism is {sasl.mechanism}")


def _server_faults(sasl: Sasl) -> Iterator[tuple[Path, str]]:
    if not sasl.token_endpoint_url:
        yield from _useless(sasl, OF_SERVER, "means nothing without token_endpoint_url")
        return
    if sasl.client_id is None:
        yield ("client_id",), "the server of token_endpoint_url has to know who asks: add client_id"
    yield from _one_of(sasl, SECRET, "the server of token_endpoint_url asks for a secret")


def _one_of(sasl: Sasl, keys: tuple[str, ...], needs: str) -> Iterator[tuple[Path, str]]:
    there = [key for key in keys if getattr(sasl, key)]
    choice = f"{', '.join(keys[:-1])} or {keys[-1]}"
    if not there:
        yield (keys[0],), f"{needs}: add {choice}"
    elif len(there) > 1:
        yield (there[1],), f"{needs}, from one place: leave out {' or '.join(there)}"


def _useless(sasl: Sasl, keys: tuple[str, ...], why: str) -> Iterator[tuple[Path, str]]:
    for key in keys:
        if getattr(sasl, key):
            yield (key,), f"{why}: take it out"


def listen_sasl_faults(sasl: ListenSasl) -> Iterator[tuple[Path, str]]:
    """The same of the clients' SASL."""
    if not isinstance(sasl.mechanisms, tuple) or BROKEN in sasl.mechanisms:
        return
    if not sasl.mechanisms:
        yield ("mechanisms",), "names no mechanism: name those that clients may use, such as SCRAM-SHA-512"
    token = "OAUTHBEARER" in sasl.mechanisms
    of_users = [each for each in sasl.mechanisms if each != "OAUTHBEARER"]
    if of_users and sasl.users is None:
        yield ("users",), f"{of_users[0]} needs users: add users, a file that klamm users makes"
    if not of_users and sasl.mechanisms and sasl.users is not None:
        yield ("users",), "OAUTHBEARER has no users of a file: take it out, or add SCRAM-SHA-512"
    if token and (sasl.jwks is None) == (sasl.jwks_url is None):
        yield ("jwks",), "OAUTHBEARER needs the keys of the tokens' issuer: add jwks or jwks_url, one of them"
    if sasl.jwks_ca is not None and sasl.jwks_url is None:
        yield ("jwks_ca",), "is for jwks_url, which is not there"
    for key, purpose in (
        ("jwks", ""),
        ("jwks_url", ""),
        ("issuer", "the tokens' iss"),
        ("audience", "a name that stands in the tokens' aud, which other services do not take"),
    ):
        value = getattr(sasl, key)
        if token and purpose and (value is None or value == ()):
            yield (key,), f"OAUTHBEARER needs {purpose}: add {key}"
        if not token and sasl.mechanisms and value not in (None, (), BROKEN):
            yield (key,), "is for OAUTHBEARER, which is none of the mechanisms"
