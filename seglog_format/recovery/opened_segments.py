"""The segments of a partition, open for as long as a plan needs them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.log.segment import LogSegment, OpenSegments
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.recovery.planned_files import BrokerFiles
    from seglog_format.storage.log_storage import LogStorage


@contextmanager
def opened_segments(
    listing: PartitionListing,
    *,
    broker: BrokerFiles | None = None,
    storage: LogStorage = LOCAL,
) -> Iterator[list[LogSegment]]:
    """Open the segments of a partition, and close them at the end of the block.

    The logs are read through windows, and only one log is open at a time. So memory use does not depend on their size,
    and a failing disk causes an exception instead of a signal.

    Args:
        listing: of the partition directory.
        broker: the files that an imitated broker opens; None to open all.
        storage: the storage to read them through.
    """
    bases = [*listing.base_offsets, None]
    opened = OpenSegments(1)
    type_of = broker.segment_type if broker else lambda _: LogSegment

    def segment(files: SegmentFiles, following: int | None) -> LogSegment:
        made = type_of(files)
        return made(files, next_base_offset=following, opened=opened, storage=storage)

    with ExitStack() as stack:
        yield [
            stack.enter_context(segment(files, following))
            for files, (_, following) in zip(listing.segments, pairwise(bases), strict=True)
        ]
