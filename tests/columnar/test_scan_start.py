"""Where a scan starts: entries before the first wanted offset are proven, and nothing is decoded without need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.messages import message, wrapper
from helpers.scans import segment_directory

from seglog_format import open_partition
from seglog_format.errors import FormatError
from seglog_format.log.reading import LogReader

if TYPE_CHECKING:
    from pathlib import Path

WRAPPERS = [wrapper(message(0, magic=1), message(1, magic=1), offset=last, magic=1) for last in (1, 3)]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that were decoded to find the start."""
    found: list[int] = []
    plain = LogReader.first_batch

    def first_batch(reader: LogReader, segment, frame, offset):  # noqa: ANN001, ANN202 - handed on
        found.append(frame.position)
        return plain(reader, segment, frame, offset)

    monkeypatch.setattr(LogReader, "first_batch", first_batch)
    return found


def offsets(path: Path, start: int) -> list[int]:
    with open_partition(path) as partition:
        return partition.scan(("offset",), start).read_all()["offset"].to_pylist()


def test_no_wrapper_is_decoded_to_start_with_the_first_entry(tmp_path: Path, decoded: list[int]) -> None:
    path = segment_directory(tmp_path, b"".join(WRAPPERS))
    assert offsets(path, 0) == [0, 1, 2, 3]
    assert not decoded


def test_a_wrapper_behind_others_is_decoded_to_see_what_it_starts_with(tmp_path: Path, decoded: list[int]) -> None:
    path = segment_directory(tmp_path, b"".join(WRAPPERS))
    assert offsets(path, 2) == [2, 3]
    assert decoded == [len(WRAPPERS[0])]


def test_damage_in_the_first_wrapper_is_told(tmp_path: Path) -> None:
    data = bytearray(b"".join(WRAPPERS))
    data[len(WRAPPERS[0]) - 1] ^= 1
    with pytest.raises(FormatError):
        offsets(segment_directory(tmp_path, bytes(data)), 0)
