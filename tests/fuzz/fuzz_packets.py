"""Coverage-guided: any bytes as a file of packets."""

import io
from collections.abc import Iterator
from contextlib import suppress

import atheris

from tests.captures.dialogue import LINKS, Dialogue, pcap
from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.captures"]):
    from klamm.captures.captured import Captured
    from klamm.captures.packets.importing import Import
    from klamm.captures.packets.packet_files import BadFile, packets
    from klamm.captures.streams.blanking import Keeping


def one_input(data: bytes) -> None:
    """Rows of the packets before the first one that cannot be read."""
    rows: list[Captured] = []
    importing = Import("fuzz", Keeping("keep"), rows.extend)
    with suppress(BadFile):
        for packet in packets(io.BufferedReader(io.BytesIO(data))):
            importing.take(packet)
    importing.end()
    told = [row for row in rows if row.kind == "frame"]
    assert all(row.size >= 0 and row.connection is not None for row in told)


def seeds() -> Iterator[tuple[str, bytes]]:
    for link in LINKS:
        dialogue = Dialogue(link=link).open().ask(0)
        for number in (1, 2):
            dialogue.ask(number, name="Metadata", version=1)
        made = dialogue.close().packets
        for order in "<>":
            yield f"{link}-{order == '<':d}", pcap(made, order)


if __name__ == "__main__":
    run(one_input, seeds())
