"""Position of a record in an uncompressed batch, for lookups of single records."""

from __future__ import annotations

from seglog_format.codec.plain.records import MORE


def start_of_record(data: bytes, number: int, position: int) -> int | None:
    """Return where a record of an uncompressed batch starts, found by lengths alone; None beyond the end.

    Args:
        data: bytes of the batch.
        number: of the record, from 0.
        position: of the first record.
    """
    end = len(data)
    try:
        for _ in range(number):
            byte, second = data[position], data[position + 1]
            if byte < MORE:
                position += 1 + (byte >> 1)
            elif second < MORE:
                position += 2 + (byte >> 1 & 63) + (second << 6)
            else:
                third = data[position + 2]
                if third >= MORE:  # a record of a megabyte and more
                    return None
                position += 3 + (byte >> 1 & 63) + ((second & 127) << 6) + (third << 13)
    except IndexError:
        return None
    return position if position < end else None
