"""The format as five widely copied articles describe it: the handbook dialect.

This is not Kafka's format. The articles, called A to E in appendix A, differ from the bytes and from each other; here
their tables and their arithmetic are executable, so the answers can be compared with Kafka's (chapter
90). It uses nothing of the package but errors.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from construct import Bytes, Construct, ConstructError, GreedyBytes, Int8sb, Int32sb, Int32ub, Int64sb, Struct, this

from seglog_format.errors import Location, TruncatedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ARTICLE_E_OVERHEAD: Final = 10
"""Bytes that article E counts in the message size before key and payload: checksum to key length."""

ArticleEMessage = Struct(
    "offset" / Int64sb * "Offset of the message.",
    "message_size" / Int32sb * "Bytes after this field.",
    "crc" / Int32ub * "CRC-32 of what follows.",
    "magic" / Int8sb * "Called the version of the data file.",
    "attributes" / Int8sb * "Called a version, a compression type or an encoding type.",
    "key_length" / Int32sb * "-1: no key.",
    "key" / Bytes(lambda found: max(found.key_length, 0)) * "As many bytes.",
    "payload"
    / Bytes(lambda found: found.message_size - ARTICLE_E_OVERHEAD - max(found.key_length, 0))
    * "The rest of the message; its length is not stored.",
)

ArticleAMessage = Struct(
    "crc" / Int32ub * "CRC-32 of the buffer except this field.",
    "magic" / Int8sb * "Called the version of the server protocol.",
    "attributes" / Int8sb * "Called a version, a compression type or an encoding type.",
    "key_and_payload" / GreedyBytes * "No length says where the key ends.",
)

ArticleDMessage = Struct(
    "length" / Int32sb * "Fixed-length field in front of a message of variable length.",
    "body" / Bytes(this.length) * "The message.",
)


@dataclass(frozen=True, slots=True)
class HandbookMessage:
    """A message as one of the articles reads it.

    Attributes:
        crc, magic, attributes: as the article's table places them; 0 where it has no such field.
        payload: the bytes that the article takes for the value.
        key: None where the article's table cannot say or says there is none.
        offset: None where the article's table has no offset.
    """

    crc: int
    magic: int
    attributes: int
    payload: bytes
    key: bytes | None = None
    offset: int | None = None


def read_as_article_a(data: bytes) -> HandbookMessage:
    """Read a stored message by article A's table: no offset, no size, no lengths.

    Raises:
        TruncatedError: there are fewer than 6 bytes.
    """
    found = _parse(ArticleAMessage, data)
    return HandbookMessage(found.crc, found.magic, found.attributes, found.key_and_payload)


def read_as_article_d(data: bytes) -> HandbookMessage:
    """Read a stored message as article D says: a 4-byte length, then the message.

    Raises:
        TruncatedError: there are fewer bytes than that length.
    """
    return HandbookMessage(0, 0, 0, _parse(ArticleDMessage, data).body)


def read_as_article_e(data: bytes) -> HandbookMessage:
    """Read a stored message by article E's table: the payload follows the key at once.

    Raises:
        TruncatedError: there are fewer bytes than the sizes in the table.
    """
    found = _parse(ArticleEMessage, data)
    key = None if found.key_length < 0 else found.key
    return HandbookMessage(found.crc, found.magic, found.attributes, found.payload, key, found.offset)


def _parse(declaration: Construct, data: bytes) -> Any:  # noqa: ANN401 - construct is untyped
    try:
        return declaration.parse(data)
    except ConstructError as error:
        wanted = "a message that fills the article's table"
        raise TruncatedError(Location(), "SEG-MSG-005", expected=wanted, found=f"{len(data)} bytes") from error


CRC_POSITION: Final = 12
CRC_END: Final = 16


def checksum_as_article_a(entry: bytes) -> int:
    """Compute CRC-32 of all bytes of a stored message except the checksum; offset and size are included."""
    return zlib.crc32(entry[:CRC_POSITION] + entry[CRC_END:])


@dataclass(frozen=True, slots=True)
class Dialect:
    """The rules of one article for names of files and directories, and for counting offsets.

    Attributes:
        digits: number of digits in a file name; 0 for as many as necessary.
        suffix: of the file with the messages.
        separator: between topic and partition in a directory name.
        named_by_previous_last: a file after the first is named by the last offset of the one before it, so the first
            message of file N is N + 1. Where False, a file is named by its first offset.
        relative_to_previous: numbers in an index are relative to the number of the previous file, not of their own.
    """

    digits: int
    suffix: str
    separator: str
    named_by_previous_last: bool
    relative_to_previous: bool


DIALECTS: Final = {
    "A": Dialect(20, ".log", "-", named_by_previous_last=False, relative_to_previous=True),
    "B": Dialect(20, ".log", "-", named_by_previous_last=False, relative_to_previous=True),
    "C": Dialect(19, ".log", "-", named_by_previous_last=True, relative_to_previous=False),
    "D": Dialect(0, ".kafka", "_", named_by_previous_last=True, relative_to_previous=False),
    "E": Dialect(20, ".log", "-", named_by_previous_last=True, relative_to_previous=False),
}


def dialect(article: str) -> Dialect:
    """Return the rules of one article.

    Raises:
        UsageError: the article is not one of A to E.
    """
    try:
        return DIALECTS[article]
    except KeyError:
        msg = f"articles are called A to E, not {article!r}"
        raise UsageError(msg) from None


FIRST_NAME_OF_ARTICLE_D: Final = "00000000.kafka"


def directory_name(topic: str, partition: int, article: str) -> str:
    """Return the name of a partition directory."""
    return f"{topic}{dialect(article).separator}{partition}"


def directory_names(topic: str, count: int, article: str) -> list[str]:
    """Return the directories of a topic: the articles expect each partition to exist."""
    return [directory_name(topic, partition, article) for partition in range(count)]


def file_name(number: int, article: str) -> str:
    """Return the name of a file with messages."""
    rules = dialect(article)
    if not rules.digits and number == 0:
        return FIRST_NAME_OF_ARTICLE_D
    return f"{number:0{rules.digits}d}{rules.suffix}" if rules.digits else f"{number}{rules.suffix}"


def number_in_file_name(name: str, article: str) -> int | None:
    """Return the number in a file name; None if the article does not define such a name."""
    rules = dialect(article)
    digits = f"{{{rules.digits}}}" if rules.digits else "+"
    match = re.fullmatch(rf"([0-9]{digits}){re.escape(rules.suffix)}", name)
    return int(match[1]) if match else None


def number_after(previous_last_offset: int | None, article: str) -> int:
    """Return the number in the name of the file after the one with a given last offset; 0 for the first file."""
    if previous_last_offset is None:
        return 0
    return previous_last_offset + (0 if dialect(article).named_by_previous_last else 1)


def first_offset(number: int, article: str) -> int:
    """Return the offset of the first message in a file."""
    return number + 1 if dialect(article).named_by_previous_last and number else number


def last_offset(next_number: int, article: str) -> int:
    """Return the offset of the last message in the file before the one with this number."""
    return next_number if dialect(article).named_by_previous_last else next_number - 1


def messages_before(number: int) -> int:
    """Return how many messages article D expects in the files before the one with this number."""
    return number


def file_at(position: int, segment_bytes: int) -> int:
    """Return the number of the file, from 0, in which articles A to C expect a byte: all files have one size."""
    return position // segment_bytes


def is_flushed(offset: int, recovery_point: int) -> bool:
    """Return whether a message is flushed by article D, in which a recovery point names the last flushed message."""
    return offset <= recovery_point


def ordinal(relative_offset: int) -> int:
    """Return the number of a message in its file, from 1, that articles C and E find by an index entry's number."""
    return relative_offset


