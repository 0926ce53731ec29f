"""Partition directories written by hand for tests that change them, and the file system that fails under them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from helpers.batches import batch, record
from seglog_format.storage.files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

EPOCHS = "leader-epoch-checkpoint"
EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")


def entry(base: int, count: int = 1, *, time: int = 1000, epoch: int = 0, **fields: int) -> bytes:
    """Return a record batch of records that all have the same size."""
    section = b"".join(record(offset_delta=number, value=b"v" * 40) for number in range(count))
    times = {"base_timestamp_ms": time, "max_timestamp_ms": time}
    return batch(section, count, base_offset=base, partition_leader_epoch=epoch, **times, **fields)


ONE = len(entry(0))
"""Size of a batch with one record."""


def transactional(base: int, producer: int = 7) -> bytes:
    """Return a batch in a transaction."""
    return entry(base, attributes=0x10, producer_id=producer, producer_epoch=0, base_sequence=0)


def control(base: int, kind: int, *, producer: int = 7, value: bytes = bytes(6), **fields: int) -> bytes:
    """Return a batch with an end marker: 0 is ABORT, 1 is COMMIT."""
    section = record(key=struct.pack(">hh", 0, kind), value=value)
    return batch(section, base_offset=base, attributes=0x30, producer_id=producer, producer_epoch=0, **fields)


def make(root: Path, files: Mapping[str, bytes], *, clean: bool = False, log_start: int | None = None) -> Path:
    """``orders-0`` in a log directory; ``0.log`` stands for 00000000000000000000.log and so on."""
    directory = root / "logs" / "orders-0"
    directory.mkdir(parents=True)
    for name, data in files.items():
        (directory / numbered(name)).write_bytes(data)
    if clean:
        (directory.parent / ".kafka_cleanshutdown").touch()
    if log_start is not None:
        checkpoint(directory, "log-start-offset-checkpoint", log_start)
    return directory


def checkpoint(directory: Path, name: str, offset: int) -> None:
    """Write an offset checkpoint of the log directory, with a line for this partition."""
    text = f"0\n2\norders 0 {offset}\norders 1 77\n"
    (directory.parent / name).write_text(text, encoding="utf-8")


def numbered(name: str) -> str:
    """``12.log`` as ``00000000000000000012.log``; other names as they are."""
    digits, dot, rest = name.partition(".")
    return f"{int(digits):020d}{dot}{rest}" if digits.isdecimal() else name


def names(directory: Path) -> list[str]:
    """File names without their leading zeros."""
    return sorted(path.name.lstrip("0") for path in directory.iterdir())


def content(directory: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def log_sizes(directory: Path) -> dict[int, int]:
    """Size of each log by base offset."""
    return {int(path.stem): path.stat().st_size for path in directory.glob("*.log")}


class PowerCutError(Exception):
    """What stands for the end of the process."""


class CountedFiles(LocalFiles):
    """The file system, until the power goes at the n-th change."""

    def __init__(self, until: int) -> None:
        self.left = until

    def count(self) -> None:
        if not self.left:
            raise PowerCutError
        self.left -= 1

    def create(self, path: Path, size: int = 0) -> Any:  # noqa: ANN401 - a handle that counts
        self.count()
        return CountedHandle(super().create(path, size), self)

    def create_new(self, path: Path, size: int = 0) -> Any:  # noqa: ANN401 - as above
        self.count()
        return CountedHandle(super().create_new(path, size), self)

    def publish(self, path: Path, target: Path) -> None:
        self.count()
        super().publish(path, target)

    def open_append(self, path: Path) -> Any:  # noqa: ANN401 - as above
        return CountedHandle(super().open_append(path), self)

    def rename(self, path: Path, target: Path) -> None:
        self.count()
        super().rename(path, target)

    def remove(self, path: Path) -> None:
        self.count()
        super().remove(path)

    def fsync_directory(self, path: Path) -> None:
        self.count()
        super().fsync_directory(path)


class CountedHandle:
    """A file; half of what is written last is there when the power goes."""

    def __init__(self, handle: Any, files: CountedFiles) -> None:  # noqa: ANN401 - a handle of any kind
        self.handle, self.files = handle, files

    def write(self, data: bytes) -> None:
        if not self.files.left:
            self.handle.write(data[: len(data) // 2])
        self.files.count()
        self.handle.write(data)

    def truncate(self, size: int) -> None:
        self.files.count()
        self.handle.truncate(size)

    def fsync(self) -> None:
        self.files.count()
        self.handle.fsync()

    def close(self) -> None:
        self.handle.close()


def flipped(data: bytes, position: int = -1, by: int = 1) -> bytes:
    """Return bytes with one of them changed."""
    changed = bytearray(data)
    changed[position] ^= by
    return bytes(changed)


def singles(offsets: Iterable[int]) -> bytes:
    """Return a batch of one record for each offset."""
    return b"".join(map(entry, offsets))


RECORD: Final = record(3, 0, b"kk", b"vvv", ((b"h", b"x"), (b"i", None)))
UNREADABLE_BATCHES: Mapping[str, bytes] = {
    "magic 3": flipped(entry(5, 5), 16, 1),
    "magic 9": flipped(entry(5, 5), 16, 11),
    "records that do not decode": entry(5, 5, records_count=6),
    "an undefined codec": entry(5, 5, attributes=7),
    **{
        f"a record of {size} bytes": batch(bytes([2 * size]) + RECORD[1 : size + 1], base_offset=5, last_offset_delta=4)
        for size in range(len(RECORD) - 1)
    },
}
"""Batches of the offsets 5 to 9 with the right checksum, which covers no magic, and which no reader can read."""
