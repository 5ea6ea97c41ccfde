"""The way from the proxy's loop to the files: what is kept, and what a full queue costs."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from errno import ENOSPC
from pathlib import Path

import pytest

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.storage.growing import Raw, begin, open_new
from klamm.captures.storage.keeper import ENTRY_BYTES, QUEUE_BYTES, Keeper
from klamm.captures.storage.picking import Picking
from klamm.captures.storage.reading import read
from klamm.captures.storage.scribe import Scribe
from klamm.captures.storage.segments import origin
from klamm.captures.storage.stored import stored
from klamm.captures.storage.writing import Writer
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders import API
from klamm.decoders.headers import request_frame, response_frame
from klamm.proxy.config import Capture
from klamm.proxy.config_types import Folder
from klamm.rules.expressions import parse
from tests.captures.rows import Talk, connection, in_time
from tests.captures.stored_rows import START_NS, frame

PATIENCE_S = 60.0
ORIGIN = origin()
FIRST, SECOND = (CapturedConnection(ORIGIN.capture, n, "main", str(n), f"10.0.0.7:5000{n}") for n in (1, 2))


def heartbeat(number: int, group: str = "billing") -> bytes:
    body = len(group).to_bytes(2, "big") + group.encode() + bytes(4) + b"\0\1m"
    return request_frame(API["Heartbeat"], 0, number, "app", body)


def answer(number: int) -> bytes:
    return response_frame(API["Heartbeat"], 0, number, b"\0\0")


class Slow:
    """A disk that waits to be let go on."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.waits = threading.Event()

    def open(self, path: Path) -> Raw:
        raw = open_new(path)
        write = raw.write

        def slowly(data: memoryview) -> int | None:
            if not self.goes_on.is_set():
                self.waits.set()
            assert self.goes_on.wait(PATIENCE_S)
            return write(data)

        return _Written(raw, slowly)


class _Written:
    def __init__(self, raw: Raw, write: Callable[[memoryview], int | None]) -> None:
        self.write, self.fileno, self.close = write, raw.fileno, raw.close


def keeper_in(
    folder: Path, queue_bytes: int = QUEUE_BYTES, slow: Slow | None = None, where: str = ""
) -> Keeper:
    writer = Writer(folder, ORIGIN, open_file=slow.open if slow else open_new)
    picking = Picking(parse(where)) if where else None
    keeper = Keeper(Scribe(writer, Keeping(), lambda kind, message: None, picking), queue_bytes)
    keeper.start()
    return keeper


def read_all(folder: Path) -> list[Captured]:
    reading = read(folder)
    rows = list(reading)
    assert reading.problems == []
    return rows


