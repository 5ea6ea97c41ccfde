"""The examples in front of real brokers: tests of the order service, and those in Java and Go over HTTP."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.client.front import Front, in_front_of
from tests.brokers.jars import JARS, ROOT
from tests.brokers.kraft import Cluster
from tests.e2e import topics
from tests.examples.programs import EXAMPLES, output_of

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def cluster(kafka: Cluster) -> str:
    """With the topic that the examples write to."""
    topics.create(kafka.bootstrap(), "orders", topics.spread())
    return kafka.bootstrap()


@pytest.fixture
def front(cluster: str) -> Iterator[Front]:
    with in_front_of(cluster) as running:
        yield running


def over_http(front: Front) -> dict[str, str]:
    return {"KLAMM": front.bootstrap, "KLAMM_ADMIN": front.admin}


def test_the_order_service_is_tested_with_the_fixture(cluster: str) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    command = [sys.executable, "-m", "pytest", "examples/orders", *options]
    output = output_of(*command, "--klamm-bootstrap", cluster)
    assert re.search(r"^5 passed", output, re.MULTILINE), output


def test_junit_tests_drive_klamm_over_http(front: Front, tmp_path: Path) -> None:
    jars, pom = JARS / "examples-java", EXAMPLES / "java" / "pom.xml"
    if not jars.exists() or jars.stat().st_mtime < pom.stat().st_mtime:
        output_of("tools/jars.sh", str(pom), str(jars.relative_to(ROOT)))
    sources = [str(path) for path in (EXAMPLES / "java").rglob("*.java")]
    output_of("javac", "-Xlint:all,-processing", "-Werror", "-cp", f"{jars}/*", "-d", str(tmp_path), *sources)
    launcher = "org.junit.platform.console.ConsoleLauncher"
    command = ["java", "-cp", f"{tmp_path}:{jars}/*", launcher, "execute", "--scan-classpath", str(tmp_path)]
    output = output_of(*command, environment=over_http(front))
    assert re.search(r"\[ +3 tests successful", output), output
    assert front.api.rules() == []
    front.wait_for("Produce", client_id="shop", error="NOT_LEADER_OR_FOLLOWER", count=2, timeout_s=0)


def test_go_tests_drive_klamm_over_http(front: Front) -> None:
    output = output_of(
        "go", "test", "-count=1", "-v", "./...", folder=EXAMPLES / "go", environment=over_http(front)
    )
    assert len(re.findall(r"^--- PASS: ", output, re.MULTILINE)) == 3, output
    assert front.api.rules() == []
    front.wait_for("Produce", client_id="shop", error="NOT_LEADER_OR_FOLLOWER", count=2, timeout_s=0)
