"""A recipe for a directory like an existing one: from sizes, counts and rates, without any of its content."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.control_record import marker_in
from seglog_format.errors import Location, UsageError
from seglog_format.generation.recipe_model import MAGIC_2, MAX_COUNT, MAX_PRODUCERS, MAX_SIZE
from seglog_format.log.partition import open_partition
from seglog_format.log.path_kind import partition_name
from seglog_format.model import NO_PRODUCER_ID, CompressionCodec, ControlRecordType, RecordBatchHeader
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike

    from seglog_format.log.partition import Partition
    from seglog_format.record_model import Message, Record, RecordBatch

SAMPLED_BATCHES: Final = 5_000
"""Maximum number of batches of a partition that are read."""
SAMPLED_SIZE: Final = 1 << 26
"""Bytes of keys and values after which no more batches of a partition are read: all of them are kept in memory."""
PARTS: Final = 8
"""Number of parts into which sizes are divided."""
OUT_OF_ORDER: Final = 0.01
"""Share of records with an earlier time than the record before, from which times count as shuffled."""
LEAST_SEGMENT_SIZE: Final = 1 << 14
"""Least ``segment.bytes``: segments that brokers closed for their age may be smaller than a batch of the recipe."""


class Sample(NamedTuple):
    """What was read of one partition.

    Attributes:
        total: number of offsets in the partition.
        batches: the first ones.
        is_whole: whether these are all.
        segment_size: of the largest closed segment, in bytes; 0 if none is closed.
    """

    total: int
    batches: Sequence[RecordBatch]
    is_whole: bool
    segment_size: int


def recipe_like(directory: str | PathLike[str]) -> str:
    """Describe a directory as a recipe of version 2.

    Only the first batches of one partition of each topic are read. Names and content do not enter the recipe.

    Args:
        directory: a log directory or partition directory.

    Returns:
        The recipe, as TOML.

    Raises:
        UsageError: the directory cannot be read, or has no partition.
        FormatError: a batch is damaged.
    """
    topics: dict[str, list[Path]] = {}
    for topic, path in _partitions(Path(directory)):
        topics.setdefault(topic, []).append(path)
    if not topics:
        msg = f"{directory} has no partition directory"
        raise UsageError(msg)
    texts = [_topic(number, paths) for number, paths in enumerate(topics.values())]
    return "\n".join(["version = 2\n", *texts])


def _partitions(directory: Path) -> list[tuple[str, Path]]:
    """Return the partitions in use in a directory, each with its topic; or the directory, if it is a partition."""
    names = filter(None, map(partition_name, sorted(LOCAL.entries(directory)[1])))
    found = [(name.topic, directory / str(name)) for name in names if not name.state]
    name = partition_name(directory.resolve().name)
    return found if found or name is None or name.state else [(name.topic, directory)]


def _topic(number: int, paths: Sequence[Path]) -> str:
    with open_partition(paths[0]) as partition:
        sample = _sample(partition)
    lines = ["[[topic]]", f'name = "topic-{number}"', f"partitions = {len(paths)}"]
    if sample.segment_size:
        lines += ["[topic.settings]", f'"segment.bytes" = {max(sample.segment_size, LEAST_SEGMENT_SIZE)}']
    data = [batch for batch in sample.batches if not batch.header.is_control and batch.records]
    return "\n".join([*lines, *(_step(sample, data) if data else ()), ""])


def _sample(partition: Partition) -> Sample:
    batches, size = [], 0
    for batch in partition.batches():
        batches.append(batch)
        size += sum(len(record.key or b"") + len(record.value or b"") for record in batch.records)
        if len(batches) == SAMPLED_BATCHES or size >= SAMPLED_SIZE:
            break
    is_whole = len(batches) < SAMPLED_BATCHES and size < SAMPLED_SIZE
    closed = [segment.size for segment in partition.segments[:-1]]
    return Sample(partition.log_end_offset - partition.log_start_offset, batches, is_whole, max(closed, default=0))


def _step(sample: Sample, data: Sequence[RecordBatch]) -> Iterator[str]:
    records = [record for batch in data for record in batch.records]
    sampled = sum(len(batch.records) for batch in sample.batches)
    magic = data[-1].header.magic
    yield "[[topic.step]]"
    yield f"records = {len(records) if sample.is_whole else sample.total * len(records) // sampled}"
    counts = [len(batch.records) for batch in data]
    yield f"batch = {_around(counts)}"
    yield f"magic = {magic}"
    (codec, _) = Counter(batch.header.codec_id for batch in data).most_common(1)[0]
    yield f'codec = "{CompressionCodec(codec).label}"'
    kind = "random" if codec == CompressionCodec.NONE else "text"
    yield f"key = {_values([record.key for record in records], kind)}"
    yield f"value = {_values([record.value for record in records], kind)}"
    if magic == MAGIC_2:
        yield from _headers(records)
        yield from _producers(sample.batches, data)
    yield f"timestamps = {_timestamps(records)}"


def _around(numbers: Sequence[int]) -> list[int]:
    """Return two bounds with the same mean as the numbers."""
    mean = sum(numbers) / len(numbers)
    low = max(min(numbers), 2 * round(mean) - max(numbers), 0)
    return [low, max(2 * round(mean) - low, low)]


def _values(values: Sequence[bytes | None], kind: str) -> str:
    present = [value for value in values if value is not None]
    if not present:
        return '{ kind = "null" }'
    keys = [f'kind = "{kind}"', f"size = {_parts([min(len(value), MAX_SIZE) for value in present])}"]
    if len(present) < len(values):
        keys.append(f"null = {round(1 - len(present) / len(values), 4)}")
    distinct = len(set(present))
    if distinct <= min(len(present) // 2, MAX_COUNT):
        keys.append(f"distinct = {distinct}")
    return f"{{ {', '.join(keys)} }}"


def _parts(sizes: Sequence[int]) -> list[int]:
    """Return bounds that divide sizes into parts of the same number."""
    ordered = sorted(sizes)
    bounds = [ordered[(len(ordered) - 1) * part // PARTS] for part in range(PARTS + 1)]
    return bounds if bounds[0] < bounds[-1] else [bounds[0], bounds[0]]


def _headers(records: Iterable[Record | Message]) -> Iterator[str]:
    counts = [len(record.headers) for record in records]
    sizes = [len(header.value or b"") for record in records for header in record.headers]
    if sizes:
        yield f"headers = {{ count = {_around(counts)}, size = {_parts(sizes)} }}"


def _producers(batches: Sequence[RecordBatch], data: Sequence[RecordBatch]) -> Iterator[str]:
    headers = [batch.header for batch in data if isinstance(batch.header, RecordBatchHeader)]
    ids = {header.producer_id for header in headers if header.producer_id != NO_PRODUCER_ID}
    transactional = sum(header.is_transactional for header in headers)
    if not ids:
        return
    keys = [f"count = {min(len(ids), MAX_PRODUCERS)}"]
    markers = [batch.records[0] for batch in batches if _is_of_producer(batch)]
    kinds = [marker.kind for record in markers if (marker := marker_in(record, Location())) is not None]
    if transactional and kinds:
        mean = max(1, round(transactional / len(kinds)))
        aborted = round(kinds.count(ControlRecordType.ABORT) / len(kinds), 4)
        keys += ['kind = "transactional"', f"batches = {[max(1, mean // 2), mean + mean // 2]}", f"abort = {aborted}"]
    else:
        keys.append('kind = "idempotent"')
    yield f"producers = {{ {', '.join(keys)} }}"


def _is_of_producer(batch: RecordBatch) -> bool:
    return bool(batch.header.is_control and batch.header.producer_id != NO_PRODUCER_ID and batch.records)


def _timestamps(records: Sequence[Record | Message]) -> str:
    times = [record.timestamp_ms for record in records]
    if min(times) < 0:
        return '{ order = "none" }'
    earlier = sum(after < before for before, after in pairwise(times))
    order = "shuffled" if earlier > OUT_OF_ORDER * len(times) else "ascending"
    return f'{{ order = "{order}", step_ms = {(max(times) - min(times)) // len(times)} }}'
