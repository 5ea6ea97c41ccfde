"""Certificates of a cluster that speaks TLS."""

import ssl
from pathlib import Path

import pytest

from tests.fakes import tls


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def context(certificates: Path) -> ssl.SSLContext:
    return tls.make(certificates)
