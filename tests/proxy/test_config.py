"""The configuration as data, and docs/configuration.md against it."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from klamm.cli.running.config_file import load
from klamm.cli.running.scalars import scalars
from klamm.proxy.config import Config
from klamm.proxy.config_types import Address, Listen
from klamm.settings.typed_yaml import shape
from tests.brokers import certificates

GUIDE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
ROW = re.compile(r"^\| `([a-z_.\[\]]+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
SHAPES = scalars(Path())


def default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def written(field: Field[Any]) -> str:
    """A default as the guide shows it."""
    value = default(field)
    if value is MISSING:
        return "required"
    if value in (None, (), {}):
        return "none"
    if field.name.endswith("_s"):
        return f"`{value:g}s`"
    if field.name.endswith("_bytes"):
        return f"`{value >> 30}GiB`" if value >= 1 << 30 else f"`{value >> 20}MiB`"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def keys(kind: Any, above: str = "") -> Iterator[tuple[str, str, str]]:
    """Every key of klamm.yaml that takes a value: (key, shape, default)."""
    for field in fields(kind):
        hint = get_type_hints(kind)[field.name]
        inner = [part for part in (hint, *get_args(hint)) if is_dataclass(part)]
        key = f"{above}{field.name.rstrip('_')}"
        if above or not inner:
            yield key, shape(hint, SHAPES), written(field)
        for part in inner:
            yield from keys(part, f"{key}[]." if field.name == "clusters" else f"{key}.")


def test_the_guide_lists_every_key_with_its_shape_and_default() -> None:
    rows = [(key, value, preset) for key, value, preset, _ in ROW.findall(GUIDE)]
    assert sorted(rows) == sorted(keys(Config))


def test_the_example_of_the_guide_is_a_valid_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", GUIDE, re.DOTALL)
    certificates.make(tmp_path, ["localhost"])
    (tmp_path / "klamm.yaml").write_text(example)
    config = load(str(tmp_path / "klamm.yaml"))
    assert [cluster.name for cluster in config.clusters] == ["orders", "billing"]
    assert config.clusters[1].bootstrap == (Address("fd00::1", 9092),)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address("kafka-1", 9092), "kafka-1:9092"),
        (Address("::1", 9092), "[::1]:9092"),
        (Listen("0.0.0.0", 20000, 20050), "0.0.0.0:20000-20050"),
        (Listen("::1", 20000), "[::1]:20000"),
    ],
)
def test_an_address_is_written_as_it_is_read(address: Address | Listen, text: str) -> None:
    assert str(address) == text


def test_a_listen_range_without_an_end_has_100_ports_and_ends_with_the_last_port_there_is() -> None:
    assert Listen(first=20000).ports == range(20000, 20100)
    assert Listen(first=65500).ports == range(65500, 65536)
    assert Listen(first=20000, last=20010).ports == range(20000, 20011)


def test_no_default_port_is_one_of_kafkas_own() -> None:
    ports = {*Listen().ports, Config().admin.listen.port if Config().admin.listen else 0}
    assert not ports & {2181, 9092, 9093, 9094}