def wait_for(what: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_what_two_connections_say_is_in_the_capture(tmp_path: Path) -> None:
    keeper = keeper_in(tmp_path)
    keeper.opened(FIRST, START_NS)
    keeper.opened(SECOND, START_NS + 1, mid_stream=True)
    for n in range(1000):
        keeper.chunk(1, "request", heartbeat(n), START_NS + 10 + 4 * n)
        keeper.chunk(1, "response", answer(n), START_NS + 11 + 4 * n)
        keeper.chunk(2, "request", heartbeat(n), START_NS + 12 + 4 * n)
        keeper.chunk(2, "response", answer(n), START_NS + 13 + 4 * n)
    keeper.closed(1, "closed by client", START_NS + 9000)
    keeper.cluster("main", "4L6g3nShT-eMCtK--X86sw")
    assert keeper.stop(PATIENCE_S)
    rows = read_all(tmp_path)
    assert [row.kind for row in rows] == ["opened", "opened", *["frame"] * 4000, "closed"]
    for of in (FIRST, SECOND):
        assert [
            row.frame for row in rows if row.connection == of and row.side == "request" and row.frame
        ] == [heartbeat(n)[4:] for n in range(1000)]
    assert rows[-1].text == "closed by client"
    assert (keeper.counters.rows, keeper.counters.segments, keeper.waiting_bytes) == (4003, 1, 0)
    assert keeper.counters.dropped_bytes == keeper.counters.lost_frames == 0
    (segment,) = read(tmp_path).segments()
    assert 0 < keeper.counters.written_bytes <= segment.path.stat().st_size
    assert segment.statistics is not None
    assert segment.statistics.clusters == {"main": "4L6g3nShT-eMCtK--X86sw"}


def test_what_went_on_in_its_stead_is_kept_beside_what_came(tmp_path: Path) -> None:
    keeper = keeper_in(tmp_path)
    keeper.opened(FIRST, START_NS)
    keeper.chunk(1, "request", heartbeat(1), START_NS + 1, forwarded=False)
    keeper.sent(1, "request", heartbeat(1, "others"), START_NS + 2)
    assert keeper.stop(PATIENCE_S)
    _, row = read_all(tmp_path)
    assert (row.frame, row.forwarded, row.fate) == (heartbeat(1)[4:], heartbeat(1, "others")[4:], "rewritten")


def test_a_full_queue_drops_chunks_and_the_capture_says_how_much_is_missing(tmp_path: Path) -> None:
    slow = Slow()
    keeper = keeper_in(tmp_path, 100_000, slow)
    keeper.opened(FIRST, START_NS)
    keeper.chunk(1, "request", heartbeat(0), START_NS)
    slow.goes_on.clear()
    assert slow.waits.wait(PATIENCE_S)
    for n in range(1, 5000):
        keeper.chunk(1, "request", heartbeat(n), START_NS + n)
        assert keeper.waiting_bytes <= 100_000
    dropped = keeper.counters.dropped_bytes
    assert dropped > 0
    assert dropped % len(heartbeat(0)) == 0
    slow.goes_on.set()
    wait_for(lambda: keeper.waiting_bytes == 0)
    for n in range(5000, 5100):
        keeper.chunk(1, "request", heartbeat(n), START_NS + n)
        wait_for(lambda: keeper.waiting_bytes < 50_000)
    assert keeper.stop(PATIENCE_S)
    rows = read_all(tmp_path)
    lost = [row for row in rows if row.kind == "lost"]
    assert sum(row.size for row in lost) == dropped == keeper.counters.dropped_bytes
    assert keeper.counters.lost_frames == sum(row.lost for row in lost) > 0
    kept = [row.correlation_id for row in rows if row.kind == "frame"]
    assert kept == sorted(set(kept))
    assert kept[-50:] == list(range(5050, 5100))


def test_8_mib_wait_for_the_disk_unless_told_otherwise(tmp_path: Path) -> None:
    assert Capture(folder=Folder("capture")).queue_bytes == QUEUE_BYTES
    slow = Slow()
    keeper = keeper_in(tmp_path, slow=slow)
    keeper.opened(FIRST, START_NS)
    slow.goes_on.clear()
    keeper.chunk(1, "request", heartbeat(0), START_NS)
    assert slow.waits.wait(PATIENCE_S)
    size = 1 << 20
    frame = (size - 4).to_bytes(4, "big") + bytes(size - 4)
    for n in range(40):
        keeper.chunk(1, "request", frame, START_NS + n)
    assert 7 << 20 <= keeper.waiting_bytes <= 8 << 20
    assert keeper.counters.dropped_bytes >= 24 << 20
    slow.goes_on.set()
    assert keeper.stop(PATIENCE_S)


def test_what_was_dropped_last_is_told_at_the_end(tmp_path: Path) -> None:
    slow = Slow()
    keeper = keeper_in(tmp_path, 100_000, slow)
    keeper.opened(FIRST, START_NS)
    slow.goes_on.clear()
    assert slow.waits.wait(PATIENCE_S)
    for n in range(1000):
        keeper.chunk(1, "request", heartbeat(n), START_NS + n)
    slow.goes_on.set()
    assert keeper.stop(PATIENCE_S)
    lost = [row.size for row in read_all(tmp_path) if row.kind == "lost"]
    assert sum(lost) == keeper.counters.dropped_bytes > 0


def test_the_queue_holds_no_more_however_many_connections_come_and_go(tmp_path: Path) -> None:
    slow = Slow()
    keeper = keeper_in(tmp_path, 50_000, slow)
    keeper.opened(FIRST, START_NS)
    slow.goes_on.clear()
    assert slow.waits.wait(PATIENCE_S)
    came = [CapturedConnection(ORIGIN.capture, n, "main", "1", "10.0.0.7:1") for n in range(10, 1010)]
    for of in came:
        keeper.opened(of, START_NS)
    for of in came:
        keeper.chunk(of.number, "request", heartbeat(1), START_NS)
        keeper.closed(of.number, "", START_NS)
        assert keeper.waiting_bytes <= 4 * 50_000
    keeper.opened(SECOND, START_NS)
    slow.goes_on.set()
    wait_for(lambda: keeper.waiting_bytes == 0)
    keeper.chunk(2, "request", heartbeat(5), START_NS + 1)
    keeper.opened(came[0], START_NS + 2)
    assert keeper.stop(PATIENCE_S)
    rows = read_all(tmp_path)
    assert SECOND in {row.connection for row in rows if row.kind == "opened"}
    seen = sum(row.kind == "closed" for row in rows)
    assert 0 < seen <= 50_000 // ENTRY_BYTES
    (unseen,) = (row.text for row in rows if row.kind == "lost" and row.connection is None)
    assert unseen.startswith(f"{1000 - seen} connections")


def test_a_gap_may_be_larger_than_any_frame(tmp_path: Path) -> None:
    writer = Writer(tmp_path, ORIGIN)
    scribe = Scribe(writer, Keeping(), lambda kind, message: None)
    scribe.take([("opened", 1, "request", START_NS, FIRST), ("gap", 1, "request", START_NS, 5 << 30)])
    scribe.end()
    assert [row.size for row in read_all(tmp_path) if row.kind == "lost"] == [5 << 30]


def test_what_cannot_be_written_is_counted_once_and_told_when_it_can(tmp_path: Path) -> None:
    """A folder that cannot be made: where it should be, there is a file."""
    folder, now_s, messages = tmp_path / "capture", [100.0], []
    folder.touch()
    scribe = Scribe(
        Writer(folder, ORIGIN, clock=lambda: now_s[0]),
        Keeping(),
        lambda kind, message: messages.append(f"{kind}: {message}"),
        clock=lambda: now_s[0],
    )
    scribe.take([("opened", 1, "request", START_NS, FIRST)])
    for n in range(20):
        scribe.take([("chunk", 1, "request", START_NS + n, heartbeat(n))])
        if n == 10:
            scribe.take([("gap", 1, "response", START_NS + n, None)])
        now_s[0] += 0.3
        scribe.tick()
    assert set(messages) == {
        f"capture_failed: {folder}: File exists; frames are lost until it takes them again"
    }
    assert 1 < len(messages) == scribe.counters.failures < 8
    folder.unlink()
    now_s[0] += 2
    scribe.take([("chunk", 1, "request", START_NS + 20, heartbeat(20))])
    assert scribe.counters.lost_frames == 21
    scribe.end()
    frame_row, lost_row = read_all(folder)
    assert (frame_row.correlation_id, lost_row.lost, lost_row.text) == (20, 21, "not written: File exists")


class NearlyFull(Writer):
    """Takes rows while there is room."""

    room = 0

    def write(self, rows: Sequence[Captured]) -> None:
        super().write(rows)
        self.room -= len(rows)
        if self.room < 0:
            raise OSError(ENOSPC, "No space left on device")


def test_a_disk_that_takes_a_few_rows_now_and_then_has_not_recovered_until_it_takes_them_for_a_while(
    tmp_path: Path,
) -> None:
    now_s, messages = [100.0], []
    writer = NearlyFull(tmp_path, ORIGIN, clock=lambda: now_s[0])
    scribe = Scribe(
        writer, Keeping(), lambda kind, message: messages.append((kind, message)), clock=lambda: now_s[0]
    )
    writer.room = 2
    scribe.take([("opened", 1, "request", START_NS, FIRST)])
    sent = 0

    def pass_by(seconds: float) -> None:
        nonlocal sent
        for _ in range(round(seconds / 0.5)):
            scribe.take([("chunk", 1, "request", START_NS + sent, heartbeat(sent))])
            sent, now_s[0] = sent + 1, now_s[0] + 0.5
            scribe.tick()

    for _ in range(3):
        pass_by(4)
        writer.room = 2  # for a row, and the one that says how many are lost
    assert {kind for kind, _ in messages} == {"capture_failed"}
    assert scribe.counters.failing
    writer.room = 1000
    pass_by(12)
    recovered_messages = [message for kind, message in messages if kind == "capture_recovered"]
    lost = scribe.counters.lost_frames
    assert recovered_messages == [f"{tmp_path}: written again after 12 s, {lost} frames lost meanwhile"]
    assert messages[-1][0] == "capture_recovered"
    assert not scribe.counters.failing
    scribe.end()


def test_a_disk_has_recovered_without_any_traffic_too(tmp_path: Path) -> None:
    now_s, kinds = [100.0], []
    writer = NearlyFull(tmp_path, ORIGIN, clock=lambda: now_s[0])
    scribe = Scribe(writer, Keeping(), lambda kind, message: kinds.append(kind), clock=lambda: now_s[0])
    scribe.take([("opened", 1, "request", START_NS, FIRST)])
    writer.room = 1000
    while (due_s := scribe.due_s()) is not None and "capture_recovered" not in kinds:
        now_s[0] = max(now_s[0], due_s)
        scribe.tick()
    assert kinds == ["capture_failed", "capture_recovered"]
    assert 105 < now_s[0] < 108
    scribe.end()


def test_a_disk_that_hangs_does_not_keep_klamm_from_ending(tmp_path: Path) -> None:
    slow = Slow()
    keeper = keeper_in(tmp_path, slow=slow)
    slow.goes_on.clear()
    keeper.opened(FIRST, START_NS)
    assert slow.waits.wait(PATIENCE_S)
    assert not keeper.stop(0.01)
    slow.goes_on.set()
    assert keeper.stop(PATIENCE_S)
    assert [row.kind for row in read_all(tmp_path)] == ["opened"]


def test_one_connection_that_cannot_be_followed_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = ConnectionReader.feed

    def failing(reader: ConnectionReader, *data: object) -> list[Captured]:
        if reader.connection == FIRST:
            raise RuntimeError("no way")
        return feed(reader, *data)  # type: ignore[arg-type]

    monkeypatch.setattr(ConnectionReader, "feed", failing)
    keeper = keeper_in(tmp_path)
    for of in (FIRST, SECOND):
        keeper.opened(of, START_NS)
    for number in (1, 2, 1, 2):
        keeper.chunk(number, "request", heartbeat(1), START_NS + 1)
    keeper.closed(1, "", START_NS + 2)
    assert keeper.stop(PATIENCE_S)
    rows = read_all(tmp_path)
    assert [row.connection for row in rows if row.kind == "frame"] == [SECOND, SECOND]
    (lost_row,) = (row for row in rows if row.kind == "lost")
    assert lost_row.connection == FIRST
    assert "RuntimeError('no way')" in lost_row.text


def test_with_an_expression_only_exchanges_for_which_it_holds_are_kept(tmp_path: Path) -> None:
    keeper = keeper_in(tmp_path, where='group == "billing"')
    keeper.opened(FIRST, START_NS)
    for n in range(100):
        group = "billing" if n % 10 == 0 else "other"
        keeper.chunk(1, "request", heartbeat(n, group), START_NS + 2 * n)
        keeper.chunk(1, "response", answer(n), START_NS + 2 * n + 1)
    keeper.chunk(1, "request", heartbeat(100, "billing"), START_NS + 500)
    keeper.closed(1, "", START_NS + 1000)
    assert keeper.stop(PATIENCE_S)
    rows = read_all(tmp_path)
    numbers = [n for n in range(0, 100, 10) for _ in (1, 2)]
    assert [row.correlation_id for row in rows if row.kind == "frame"] == [*numbers, 100]
    assert [row.kind for row in rows if row.kind != "frame"] == ["opened", "closed"]


def test_requests_that_wait_for_an_answer_are_bounded() -> None:
    picking = Picking(parse('group == "billing"'), most_bytes=1000)
    talk = Talk(connection())
    values = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
    for _ in range(200):
        talk.request("Heartbeat", 4, values)
    rows = [stored(row) for row in in_time(talk)]
    early = picking.picked(rows)
    assert sum(len(row.frame or b"") for row in rows[len(early) :]) <= 1000
    assert early + picking.rest() == rows


def test_a_capture_is_written_and_a_leftover_sealed_without_pyarrow(tmp_path: Path) -> None:
    """It is large, and a proxy in a sidecar has no other use for it."""
    left = begin(tmp_path / "20240101T000000Z-klamm-0-00000001-000001.arrow.growing", ORIGIN)
    left.write([frame(0)])
    left.abandon()
    code = (
        "import sys, time; from pathlib import Path; from tests.captures.keeping_process import *;"
        f"keeper = keeper_in(Path({str(tmp_path)!r})); send(keeper, 0, lambda: keeper.counters.rows > 10);"
        "assert keeper.stop(60); assert 'pyarrow' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
    assert [row.kind for row in read_all(tmp_path)][:3] == ["frame", "lost", "opened"]
    assert not left.path.exists()
