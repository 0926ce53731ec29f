"""A scan counts the entries that it leaves to slower code, by cause."""

from __future__ import annotations

import gzip
import json
import struct
from typing import TYPE_CHECKING, Final

import pytest

pytest.importorskip("pyarrow")

import lz4.frame
from helpers.scans import segment_directory

from seglog_format import (
    CompressionCodec,
    build_batch,
    encode_batch,
    export,
    new_record,
    open_log_directory,
    open_partition,
)
from seglog_format.cli.main import UNREADABLE, run
from seglog_format.codec.build import build_message_entry
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.errors import FormatError
from seglog_format.types import FallbackCause, ScanStatistics

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.types import RecordBatch

COUNT: Final = 10
"""Records of a batch."""


def batch(base_offset: int) -> bytes:
    records = [new_record(value=b"value %d" % number, timestamp_ms=number) for number in range(COUNT)]
    return encode_batch(build_batch(records, base_offset=base_offset))


def message(base_offset: int) -> bytes:
    return encode_batch(entry_of_messages(1, base_offset))


def wrapper(base_offset: int) -> bytes:
    return encode_batch(entry_of_messages(COUNT, base_offset, CompressionCodec.GZIP))


def entry_of_messages(count: int, base_offset: int, codec: CompressionCodec = CompressionCodec.NONE) -> RecordBatch:
    messages = [new_record(value=b"value %d" % number, timestamp_ms=number) for number in range(count)]
    return build_message_entry(messages, magic=1, base_offset=base_offset, codec=codec)


def packed(plain: bytes, codec: CompressionCodec, content: bytes) -> bytes:
    """Return a batch with other bytes where its records are, which are said to be compressed."""
    changed = bytearray(plain[:61] + content)
    struct.pack_into(">h", changed, 21, codec)
    return sealed(changed)


def sealed(entry: bytes) -> bytes:
    """Return an entry whose size and checksum are made to fit."""
    changed = bytearray(entry)
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    if changed[16] == 2:
        struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    else:
        struct.pack_into(">I", changed, 12, crc32(bytes(changed[16:])))
    return bytes(changed)


def changed_at(entry: bytes, at: int, mask: int = 1) -> bytes:
    changed = bytearray(entry)
    changed[at] ^= mask
    return bytes(changed)


def damaged_lz4(base_offset: int) -> bytes:
    """Return a batch in a frame with block checksums, one of which is wrong."""
    plain = batch(base_offset)
    frame = lz4.frame.compress(plain[61:], block_linked=False, block_checksum=True)
    return packed(plain, CompressionCodec.LZ4, changed_at(frame, -5))


def two_members(base_offset: int) -> bytes:
    """Return a batch in a container that only the library decompresses."""
    plain = batch(base_offset)
    return packed(plain, CompressionCodec.GZIP, gzip.compress(plain[61:80]) + gzip.compress(plain[80:]))


def wrapper_with(content: bytes) -> bytes:
    """Return a wrapper whose compressed bytes are others."""
    made = wrapper(1)
    start = made.index(b"\x1f\x8b")
    return sealed(made[: start - 4] + struct.pack(">i", len(content)) + content)


ONE_IN_THE_MIDDLE: Final = {
    "batch of an unknown magic": (FallbackCause.FRAMING, batch(0), changed_at(batch(COUNT), 16, 4)),
    "batch whose offsets were there": (FallbackCause.OFFSETS, batch(0), batch(0)),
    "batch with a changed byte": (FallbackCause.CHECKSUM, batch(0), changed_at(batch(COUNT), -1)),
    "batch in a damaged lz4 block": (FallbackCause.COMPRESSION, batch(0), damaged_lz4(COUNT)),
    "batch of too many records": (FallbackCause.RECORDS, batch(0), sealed(changed_at(batch(COUNT), 60, 8 ^ COUNT))),
    "message whose size is too small": (FallbackCause.FRAMING, message(0), changed_at(message(1), 11, 0x1C)),
    "message whose offset was there": (FallbackCause.OFFSETS, message(0), message(0)),
    "message with a changed byte": (FallbackCause.CHECKSUM, message(0), changed_at(message(1), -1)),
    "message whose key is too long": (FallbackCause.RECORDS, message(0), sealed(changed_at(message(1), 26, 0x80))),
    "wrapper with a changed byte": (FallbackCause.CHECKSUM, message(0), changed_at(wrapper(1), 17)),
    "wrapper of bytes that are no gzip": (FallbackCause.COMPRESSION, message(0), wrapper_with(b"no gzip member")),
    "wrapper without a message": (FallbackCause.RECORDS, message(0), wrapper_with(gzip.compress(b""))),
}


