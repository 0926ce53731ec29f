"""A broker's scan of one segment, by the reference or by compiled code, as recovery combines them."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from seglog_format import walk
from seglog_format.recovery.broker_scan import broker_scan, broker_scan_from
from seglog_format.types import OffsetPosition, TimestampOffset

if TYPE_CHECKING:
    from seglog_format.engine import RecoveryKernels
    from seglog_format.recovery.broker_scan import BrokerScan
    from seglog_format.types import IndexSettings, Transactions


def broker_scan_by(
    kernels: RecoveryKernels | None,
    log: memoryview,
    base_offset: int,
    settings: IndexSettings,
    transactions: Transactions,
) -> BrokerScan:
    """Scan a segment as a broker does.

    Args:
        kernels: compiled code, which leaves damaged logs to the reference; None for the reference.
        log: the bytes of the `.log` file.
        base_offset: base offset of the segment.
        settings: settings of the indexes.
        transactions: open transactions at the start of the segment; they are updated.
    """
    source = walk(log).source
    limits = {"stores_first_offset": settings.stores_first_offset, "is_sound": True}
    indexed = None if kernels is None else kernels.indexed(source, base_offset, settings.interval_bytes, **limits)
    found = None if indexed is None else broker_scan_from(indexed, source.size, transactions)
    if indexed is None or found is None:
        return broker_scan(source, base_offset, "p", settings=settings, transactions=transactions)
    offsets, times = struct.iter_unpack(">ii", indexed.offset_index), struct.iter_unpack(">qi", indexed.time_index)
    return replace(
        found,
        offset_entries=tuple(OffsetPosition(base_offset + offset, position) for offset, position in offsets),
        time_entries=tuple(TimestampOffset(time, base_offset + offset) for time, offset in times),
    )
