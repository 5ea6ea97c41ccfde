"""Coverage-guided: any bytes as the body of any layout, or as a header. See README.md beside it."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import atheris

from klamm.decoders.schema import Side
from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.decoders"]):
    from klamm.decoders import emit, headers
    from tests.decoders import hostile

HEADERS: list[tuple[Side, int]] = [
    ("request", 0),
    ("request", 1),
    ("request", 2),
    ("response", 0),
    ("response", 1),
]
SELECTOR = 2  # bytes in front that choose the layout, or the header


def instrument_made_readers() -> None:
    """They come from exec, which atheris does not see. The other goals would take minutes to instrument."""
    made = emit.Source.made

    def instrumented(source: emit.Source, head: str, about: str = "") -> Callable[..., Any]:
        function: Callable[..., Any] = made(source, head, about)
        return atheris.instrument_func(function) if source.goal == "read" else function

    emit.Source.made = instrumented  # type: ignore[assignment, method-assign]


def one_input(data: bytes) -> None:
    chosen = int.from_bytes(data[:SELECTOR]) % (len(hostile.LAYOUTS) + len(HEADERS))
    body = data[SELECTOR:]
    if chosen < len(hostile.LAYOUTS):
        hostile.held_in_part(hostile.LAYOUTS[chosen], body, Random(len(body)))
    else:
        side, version = HEADERS[chosen - len(hostile.LAYOUTS)]
        hostile.header_held(side, version, body)


def seeds() -> Iterator[tuple[str, bytes]]:
    """A message of each layout, with rows of like elements and without, and a header of each version."""
    for index, of in enumerate(hostile.LAYOUTS):
        for alike in (False, True):
            data = hostile.message(of, Random(index), alike)
            yield f"{of.api}-{of.version}-{of.side}-{alike:d}", index.to_bytes(SELECTOR) + data
    frame = headers.request_frame(hostile.API["Metadata"], 12, 7, "klamm", b"", [(1, b"ab"), (300, b"")])[4:]
    for index, (side, version) in enumerate(HEADERS, len(hostile.LAYOUTS)):
        yield f"{side}-header-{version}", index.to_bytes(SELECTOR) + frame


if __name__ == "__main__":
    instrument_made_readers()
    run(one_input, seeds())
