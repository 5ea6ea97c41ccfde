"""Loads the files that settings name, as the start does, and finds those that cannot be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from klamm.proxy.admin.access import access_of
from klamm.proxy.cluster.own_sasl.secret_files import secret_of
from klamm.proxy.config import Admin, Cluster, Config, ListenSasl, ListenTls, Rules, Sasl, Tls, Traces
from klamm.proxy.config_types import Text
from klamm.proxy.sasl.tokens import load_keys, need_library
from klamm.proxy.sasl.users import load_users
from klamm.proxy.traces.tracing import exporter_for
from klamm.rules.file.rule_file import RuleFile, load
from klamm.settings.mistakes import Path
from klamm.settings.pem_files import authority_fault, identity_faults
from klamm.settings.typed_yaml import BROKEN

SECRETS = ("password", "token", "client_secret")  # of klamm's own credentials: each in a file or a variable
Fault = tuple[Path, str]


def file_faults(config: Config) -> Iterator[Fault]:
    """Paths of the settings that name files or variables of the environment which cannot be used, and the
    reasons. Files that could not be read (BROKEN) are left out.
    """
    clusters = config.clusters if isinstance(config.clusters, tuple) else ()
    for index, cluster in enumerate(clusters):
        if isinstance(cluster, Cluster):
            yield from _below(("clusters", index), _cluster_faults(cluster))
    if isinstance(config.admin, Admin):
        yield from _below(("admin", "tls"), _tls_faults(config.admin.tls))
        yield from _below(("admin",), _token_faults(config.admin))
    if isinstance(config.traces, Traces):
        yield from _failing(("traces",), _try_exporter, config.traces)


def rule_file(rules: Rules | None) -> RuleFile | None:
    """The rules of these settings, with their mistakes. None where there are none, or no file to read."""
    if not isinstance(rules, Rules) or not isinstance(rules.file, str) or BROKEN in rules.plugins:
        return None
    return load(rules.file, rules.plugins, time.time_ns())


def _below(path: Path, faults: Iterator[Fault]) -> Iterator[Fault]:
    return ((path + key, reason) for key, reason in faults)


def _cluster_faults(cluster: Cluster) -> Iterator[Fault]:
    yield from _below(("tls",), _tls_faults(cluster.tls))
    yield from _below(("listen_tls",), _tls_faults(cluster.listen_tls))
    if isinstance(cluster.sasl, Sasl):
        yield from _below(("sasl",), _secret_faults(cluster.sasl))
    if isinstance(cluster.listen_sasl, ListenSasl):
        yield from _below(("listen_sasl",), _listen_sasl_faults(cluster.listen_sasl))


def _tls_faults(tls: Tls | ListenTls | None) -> Iterator[Fault]:
    if not isinstance(tls, Tls | ListenTls):
        return
    if isinstance(tls.cert, str):
        known = tls.key is not BROKEN
        yield from identity_faults(tls.cert, tls.key) if known else _authority_faults("cert", tls.cert)
    yield from _authority_faults("ca", tls.ca)


def _authority_faults(key: str, file: str | None) -> Iterator[Fault]:
    reason = authority_fault(file) if isinstance(file, str) else None
    if reason is not None:
        yield (key,), reason


def _secret_faults(sasl: Sasl) -> Iterator[Fault]:
    for secret in SECRETS:
        file, variable = f"{secret}_file", f"{secret}_env"
        if isinstance(getattr(sasl, file), str):
            yield from _failing((file,), secret_of, getattr(sasl, file), None)
        if isinstance(getattr(sasl, variable, None), str):
            yield from _failing((variable,), secret_of, None, Text(getattr(sasl, variable)))
    yield from _authority_faults("token_ca", sasl.token_ca)


def _listen_sasl_faults(sasl: ListenSasl) -> Iterator[Fault]:
    if isinstance(sasl.users, str):
        yield from _failing(("users",), load_users, sasl.users)
    if isinstance(sasl.jwks, str):
        yield from _failing(("jwks",), load_keys, sasl.jwks)
    if isinstance(sasl.jwks_url, str):
        yield from _failing(("jwks_url",), need_library)
    yield from _authority_faults("jwks_ca", sasl.jwks_ca)


def _token_faults(admin: Admin) -> Iterator[Fault]:
    found: list[Fault] = []
    for key in ("token_file", "token_env", "read_only_token_file", "read_only_token_env"):
        value = getattr(admin, key)
        only: dict[str, Any] = {key: value}
        if isinstance(value, str):
            found += _failing((key,), access_of, replace(Admin(), **only))
        elif value is BROKEN:
            return
    yield from found or _failing(("read_only_token_file",), access_of, admin)


def _try_exporter(traces: Traces) -> None:
    """Raises OSError."""
    exporter_for(traces).shutdown()


def _failing(path: Path, load: Callable[..., Any], *arguments: Any) -> Iterator[Fault]:
    """The path, and the reason of the error, if there is one."""
    try:
        load(*arguments)
    except OSError as error:
        yield path, str(error)
