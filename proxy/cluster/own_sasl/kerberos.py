"""GSSAPI, SASL with Kerberos (RFC 4752), with python-gssapi and the system's libraries."""

from __future__ import annotations

import struct
from collections.abc import Generator
from hashlib import sha256
from typing import Any

from klamm.proxy.cluster.conversation import Credentials, Unanswered
from klamm.settings.extras import installing

NO_LAYER = 1  # of the security layers: authentication only, as Kafka's brokers have it
TICKET = "name a keytab as clusters[].sasl.keytab, or get a ticket with kinit (KRB5CCNAME)"
KEYTAB = "look at clusters[].sasl.keytab and principal"
ADVICE = {  # words of the libraries -> what to change
    "not found in Kerberos database": "look at service_name, and at the name that the broker advertises",
    "Cannot contact any KDC": "look at kdc in /etc/krb5.conf (KRB5_CONFIG)",
    "Cannot find KDC": "look at [realms] in /etc/krb5.conf (KRB5_CONFIG)",
    "Clock skew": "set the clock of this machine",
    "No Kerberos credentials available": TICKET,
    "Can't find client principal": TICKET,
    "No credentials cache found": f"the keytab has no key of the principal: {KEYTAB}",
    "Malformed representation": "write clusters[].sasl.principal as klamm@EXAMPLE.COM",
    "Decrypt integrity check failed": f"the key is not that of the principal now: {KEYTAB}",
    "Preauthentication failed": f"the key is not that of the principal now: {KEYTAB}",
    "entry in database has expired": "the KDC takes this principal no more",
    "Ticket expired": TICKET,
}


def kerberos(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Each step may wait for the KDC. Raises Unanswered."""
    try:
        import gssapi
        from gssapi.raw.misc import GSSError
    except ImportError as error:
        raise Unanswered(f"GSSAPI needs python-gssapi: {installing('gssapi')} ({error})") from None
    service = f"{credentials.service}@{credentials.host}"
    try:
        yield from _exchange(gssapi, credentials, service)
    except GSSError as error:
        raise Unanswered(f"no ticket for {service.replace('@', '/')}: {_why(error)}") from None


def _exchange(gssapi: Any, credentials: Credentials, service: str) -> Generator[bytes, bytes, None]:
    target = gssapi.Name(service, gssapi.NameType.hostbased_service)
    context = gssapi.SecurityContext(
        name=target,
        creds=_credentials(gssapi, credentials),
        mech=gssapi.MechType.kerberos,
        usage="initiate",
        flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity],
    )
    token = context.step()
    while not context.complete:
        token = context.step((yield token or b""))
    offered = context.unwrap((yield token or b"")).message
    if len(offered) != 4 or not offered[0] & NO_LAYER:
        raise ValueError("it wants a security layer of SASL, which Kafka has none of")
    yield context.wrap(struct.pack(">I", NO_LAYER << 24), False).message


def _credentials(gssapi: Any, credentials: Credentials) -> Any:
    """Of the keytab, with a cache in memory that the libraries renew; None: the ticket of the environment."""
    principal, keytab = credentials.username, credentials.secret
    kind = gssapi.NameType.kerberos_principal
    named = gssapi.Name(principal, kind) if principal else None
    if not keytab:
        return gssapi.Credentials(name=named, usage="initiate") if named is not None else None
    cache = sha256(f"{principal}\0{keytab}".encode()).hexdigest()[:16]
    store = {"client_keytab": keytab, "ccache": f"MEMORY:klamm-{cache}"}
    return gssapi.Credentials(name=named, usage="initiate", store=store)


def _why(error: Any) -> str:
    """The libraries' own words, the more special ones where there are some, and what to change."""
    words = [*error.get_all_statuses(error.min_code, False)] if error.min_code else []
    words = [word for word in words if word] or [str(error)]
    said = "; ".join(words).rstrip(".")
    advice = next((advice for part, advice in ADVICE.items() if part in said), "")
    return f"{said}: {advice}" if advice else said