@dataclass(frozen=True, slots=True)
class HandbookFile:
    """A `.log` and an `.index` file as a reader of the articles sees them.

    Attributes:
        number: in the name.
        entries: of the index, as stored: relative offset and byte position.
        messages: offset and byte position of each message.
    """

    number: int
    entries: Sequence[tuple[int, int]]
    messages: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class HandbookAnswer:
    """The result of an article's lookup.

    Attributes:
        number: of the file that it reads.
        relative: number that it searches for in the index.
        entry: index entry that it uses, as stored; (0, 0) if none is small enough.
        position: byte at which it starts to send; None if it passes the end of the file.
    """

    number: int
    relative: int
    entry: tuple[int, int]
    position: int | None


def file_for(numbers: Sequence[int], offset: int, article: str) -> int:
    """Return the index, in the ascending list of numbers, of the file in which an article searches for an offset.

    Raises:
        UsageError: the offset is below the first file.
    """
    index = bisect_right([first_offset(number, article) for number in numbers], offset) - 1
    if index < 0:
        msg = f"offset {offset} is below {numbers[0] if numbers else 'an empty list of files'}"
        raise UsageError(msg)
    return index


def relative_offset(offset: int, number: int, previous_number: int, article: str) -> int:
    """Return the number that an article searches for in the index of a file.

    Article D counts from the first message, C and E from the number of the file, A and B from that of the file before.
    """
    if dialect(article).relative_to_previous:
        return offset - previous_number
    return offset - (first_offset(number, article) if article == "D" else number)


def lookup(files: Sequence[HandbookFile], offset: int, article: str) -> HandbookAnswer:
    """Return where an article's reader starts to send for an offset.

    A, B and D send from the index entry on. E skips as many messages as the difference between the searched number and
    the entry's number. C compares offsets from the entry's position on, as Kafka does.

    Args:
        files: of one partition, in ascending order.
        offset: the requested offset.
        article: A to E.

    Raises:
        UsageError: the offset is below the first file.
    """
    index = file_for([file.number for file in files], offset, article)
    file = files[index]
    relative = relative_offset(offset, file.number, files[index - 1].number if index else 0, article)
    entry = _floor(file.entries, relative)
    return HandbookAnswer(file.number, relative, entry, _start(file, entry, offset, relative, article))


def _floor(entries: Sequence[tuple[int, int]], relative: int) -> tuple[int, int]:
    index = bisect_right([number for number, _ in entries], relative)
    return entries[index - 1] if index else (0, 0)


def _start(file: HandbookFile, entry: tuple[int, int], offset: int, relative: int, article: str) -> int | None:
    following = [message for message in file.messages if message[1] >= entry[1]]
    if article == "C":
        return next((position for found, position in following if found >= offset), None)
    skipped = relative - entry[0] if article == "E" else 0
    return following[skipped][1] if skipped < len(following) else None


def block_index(messages: Iterable[tuple[int, int]], block_size: int = 4096) -> list[tuple[int, int]]:
    """Return article B's index: one entry for each block of bytes, with the first message that starts in it.

    Args:
        messages: offset and byte position of each message, in order.
        block_size: bytes of a block.

    Returns:
        Offset and byte position of each entry.
    """
    rows = [(-1, -block_size), *messages]
    return [later for earlier, later in pairwise(rows) if later[1] // block_size > earlier[1] // block_size]
