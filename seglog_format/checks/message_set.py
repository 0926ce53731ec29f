"""Checks of chapter 33: rules that a message or wrapper with a right checksum may still break."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.model import TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Messages


@checks("SEG-MSG-006")
def nothing_after_value(entry: Messages) -> Iterator[Problem]:
    """Report bytes after the value, of the outermost message and of inner ones."""
    contents = entry.contents
    if contents.trailing_size:
        yield Problem(entry.at.at("value"), "the end of the message", f"{contents.trailing_size} more bytes")
    for index, size in enumerate(contents.inner_trailing_sizes):
        if size:
            yield Problem(entry.at.at(f"messages[{index}].value"), "the end of the message", f"{size} more bytes")


@checks("SEG-MSG-016")
def inner_checksums(entry: Messages) -> Iterator[Problem]:
    """Report a wrong checksum of an inner message; brokers check them on produce only."""
    for index, message in enumerate(entry.contents.messages):
        if entry.is_wrapper and not message.is_valid:
            location = entry.at.at(f"messages[{index}].crc")
            yield Problem(location, "the checksum of the message", f"{message.crc:#010x}")


@checks("SEG-MSG-019")
def last_message_is_whole(entry: Messages) -> Iterator[Problem]:
    """Report a truncated last message, which brokers drop silently."""
    size = entry.contents.dropped_size
    if size:
        index = len(entry.contents.messages)
        yield Problem(entry.at.at(f"messages[{index}]"), "a whole message", f"the first {size} bytes of one")


@checks("SEG-MSG-020")
def unknown_attribute_bits(entry: Messages) -> Iterator[Problem]:
    """Report bits 3 to 7 in magic 0, 4 to 7 in magic 1."""
    if entry.header.unknown_attribute_bits:
        found = f"{entry.header.unknown_attribute_bits & 0xFF:#04x}"
        yield Problem(entry.at.at("attributes", 17, 1), "bits without a meaning clear", found)


@checks("SEG-MSG-021")
def wrapper_timestamp(entry: Messages) -> Iterator[Problem]:
    """Report a wrapper's timestamp below the maximum inside; with LogAppendTime the wrapper's own is valid."""
    header = entry.header
    if entry.is_wrapper and header.timestamp_type is TimestampType.CREATE_TIME:
        largest = max(message.timestamp_ms for message in entry.contents.messages)
        if header.timestamp_ms != largest:
            yield Problem(entry.at.at("timestamp_ms", 18, 8), str(largest), header.timestamp_ms)


@checks("SEG-MSG-022")
def inner_offsets_increase(entry: Messages) -> Iterator[Problem]:
    """Report offsets that do not increase within the wrapper."""
    for index, (before, message) in enumerate(pairwise(entry.contents.messages), start=1):
        if message.offset <= before.offset:
            location = entry.at.at(f"messages[{index}].offset")
            yield Problem(location, f"more than {before.stored_offset}", message.stored_offset)


@checks("SEG-MSG-023")
def wrapper_key(entry: Messages) -> Iterator[Problem]:
    """Report a key of the wrapper, which would belong to no message."""
    if entry.is_wrapper and entry.contents.key is not None:
        yield Problem(entry.at.at("key"), "null in a wrapper", f"{len(entry.contents.key)} bytes")


@checks("SEG-MSG-024")
def wrapper_offset(entry: Messages) -> Iterator[Problem]:
    """Report a wrong offset of a wrapper of magic 1: inner offsets are relative to it, unless it is 0 (SEG-MSG-013)."""
    last = entry.contents.messages[-1].offset
    if entry.is_wrapper and entry.header.magic == 0 and entry.header.offset != last:
        yield Problem(entry.at.at("offset", 0, 8), f"{last}, the offset of the last message", entry.header.offset)
