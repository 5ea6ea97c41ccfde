"""The network of the pages and the files of their commands, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import materials
from tests.docs.stage import Stage, cluster
from tests.pipeline.conftest import spark

__all__ = ["spark"]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two clusters, no klamm."""
    with cluster(tmp_path_factory.mktemp("stage") / "network") as made:
        yield made


@pytest.fixture(scope="session")
def files(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all that commands read; to be copied."""
    folder = tmp_path_factory.mktemp("files") / "files"
    materials.make(stage, folder)
    return folder
