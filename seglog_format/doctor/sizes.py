"""What a partition consists of: batches, records and bytes, by codec and by producer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.record_stream import stream_frame
from seglog_format.errors import FormatError, Location
from seglog_format.lines.logs import codec_name
from seglog_format.model import NO_PRODUCER_ID, RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.log.partition import Partition
    from seglog_format.model import Frame
    from seglog_format.record_model import Message, Record

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
