"""The page of `klamm run --web`: `klamm web` as a process of its own, for as long as klamm runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from klamm.cli.children import ending_with_parent
from klamm.proxy.config import Admin, Config
from klamm.proxy.config_types import Address

BESIDE = "start klamm web beside klamm instead"
ENDS_S = 5.0  # for the page, once klamm has ended
ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Command(NamedTuple):
    """The words after `klamm`, and the variables that the process gets beside klamm's own."""

    words: list[str]
    environment: Mapping[str, str]


def fault(config: Config) -> str | None:
    """The reason why klamm cannot start the page with these settings."""
    admin = config.admin
    if not isinstance(admin, Admin):  # it could not be read
        return None
    if admin.listen is None:
        return "the page asks the admin API, and there is none: leave out --admin none"
    if isinstance(admin.listen, Address) and not admin.listen.port:
        return f"the page needs a fixed port of the admin API: name it with --admin, or {BESIDE}"
    if admin.tls is not None:
        return f"the admin API speaks TLS: {BESIDE}, with --admin and --admin-ca"
    if config.handover is not None:
        return f"the page would end with this klamm, when the next takes its place: {BESIDE}"
    if admin.wants_credentials and admin.token_file is None and admin.token_env is None:
        return f"the page needs the token of a caller who may do everything: {BESIDE}"
    return None


def command(admin: Admin, listen: str | None = None) -> Command:
    """For settings without a fault."""
    assert admin.listen is not None
    host = ANY_HOST.get(admin.listen.host, admin.listen.host)
    words = ["web", "--admin", str(Address(host, admin.listen.port))]
    words += [] if listen is None else ["--listen", listen]
    if admin.token_file is not None:
        return Command([*words, "--token-file", str(admin.token_file)], {})
    token = os.environ.get(admin.token_env or "")
    return Command(words, {} if token is None else {"KLAMM_TOKEN": token})


@contextmanager
def web_page(admin: Admin | None, listen: str | None = None) -> Iterator[None]:
    """Have the page while the block runs; no page for None. It prints its address, or why there is none, by
    itself, what is wrong with `listen` too.
    """
    if admin is None:
        yield
        return
    words, environment = command(admin, listen)
    page = subprocess.Popen(
        [sys.executable, "-m", "klamm.cli", *words],
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        start_new_session=True,  # Ctrl-C is for klamm, which drains while the page is still there
        preexec_fn=ending_with_parent(),
    )
    try:
        yield
    finally:
        page.terminate()
        try:
            page.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            page.kill()
            page.wait()
