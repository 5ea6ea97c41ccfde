"""deploy/compose: the schema of Compose takes the file, and it agrees with klamm and with itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from klamm.proxy.config import Config
from klamm.proxy.config_types import Address
from tests.brokers.jars import ROOT
from tests.brokers.kraft import OLDER
from tests.deploy.given import DEPLOY, IMAGE, configured, parsed, state_folder

FILE = DEPLOY / "compose" / "compose.yaml"
KAFKA = f"apache/kafka:{OLDER}"  # a release that the tests know


def schema() -> Any:
    """Of compose-go, which is Compose's own reader."""
    file = ROOT / ".go" / "compose-spec.json"
    assert file.exists(), "run: make .go/compose-spec.json"
    return json.loads(file.read_text())


@pytest.fixture
def file() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


@pytest.fixture
def services(file: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = file["services"]
    return found


@pytest.fixture
def config(services: dict[str, Any], tmp_path: Path) -> Config:
    return configured(services["klamm"]["command"], [], tmp_path)


def test_compose_takes_the_file(file: dict[str, Any]) -> None:
    import jsonschema  # slow to load, and each test process loads this file

    validator = jsonschema.validators.validator_for(schema())(schema())
    assert list(validator.iter_errors(file)) == []
    file["services"]["klamm"]["comand"] = []
    assert list(validator.iter_errors(file)) != []


def test_a_service_waits_only_for_services_that_say_their_health(services: dict[str, Any]) -> None:
    waits = [(name, needed) for name, service in services.items() for needed in service.get("depends_on", {})]
    assert {name for name, _ in waits} == {"klamm", "producer"}
    for name, needed in waits:
        assert services[name]["depends_on"][needed] == {"condition": "service_healthy"}
        assert services[needed]["healthcheck"]["test"][0] == "CMD"


def test_klamm_takes_its_arguments(config: Config, services: dict[str, Any]) -> None:
    (cluster,) = config.clusters
    assert cluster.bootstrap == (Address("kafka-1", 9092),)
    assert services["kafka-1"]["hostname"] == "kafka-1"
    assert cluster.advertise == services["klamm"]["hostname"]


def test_its_health_check_asks_whether_klamm_is_ready(services: dict[str, Any]) -> None:
    _, *words = services["klamm"]["healthcheck"]["test"]
    assert parsed(words).ready


def test_compose_waits_for_the_drain(services: dict[str, Any], config: Config) -> None:
    assert float(services["klamm"]["stop_grace_period"].removesuffix("s")) >= config.limits.drain_s + 5


def test_its_state_outlives_the_container(file: dict[str, Any], services: dict[str, Any]) -> None:
    (volume,) = services["klamm"]["volumes"]
    name, folder = volume.split(":")
    assert name in file["volumes"]
    assert folder == state_folder()


def test_images_are_pinned(services: dict[str, Any]) -> None:
    images = {name: service["image"] for name, service in services.items()}
    assert images.pop("klamm") == IMAGE
    assert set(images.values()) == {KAFKA}
    assert (FILE.parent / services["klamm"]["build"] / "Dockerfile").resolve() == ROOT / "Dockerfile"


def test_the_producer_knows_klamm_only(services: dict[str, Any], config: Config) -> None:
    (listen,) = [cluster.listen for cluster in config.clusters]
    addresses = [word for word in services["producer"]["command"] if ":" in word]
    assert addresses == [f"--bootstrap-server={services['klamm']['hostname']}:{listen.first}"]
