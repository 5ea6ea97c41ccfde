"""Rows as a writer is given them, of any kind and content."""

from __future__ import annotations

from random import Random

from klamm.captures.captured import Blanks, Captured, CapturedConnection
from klamm.captures.storage.segments import Origin

ORIGIN = Origin("20240101T000000Z-00000001", host="here", pod="klamm-0", klamm="0.1.0")
START_NS = 1_700_000_000_000_000_000
KINDS = ("frame", "frame", "frame", "frame", "token", "opened", "closed", "lost")


def connection(number: int = 1) -> CapturedConnection:
    principal = f"User:CN=app-{number},O=größer" if number > 2 else None
    return CapturedConnection(
        ORIGIN.capture, number, "main", str(number % 3), f"10.0.0.{number}:50000", principal
    )


def frame(number: int, content: bytes = b"content", blanks: Blanks = ()) -> Captured:
    """A row of a request, one each millisecond."""
    size = len(content) + sum(size for _, size in blanks)
    return Captured(
        START_NS + number * 1_000_000, "frame", connection(), "request", 18, 3, number, "app", number, size,
        content, blanks,
    )  # fmt: skip


def frames(count: int, size: int = 100, first: int = 0) -> list[Captured]:
    """With content that no compression makes smaller, and zeros cut out of each."""
    random = Random(first)
    return [frame(first + n, random.randbytes(size), ((size // 2, 50),)) for n in range(count)]


def any_rows(count: int, seed: int) -> list[Captured]:
    """Whatever a capture may hold, in the order of its times."""
    random = Random(seed)
    return [_any_row(random, START_NS + n * 1000 + random.randrange(1000)) for n in range(count)]


def _any_row(random: Random, time_ns: int) -> Captured:
    def content() -> bytes | None:
        return random.choice([None, b"", random.randbytes(random.randrange(300))])

    def text() -> str:
        return random.choice(["", "plain", "größer", "\N{GRINNING FACE}" * 3])

    kept, went, kind = content(), content(), random.choice(KINDS)
    return Captured(
        time_ns,
        kind,  # type: ignore[arg-type]
        random.choice([None, *map(connection, range(5))]),
        random.choice(["request", "response", *([] if kind in ("frame", "token") else [None])]),
        random.randrange(-1, 93),
        random.randrange(-1, 20),
        random.randrange(-(1 << 31), 1 << 31),
        random.choice([None, text(), f"app-{random.randrange(100)}"]),
        random.randrange(-1, 1 << 40),
        random.randrange(1 << 31),
        kept,
        _blanks(random) if kept else (),
        random.choice(["passed", "rewritten", "withheld", "made"]),
        went,
        _blanks(random) if went else (),
        random.random() < 0.9,
        random.choice([0, 0, random.randrange(1 << 40)]),
        text(),
    )


def _blanks(random: Random) -> Blanks:
    return tuple((at * 100, random.randrange(1, 50)) for at in range(random.randrange(3)) if at == 0)
