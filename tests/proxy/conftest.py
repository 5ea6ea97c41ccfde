"""Certificates of a cluster that speaks TLS."""

import ssl
from pathlib import Path

import pytest

from klamm.proxy.cluster.own_requests import held_connections
from tests.fakes import tls


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def context(certificates: Path) -> ssl.SSLContext:
    return tls.make(certificates)


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """klamm holds no connections to brokers, so that tests see only those which they make it open."""
    monkeypatch.setattr(held_connections, "MOST", 0)
