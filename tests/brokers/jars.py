"""The jars of one Kafka version, and Java command lines made from them."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JARS = Path(os.environ.get("KLAMM_JARS", ROOT / ".jars"))


def jars(version: str) -> Path:
    """The folder that holds the jars of `version`; RuntimeError says how to get them."""
    folder = JARS / version
    if not any(folder.glob("*.jar")):
        pom = f"tests/brokers/{version}/pom.xml"
        raise RuntimeError(
            f"no jars of Kafka {version} in {folder}; run: mvn -q -B -f {pom} dependency:copy-dependencies"
            f" -DoutputDirectory={folder}"
        )
    return folder


def java(
    version: str,
    main: str,
    *arguments: str,
    heap_mb: int = 384,
    options: tuple[str, ...] = (),
    classes: Path | None = None,
) -> list[str]:
    """A command that runs class `main` on the jars of `version`, and on `classes` where given."""
    classpath = ":".join([*([str(classes)] if classes else []), f"{jars(version)}/*"])
    tuning = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return ["java", *tuning, *options, "-cp", classpath, main, *arguments]


def compiled(version: str, *sources: Path) -> Path:
    """The classes of the .java files in `sources`, compiled against `version` where the text is newer."""
    classes = JARS / "classes" / version
    files = [file for folder in sources for file in sorted(folder.glob("*.java"))]
    stamp = classes / "compiled"
    if stamp.exists() and all(file.stat().st_mtime <= stamp.stat().st_mtime for file in files):
        return classes
    classes.mkdir(parents=True, exist_ok=True)
    command = ["javac", "-nowarn", "-cp", f"{jars(version)}/*", "-d", str(classes), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"javac failed:\n{done.stdout}{done.stderr}")
    stamp.touch()
    return classes
