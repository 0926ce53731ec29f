"""What a partition consists of, by codec and by producer, and why segments stay that should go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cleaning.compaction import plan_compaction
from seglog_format.cleaning.compaction_pass import facts_of
from seglog_format.cleaning.retention import NEVER_TIERED, date_text, unit_guess
from seglog_format.codec.decode import stream_frame
from seglog_format.doctor.statements import Hurt, Kind, Statement, typed
from seglog_format.errors import FormatError, Location
from seglog_format.lines.logs import codec_name
from seglog_format.model import NO_PRODUCER_ID, NO_TIMESTAMP, Frame, Message, Record, RecordBatchHeader
from seglog_format.state.config import LogConfig
from seglog_format.storage.files import LOCAL_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition


# -- why segments stay that should go ----------------------------------------------------------------------------------


PATIENCE_MS: Final = 3_600_000
"""Time in which a cleaner that works begins with a log: it looks for logs every 15 seconds by default."""


def stamped_late(entry: PartitionEntry, partition: Partition, now_ms: int) -> Iterator[Statement]:
    """Yield the segments that retention by time does not remove, because a timestamp is in the future."""
    if entry.name.topic in NEVER_TIERED:
        return
    late = [each for each in partition.segments if each.damage is None and each.largest_timestamp_ms > now_ms]
    for segment in late:
        stamp = segment.largest_timestamp_ms
        guess = unit_guess(stamp, now_ms)
        what = (
            f"the greatest timestamp of this segment, {stamp} ({date_text(stamp)}), is in the future{guess};"
            " retention by time keeps this segment and all after it until then, and as long after it as its limit says"
        )
        where = Location(segment.path, field="max_timestamp_ms")
        step = typed("retain", entry.path)
        yield Statement(Kind.SPACE, what, where, ("SEG-RET-003",), (Hurt.RETENTION,), step)


def uncleaned(
    entry: PartitionEntry, directory: LogDirectory, partition: Partition, settings: Callable[[str], dict[str, str]]
) -> Iterator[Statement]:
    """Yield that the cleaner has left for long what is due.

    Args:
        entry: of the partition.
        directory: the log directory.
        partition: opened.
        settings: returns the settings of a topic; without a cleanup policy, it is compacted, as the checkpoint shows.
    """
    offset = directory.cleaner_offsets.get(entry.name.topic_partition)
    if offset is None or any(each.damage is not None for each in partition.segments):
        return
    step = typed("retain", entry.path, "--config", "cleanup.policy=compact")
    where, hurt = Location(str(entry.path)), (Hurt.CLEANER,)
    newest = max((each.largest_timestamp_ms for each in partition.segments), default=NO_TIMESTAMP)
    facts = [facts_of(each, LOCAL_FILES) for each in partition.segments]
    begun = [each for each in facts if NO_TIMESTAMP < each.first_timestamp_ms <= newest - PATIENCE_MS]
    config = LogConfig.from_properties({"cleanup.policy": "compact"} | settings(entry.name.topic))
    if not begun or not config.is_compacted:
        return
    known = {"log_start_offset": partition.log_start_offset, "last_stable_offset": partition.last_stable_offset}
    plan = plan_compaction(begun, config, now_ms=newest - PATIENCE_MS, cleaner_offset=offset, **known)
    if plan.is_due:
        what = (
            f"the cleaner has cleaned up to offset {plan.first_dirty_offset}; {plan.dirty_size} bytes up to offset"
            f" {plan.first_uncleanable_offset} were due an hour before the last record: it is behind, or has died"
        )
        yield Statement(Kind.SPACE, what, where, ("SEG-CMP-005",), hurt, step, None, plan.first_dirty_offset)


# -- what a partition consists of: batches, records and bytes, by codec and by producer --------------------------------


MAX_PRODUCERS: Final = 10_000
"""Maximum number of producer ids that are counted apart."""


@dataclass(slots=True)
class Share:
    """The batches of one codec or producer, and their bytes."""

    batches: int = 0
    size: int = 0

    def add(self, size: int) -> None:
        """Add a batch."""
        self.batches += 1
        self.size += size


@dataclass(slots=True)
class Sizes:
    """What a partition consists of, as far as it can be read.

    Attributes:
        path: of the directory.
        whole: all batches; a message that is in no wrapper counts as a batch.
        records: number of records, those of control batches included.
        single: batches of one record that are no control batch.
        largest_batch: its bytes, as stored.
        largest_batch_at: where it is.
        largest_record: bytes of its key, value and headers, decompressed.
        largest_record_offset: its offset; None without a record.
        unread: batches that cannot be decoded, or that nothing can be read after.
        codecs: the batches by name of the codec.
        producers: the batches by producer id, of the first `MAX_PRODUCERS` ids.
    """

    path: Path
    whole: Share = field(default_factory=Share)
    records: int = 0
    single: int = 0
    largest_batch: int = 0
    largest_batch_at: Location = field(default_factory=Location)
    largest_record: int = 0
    largest_record_offset: int | None = None
    unread: int = 0
    codecs: dict[str, Share] = field(default_factory=dict)
    producers: dict[int, Share] = field(default_factory=dict)

    def add(self, frame: Frame, at: Location, limit: int) -> None:
        """Add a batch; one that cannot be decoded counts as unread."""
        header, size = frame.header, frame.header.size_in_bytes
        self.whole.add(size)
        self.codecs.setdefault(codec_name(header.codec_id), Share()).add(size)
        producer_id = header.producer_id if isinstance(header, RecordBatchHeader) else NO_PRODUCER_ID
        is_known = producer_id in self.producers or len(self.producers) < MAX_PRODUCERS
        if producer_id != NO_PRODUCER_ID and is_known:
            self.producers.setdefault(producer_id, Share()).add(size)
        if size > self.largest_batch:
            self.largest_batch, self.largest_batch_at = size, at
        try:
            count = self._add_records(stream_frame(frame, at=at, limit=limit, to_offset=None).records)
        except FormatError:
            self.unread += 1
        else:
            self.single += count == 1 and not header.is_control

    def _add_records(self, records: Iterable[Record | Message]) -> int:
        count = 0
        for count, record in enumerate(records, 1):  # noqa: B007 - the last number is the count
            self.records += 1
            fields = (record.key, record.value, *(part for each in record.headers for part in (each.key, each.value)))
            size = sum(len(each) for each in fields if each is not None)
            if size > self.largest_record or self.largest_record_offset is None:
                self.largest_record, self.largest_record_offset = size, record.offset
        return count

    def by_size(self) -> list[tuple[int, Share]]:
        """Return the producers, those with the most bytes first."""
        return sorted(self.producers.items(), key=lambda item: -item[1].size)

    def as_object(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "type": "sizes",
            "path": str(self.path),
            "batches": self.whole.batches,
            "records": self.records,
            "bytes": self.whole.size,
            "batchesOfOneRecord": self.single,
            "largestBatchBytes": self.largest_batch,
            "largestBatchFile": self.largest_batch_at.path,
            "largestBatchPosition": self.largest_batch_at.position,
            "largestRecordBytes": self.largest_record,
            "largestRecordOffset": self.largest_record_offset,
            "unreadBatches": self.unread,
            "codecs": {name: {"batches": each.batches, "bytes": each.size} for name, each in self.codecs.items()},
            "producers": {
                str(number): {"batches": each.batches, "bytes": each.size} for number, each in self.by_size()
            },
        }


def sizes_of(path: Path, partition: Partition, limit: int) -> Sizes:
    """Read a partition whole, and return what it consists of.

    Args:
        path: of the directory, to name it.
        partition: opened.
        limit: maximum bytes that one batch may decompress to.
    """
    sizes = Sizes(path)
    for segment in partition.segments:
        try:
            for frame in segment.frames():
                sizes.add(frame, Location(segment.path, frame.position), limit)
        except FormatError:
            sizes.unread += 1
    return sizes
