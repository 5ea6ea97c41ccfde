"""SASL of the clients of one cluster with klamm: its settings, and what becomes of each authentication."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

from klamm.proxy import config
from klamm.proxy.cluster.fetched_keys import FetchedKeys, refresh
from klamm.proxy.cluster.leading import Leading
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.offers import Offers
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.control.audit.auditing import Auditing
from klamm.proxy.control.audit.logins import Logins
from klamm.proxy.control.following import follow
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.hashing import Hashing
from klamm.proxy.edge.accepting.login import Doorkeeper, Gate
from klamm.proxy.edge.ends import ClientEnd
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.sasl.realm import Realm, principal_of
from klamm.proxy.sasl.server import Admit, Refuse, Server, Versions
from klamm.proxy.sasl.tokens import Expected, Keys, Tokens, load_keys
from klamm.proxy.sasl.users import Users, load_users
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import NodeKey, Topology
from klamm.rules.glob import Glob
from klamm.settings.followed_files import FollowedFiles

SUCCESS = "success"
NOBODY = Users()


class ClientSasl:
    """`users` and `keys` are followed files, None where no mechanism needs them; `fetched`: keys of a URL."""

    def __init__(self, settings: config.ListenSasl) -> None:
        """Raises OSError on files that cannot be used."""
        self.settings = settings
        self.users: FollowedFiles[Users] | None = None
        self.keys: FollowedFiles[Keys] | None = None
        self.fetched: FetchedKeys | None = None
        verify = None
        expected = Expected(settings.issuer or "", settings.audience, settings.claim)
        if settings.users is not None:
            file = str(settings.users)
            self.users = FollowedFiles(
                "users", "users", "clients authenticate with", [file], partial(load_users, file)
            )
        if settings.jwks is not None:
            file = str(settings.jwks)
            self.keys = FollowedFiles(
                "jwks", "keys of tokens", "tokens are verified with", [file], partial(load_keys, file)
            )
            verify = Tokens(partial(_value, self.keys), expected)
        if settings.jwks_url is not None:
            self.fetched = FetchedKeys(settings.jwks_url, settings.jwks_ca)
            verify = Tokens(partial(_value, self.fetched), expected, self.fetched.missing)
        self.realm = Realm(
            settings.mechanisms,
            lambda: NOBODY if self.users is None else self.users.value,
            verify,
            Glob(*settings.allow) if settings.allow else lambda principal: True,
            settings.max_reauth_s,
            secrets.token_bytes(32),
            partial(secrets.token_urlsafe, 24),
        )


def _value(keys: FollowedFiles[Keys] | FetchedKeys) -> Keys:
    return keys.value


class UnusableFiles(OSError):
    """Files of listen_sasl that cannot be used; the text says why."""


def sasl_of(settings: config.ListenSasl | None) -> ClientSasl | None:
    """Raises UnusableFiles."""
    try:
        return None if settings is None else ClientSasl(settings)
    except OSError as error:
        raise UnusableFiles(str(error)) from None


class Host(Protocol):
    """The parts of a cluster that it needs."""

    settings: config.Cluster
    stats: Stats
    log: EventLog
    topology: Topology
    dialler: Dialler
    leading: Leading
    problems: Problems
    auditing: Auditing | None
    upstream_tls: FollowedTls | None
    tls: FollowedTls | None
    sasl: ClientSasl | None


def followed(host: Host) -> tuple[FollowedFiles[Any] | None, ...]:
    """All files that a cluster follows."""
    of_sasl = () if host.sasl is None else (host.sasl.users, host.sasl.keys)
    return host.tls, host.upstream_tls, *of_sasl


async def follow_all(host: Host) -> None:
    """Follow the files of a cluster, and the keys of a URL, until cancelled."""
    cluster = host.settings.name
    await asyncio.gather(
        follow(lambda: followed(host), host.log, cluster),
        refresh(lambda: None if host.sasl is None else host.sasl.fetched, host.log, cluster),
    )


class Doors:
    """The ways in of the clients of one cluster. `logins` are those of the process."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.offers = Offers(host.topology, host.dialler, host.leading.candidates)
        self.logins: Logins | None = None
        self.hashing = Hashing()

    def gate(self, sasl: ClientSasl, target: NodeKey | None, came: Arrival, make: Callable[[], Link]) -> Gate:
        """The protocol of a client that connects. `make` gives its link once it has authenticated."""
        host, software = self.host, ""

        async def versions(asked: Versions) -> bytes:
            nonlocal software
            if any(asked.software):
                software = host.stats.client_software(host.settings.name, *asked.software)
            return await self.offers.body(target, asked.version, host.settings.allow_unknown_apis)

        def admit(gate: Gate, step: Admit) -> ClientEnd:
            link = make()
            link.principal, link.software = principal_of(step.proven.user), software
            self._count(gate, SUCCESS)
            self._audit(gate, target, step.proven.user, SUCCESS)
            return link.client

        def begun(gate: Gate, step: Admit, end: ClientEnd) -> None:
            if self.logins is not None and not end.gone:
                self.logins.begin(
                    cast(Link, end.link), lambda: self._now(sasl).realm, gate.server.named, step
                )

        def refused(gate: Gate, step: Refuse) -> None:
            named = f" as {step.user}" if step.user else ""
            with_ = f" with {gate.server.named}" if gate.server.named else ""
            message = f"the client cannot authenticate{with_}{named}: {step.why}"
            host.problems.refused(target, came.client, "client_sasl_failed", message)
            if step.outcome:
                self._count(gate, step.outcome)
                self._audit(gate, target, step.user, step.outcome)

        server = partial(Server, sasl.realm)
        keeper = Doorkeeper(server, versions, admit, begun, refused, self.hashing)  # type: ignore[arg-type]
        return Gate(keeper, came)

    async def stop(self) -> None:
        await self.offers.stop()

    def _now(self, before: ClientSasl) -> ClientSasl:
        """As the settings are now: a reload may have changed them."""
        return self.host.sasl or before

    def _count(self, gate: Gate, outcome: str) -> None:
        named = gate.server.named
        known = named if named in gate.server.realm.mechanisms else "other"
        self.host.stats.logins[self.host.settings.name, known, outcome] += 1

    def _audit(self, gate: Gate, target: NodeKey | None, user: str | None, outcome: str) -> None:
        auditing, server = self.host.auditing, gate.server
        if auditing is not None:
            client = str(Address(*gate.came.client)), server.client_id
            auditing.login(self.host.settings.name, target, *client, server.named, user, outcome)
