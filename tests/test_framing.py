"""Chapter 20: the walk over the entries of a log."""

from __future__ import annotations

import struct
import zlib

import pytest
from helpers.batches import patched
from helpers.decoders import decode_batch
from helpers.support import vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec.framing import walk
from seglog_format.errors import CorruptRecordError, FormatError
from seglog_format.model import TailKind


def frames(data: bytes) -> list[tuple[int, int, int]]:
    return [(frame.position, frame.header.magic, frame.header.last_offset) for frame in walk(data)]


def tail(data: bytes) -> tuple[TailKind, int, int]:
    entries = walk(data)
    assert len(list(entries)) == 1
    return entries.tail.kind, entries.tail.position, entries.tail.size


@pytest.mark.req("SEG-LOG-001")
def test_entries_follow_each_other() -> None:
    assert frames(vector("V-01")) == [(0, 0, 10), (27, 0, 11), (54, 0, 12)]
    assert frames(vector("V-06") + patched(vector("V-08"), 0, "q", 13)) == [(0, 2, 12), (87, 2, 13)]


@pytest.mark.req("SEG-LOG-011")
def test_magics_may_change_inside_a_file() -> None:
    data = vector("V-06") + vector("V-01")[:27] + vector("V-02")[:35] + vector("V-12")
    assert [magic for _, magic, _ in frames(data)] == [2, 0, 1, 2]


@pytest.mark.req("SEG-LOG-002")
@each_of("size", range(1, 18))
def test_seventeen_trailing_bytes_are_not_looked_at(size: int) -> None:
    assert tail(vector("V-06") + b"\xff" * size) == (TailKind.TRAILING, 87, size)


@pytest.mark.req("SEG-LOG-003")
@pytest.mark.parametrize("size", [13, 1, -1, -(2**31)])
def test_size_below_14(size: int) -> None:
    data = vector("V-06") + struct.pack(">qiib", 13, size, 0, 2) + b"\1"
    with pytest.raises(CorruptRecordError) as caught:
        frames(data)
    assert caught.value.requirements == ("SEG-LOG-003",)
    assert caught.value.location.position == 87 + 8


@pytest.mark.req("SEG-LOG-004")
@each_of("size", range(18, 87))
def test_entry_cut_short(size: int) -> None:
    assert tail(vector("V-06") + vector("V-06")[:size]) == (TailKind.PARTIAL, 87, size)


@pytest.mark.req("SEG-LOG-005")
@pytest.mark.parametrize("size", [1, 12, 17, 18, 4096, 70_000])
def test_zeros_end_a_log(size: int) -> None:
    assert tail(vector("V-06") + bytes(size)) == (TailKind.ZEROS, 87, size)


@pytest.mark.req("SEG-LOG-003", "SEG-LOG-005")
@pytest.mark.parametrize("zeros", [30, 70_000])
def test_zeros_with_something_behind_are_damage(zeros: int) -> None:
    with pytest.raises(CorruptRecordError, match="SEG-LOG-003"):
        frames(vector("V-06") + bytes(zeros) + b"\1")


@pytest.mark.req("SEG-MSG-003")
@pytest.mark.parametrize(("magic", "size"), [(1, 14), (1, 21)])
def test_message_without_room_for_its_fields(magic: int, size: int) -> None:
    body = struct.pack(">bb", magic, 0) + bytes(size - 6)
    data = struct.pack(">qiI", 0, size, zlib.crc32(body)) + body
    with pytest.raises(CorruptRecordError, match="SEG-MSG-003"):
        decode_batch(data)
    assert len(frames(data)) == 1


def test_a_walk_can_start_and_end_anywhere() -> None:
    data = vector("V-06") + patched(vector("V-06"), 0, "q", 13)
    assert [frame.position for frame in walk(data, 87)] == [87]
    assert [frame.position for frame in walk(data, 0, 150)] == [0]


def test_nothing_at_all() -> None:
    entries = walk(b"")
    assert list(entries) == []
    assert entries.tail.kind is TailKind.NONE


@given(st.binary(max_size=200))
def test_any_bytes_end_or_are_refused(data: bytes) -> None:
    try:
        found = list(walk(data))
    except FormatError:
        return
    assert all(frame.end <= len(data) for frame in found)
