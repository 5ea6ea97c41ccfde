"""Coverage-guided: any bytes as a segment of a capture, sealed or growing."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import atheris

from tests.captures.rows import Talk, lost, written
from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.captures"]):
    from klamm.captures.storage.reading import read
    from klamm.captures.storage.segments import growing_path

FOLDER = Path(tempfile.mkdtemp(prefix="klamm-fuzz-"))
SEALED = FOLDER / "segment.arrow"
GROWING = growing_path(SEALED)
KINDS = {b"\0": SEALED, b"\1": GROWING}  # by the first byte


def one_input(data: bytes) -> None:
    """Rows, or a problem that is told."""
    file = KINDS.get(data[:1], SEALED)
    file.write_bytes(data[1:])
    try:
        reading = read(file)
        rows = list(reading)
        assert rows or reading.problems or file == GROWING
    finally:
        file.unlink()


def seeds() -> Iterator[tuple[str, bytes]]:
    talk = Talk().opened().metadata().produce(records=b"r" * 70).fetch().heartbeat().closed("reset by client")
    file = written(FOLDER / "seed.arrow", [*talk.rows, lost(3)])
    for name, kind in (("sealed", b"\0"), ("growing", b"\1")):
        yield name, kind + file.read_bytes()
        yield f"{name}-cut", kind + file.read_bytes()[:-40]


if __name__ == "__main__":
    run(one_input, seeds())
