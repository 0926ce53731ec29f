"""The data: partition directories with one segment each, made from seeds and kept below ``build/bench``.

A set is used again as long as the recipe and the bytes are the same. Each set has checksums that every reader must
compute (`contents`), and the reference reads a sample of it when it is made.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import google_crc32c
import numpy as np
from contents import Columns, Part, batch_words, edges_of
from recipes import MIB
from templates import BATCH_MS, HEADER, NO_PRODUCER, Entries, Template
from texts import batch, messages, random_rows, text_rows, times_of, wrapper

from seglog_format import decode_batch, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes import Recipe

    from seglog_format.types import Message, Record

BENCHMARKS: Final = Path(__file__).resolve().parent
BUILD: Final = BENCHMARKS.parent / "build" / "bench"
SOURCES: Final = ("contents.py", "templates.py", "texts.py", "compressing.py", "datasets.py", "recipes.py")
SEGMENT: Final = "00000000000000000000"
INDEX_INTERVAL_BYTES: Final = 4096
SAMPLE: Final = 2000
"""Number of records that the reference reads of each set."""
SAMPLE_BYTES: Final = 8 * MIB
TEMPLATES: Final = 8
RUN: Final = 128
"""Number of batches of one template that are made at a time."""
MESSAGES_AT_ONCE: Final = 1024
FIRST_PRODUCER_ID: Final = 1000


@dataclass(slots=True)
class DataSet:
    """A set on disk.

    Attributes:
        name: name of its recipe.
        path: the log file.
        size: size of the file in bytes.
        crc32c: checksum of the file.
        uncompressed: bytes of records or messages before compression; the size without compression.
        records, batches: their numbers; a plain message of magic 1 counts as a batch.
        checksums: expected result of each kind of work: ``records``, ``batches``, ``crcs``, ``indexes``, and ``end``,
            the log end offset.
    """

    name: str
    path: Path
    size: int = 0
    crc32c: int = 0
    uncompressed: int = 0
    records: int = 0
    batches: int = 0
    checksums: dict[str, int] = field(default_factory=dict)
    about: str = ""

    @property
    def directory(self) -> Path:
        """Return the partition directory."""
        return self.path.parent


@dataclass(slots=True)
class Writing:
    """A set while it is written, with its indexes (SEG-IDX-006: an entry after each interval of bytes)."""

    log: IO[bytes]
    size: int = 0
    uncompressed: int = 0
    batches: int = 0
    crc32c: int = 0
    records: Part = field(default_factory=Part)
    sample: Part = field(default_factory=Part)
    framing: Part = field(default_factory=Part)
    crcs: Part = field(default_factory=Part)
    offset_index: list[tuple[int, int]] = field(default_factory=list)
    time_index: list[tuple[int, int]] = field(default_factory=list)
    _indexed: int = 0
    _last: tuple[int, int] = (-1, -1)

    def add(self, entries: Entries) -> None:
        """Append entries."""
        self.log.write(entries.data)
        self.crc32c = google_crc32c.extend(self.crc32c, entries.data)
        self.framing = self.framing.then(batch_words(entries.last_offsets, entries.sizes))
        self.crcs = self.crcs.then(entries.crcs.view(np.uint64))
        words = entries.columns.words()
        self.sample = self.sample.then(words[: SAMPLE - self.sample.count])
        self.records = self.records.then(words)
        self.uncompressed += entries.uncompressed
        self.batches += len(entries.sizes)
        columns = (entries.sizes, entries.last_offsets, entries.max_timestamps)
        for size, offset, time in zip(*(column.tolist() for column in columns), strict=True):
            self._add_to_indexes(size, offset, time)

    def _add_to_indexes(self, size: int, offset: int, time: int) -> None:
        if time > self._last[0]:
            self._last = (time, offset)
        if self.size - self._indexed > INDEX_INTERVAL_BYTES:
            self.offset_index.append((offset, self.size))
            self._time_entry()
            self._indexed = self.size
        self.size += size

    def _time_entry(self) -> None:
        if not self.time_index or self._last[0] > self.time_index[-1][0]:
            self.time_index.append(self._last)

    def write_indexes(self, stem: Path) -> None:
        """Write the two index files of the segment."""
        self._time_entry()
        stem.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in self.offset_index))
        stem.with_suffix(".timeindex").write_bytes(b"".join(struct.pack(">qi", *entry) for entry in self.time_index))


def data_set(recipe: Recipe, scale: float, seed: int) -> DataSet:
    """Make a set, unless it is there.

    Args:
        recipe: its contents.
        scale: factor for its size.
        seed: seed of its bytes.
    """
    conditions = {**asdict(recipe), "scale": scale, "seed": seed, "sources": _source_digest()}
    digest = hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()[:12]
    home = BUILD / "data" / f"scale-{scale:g}" / f"{recipe.name}-{digest}"
    found = _known(home)
    return found if found is not None else _made(recipe, scale, seed, home)


def _source_digest() -> str:
    return hashlib.sha256(b"".join((BENCHMARKS / name).read_bytes() for name in SOURCES)).hexdigest()


def _known(home: Path) -> DataSet | None:
    try:
        reported: dict[str, Any] = json.loads((home / "data-set.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    found = DataSet(**{**reported, "path": home / "bench-0" / f"{SEGMENT}.log"})
    return found if found.path.stat().st_size == found.size and file_crc(found.path) == found.crc32c else None


def file_crc(path: Path) -> int:
    """Return the CRC-32C of a file."""
    crc = 0
    with path.open("rb") as file:
        while data := file.read(MIB):
            crc = google_crc32c.extend(crc, data)
    return crc


def index_digest(directory: Path) -> int:
    """Return one number for both index files of the segment."""
    offsets, times = (file_crc(directory / f"{SEGMENT}.{kind}") for kind in ("index", "timeindex"))
    return offsets << 32 | times


def _made(recipe: Recipe, scale: float, seed: int, home: Path) -> DataSet:
    for older in home.parent.glob(f"{recipe.name}-*"):
        shutil.rmtree(older)
    path = home / "bench-0" / f"{SEGMENT}.log"
    path.parent.mkdir(parents=True)
    dice = np.random.default_rng([seed, *recipe.name.encode()])
    with path.open("wb") as log:
        writing = Writing(log)
        fill = _fill_from_templates if recipe.record is not None and recipe.magic > 1 else _fill_one_by_one
        fill(recipe, int(recipe.size * scale), dice, writing)
    writing.write_indexes(path)
    made = _described(recipe, path, writing)
    _check_sample(made, writing.sample)
    reported = {**asdict(made), "path": ""}
    (home / "data-set.json").write_text(json.dumps(reported, indent=1) + "\n", encoding="utf-8")
    return made


def _described(recipe: Recipe, path: Path, writing: Writing) -> DataSet:
    return DataSet(
        name=recipe.name,
        path=path,
        size=writing.size,
        crc32c=writing.crc32c,
        uncompressed=writing.uncompressed,
        records=writing.records.count,
        batches=writing.batches,
        checksums={
            "records": writing.records.number,
            "batches": writing.framing.number,
            "crcs": writing.crcs.number,
            "indexes": index_digest(path.parent),
            "end": writing.records.count,
        },
        about=recipe.about,
    )


def _fill_from_templates(recipe: Recipe, size: int, dice: np.random.Generator, writing: Writing) -> None:
    templates = [_template(recipe, dice, number) for number in range(TEMPLATES)]
    turns, offset = cycle(templates), 0
    while writing.size < size:
        template = next(turns)
        count = min(RUN, max(1, (size - writing.size) // template.size))
        made = template.entries(dice, writing.batches, offset, count)
        writing.add(made)
        offset = int(made.last_offsets[-1]) + 1


def _template(recipe: Recipe, dice: np.random.Generator, number: int) -> Template:
    """Return a template with as many records as fit."""
    assert recipe.record is not None
    producer = (FIRST_PRODUCER_ID + number, 0, 0) if recipe.producer else NO_PRODUCER
    one = Template(recipe.record, [0]).size - HEADER.size
    count = max(1, (recipe.batch_size - HEADER.size) // (one + 1))
    deltas = np.sort(dice.integers(0, BATCH_MS - 1, count))
    return Template(recipe.record, (deltas - deltas[0]).tolist(), producer)


def _fill_one_by_one(recipe: Recipe, size: int, dice: np.random.Generator, writing: Writing) -> None:
    offset, number = 0, 0
    while writing.uncompressed < size:
        made = _next_entries(recipe, dice, offset, number)
        writing.add(made)
        offset, number = int(made.last_offsets[-1]) + 1, number + 1


def _next_entries(recipe: Recipe, dice: np.random.Generator, offset: int, number: int) -> Entries:
    """Return one batch or wrapper, or many plain messages."""
    if recipe.record is not None:
        rows = random_rows(dice, recipe.record.key_size, recipe.record.value_size, MESSAGES_AT_ONCE)
        return messages(offset, times_of(dice, number, len(rows)), rows)
    rows = text_rows(dice, recipe.batch_size)
    make = batch if recipe.magic > 1 else wrapper
    return make(recipe.codec, offset, times_of(dice, number, len(rows)), rows)


def _check_sample(made: DataSet, expected: Part) -> None:
    """Compare the first records, as the reference reads them, with the written ones."""
    rows = [_row(record) for record in islice(_records(made.path), SAMPLE)]
    found = Part().then(Columns(*(np.array(column, np.int64) for column in zip(*rows, strict=True))).words())
    assert found == expected, f"{made.name}: the reference reads other records than the written ones"


def _records(path: Path) -> Iterator[Record | Message]:
    with path.open("rb") as file:
        start = file.read(SAMPLE_BYTES)
    for frame in walk(start):
        yield from decode_batch(frame.data).records


def _row(record: Record | Message) -> tuple[int, ...]:
    key, value = record.key, record.value
    sizes = [-1 if data is None else len(data) for data in (key, value)]
    headers = getattr(record, "headers", ())
    return (record.offset, record.timestamp_ms, *sizes, edges_of(key, value), len(headers))
