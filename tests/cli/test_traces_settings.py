"""The settings of traces, as klamm.yaml has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.cli.running.config_file import load
from klamm.proxy.config import Traces
from klamm.proxy.config_types import CollectorUrl, Filter, Share
from klamm.settings.mistakes import ConfigError

URL = "http://collector:4318/v1/traces"


def read(folder: Path, traces: str) -> Traces | None:
    (folder / "klamm.yaml").write_text(f"clusters: [{{bootstrap: kafka-1:9092}}]\ntraces: {traces}\n")
    return load(str(folder / "klamm.yaml")).traces


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("{}", Traces(None, Share(0.01), None, False)),
        (f"{{endpoint: '{URL}', sample: 5%}}", Traces(CollectorUrl(URL), Share(0.05))),
        ("{sample: 0.25, parents: true}", Traces(sample=Share(0.25), parents=True)),
        (
            "{sample: 100%, filter: api == Produce}",
            Traces(sample=Share(1.0), filter=Filter("api == Produce")),
        ),
    ],
)
def test_they_are_read_as_people_write_them(written: str, found: Traces, tmp_path: Path) -> None:
    assert read(tmp_path, written) == found


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{sample: 0}", "'0' is no share: write it as 1% or 0.01, more than 0 and 100% at most"),
        ("{sample: 101%}", "'101%' is no share"),
        ("{sample: some}", "'some' is no share"),
        ("{endpoint: collector:4318}", "is no address of a server"),
        ("{endpoint: 'http://me:pw@collector/'}", "has a user in it"),
        ("{filter: api ==}", "traces.filter"),
    ],
)
def test_a_mistake_is_told(written: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        read(tmp_path, written)
    assert says in str(told.value)
