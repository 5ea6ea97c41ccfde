"""The jars of one kafka-clients release: where they are, and how they come."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ORACLES = ROOT / "tests" / "oracle"  # a folder with a pom for each Kafka that the tests ask
ERROR_CODES = ORACLES / "ErrorCodes.java"

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>klamm.wire</groupId>
  <artifactId>kafka-{kafka}</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <properties>
    <includeScope>runtime</includeScope>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-clients</artifactId>
      <version>{kafka}</version>
    </dependency>
  </dependencies>
</project>
"""


def newest_kafka() -> str:
    """The newest release that the tests hold the tables to."""
    return max((pom.parent.name for pom in ORACLES.glob("*/pom.xml")), key=release)


def release(kafka: str) -> tuple[int, ...]:
    """'4.3.1' as numbers, to be compared; ValueError for anything else."""
    numbers = kafka.split(".")
    if not all(number.isdecimal() for number in numbers):
        raise ValueError(f"{kafka!r} is no release of Kafka; write one such as {newest_kafka()}")
    return tuple(map(int, numbers))


def fetch(kafka: str) -> Path:
    """The kafka-clients jar of a release, beside those that it needs; from Maven if it is not there yet.

    Raises RuntimeError with what Maven said.
    """
    name = f"kafka-clients-{kafka}.jar"
    for folder in (f"oracle-{kafka}", f"wire-{kafka}"):
        if (jar := ROOT / ".jars" / folder / name).exists():
            return jar
    folder, pom = f".jars/wire-{kafka}", ROOT / ".jars" / f"wire-{kafka}.xml"
    pom.parent.mkdir(exist_ok=True)
    pom.write_text(_POM.format(kafka=kafka))
    done = _run("tools/jars.sh", str(pom), folder)
    pom.unlink()
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr)
        raise RuntimeError(f"Maven brought no kafka-clients {kafka}: {said.partition('ERROR] ')[2] or said}")
    return ROOT / folder / name


def error_codes(jar: Path) -> list[tuple[int, str, bool]]:
    """Code, name and retriable of every error that the Kafka of this jar knows. Raises RuntimeError."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jar.parent}/*", str(ERROR_CODES)]
    done = _run(*command)
    if done.returncode:
        raise RuntimeError(f"{ERROR_CODES.name} failed on {jar.name} (it needs a JDK):\n{done.stderr}")
    rows = (line.split() for line in done.stdout.splitlines())
    return [(int(code), name, retriable == "true") for code, name, retriable in rows]


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    except FileNotFoundError:
        raise RuntimeError(f"{command[0]} is not installed") from None
