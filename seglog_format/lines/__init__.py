"""The JSON vocabulary: the content of a file, a partition directory or a log directory, one object per line.

Names are Kafka's, in camelCase; all numbers, even of 64 bits, are JSON numbers. Lines of one file are consecutive and
in file order; files are in the order of their paths. ``seglog dump --json`` prints these objects and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError, UsageError
from seglog_format.lines.logs import SIDE_FILE_LINES, file_line, log_lines
from seglog_format.lines.options import LineOptions, opened
from seglog_format.lines.sources import Source, SourceKind, source_of, sources_of
from seglog_format.model import DEFAULT_OUTPUT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.lines.options import BytesAs, Line
    from seglog_format.storage.byte_source import SourceFile

__all__ = ["LineOptions", "Source", "SourceKind", "lines_of", "lines_of_source", "source_of", "sources_of"]


def lines_of(  # noqa: PLR0913 - every option is a keyword with a default
    path: str | Path,
    *,
    bytes_as: BytesAs = "utf8",
    digest_over: int | None = None,
    raw: bool = False,
    decode: bool = False,
    decode_as: str | None = None,
    records: bool = True,
    from_offset: int | None = None,
    to_offset: int | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    limit: int = DEFAULT_OUTPUT_LIMIT,
) -> Iterator[Line]:
    """Yield the content of files as objects of the JSON vocabulary.

    Args:
        path: a file, a partition directory or a log directory.
        bytes_as: form of keys, values and headers: ``utf8`` (text, or ``{"hex": ...}`` if the bytes are not UTF-8),
            ``hex`` or ``base64``.
        digest_over: byte strings longer than this become ``{"bytes": n, "sha256": hex}``; None for no limit.
        raw: whether records also have their attributes and deltas as stored.
        decode: whether records of Kafka's own topics and control records also have ``decoded``.
        decode_as: name of one of Kafka's own topics: with ``decode``, the records of all files are decoded as records
            of that topic, whatever the names of their directories.
        records: whether to decode records; if not, only headers and checksums are read.
        from_offset: with this or one of the next three, only batches and records of logs are yielded, from here on.
        to_offset: the first offset that is left out.
        since_ms: the least timestamp of a record, in milliseconds since 1970. Entries before the first whose header
            has it are not read, apart from their headers.
        until_ms: the timestamp that a record is older than. It does not end the reading, since timestamps may fall.
        limit: maximum bytes that one batch may decompress to; a larger one is ``refused``, though it may be valid.

    Yields:
        Dictionaries with ``type`` and ``file``. They report damage (``isValid``, ``invalid``, ``error``), which raises
        no error; a file that cannot be opened is a ``file`` object with ``error``.

    Raises:
        UsageError: the path does not exist, or `to_offset` is not above `from_offset`.
        OSError: the path itself cannot be read.
    """
    options = LineOptions(
        bytes_as=bytes_as,
        digest_over=digest_over,
        raw=raw,
        decode=decode,
        decode_as=decode_as,
        records=records,
        from_offset=from_offset,
        to_offset=to_offset,
        since_ms=since_ms,
        until_ms=until_ms,
        limit=limit,
    )
    for source in sources_of(path):
        if options.wants(source):
            yield from lines_of_source(source, options)


def lines_of_source(
    source: Source, options: LineOptions, reached: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """Yield the lines of one file; ``reached`` is that of `log_lines`.

    Raises:
        UsageError: the file is in a remote store, and an option to read it is missing, such as a private key.
    """
    try:
        with opened(source) as content:
            yield from _lines(source, content, options, reached)
    except (OSError, UsageError, FormatError) as error:
        if isinstance(error, UsageError) and source.storage.tiered_end(source.path) is not None:
            raise
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = getattr(cause, "strerror", None) or str(cause)
        yield {"type": "file", "file": source.name, "bytes": None, "sha256": None, "error": reason}


def _lines(
    source: Source, content: SourceFile, options: LineOptions, reached: Callable[[int], None] | None
) -> Iterator[Line]:
    if not options.is_window:
        yield file_line(source, content)
    if source.kind is SourceKind.LOG:
        yield from log_lines(source, content, options, reached)
    else:
        yield from SIDE_FILE_LINES[source.kind](source, content, options.long_over)
