"""Captures cut into parts, and parts that are not looked at."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Writer
from klamm.decoders import API
from klamm.pipeline.reading import parts as module
from klamm.pipeline.reading.filters import ns
from klamm.pipeline.reading.parts import Part, Wanted, parts
from klamm.pipeline.reading.source import Stream, wanted
from tests.captures.rows import START_NS, Talk, connection

HEARTBEAT, PRODUCE = API["Heartbeat"].key, API["Produce"].key
SECOND = 1_000_000_000


class Folder:
    """Segments of two batches each, a second apart, of one API each."""

    def __init__(self, path: Path) -> None:
        self.path, self.writer = path, Writer(path, Origin("a"))
        self.talk = Talk(connection())

    def segment(self, api: str, sealed: bool = True) -> str:
        for _ in range(2):
            self.talk.heartbeat() if api == "Heartbeat" else self.talk.produce()
            self.talk.now_ms += 1000
            self.writer.write(self.talk.rows)
            self.talk.rows = []
            self.writer.flush()
        path = sorted(self.path.iterdir())[-1]
        if sealed:
            self.writer.seal()
        return str(path).removesuffix(".growing")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    made.writer.seal()


def names(found: list[Part]) -> list[tuple[str, int, int]]:
    return [(part.path, part.first, part.stop) for part in found]


def test_segments_are_parts_under_the_names_that_they_have_when_they_are_sealed(
    folder: Folder, tmp_path: Path
) -> None:
    one, other = folder.segment("Heartbeat"), folder.segment("Produce", sealed=False)
    assert names(parts([str(tmp_path)])) == [(one, 0, 2), (other, 0, 2)]
    assert parts([str(tmp_path)])[0].api_keys == {HEARTBEAT}
    assert parts([str(tmp_path)])[1].api_keys is None


def test_large_segments_are_several_parts(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.segment("Produce")
    monkeypatch.setattr(module, "PART_BYTES", 1)
    monkeypatch.setattr(module, "MOST_PART_BYTES", 1)
    assert names(parts([str(tmp_path)])) == [(path, 0, 1), (path, 1, 2)]


def test_segments_without_the_wanted_apis_are_no_parts(folder: Folder, tmp_path: Path) -> None:
    folder.segment("Heartbeat")
    other = folder.segment("Produce")
    asked = wanted([("api", "==", "Produce"), ("side", "==", "request")])
    assert names(parts([str(tmp_path)], asked)) == [(other, 0, 2)]
    assert names(parts([str(tmp_path)], wanted([("api", "in", ["Fetch", "Nonsense"])]))) == [("", 0, 0)]


def test_sealed_segments_without_the_wanted_client_are_no_parts(folder: Folder, tmp_path: Path) -> None:
    one = folder.segment("Heartbeat")
    folder.talk = Talk(connection(2), "billing")
    other, growing = folder.segment("Produce"), folder.segment("Produce", sealed=False)

    def found(operator: str, value: object) -> list[str]:
        return [part.path for part in parts([str(tmp_path)], wanted([("client_id", operator, value)]))]

    assert found("==", "app") == [one, growing]
    assert found("==", "billing") == [other, growing]
    assert found("in", ["billing", "app"]) == [one, other, growing]
    assert found("==", "nobody") == [growing]


def test_batches_of_other_times_are_no_parts(folder: Folder, tmp_path: Path) -> None:
    one, other = folder.segment("Heartbeat"), folder.segment("Produce")
    later = datetime.fromtimestamp(START_NS / SECOND + 2, UTC)
    assert names(parts([str(tmp_path)], wanted([("time", ">=", later)]))) == [(other, 0, 2)]
    assert names(parts([str(tmp_path)], wanted([("time", "<", later)]))) == [(one, 0, 2)]
    assert ns(later) == START_NS + 2 * SECOND == ns(later.replace(tzinfo=None))


def test_conditions_on_one_column_are_all_held() -> None:
    assert wanted([("api", "in", ["Produce", "Fetch"]), ("api_key", "==", 0)]).api_keys == {0}
    assert wanted([("client_id", ">", "app"), ("connection", "==", 1), ("kind", "==", "lost")]) == Wanted()
    assert wanted([("client_id", "in", ["a", "b"])]).texts == (("client_id", ("a", "b")),)


def test_what_cannot_be_read_is_a_part_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no capture at all")
    empty = tmp_path / "empty"
    empty.mkdir()
    found = parts([str(tmp_path), str(empty), str(tmp_path / "nowhere")])
    assert {(Path(part.path).name, part.fault) for part in found} == {
        ("notes.txt", "no segment of a capture"),
        ("empty", "no capture is in this folder"),
        ("nowhere", "No such file or directory"),
    }


def test_a_truncated_segment_is_read_as_far_as_it_goes_and_says_so(folder: Folder, tmp_path: Path) -> None:
    path = Path(folder.segment("Produce"))
    path.write_bytes(path.read_bytes()[:-400])
    fault, rest = parts([str(tmp_path)])
    assert fault.fault
    assert (rest.path, rest.first) == (str(path), 0)


def test_a_stream_gives_each_batch_once_while_a_segment_grows_is_sealed_and_another_begins(
    folder: Folder, tmp_path: Path
) -> None:
    stream = Stream([str(tmp_path)], None, None)  # type: ignore[arg-type]
    seen: list[tuple[str, int, int]] = []
    offset = stream.initialOffset()

    def read() -> None:
        nonlocal offset
        latest = stream.latestOffset(offset)
        seen.extend(names([slice.part for slice in stream.partitions(offset, latest)]))  # type: ignore[attr-defined]
        offset = latest

    one = folder.segment("Heartbeat", sealed=False)
    read()
    folder.talk.heartbeat()
    folder.writer.write(folder.talk.rows)
    folder.writer.seal()
    read()
    other = folder.segment("Produce")
    read()
    read()
    assert seen == [(one, 0, 2), (one, 2, 3), (other, 0, 2)]


def test_a_stream_says_once_what_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no capture at all")
    stream = Stream([str(tmp_path)], None, None)  # type: ignore[arg-type]
    first = stream.latestOffset(stream.initialOffset())
    (part,) = stream.partitions(stream.initialOffset(), first)
    assert part.part.fault == "no segment of a capture"  # type: ignore[attr-defined]
    assert stream.partitions(first, stream.latestOffset(first)) == []
