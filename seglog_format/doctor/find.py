"""Search for records by the bytes of their keys, values and headers, by offset and by time."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.codec.control_record import hidden_data
from seglog_format.codec.decode import decode_frame, stream_frame
from seglog_format.codec.framing import DeclaredBytes, frame_at
from seglog_format.engine import Engine, engine_for, prefilter
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.lines.logs import RecordLines, WantedEntries
from seglog_format.lines.options import opened
from seglog_format.log.entry_table import Overlap, overlap_of
from seglog_format.log.search import unexpected_end
from seglog_format.model import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.lines.options import LineOptions
    from seglog_format.lines.sources import Source
    from seglog_format.log.search import Wanted
    from seglog_format.storage.byte_source import Buffer, SourceFile

    Found: TypeAlias = dict[str, Any] | FormatError | Overlap | int


class FieldPath(NamedTuple):
    """A place in a decoded record, or in a value that is JSON, and the text that has to be all that is there.

    Attributes:
        names: of fields, or numbers in lists, from the outside in.
        text: a string, or the JSON of anything else.
    """

    names: tuple[str, ...]
    text: str

    def is_in(self, decoded: object, value: bytes | None) -> bool:
        """Return whether the text is at this place."""
        try:
            found: Any = json.loads(value or b"") if decoded is None else decoded
            for name in self.names:
                found = found[int(name)] if isinstance(found, list) else found[name]
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            return False
        return self.text == (found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))


def found_in(source: Source, wanted: Wanted, options: LineOptions, at: FieldPath | None = None) -> Iterator[Found]:
    """Yield the wanted records of a log file as the lines that `lines_of` makes.

    Between them are an error for each part that cannot be read, an overlap before each batch that has one, and the next
    offset after each batch. Control records are left out; records of aborted transactions are not.

    Args:
        source: a log file.
        wanted: what to search for.
        options: the wanted offsets, the limit of decompression and the form of the lines.
        at: where a text has to be, besides.

    Raises:
        FormatError: the file cannot be opened, or is larger than Kafka allows.
        UsageError: the file does not exist.
    """
    lines = RecordLines(source, options)
    with opened(source) as content:
        frames = WantedEntries(source, content, options)
        passes = _passes(content, frames, wanted, options)
        try:
            while True:
                position = frames.position
                next(passes, None)
                if frames.position > position:
                    yield frames.reached
                frame = next(iter(frames), None)
                if frame is None:
                    break
                decode = partial(decode_frame, at=Location(source.name, frame.position), limit=options.limit)
                if frames.disorder is not None:
                    yield frames.disorder
                elif (overlap := overlap_of(frame, frames.before, decode)) is not None:
                    yield overlap
                yield from _found_in_frame(frame, source.name, wanted, options, lines, at)
                yield frame.header.next_offset
                frames.position = frame.end
        except FormatError as error:
            yield error
            return
        yield frames.reached
        hidden = unexpected_end(frames.tail, content, source.allowed, source.name, is_last=True)
        if hidden is not None:
            yield hidden


AHEAD: Final = 1000
"""Maximum number of records and other findings in one log that wait until those of the logs before it are delivered."""


def found_side_by_side(searches: Iterable[Iterator[Found]], threads: int) -> Iterator[Iterator[Found]]:
    """Yield what each search of a log finds, in order, while other threads carry on with the next ones.

    Args:
        searches: what `found_in` returns for each log.
        threads: number of searches that run at once.
    """
    rest, pool, begun = iter(searches), ThreadPoolExecutor(threads), deque[_Begun]()
    try:
        while True:
            begun.extend(_Begun(each, pool) for each in islice(rest, threads - len(begun)))
            if not begun:
                return
            yield begun.popleft().delivered()
    finally:
        pool.shutdown(cancel_futures=True)


class _Begun:
    """A search that other threads carry on, a part at a time."""

    def __init__(self, found: Iterator[Found], pool: ThreadPoolExecutor) -> None:
        self._found, self._pool = found, pool
        self._part = pool.submit(_part, found)

    def delivered(self) -> Iterator[Found]:
        """Yield what is found."""
        has_more = True
        while has_more:
            part, error = self._part.result()
            has_more = error is None and len(part) == AHEAD
            if has_more:
                self._part = self._pool.submit(_part, self._found)
            yield from part
            if error is not None:
                raise error


def _part(found: Iterator[Found]) -> tuple[list[Found], Exception | None]:
    part: list[Found] = []
    try:
        part.extend(islice(found, AHEAD))
    except Exception as error:  # noqa: BLE001 - raised after what was found before it
        return part, error
    return part, None


def _passes(content: SourceFile, frames: WantedEntries, wanted: Wanted, options: LineOptions) -> Iterator[None]:
    """Move a walk over intact entries without a text, by compiled code, each time that the caller read what follows.

    Whatever else is there is left to the caller, such as a wrong checksum, or offsets out of order. Nothing is passed
    over if every entry has to be read, or is read sooner than the engine loads.
    """
    text, has_offsets = wanted.pattern, options.from_offset is not None or options.to_offset is not None
    if has_offsets or not isinstance(text, bytes) or not text or isinstance(content, DeclaredBytes):
        return
    if not engine_for(Engine.AUTO, content.size).is_columnar:
        return
    filtered = prefilter()(content, frames.allowed.first, options.limit, lambda *_: None)
    while True:
        for part in filtered.parts(frames.position, frames.reached - 1):
            row, usual = 0, part.usual_count(frames.allowed.last)
            while row < part.entry_count:
                found = filtered.entry_with(text, part, row, usual) if row < usual else row
                if found > row:
                    frames.position, frames.reached = part.reached_before(found)
                row = found
                if found < part.entry_count:
                    yield
                    row = bisect_left(part.positions, frames.position)
            if frames.position != part.end:
                break
        else:
            yield


def _found_in_frame(
    frame: Frame, name: str, wanted: Wanted, options: LineOptions, lines: RecordLines, field_path: FieldPath | None
) -> Iterator[dict[str, Any] | FormatError]:
    header, at = frame.header, Location(name, frame.position)
    try:
        if not header.is_control and not wanted.may_be_in(frame, at, options.limit):
            return
        batch = stream_frame(frame, at=at, limit=options.limit, to_offset=options.to_offset)
        if (hidden := hidden_data(frame, batch.records, at)) is not None:
            yield hidden
        for record in () if header.is_control else batch.records:
            if options.accepts(record) and wanted.accepts(record):
                line = lines.line(record, header, frame.position)
                if field_path is None or field_path.is_in(line.get("decoded"), record.value):
                    yield line
    except FormatError as error:
        yield error


def batches_at(positions: Iterable[tuple[Source, int]]) -> Iterator[Buffer]:
    """Yield the bytes of batches as stored, of which one segment can be made.

    Args:
        positions: file and position of each batch; those of one file follow each other.

    Raises:
        UsageError: the offsets of a batch are not above those of the batch before it.
        FormatError: a file cannot be read any more.
    """
    reached = -1
    for source, of_source in groupby(positions, key=itemgetter(0)):
        with opened(source) as content:
            for _, position in of_source:
                frame = frame_at(content, position, content.size, source.name)
                assert isinstance(frame, Frame)
                last = frame.header.last_offset
                first = last if frame.header.base_offset is None else frame.header.base_offset
                if first <= reached:
                    msg = (
                        f"{source.name}: offset {first} comes after {reached}: give the logs of one partition in order"
                    )
                    raise UsageError(msg)
                reached = last
                yield frame.data
