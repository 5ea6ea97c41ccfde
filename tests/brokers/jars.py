"""The jars of one Kafka version, Java command lines made from them, and what is compiled against them."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JARS = Path(os.environ.get("KLAMM_JARS", ROOT / ".jars"))
MADE = JARS / "made"  # by the tests, and kept from run to run
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def jars(version: str) -> Path:
    """The folder that holds the jars of `version`; RuntimeError says how to get them."""
    folder = JARS / version
    if not any(folder.glob("*.jar")):
        room, _, kafka = version.rpartition("-")
        pom = f"tests/{room or 'brokers'}/{kafka}/pom.xml"
        raise RuntimeError(
            f"no jars of Kafka {kafka} in {folder}; run: mvn -q -B -f {pom} dependency:copy-dependencies"
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
    """A command that runs class `main` on the jars of `version`, and on `classes` where given.

    `version` may be several, with a colon between them.
    """
    archive = class_archive(version)
    sharing = [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    classpath = ":".join([_classpath(version), *([str(classes)] if classes else [])])
    return ["java", f"-Xmx{heap_mb}m", *QUICK_START, *sharing, *options, "-cp", classpath, main, *arguments]


def class_archive(version: str) -> Path:
    """The file from which a JVM takes the classes of `version` as they are in memory (CDS), once it is made.

    A JVM uses it where its class path begins with the one that the archive was made with.
    """
    return MADE / f"{_digest(version)}.jsa"


def compiled(version: str, *sources: Path) -> Path:
    """A jar with the classes of `sources`, .java files or folders of them, compiled against `version`."""
    files = [file for source in sources for file in (sorted(source.glob("*.java")) or [source])]
    texts = [text for file in files for text in (file.name.encode(), file.read_bytes())]
    return made_once(MADE / f"{_digest(version, *texts)}.jar", lambda part: _compile(version, files, part))


def made_once(file: Path, make: Callable[[Path], None]) -> Path:
    """`file`, which `make` writes where it is not there; test runs side by side write it once."""
    MADE.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            part = file.with_suffix(".part")
            part.unlink(missing_ok=True)
            make(part)
            part.rename(file)
    return file


def _classpath(version: str) -> str:
    return ":".join(f"{jars(each)}/*" for each in version.split(":"))


def _digest(version: str, *texts: bytes) -> str:
    """A name for what is made of these texts, of the jars of `version` and by this Java."""
    digest = hashlib.sha256()
    folders = [jars(each) for each in version.split(":")]
    java = Path(shutil.which("java") or "java").resolve()
    for file in [java, *(jar for folder in folders for jar in sorted(folder.glob("*.jar")))]:
        digest.update(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}\n".encode())
    for text in texts:
        digest.update(hashlib.sha256(text).digest())
    return digest.hexdigest()[:16]


def _compile(version: str, files: list[Path], jar: Path) -> None:
    with tempfile.TemporaryDirectory() as classes, zipfile.ZipFile(jar, "w") as archive:
        command = ["javac", "-nowarn", "-cp", _classpath(version), "-d", classes, *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(f"javac failed:\n{done.stdout}{done.stderr}")
        for file in sorted(Path(classes).rglob("*.class")):
            archive.write(file, file.relative_to(classes))