def statistics_of(path: Path, *, threads: int = 1) -> ScanStatistics:
    """Return what a scan counts that goes on behind damage where it can."""
    statistics = ScanStatistics()
    on_corrupt = None if threads > 1 else (lambda _: None)
    with open_partition(path) as partition:
        partition.scan(["offset"], on_corrupt=on_corrupt, threads=threads, statistics=statistics).read_all()
    return statistics


@pytest.mark.parametrize("name", ONE_IN_THE_MIDDLE)
def test_an_entry_is_counted_by_what_is_wrong(name: str, tmp_path: Path) -> None:
    cause, before, entry = ONE_IN_THE_MIDDLE[name]
    found = statistics_of(segment_directory(tmp_path / "t-0", before + entry))
    assert dict(found.fallbacks) == {cause: 1}
    assert found.fallback_count == 1


@pytest.mark.parametrize("name", ONE_IN_THE_MIDDLE)
def test_an_entry_that_ends_the_scan_is_counted(name: str, tmp_path: Path) -> None:
    cause, before, entry = ONE_IN_THE_MIDDLE[name]
    for threads in (1, 2):
        statistics = ScanStatistics()
        with open_partition(segment_directory(tmp_path / "t-0", before + entry)) as partition:
            reader = partition.scan(["offset"], statistics=statistics, threads=threads)
            with pytest.raises(FormatError):
                reader.read_all()
        assert dict(statistics.fallbacks) == {cause: 1}


def test_sound_entries_and_the_end_of_a_log_are_not_counted(tmp_path: Path) -> None:
    frame = lz4.frame.compress(batch(COUNT)[61:], block_linked=False, block_checksum=True)
    data = batch(0) + packed(batch(COUNT), CompressionCodec.LZ4, frame) + batch(2 * COUNT)[:-1]
    assert statistics_of(segment_directory(tmp_path / "t-0", data)) == ScanStatistics()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_a_library_decompresses_is_counted(threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglog_format.columnar import scan

    monkeypatch.setattr(scan, "RANGE_SIZE", 300)
    data = b"".join(map(two_members, range(0, 20 * COUNT, COUNT)))
    found = statistics_of(segment_directory(tmp_path / "t-0", data), threads=threads)
    assert found == ScanStatistics(library_decompressed=20)


def test_one_object_counts_several_scans(tmp_path: Path) -> None:
    for number in range(3):
        segment_directory(tmp_path / f"t-{number}", two_members(0) + changed_at(batch(COUNT), -1))
    statistics = ScanStatistics()
    reader = open_log_directory(tmp_path).scan(["offset"], on_corrupt=lambda _: None, statistics=statistics)
    assert reader.read_all().num_rows == 3 * COUNT
    assert statistics.library_decompressed == 3
    assert dict(statistics.fallbacks) == {FallbackCause.CHECKSUM: 3}


def test_export_counts_what_its_scans_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment_directory(tmp_path / "t-0", two_members(0) + changed_at(batch(COUNT), -1))
    command = ["export", "--stats", str(tmp_path / "t-0"), "--format", "csv", "--to"]
    assert run([*command, str(tmp_path / "a")]) == UNREADABLE
    assert "1 decompressed by a library, 1 entry left to slower code (checksum 1)\n" in capsys.readouterr().err
    run([*command, str(tmp_path / "b"), "--json"])
    expected = {"type": "statistics", "libraryDecompressed": 1, "fallbacks": {"checksum": 1}}
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == expected
    statistics = ScanStatistics()
    with pytest.raises(FormatError):
        export(tmp_path / "t-0", tmp_path / "c", format="csv", statistics=statistics)
    assert (statistics.library_decompressed, dict(statistics.fallbacks)) == (1, {FallbackCause.CHECKSUM: 1})
