"""Signs that a log is compacted; compaction explains missing offsets (SEG-PDR-023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError
from seglog_format.log.segment import LogSegment
from seglog_format.model import CompressionCodec, MessageHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.listing import PartitionListing
    from seglog_format.model import Frame

COMPACTED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that brokers create with ``cleanup.policy=compact``; all their other topics have ``delete``."""


def shows_compaction(listing: PartitionListing, cleaned_to: int | None) -> bool:
    """Return whether there is a sign that a log is compacted (SEG-PDR-023).

    The signs are the topic's name, an entry in the cleaner's checkpoint, and an offset that is missing inside a
    segment, which only compaction causes. To find such an offset, headers are walked, and compressed wrappers of magic
    0 or 1 are decoded.

    Args:
        listing: of the partition directory.
        cleaned_to: the partition's offset in ``cleaner-offset-checkpoint``; None if it is not listed.
    """
    topic = None if listing.name is None else listing.name.topic
    if cleaned_to is not None or topic in COMPACTED_TOPICS:
        return True
    return any(map(_has_inner_gap, _segments(listing)))


def _segments(listing: PartitionListing) -> Iterator[LogSegment]:
    for files in listing.segments:
        with LogSegment(files, storage=listing.storage) as segment:
            yield segment


def _has_inner_gap(segment: LogSegment) -> bool:
    next_offset = segment.base_offset
    try:
        for frame in segment.frames():
            if not _is_dense(segment, frame, next_offset):
                return True
            next_offset = frame.header.next_offset
    except FormatError:
        return False  # entries after the damage are unknown
    return False


def _is_dense(segment: LogSegment, frame: Frame, next_offset: int) -> bool:
    """Return whether an entry begins at an offset and holds a record for each offset up to its last."""
    header = frame.header
    if not isinstance(header, MessageHeader):
        return header.base_offset <= next_offset and header.records_count > header.last_offset_delta
    if header.codec_id == CompressionCodec.NONE:
        return header.last_offset <= next_offset
    try:
        offsets = [message.offset for message in segment.decode(frame).records]
    except FormatError:
        return True
    return not offsets or (offsets[0] <= next_offset and len(offsets) > offsets[-1] - offsets[0])
