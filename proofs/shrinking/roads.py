"""Every call that reads records, in a loop, while files change: in a child, whose death is seen by its parent."""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.shrinking.changing import CHANGED, TIME_MS, value_of
from seglog_format import Engine, OffsetSpec, open_log_directory, open_partition, recover, verify
from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from seglog_format.types import Message, Partition, Record

    Row = tuple[str, int, int, bytes | None]
    Road = Callable[[Path, str, random.Random], Iterable[Row]]

COLUMNS: Final = ("offset", "value")
READ_SIZE: Final = 10_000


def _rows(name: str, records: Iterable[Record | Message]) -> Iterator[Row]:
    topic, _, number = name.rpartition("-")
    return ((topic, int(number), record.offset, record.value) for record in records)


def _arrow(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    topic, _, number = name.rpartition("-")
    for batch in batches:
        rows = batch.select(list(COLUMNS)).to_pydict()
        yield from ((topic, int(number), *row) for row in zip(rows["offset"], rows["value"], strict=True))


def _opened(read: Callable[[Partition, random.Random], Iterable[Record | Message]], **options: bool) -> Road:
    def road(root: Path, name: str, dice: random.Random) -> Iterator[Row]:
        with open_partition(root / name, **options) as partition:
            yield from _rows(name, read(partition, dice))

    return road


def _scanned(*, keeps: bool = False, **options: Any) -> Road:  # noqa: ANN401 - options of `Partition.scan`
    def road(root: Path, name: str, _: random.Random) -> Iterator[Row]:
        with open_partition(root / name) as partition:
            reader = partition.scan(COLUMNS, batch_rows=100, **options)
            yield from _arrow(name, list(reader) if keeps else reader)

    return road


def _looked_up(partition: Partition, dice: random.Random) -> Iterator[Record | Message]:
    for _ in range(20):
        offset = dice.randrange(partition.log_start_offset, max(partition.log_end_offset, 1))
        yield from _few(partition.records(offset))
        found = partition.offset_for_timestamp(TIME_MS + offset)
        if found is not None:
            yield from _few(partition.records(found.offset))
        partition.offset_for_timestamp(OffsetSpec.MAX_TIMESTAMP)


def _few(records: Iterable[Record | Message]) -> Iterator[Record | Message]:
    return (record for _, record in zip(range(3), records, strict=False))


def _fetched(partition: Partition, dice: random.Random) -> Iterator[Record | Message]:
    offset = dice.randrange(max(partition.log_end_offset, 1))
    while offset < partition.log_end_offset:
        found = partition.read(offset, READ_SIZE)
        yield from found.records
        if found.next_offset == offset:
            return
        offset = found.next_offset


def _of_batches(partition: Partition, _: random.Random) -> Iterator[Record | Message]:
    return (record for batch in partition.batches() if not batch.header.is_control for record in batch.records)


def _of_directory(root: Path, *_: object) -> Iterator[Row]:
    for batch in open_log_directory(root).scan(("topic", "partition", *COLUMNS), topics=["shaken"]):
        columns = batch.to_pydict()
        yield from zip(*(columns[name] for name in ("topic", "partition", *COLUMNS)), strict=True)


def _verified(root: Path, name: str, _: random.Random) -> Iterator[Row]:
    list(verify(root / name))
    return iter(())


def _planned(root: Path, name: str, _: random.Random) -> Iterator[Row]:
    assert recover(root / name).plan is not None
    return iter(())


def _by_spark(mode: str) -> Road:
    def road(root: Path, _: str, dice: random.Random) -> Iterator[Row]:
        from proofs.spark.readers import planned, reader_of  # noqa: PLC0415 - needs the extra

        sizes = dice.choice(({}, {"splitBytes": "65536"}))
        columns = ("topic", "partition", "offset", "value", *("_corrupt",) * (mode == "permissive"))
        reader = reader_of(root, columns, mode=mode, subscribe="shaken", **sizes)
        for task in planned(reader):
            for batch in reader.read(task):
                rows = batch.to_pydict()
                found = zip(*(rows[each] for each in ("topic", "partition", "offset", "value")), strict=True)
                yield from (row for row in found if row[2] is not None)  # else the row tells of damage

    return road


ROADS: Final[dict[str, Road]] = {
    "records": _opened(lambda partition, _: partition.records()),
    "records, committed": _opened(lambda partition, _: partition.records(isolation="read_committed")),
    "records by the reference": _opened(lambda partition, _: partition.records(engine=Engine.REFERENCE)),
    "batches": _opened(_of_batches),
    "lookups": _opened(_looked_up),
    "lookups by trusted indexes": _opened(_looked_up, trust_indexes=True),
    "fetches": _opened(_fetched),
    "scan, view": _scanned(),
    "scan, view, kept": _scanned(keeps=True),
    "scan, binary, two threads": _scanned(layout="binary", threads=2),
    "scan, large_binary, committed": _scanned(layout="large_binary", isolation="read_committed"),
    "scan, past damage": _scanned(on_corrupt=lambda _: None, on_gap=lambda _: None),
    "scan of the log directory": _of_directory,
    "verify": _verified,
    "recover, planned": _planned,
    "spark, failfast": _by_spark("failfast"),
    "spark, permissive": _by_spark("permissive"),
    "spark, dropcorrupt": _by_spark("dropcorrupt"),
}
"""A road yields topic, partition, offset and value of what it delivers; it may raise errors of the package."""


def run(road: Road, root: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Follow a road again and again; return what was counted, and what must not happen."""
    warnings.simplefilter("ignore")  # of missing offsets
    dice, counts, wrong = random.Random(seed), Counter[str](), list[str]()
    ends, passes = time.monotonic() + seconds, 0
    while passes == 0 or time.monotonic() < ends:
        passes += 1
        name = dice.choice(CHANGED)
        try:
            for row in road(root, name, dice):
                counts["records"] += 1
                wrong += [repr(row)[:200]] * (row[3] != value_of(*row[:3]))
        except SeglogError as error:
            counts[type(error).__name__] += 1
        except Exception:  # noqa: BLE001 - whatever else is raised is a failure
            wrong.append(traceback.format_exc()[-1500:])
    return {"passes": passes, **counts, "wrong": wrong[:5]}


if __name__ == "__main__":
    follow = partial(run, ROADS[sys.argv[2]], Path(sys.argv[1]))
    print(json.dumps(follow(float(sys.argv[3]), int(sys.argv[4]))))
