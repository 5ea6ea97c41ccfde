"""Sizes of frames: which bytes are none."""

import pytest

from klamm.decoders.framing import tls_or_size

HELLO, ALERT = 369_295_360, 352_518_144  # as docs/protocol-notes.md has them
LIMIT = 1 << 30


@pytest.mark.parametrize("who", ["client", "broker"])
@pytest.mark.parametrize(("first", "record"), [(HELLO, "handshake"), (ALERT, "alert")])
def test_the_first_bytes_of_tls_read_as_these_sizes(who: str, first: int, record: str) -> None:
    assert first.to_bytes(4, "big") == bytes([0x16 if record == "handshake" else 0x15, 3, 0, 0])
    for size in (first, first + 0xFFFF):
        found = tls_or_size(size, who, LIMIT)
        assert found is not None
        assert found[0] == f"tls_from_{who}"
    assert tls_or_size(first - 1, who, LIMIT) is None
