"""Checks of chapter 31: records that can be decoded, but break a rule."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.codec.encoders import body_size
from seglog_format.schema.varint import varint_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Batch
    from seglog_format.errors import Location


def _at(batch: Batch, index: int, name: str) -> Location:
    return batch.at.at(f"records[{index}].{name}")


@checks("SEG-REC-003")
def record_attributes(batch: Batch) -> Iterator[Problem]:
    """Report any attribute bit that is set: none is defined."""
    for index, record in enumerate(batch.records):
        if record.attributes:
            yield Problem(_at(batch, index, "attributes"), "0", record.attributes)


@checks("SEG-REC-005")
def minimal_varints(batch: Batch) -> Iterator[Problem]:
    """Report a record that takes more bytes than its values need."""
    for index, record in enumerate(batch.records):
        body = body_size(record)
        minimal = varint_size(body) + body
        if record.size_in_bytes != minimal:
            yield Problem(_at(batch, index, "length"), f"a record of {minimal} bytes", record.size_in_bytes)


@checks("SEG-REC-011")
def header_keys_are_utf8(batch: Batch) -> Iterator[Problem]:
    """Report header keys that are not UTF-8: clients decode them as UTF-8."""
    for index, record in enumerate(batch.records):
        for number, header in enumerate(record.headers):
            if not is_utf8(header.key):
                yield Problem(_at(batch, index, f"headers[{number}].key"), "UTF-8", header.key[:32].hex())


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@checks("SEG-REC-013")
def offset_deltas_increase(batch: Batch) -> Iterator[Problem]:
    """Report offset deltas that do not increase within the batch."""
    for index, (before, record) in enumerate(pairwise(batch.records), start=1):
        if record.offset_delta <= before.offset_delta:
            yield Problem(_at(batch, index, "offset_delta"), f"more than {before.offset_delta}", record.offset_delta)


@checks("SEG-REC-014")
def offset_deltas_in_range(batch: Batch) -> Iterator[Problem]:
    """Report offset deltas below 0, or above the last offset delta in the header."""
    last = batch.header.last_offset_delta
    for index, record in enumerate(batch.records):
        if not 0 <= record.offset_delta <= last:
            yield Problem(_at(batch, index, "offset_delta"), f"0 to {last}", record.offset_delta)
