"""klamm's own credentials, as they are for each connection: files, programs and servers may give new ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from klamm.proxy import config
from klamm.proxy.cluster.conversation import Credentials, Unanswered
from klamm.proxy.cluster.own_sasl.kept_token import KeptToken
from klamm.proxy.cluster.own_sasl.secret_files import secret_of
from klamm.proxy.cluster.own_sasl.token_sources import of_command, of_server
from klamm.proxy.log.event_log import EventLog
from klamm.settings.loopback import is_loopback

READABLE = {"PLAIN": "passwords", "OAUTHBEARER": "tokens"}  # by everybody on the way

OWNERS = {"GSSAPI": "the owner of the ticket", "AWS_MSK_IAM": "klamm's identity of AWS"}
Read = Callable[[bool], Awaitable[Credentials]]


def credentials_of(settings: config.Cluster, log: EventLog) -> Read | None:
    """A function for the credentials as they are when it is called; it raises Unanswered. Its argument: they
    are for a session that goes on, so a token that will end soon is of no use. None: klamm has none.
    """
    sasl = settings.sasl
    if sasl is None:
        return None
    if sasl.mechanism in APART:
        return partial(APART[sasl.mechanism], sasl)
    if not sasl.token_command and sasl.token_endpoint_url is None:
        return partial(_read, sasl)

    def failed(error: Unanswered) -> None:
        log.event("token_failed", str(error), "warning", cluster=settings.name, per=settings.name)

    source = of_command if sasl.token_command else of_server
    return partial(_kept, sasl, KeptToken(partial(source, sasl), failed))


def say_open(settings: config.Cluster, log: EventLog) -> None:
    """Warn where everybody who reaches klamm acts with its credentials, or where clients show theirs."""
    sasl, tls = settings.sasl, settings.listen_tls
    if settings.listen_sasl is not None:
        _say_readable(settings, settings.listen_sasl, log)
        return
    if sasl is None or is_loopback(settings.listen.host) or (tls is not None and tls.ca is not None):
        return
    who = sasl.username or sasl.principal or OWNERS.get(sasl.mechanism, "the owner of the token")
    message = (
        f"whoever reaches {settings.listen} acts as {who} with the brokers: ask clients for certificates "
        "(listen_tls.ca) or for SASL (listen_sasl), or listen on a loopback address"
    )
    log.event("open_to_all", message, "warning", cluster=settings.name)


def _say_readable(settings: config.Cluster, clients: config.ListenSasl, log: EventLog) -> None:
    """Warn where passwords or tokens of clients cross a network as they are."""
    sent = [text for name, text in READABLE.items() if name in clients.mechanisms]
    if sent and settings.listen_tls is None and not is_loopback(settings.listen.host):
        message = (
            f"clients send {' and '.join(sent)} to {settings.listen} without TLS, and whoever is on the way "
            "can read them: add listen_tls, or take only SCRAM as listen_sasl.mechanisms"
        )
        log.event("secrets_in_plain_text", message, "warning", cluster=settings.name)


async def _of_aws(sasl: config.Sasl, newer: bool) -> Credentials:
    return Credentials(sasl.mechanism, sasl.aws_profile or "", "", service=sasl.aws_region or "")


async def _of_kerberos(sasl: config.Sasl, newer: bool) -> Credentials:
    return Credentials(sasl.mechanism, sasl.principal or "", sasl.keytab or "", service=sasl.service_name)


async def _read(sasl: config.Sasl, newer: bool) -> Credentials:
    file = sasl.token_file if sasl.mechanism == "OAUTHBEARER" else sasl.password_file
    return _of(sasl, secret_of(file, sasl.password_env))


async def _kept(sasl: config.Sasl, token: KeptToken, newer: bool) -> Credentials:
    return _of(sasl, await token.get(newer))


def _of(sasl: config.Sasl, secret: str) -> Credentials:
    return Credentials(sasl.mechanism, sasl.username or "", secret, tuple(sasl.extensions.items()))


APART = {"GSSAPI": _of_kerberos, "AWS_MSK_IAM": _of_aws}
