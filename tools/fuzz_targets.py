"""What fuzzing and checks of bounds run: bytes go to the columnar engine and to the reference, which have to agree.

The first byte of an input says to whom the others go, whether checksums are made right before, and what is asked:

====  ==============================================================================
bits  meaning
====  ==============================================================================
0-2   number of the target, in the order of `TARGETS`
3     sizes are right already, or not: checksums (and headers of lz4 frames) are made right
4-7   what is asked of the target
====  ==============================================================================
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import struct
import sys
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import xxhash

from seglog_format.checks import verify_log
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.checksum import crc32
from seglog_format.codec.compress import compress
from seglog_format.codec.compression import decompress
from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.framing import walk
from seglog_format.columnar import plan as names
from seglog_format.columnar.batch_table import batch_table, sound_size
from seglog_format.columnar.clear import Clearing
from seglog_format.columnar.copying import SLACK
from seglog_format.columnar.encode import BatchFields, encode
from seglog_format.columnar.expand import Expander, zstd_bound
from seglog_format.columnar.index_volume import ColumnarVolume
from seglog_format.columnar.ranges import next_range, position_of
from seglog_format.columnar.sections import expand_ahead, no_sections
from seglog_format.errors import FormatError, Location
from seglog_format.lifecycle.broker_scan_at_volume import broker_scan_with
from seglog_format.lifecycle.index_build import IndexedOffset
from seglog_format.lifecycle.index_settings import IndexSettings
from seglog_format.lifecycle.segment_files import side_files_of
from seglog_format.lifecycle.segment_scan import scan_segment
from seglog_format.log import reading, volume
from seglog_format.log.partition import open_partition
from seglog_format.log.transactions import Transactions
from seglog_format.model import INT64_MAX, CompressionCodec, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from seglog_format.columnar.arrays import Bytes
    from seglog_format.lifecycle.volume import Volume
    from seglog_format.log.partition import Partition
    from seglog_format.model import Message

LIMIT: Final = 2**18
"""Bytes that one entry may decompress to; a few inputs ask for less."""
SMALL_LIMIT: Final = 150
SEALED: Final = 0x08
COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
ENTRY_COLUMNS: Final = ("position", "codec", "timestamp_type", "sequence", "is_transactional", "batch_offset")
ENGINE: Final = ColumnarVolume()
OUTCOME = tuple[list[Any], str]
ROOM: Final = 2**16
"""Bytes of a decompressed block in the targets of a codec."""
CANARY: Final = 0xA5


class DifferenceError(Exception):
    """Engine and reference, or a library, do not agree."""


# Memory that ends where it may not be read


class Guarded:
    """Some bytes that end where a page begins that nobody may touch: whoever goes on behind them, ends the process.

    Where a page cannot be taken away, they are like any others.
    """

    def __init__(self, size: int) -> None:
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, whole + mmap.PAGESIZE)
        self._bytes = np.frombuffer(self._pages, np.uint8)[:whole]
        if sys.platform == "linux":
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(self._bytes.ctypes.data + whole), mmap.PAGESIZE, 0)

    def last(self, size: int) -> Bytes:
        """The last so many bytes."""
        return self._bytes[len(self._bytes) - size :]

    def holding(self, data: bytes) -> memoryview:
        """The bytes, put to the end; valid until the next call."""
        if len(data) > len(self._bytes):
            return memoryview(data)
        place = self.last(len(data))
        place[:] = np.frombuffer(data, np.uint8)
        return place.data.toreadonly()


LOG: Final = Guarded(2**17)
ARENA: Final = Guarded(2**20)


# Checksums


def sealed(data: bytes) -> bytes:
    """The same entries, as far as their sizes lead, with right checksums and right headers of lz4 frames."""
    made, position = bytearray(data), 0
    while len(made) - position > 16:  # noqa: PLR2004 - positions of the format, here and below
        (size,) = struct.unpack_from(">i", made, position + 8)
        end, magic = min(position + 12 + size, len(made)), made[position + 16]
        if size < 5 or magic > 2:  # noqa: PLR2004
            break
        if magic == 2 and end - position > 61:  # noqa: PLR2004
            if made[position + 22] & 7 == CompressionCodec.LZ4:
                seal_frame(made, position + 61, end)
            made[position + 17 : position + 21] = google_crc32c.value(bytes(made[position + 21 : end])).to_bytes(4)
        elif magic < 2 and end - position > 16:  # noqa: PLR2004
            made[position + 12 : position + 16] = crc32(bytes(made[position + 16 : end])).to_bytes(4)
        position = end
    return bytes(made)


def seal_frame(data: bytearray, start: int, end: int) -> None:
    """Make the checksum in the header of an lz4 frame right."""
    last = start + 6 + (8 if end - start > 6 and data[start + 4] & 8 else 0)  # noqa: PLR2004
    if last < end:
        data[last] = xxhash.xxh32_intdigest(bytes(data[start + 4 : last])) >> 8 & 0xFF


# Comparing


def outcome(parts: Callable[[], Iterable[Any]]) -> OUTCOME:
    """What was delivered, and the error that ended it."""
    found: list[Any] = []
    try:
        for each in parts():
            found.append(each)  # noqa: PERF402 - what came before the error counts
    except FormatError as error:
        return found, str(error)
    return found, ""


def hold(what: str, engine: object, reference: object) -> str:
    """Both say the same, or it is a finding; returns what they say, in short."""
    if engine != reference:
        msg = f"{what}: engine {clipped(engine)}, reference {clipped(reference)}"
        raise DifferenceError(msg)
    return hashlib.sha256(repr(engine).encode()).hexdigest()[:16]


def clipped(value: object) -> str:
    """Enough of a value to see what it is."""
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:200]} ... {text[-200:]}"  # noqa: PLR2004


@contextmanager
def volumes(size: int) -> Iterator[None]:
    """From so many bytes on, records come from the engine: 0 for always, `INT64_MAX` for never."""
    places = ((reading, "QUICK_SIZE"), (volume, "VOLUME"), (volume, "SMALL_VOLUME"))
    before = [getattr(module, name) for module, name in places]
    try:
        for module, name in places:
            setattr(module, name, size)
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


# Targets that read logs


class Targets:
    """Everything that takes an input.

    Args:
        directory: for a partition directory that is written anew for each input that needs one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "fuzz-0"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._named: tuple[Callable[[bytes, int], str], ...] = (
            self.scan,
            self.objects,
            verify,
            recover,
            lz4,
            snappy,
            libraries,
            entries_or_rows,
        )

    def run(self, data: bytes) -> str:
        """Give one input to its target.

        Returns:
            What the engine made of it, in short: the same wherever it runs.

        Raises:
            DifferenceError: the reference says otherwise.
            Exception: anything at all, and that is a finding too.
        """
        if not data:
            return ""
        kind, content = data[0], data[1:]
        if kind & SEALED:
            content = sealed(content)
        return self._named[kind & 7](content, kind >> 4)

    def _partition(self, data: bytes, option: int) -> Partition:
        path = self._directory / f"{0:020d}.log"
        path.write_bytes(data)
        return open_partition(self._directory, limit=SMALL_LIMIT if option & 1 else LIMIT)

    def scan(self, data: bytes, option: int) -> str:
        """Rows of Arrow batches. Options: a small limit; committed records; copied layout; from the middle on."""
        with self._partition(data, option) as partition:
            shared = bounds_of(partition, option)
            if isinstance(shared, str):
                return shared
            with volumes(INT64_MAX):
                wanted = outcome(lambda: map(row_of, partition.records(**shared)))
            layout = "binary" if option & 4 else "view"
            found = outcome(lambda: rows_of(partition.scan(COLUMNS, batch_rows=8, layout=layout, **shared)))
            narrow = outcome(lambda: partition.scan((*ENTRY_COLUMNS, "key"), batch_rows=8, **shared))
            keys = [key for part in narrow[0] for key in part.column("key").to_pylist()]
            hold("keys beside columns of entries", (keys, narrow[1]), ([row[2] for row in found[0]], found[1]))
            return hold("rows", found, wanted) + str([part.to_pylist() for part in narrow[0]])[-60:]

    def objects(self, data: bytes, option: int) -> str:
        """Records as objects. Options as for `scan`."""
        with self._partition(data, option) as partition:
            shared = bounds_of(partition, option)
            if isinstance(shared, str):
                return shared
            with volumes(INT64_MAX):
                wanted = outcome(lambda: partition.records(**shared))
            with volumes(0):
                found = outcome(lambda: partition.records(**shared))
            return hold("records", found, wanted)


