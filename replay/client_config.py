"""Reads a file of Kafka's client properties, which says how to reach the cluster of a replay.

security.protocol   PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
sasl.mechanism      PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
sasl.jaas.config    ... required username="..." password="...";    or sasl.username and sasl.password
ssl.truststore.location, ssl.keystore.location    PEM files        or ssl.ca.location,
                                            ssl.certificate.location and ssl.key.location
ssl.endpoint.identification.algorithm    empty: any name in the broker's certificate will do
"""

from __future__ import annotations

import re
import ssl
from typing import NamedTuple

from klamm.proxy.cluster.conversation import Credentials, Way
from klamm.proxy.edge.sockets import tls_context
from klamm.settings.nearest import suggestion

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
STORES = ("ssl.truststore", "ssl.keystore")
CONNECT_S = 10.0
# key and value may be parted by '=', ':' or blanks
PROPERTY = re.compile(r"((?:\\.|[^\s:=\\])+)[ \t]*[=: \t]?[ \t]*(.*)")
WORD = re.compile(r'\b(username|password)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s;]+))')


class Access(NamedTuple):
    """How to connect to nodes, and as which user."""

    way: Way
    credentials: Credentials | None = None


class WrongProperty(ValueError):
    """The file of properties cannot be used; the text says which one and why."""


def properties(text: str) -> dict[str, str]:
    """Parses the text as java.util.Properties does."""
    found = {}
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*", r"\1", text).splitlines():
        line = line.strip()
        if line and line[0] not in "#!" and (match := PROPERTY.fullmatch(line)):
            found[_plain(match[1])] = _plain(match[2])
    return found


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"t": "\t", "n": "\n"}.get(match[1], match[1]), text)


def access(given: dict[str, str]) -> Access:
    """Raises WrongProperty. What only clients need is not looked at."""
    protocol = _one_of("security.protocol", given.get("security.protocol", "PLAINTEXT").upper(), PROTOCOLS)
    tls = _tls(given) if protocol.endswith("SSL") else None
    return Access(Way(CONNECT_S, tls), _credentials(given) if protocol.startswith("SASL") else None)


def _one_of(key: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise WrongProperty(f"{key}={value}: klamm knows {', '.join(known)}{suggestion(value, known)}")
    return value


def _credentials(given: dict[str, str]) -> Credentials:
    key = "sasl.mechanism" if "sasl.mechanism" in given else "sasl.mechanisms"
    if key not in given:
        raise WrongProperty(f"sasl.mechanism is missing: one of {', '.join(MECHANISMS)}")
    mechanism = _one_of(key, given[key].upper(), MECHANISMS)
    jaas = {word: quoted or bare for word, quoted, bare in WORD.findall(given.get("sasl.jaas.config", ""))}
    username = given.get("sasl.username", _plain(jaas.get("username", "")))
    password = given.get("sasl.password", _plain(jaas.get("password", "")))
    if not username or not password:
        raise WrongProperty(
            "no username and password: in sasl.jaas.config, or sasl.username and sasl.password"
        )
    return Credentials(mechanism, username, password)


def _tls(given: dict[str, str]) -> ssl.SSLContext:
    for store in STORES:
        kind = given.get(f"{store}.type", "PEM").upper()
        if f"{store}.location" in given and kind != "PEM":
            advice = (
                "openssl and keytool turn it into PEM" if kind in ("JKS", "PKCS12") else "klamm reads PEM"
            )
            raise WrongProperty(f"{store}.type={kind}: klamm reads PEM files only; {advice}")
    ca = given.get("ssl.ca.location", given.get("ssl.truststore.location"))
    cert = given.get("ssl.certificate.location", given.get("ssl.keystore.location"))
    key = given.get("ssl.key.location")
    try:
        context = tls_context(ca, cert, key, verify=True)
    except OSError as problem:
        raise WrongProperty(f"the TLS files cannot be used: {problem}") from None
    if given.get("ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    return context
