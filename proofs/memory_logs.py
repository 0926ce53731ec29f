"""Partitions for the memory proof: large, with known contents. Written with `struct`, not with the package."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import google_crc32c
from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_END: Final = 21
OFFSET_SLOT: Final = struct.Struct(">ii")
TIME_SLOT: Final = struct.Struct(">qi")
TIME_MS: Final = 1_700_000_000_000
BATCH_RECORDS: Final = 10
HELD: Final = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
MEBIBYTE: Final = 2**20


@dataclass(frozen=True)
class Made:
    """A log directory of one partition.

    Attributes:
        root: the log directory.
        path: the partition.
        segments: base offset of each segment, and the offset after its last record.
        readable: number of records that a reader gets from the start of each segment, up to a hole or the end.
    """

    root: Path
    path: Path
    segments: tuple[tuple[int, int], ...]
    readable: int

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.segments[-1][1]

    def log(self, number: int) -> Path:
        """Return the log of a segment."""
        return self.path / f"{self.segments[number][0]:020d}.log"


def varint(value: int) -> bytes:
    """Return a signed number as a zigzag varint."""
    value, groups = value << 1 ^ value >> 63, []
    while value > 127:  # noqa: PLR2004 - seven bits
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def record(delta: int, value: bytes) -> bytes:
    """Return a record without a key."""
    body = b"\0\0" + varint(delta) + varint(-1) + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


class Template:
    """A batch that can be written at any offset, since no checksum covers the offset.

    Args:
        values: values of its records.
    """

    def __init__(self, values: list[bytes]) -> None:
        self.count = len(values)
        section = b"".join(record(delta, value) for delta, value in enumerate(values))
        last = self.count - 1
        fields = (0, len(section) + 49, 0, 2, 0, 0, last, TIME_MS, TIME_MS, -1, -1, -1, self.count)
        data = HEADER.pack(*fields) + section
        crc = google_crc32c.value(data[CRC_END:])
        self._data = data[:17] + struct.pack(">I", crc) + data[CRC_END:]
        self._kept = len(data.rstrip(b"\0"))
        self.size = len(data)

    def parts(self, base_offset: int) -> tuple[bytes, int]:
        """Return its bytes at an offset, without the zeros at its end, and the number of these zeros."""
        return base_offset.to_bytes(8, "big") + self._data[8 : self._kept], self.size - self._kept


class SegmentWriter:
    """Writes one segment with its indexes.

    Args:
        path: of the partition.
        base_offset: of the segment.
    """

    def __init__(self, path: Path, base_offset: int) -> None:
        self._stem = path / f"{base_offset:020d}"
        self._file = self._stem.with_suffix(".log").open("wb")
        self._base, self.next_offset = base_offset, base_offset
        self._index = bytearray()

    def add(self, template: Template) -> None:
        """Append a batch; the zeros at its end become a hole."""
        position = self._file.tell()
        if position:
            self._index += OFFSET_SLOT.pack(self.next_offset + template.count - 1 - self._base, position)
        data, zeros = template.parts(self.next_offset)
        self._file.write(data)
        self._file.seek(zeros, 1)
        self.next_offset += template.count

    def skip(self, size: int) -> None:
        """Leave a hole."""
        self._file.seek(size, 1)

    def fill(self, template: Template, size: int) -> None:
        """Append the same batch until the log has about `size` bytes."""
        while self._file.tell() < size:
            self.add(template)

    def close(self, first_count: int) -> tuple[int, int]:
        """Write the indexes; return base offset and next offset of the segment."""
        self._file.truncate()
        self._file.close()
        self._stem.with_suffix(".index").write_bytes(self._index)
        self._stem.with_suffix(".timeindex").write_bytes(TIME_SLOT.pack(TIME_MS, first_count - 1))
        return self._base, self.next_offset


def _directory(root: Path) -> Path:
    path = root / "large-0"
    path.mkdir(parents=True)
    (root / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=proof\n", encoding="ascii")
    (root / "recovery-point-offset-checkpoint").write_text("0\n1\nlarge 0 0\n", encoding="ascii")
    return path


def full_log(root: Path, seed: int, segments: int, size: int) -> Made:
    """Return a partition whose segments hold small records, every byte of them written."""
    path, dice = _directory(root), random.Random(seed)
    template = Template([dice.randbytes(1000) for _ in range(BATCH_RECORDS)])
    found, offset = [], 0
    for _ in range(segments):
        writer = SegmentWriter(path, offset)
        writer.fill(template, size)
        found.append(writer.close(BATCH_RECORDS))
        offset = found[-1][1]
    return Made(root, path, tuple(found), found[0][1])


def sparse_log(root: Path, segments: int, size: int, *, has_hole: bool) -> Made:
    """Return a partition of sparse segments with small batches at both ends.

    Args:
        root: the log directory.
        segments: number of segments.
        size: approximate size of each.
        has_hole: whether zeros are between the ends, as after a power failure; else batches of 8 MiB, nearly all zeros.
    """
    path = _directory(root)
    small, large = Template([b"value"] * BATCH_RECORDS), Template([bytes(8 * MEBIBYTE)])
    found, offset = [], 0
    for _ in range(segments):
        writer = SegmentWriter(path, offset)
        for _ in range(5):
            writer.add(small)
        if has_hole:
            writer.skip(size)
        else:
            writer.fill(large, size)
        for _ in range(5):
            writer.add(small)
        found.append(writer.close(BATCH_RECORDS))
        offset = found[-1][1]
    return Made(root, path, tuple(found), 5 * BATCH_RECORDS if has_hole else found[0][1])


def huge_files(root: Path, size: int) -> Made:
    """Return a partition with an intact segment, a segment with a too large log, and one with a too large index."""
    path = _directory(root)
    small, found, offset = Template([b"value"] * BATCH_RECORDS), [], 0
    for _ in range(3):
        writer = SegmentWriter(path, offset)
        writer.add(small)
        found.append(writer.close(BATCH_RECORDS))
        offset = found[-1][1]
    made = Made(root, path, tuple(found), BATCH_RECORDS)
    for file in (made.log(1), made.log(2).with_suffix(".index")):
        with file.open("r+b") as opened:
            opened.truncate(size)
    return made


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold the lock of a log directory in another process, as a broker does."""
    command = [sys.executable, "-c", HELD, str(root / ".lock")]
    with child_processes.start(
        command, directory=child_processes.NOWHERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.communicate(b"\n")
            (root / ".lock").unlink()