def bounds_of(partition: Partition, option: int) -> dict[str, Any] | str:
    """What to read; the error where a damaged log does not even tell."""
    shared: dict[str, Any] = {"isolation": "read_committed"} if option & 2 else {}
    if option & 8:
        try:
            shared["from_offset"] = (partition.log_start_offset + partition.log_end_offset) // 2
        except FormatError as error:
            return str(error)
    return shared


def row_of(record: Record | Message) -> tuple[object, ...]:
    """A record as a row."""
    headers = tuple((header.key, header.value) for header in record.headers)
    return record.offset, record.timestamp_ms, record.key, record.value, headers


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[object, ...]]:
    """The rows of Arrow batches."""
    for batch in batches:
        batch.validate(full=True)
        times = batch.column(1).cast(pa.int64()).fill_null(-1).to_pylist()
        lists = (batch.column(number).to_pylist() for number in (0, 2, 3, 4))
        for time_ms, (offset, key, value, pairs) in zip(times, zip(*lists, strict=True), strict=True):
            yield offset, time_ms, key, value, tuple((pair["key"], pair["value"]) for pair in pairs)


def verify(data: bytes, option: int) -> str:
    """Findings. Options: a small limit; a base offset of 1."""
    log, limit, base_offset = LOG.holding(data), SMALL_LIMIT if option & 1 else LIMIT, option >> 1 & 1
    wanted = outcome(lambda: verify_log(log, base_offset=base_offset, limit=limit))
    found = outcome(lambda: verify_log(log, base_offset=base_offset, limit=limit, clearer=Clearing))
    return hold("findings", found, wanted)


