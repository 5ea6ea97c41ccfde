"""A folder's sealed segments as a tar."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from klamm.captures.storage import archive
from klamm.captures.storage.archive import archive_name, pieces, sealed
from klamm.captures.storage.reading import read
from tests.captures.rows import Talk, written

NAME = "20261122T120000Z-pod-0123abcd-00000{}.arrow"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sealed segments, one that grows, and what is none of a capture's."""
    made = tmp_path / "traffic"
    made.mkdir()
    for number in (2, 1):
        talk = Talk().opened().produce(records=b"r" * 1000 * number)
        written(made / NAME.format(number), talk.rows)
    (made / f"{NAME.format(3)}.growing").write_bytes(b"begun")
    (made / "notes.arrow").write_bytes(b"not of a capture")
    (made / "password").write_bytes(b"secret")
    (tmp_path / NAME.format(9)).write_bytes(b"outside")
    (made / NAME.format(4)).symlink_to(tmp_path / NAME.format(9))
    (made / NAME.format(5)).mkdir()
    return made


def unpacked(data: bytes, into: Path) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert all(one.mode == 0o600 and one.mtime for one in tar.getmembers())
        tar.extractall(into, filter="data")
        return tar.getnames()


def test_an_archive_has_the_sealed_segments_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    found = sealed(folder)
    assert [one.name for one in found] == [NAME.format(1), NAME.format(2)]
    assert [one.bytes for one in found] == [(folder / one.name).stat().st_size for one in found]
    names = unpacked(b"".join(pieces(folder, found)), tmp_path / "there")
    assert names == [f"traffic/{NAME.format(1)}", f"traffic/{NAME.format(2)}"]
    for name in (NAME.format(1), NAME.format(2)):
        rows = list(read([folder / name]))
        assert len(rows) == 3
        assert list(read([tmp_path / "there" / "traffic" / name])) == rows


def test_pieces_are_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PIECE_BYTES", 100)
    sizes = [len(each) for each in pieces(folder, sealed(folder))]
    assert max(sizes) <= 2 * tarfile.BLOCKSIZE
    assert len(sizes) > 20


def test_what_was_deleted_or_replaced_meanwhile_is_left_out(folder: Path, tmp_path: Path) -> None:
    found = sealed(folder)
    (folder / found[0].name).unlink()
    assert unpacked(b"".join(pieces(folder, found)), tmp_path) == [f"traffic/{found[1].name}"]
    os.mkfifo(folder / found[0].name)
    assert unpacked(b"".join(pieces(folder, found)), tmp_path) == [f"traffic/{found[1].name}"]
    (folder / found[0].name).unlink()
    (folder / found[0].name).symlink_to(folder / "password")
    with pytest.raises(OSError, match="symbolic links"):
        b"".join(pieces(folder, found))


def test_the_folder_in_the_archive_has_a_name_that_leads_nowhere() -> None:
    names = ["traffic", "..", ".", "a b", ".hidden", "tr\nick", ""]
    assert [archive_name(Path("x") / name) for name in names] == [
        "traffic", "capture", "x", "a_b", "hidden", "tr_ick", "x",
    ]  # fmt: skip