def recover(data: bytes, option: int) -> str:
    """What recovery keeps, and the side files. Options: an index entry for each; of first offsets; as brokers do."""
    log, base_offset = LOG.holding(data), 0
    settings = IndexSettings(
        0 if option & 1 else 200, IndexedOffset.FIRST if option & 2 else IndexSettings().indexed_offset
    )

    def answers(engine: Volume | None) -> Iterator[object]:
        yield scan_segment(log, base_offset, "p", volume=engine)
        transactions = Transactions(open_offsets={7: 0})
        if option & 4:
            yield broker_scan_with(engine, log, base_offset, "p", settings=settings, transactions=transactions)
        else:
            yield side_files_of(log, base_offset, settings, transactions=transactions, path="p", volume=engine)
        yield transactions.aborted, transactions.open_offsets

    return hold("recovery", outcome(lambda: answers(ENGINE)), outcome(lambda: answers(None)))


def entries_or_rows(data: bytes, option: int) -> str:
    """The table of entries and what goes from entry to entry; or, by the first bit of the option, encoding."""
    return encoded(data, option) if option & 1 else entries(data)


def entries(data: bytes) -> str:
    """What the table says of entries is what the reference finds, as far as it goes; it never goes further."""
    log = LOG.holding(data)
    table = batch_table(log)
    rows = table.rows[:, [0, 1, 2, 4, 7]].tolist()
    wanted, _ = outcome(lambda: walk(log))
    frames = [
        [frame.position, frame.end - frame.position, frame.header.magic, frame.header.last_offset, int(is_valid)]
        for frame, is_valid in zip(wanted, map(checksum_is_valid, wanted), strict=True)
    ]
    hold("entries", rows, frames[: len(rows)])
    sound = next((row[0] for row in rows if not row[4]), table.end)
    hold("sound size", sound_size(log), sound)
    for (before, *_), (position, *_) in pairwise(rows[:50]):
        state = np.array([before, -1, 0, INT64_MAX], np.int64)
        next_range(np.frombuffer(log, np.uint8), state, 1)
        hold("next entry", int(state[0]), position)
    last = rows[len(rows) // 2][3] if rows else 5
    found = position_of(log, (0, INT64_MAX), last)
    if found is not None and found not in [row[0] for row in rows]:
        hold("position of an offset", found, rows)
    return str((rows, sound, found))[-60:]


def encoded(data: bytes, option: int) -> str:
    """Rows made out of the input are encoded as the reference does. Options: three bits, the codec."""
    codec = CompressionCodec((option >> 1) % 5)
    records = list(records_in(data))
    if not records:
        return ""
    reference = encode_batch(build_batch(records, base_offset=records[0].offset, codec=codec, keeps_offsets=True))
    rows = [
        {
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": header.key, "value": header.value} for header in record.headers],
        }
        for record in records
    ]
    compressor = (lambda content: compress(codec, content, magic=2)) if codec else None
    parts = encode(
        pa.Table.from_pylist(rows, SCHEMA),
        BatchFields(codec=codec),
        counts=np.array([len(rows)]),
        compress=compressor,
    )
    return hold("encoded", b"".join(bytes(part) for part in parts), reference)


SCHEMA: Final = pa.schema(
    {
        "offset": pa.int64(),
        "timestamp": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    }
)


def records_in(data: bytes) -> Iterator[Record]:
    """Records that an input describes, whatever it holds: a few bytes for sizes and numbers, then the bytes meant."""
    position, offset = 0, 0

    def taken(size: int) -> bytes:
        nonlocal position
        position += size
        return data[position - size : position].ljust(size, b"\0")

    def value() -> bytes | None:
        size = taken(1)[0]
        return None if size == 255 else taken(size)  # noqa: PLR2004

    while position < len(data):
        step, width, count = taken(3)
        offset += 1 + (step << (width >> 4))
        timestamp_ms = int.from_bytes(taken(width & 7)) & (1 << 50) - 1
        headers = [(value() or b"", value()) for _ in range(count & 3)]
        made = new_record(value(), value(), timestamp_ms=timestamp_ms, headers=headers)
        if offset > 2**31 - 2:
            return
        yield Record(offset, made.timestamp_ms, made.key, made.value, made.headers)


# Targets that decompress

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
FRAME_START: Final = bytes.fromhex("04224d18604082")
LZ4_SIZE: Final = 65536


def batch_around(stored: bytes, codec: CompressionCodec) -> bytes:
    """An entry of magic 2 whose records section is these bytes; nobody looks at its checksum here."""
    return HEADER.pack(0, 49 + len(stored), 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, 1) + stored


def message_around(stored: bytes, codec: CompressionCodec) -> bytes:
    """A wrapper of magic 0 with these bytes: for it, the header of an lz4 frame is not held to its checksum."""
    return struct.pack(">qiIbbii", 0, 14 + len(stored), 0, 0, codec, -1, len(stored)) + stored


def expanded(
    stored: bytes, codec: CompressionCodec, *, magic: int = 2, used: int = 0, room: int = ROOM
) -> bytes | None:
    """What the kernel decompresses, or None; nothing else may have changed in the arena, but for its slack.

    Args:
        stored: compressed bytes, to the last one before memory that may not be read.
        codec: of them.
        magic: of the entry, 0 or 2.
        used: bytes of the arena that are taken.
        room: bytes after them.
    """
    log = LOG.holding(batch_around(stored, codec) if magic else message_around(stored, codec))
    arena = ARENA.last(used + room + SLACK)
    arena[:used], arena[used:] = CANARY, 0
    plan, state = np.zeros(names.PLAN_SIZE, np.int64), np.zeros(names.STATE_SIZE, np.int64)
    sections = no_sections()
    plan[names.LIMIT], plan[names.MAX_ROWS], state[names.ARENA_USED] = 2**20, 1, used
    data = np.frombuffer(log, np.uint8)
    data.flags.writeable = False
    expand_ahead(data, arena, plan, state, sections)
    if (arena[:used] != CANARY).any():
        msg = "bytes before the content were overwritten"
        raise DifferenceError(msg)
    if not state[names.SECTIONS]:
        return None
    position, start, end = sections[: names.SECTION_FIELDS].tolist()
    hold("section", (position, start), (0, used))
    return bytes(arena[start:end])


def by_reference(stored: bytes, codec: CompressionCodec, magic: int = 2) -> bytes | None:
    """What the library decompresses; None where it refuses."""
    try:
        return decompress(codec, stored, magic=magic, at=Location("p", 0), limit=2**20)
    except FormatError:
        return None


def hold_content(stored: bytes, codec: CompressionCodec, option: int, *, magic: int = 2, is_plain: bool = False) -> str:
    """Content is that of the library; with ``is_plain``, there is content whenever the library has some."""
    wanted = by_reference(stored, codec, magic)
    used = (option & 3) * 21
    found = expanded(stored, codec, magic=magic, used=used)
    if found is not None or (is_plain and wanted is not None and len(wanted) <= ROOM):
        hold(f"content of {codec.label}", found, wanted)
    if found is not None:
        for room in {len(found), max(len(found) - 1, 0), len(found) // 2, min(len(found) + 5, ROOM)}:
            again = expanded(stored, codec, magic=magic, used=used, room=room)
            hold(f"content of {codec.label} in {room} bytes", again, found if room >= len(found) else None)
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def lz4(data: bytes, option: int) -> str:
    """Blocks, or whole frames. Options: two bits for the place; a whole frame; of magic 0."""
    if option & 4:
        return hold_content(data, CompressionCodec.LZ4, option, magic=0 if option & 8 else 2)
    data = data[:LZ4_SIZE]
    frame = FRAME_START + struct.pack("<I", len(data)) + data + bytes(4) if data else FRAME_START + bytes(4)
    return hold_content(frame, CompressionCodec.LZ4, option)


def snappy(data: bytes, option: int) -> str:
    """A raw block, or xerial blocks, as the first bytes say. Options: two bits for the place."""
    return hold_content(data, CompressionCodec.SNAPPY, option, is_plain=True)


def libraries(data: bytes, option: int) -> str:
    """What goes to libraries: gzip, or zstd, by the first bit of the option; a small limit, by the second."""
    codec = CompressionCodec.GZIP if option & 1 else CompressionCodec.ZSTD
    limit = SMALL_LIMIT if option & 2 else LIMIT
    log = LOG.holding(batch_around(data, codec))
    found = Expander(log, limit).content(0)
    try:
        wanted = decompress(codec, data, magic=2, at=Location("p", 0), limit=limit)
    except FormatError:
        wanted = None
    if found is not None:
        hold(f"content of {codec.label}", found, wanted)
    bound = -1
    if codec is CompressionCodec.ZSTD:
        array = np.frombuffer(log, np.uint8)
        array.flags.writeable = False
        bound = zstd_bound(array, 61, len(array))
        if wanted is not None and 0 <= bound < len(wanted):
            hold("most that a zstd frame can hold", bound, len(wanted))
    return f"{bound} {hashlib.sha256(repr(found).encode()).hexdigest()[:16]}"


TARGETS: Final = ("scan", "objects", "verify", "recover", "lz4", "snappy", "libraries", "entries_or_rows")
"""Their names, by number."""
