"""Choose the engine that reads a log: the one that the caller names, else by the number of bytes to read; and call it.

Besides this module only three modules of `seglog_format.spark`, which always needs the columnar engine, import
`seglog_format.columnar`; an import contract lists them. Functions that call compiled code import its modules at their
first call, and raise `UsageError` if the engine is not installed, or its kernels are not compiled.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import StrEnum
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from seglog_format.columnar import batch_table, index_log, request
    from seglog_format.columnar import prefilter as filtered
    from seglog_format.columnar.run import Run
    from seglog_format.columnar.schema import Layout
    from seglog_format.model import AbortedTxn, Message, Record
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.storage.byte_source import Buffer, ByteSource

    BatchTable = batch_table.BatchTable

    Request = request.Request

    Start = request.Start

    Located = tuple[request.Source, Start]

    """The log of a segment, and where to start in it."""

    BatchTables = Callable[..., Iterator[BatchTable]]

    ReadRun = Callable[[request.Source, Request, Start], Run]

    FilteredEntries = filtered.FilteredEntries

    FilteredLog = filtered.FilteredLog

    MakePrefilter = type[filtered.ColumnarPrefilter]

    SoundEntries = index_log.SoundEntries

    IndexedLog = index_log.IndexedLog

    RecoveryKernels = index_log.ColumnarRecovery


COLUMNAR_SIZE: Final = 2**22
"""`Engine.AUTO` chooses the columnar engine above this number of bytes, in every process.

The start of the engine takes as long as plain code takes to verify 2 MB, or to recover 10 MB.
"""
ASKED: Final = "the caller asks for it"
NEEDED: Final = ("numpy", "pyarrow", "zstandard")
NOT_INSTALLED: Final = (
    f"the columnar engine needs {', '.join(NEEDED[:-1])} and {NEEDED[-1]}: pip install 'seglog-format[fast]'"
)


class Engine(StrEnum):
    """Reader of a log. Results do not depend on it.

    Attributes:
        AUTO: the columnar engine for large inputs, if it is installed; else the plain decoders.
        REFERENCE: decoders that parse with the declarations themselves, slowly.
        PLAIN: hand-written decoders in plain Python.
        COLUMNAR: compiled code, which leaves every entry that it does not cover to the plain decoders; needs the extra
            ``fast``.

    Examples:
        >>> from seglog_format import Engine, open_partition
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     record = next(log.records(100, engine=Engine.REFERENCE))
        ...     log.engine_for().engine
        <Engine.PLAIN: 'plain'>
    """

    AUTO = "auto"
    REFERENCE = "reference"
    PLAIN = "plain"
    COLUMNAR = "columnar"


class Choice(NamedTuple):
    """Which engine reads, and why.

    Attributes:
        engine: any but `Engine.AUTO`.
        reason: text of the reason.
    """

    engine: Engine
    reason: str

    @property
    def is_columnar(self) -> bool:
        """Return whether the columnar engine reads."""
        return self.engine is Engine.COLUMNAR

    @property
    def is_asked_for(self) -> bool:
        """Return whether the caller has named the engine."""
        return self.reason == ASKED


def choose(wanted: Engine, size: int, lacks: Callable[[], str | None]) -> Choice:
    """Choose an engine, by the rule for all callers.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read, 0 or more; only used for `Engine.AUTO`.
        lacks: returns what the columnar engine lacks here, None if nothing; called only if it would be chosen.

    Raises:
        UsageError: the columnar engine is asked for, and lacks something.
    """
    if wanted is Engine.AUTO and size <= COLUMNAR_SIZE:
        return Choice(Engine.PLAIN, f"at most {COLUMNAR_SIZE} bytes to read")
    if wanted in {Engine.AUTO, Engine.COLUMNAR} and (lack := lacks()) is not None:
        if wanted is Engine.COLUMNAR:
            raise UsageError(lack)
        return Choice(Engine.PLAIN, lack)
    if wanted is Engine.AUTO:
        return Choice(Engine.COLUMNAR, f"more than {COLUMNAR_SIZE} bytes to read")
    return Choice(wanted, ASKED)


def engine_for(wanted: Engine, size: int) -> Choice:
    """Choose an engine for this process, as `choose` does.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read; a caller may stop counting above `COLUMNAR_SIZE`.

    Raises:
        UsageError: the columnar engine is asked for, and lacks something.
    """
    found = choose(wanted, size, lacking)
    if wanted is Engine.AUTO and size > COLUMNAR_SIZE and found.reason != NOT_INSTALLED and not found.is_columnar:
        _report(found.reason)
    return found


@cache
def lacking() -> str | None:
    """Return what the columnar engine lacks here: a package, or kernels that were compiled; None if nothing."""
    if any(find_spec(name) is None for name in NEEDED):
        return NOT_INSTALLED
    from seglog_format.columnar.kernel_library import compiles_in_process, find_library  # noqa: PLC0415 - JSON

    found = None if compiles_in_process() else find_library()
    return found if isinstance(found, str) else None


def is_installed() -> bool:
    """Return whether the columnar engine can be used here."""
    return lacking() is None


@cache
def _report(lack: str) -> None:
    """Report once that the plain engine reads though the columnar engine is installed."""
    print(f"seglog: the plain engine reads, slowly: {lack}", file=sys.stderr)  # noqa: T201 - the user has to know the reason for the wait


# -- calls of the columnar engine --------------------------------------------------------------------------------------


@contextmanager
def _loading() -> Iterator[None]:
    """Load modules of the engine.

    Raises:
        UsageError: a package that they need is not installed. Any other error of an import is a defect, and passes
            through unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        raise UsageError(NOT_INSTALLED) from error


def prefilter() -> MakePrefilter:
    """Return the function that makes prefilters, which skip entries for which no check can report a finding."""
    with _loading():
        from seglog_format.columnar.prefilter import ColumnarPrefilter  # noqa: PLC0415 - loads compiled code
    return ColumnarPrefilter


def recovery_kernels() -> RecoveryKernels:
    """Return the kernels that recover and index entries that need no decision."""
    with _loading():
        from seglog_format.columnar.index_log import ColumnarRecovery  # noqa: PLC0415 - as above
    return ColumnarRecovery()


def batch_tables() -> BatchTables:
    """Return the function that reads the headers of entries into tables; see `columnar.batch_table.table_parts`."""
    with _loading():
        from seglog_format.columnar.batch_table import table_parts  # noqa: PLC0415 - as above
    return table_parts


def record_finder() -> Callable[[Buffer, int, int, int], int | None] | None:
    """Return the function that finds a record in a sound batch; None if there is no library of kernels.

    See `columnar.one_batch.RecordFinder.find`.
    """
    from seglog_format.columnar.kernel_library import library  # noqa: PLC0415 - as above

    if library() is None:
        return None
    from seglog_format.columnar.one_batch import RecordFinder  # noqa: PLC0415 - as above

    return RecordFinder().find


def position_of(log: ByteSource, allowed_offsets: tuple[int, int], offset: int) -> int | None:
    """Return the position of the entry that holds an offset, by a walk over headers; None if it is uncertain."""
    with _loading():
        from seglog_format.columnar.ranges import position_of  # noqa: PLC0415 - as above
    return position_of(log, allowed_offsets, offset)


def scan_request(  # noqa: PLR0913 - the parameters of a scan
    columns: Sequence[str],
    layout: str,
    *,
    offsets: tuple[int, int],
    timestamps_ms: tuple[int, int],
    batch_rows: int,
    limit: int,
    aborted: Iterable[AbortedTxn],
    on_corrupt: Callable[[FormatError], None] | None,
    borders: request.Borders | None,
    statistics: ScanStatistics,
) -> Request:
    """Create the request of a scan.

    Args:
        columns: as `Partition.scan`.
        layout: of bytes.
        offsets: from the first inclusive to the second exclusive.
        timestamps_ms: both inclusive.
        batch_rows: maximum rows of an Arrow batch.
        limit: maximum bytes that one entry may decompress to.
        aborted: transactions to leave out.
        on_corrupt: called with each damaged entry, which is then left out.
        borders: called at borders between segments, to check for missing offsets.
        statistics: counts the entries that are left to slower code.

    Raises:
        UsageError: unknown columns or layout, or the engine is not installed.
    """
    with _loading():
        from seglog_format.columnar.request import Request  # noqa: PLC0415 - as above
        from seglog_format.columnar.schema import Shape  # noqa: PLC0415 - as above
        from seglog_format.columnar.transactions import aborted_numbers  # noqa: PLC0415 - as above
    return Request(
        shape=Shape(tuple(columns), cast("Layout", layout)),
        from_offset=offsets[0],
        to_offset=offsets[1],
        from_timestamp_ms=timestamps_ms[0],
        to_timestamp_ms=timestamps_ms[1],
        batch_rows=batch_rows,
        limit=limit,
        aborted=aborted_numbers(aborted),
        on_corrupt=on_corrupt,
        borders=borders,
        statistics=statistics,
    )


def scan_start(position: int, previous: int, floor: int, end: int | None = None) -> Start:
    """Create the start of a run in a segment; see `columnar.request.Start`."""
    with _loading():
        from seglog_format.columnar.request import Start  # noqa: PLC0415 - as above
    return Start(position, previous, floor, end)


def run_reader() -> ReadRun:
    """Return a function that reads a part of a segment into Arrow batches; successive calls reuse its buffers."""
    with _loading():
        from seglog_format.columnar.run import run_of  # noqa: PLC0415 - as above
        from seglog_format.columnar.windows import Pool  # noqa: PLC0415 - as above
    return partial(run_of, pool=Pool())


def scan(
    sources: Iterable[Located], request: Request, threads: int, at_end: Callable[[], None] | None
) -> pa.RecordBatchReader:
    """Read segments in order, into Arrow batches; see `columnar.scan.scan`."""
    with _loading():
        from seglog_format.columnar.scan import scan  # noqa: PLC0415 - as above
    return scan(sources, request, threads=threads, at_end=at_end)


def scan_partitions(
    partitions: Iterable[tuple[str, int, Callable[[tuple[str, ...]], Iterator[pa.RecordBatch]]]],
    columns: tuple[str, ...],
    layout: str,
) -> pa.RecordBatchReader:
    """Read partitions one after the other, into Arrow batches; see `columnar.scan.scan_partitions`."""
    with _loading():
        from seglog_format.columnar.scan import scan_partitions  # noqa: PLC0415 - as above
    return scan_partitions(partitions, columns, cast("Layout", layout))


def object_rows() -> int | None:
    """Return the number of records made into objects at a time; None if this interpreter's objects are unknown."""
    with _loading():
        from seglog_format.columnar.objects import can_make_objects  # noqa: PLC0415 - as above
        from seglog_format.columnar.run import BLOCK_ROWS  # noqa: PLC0415 - as above
    return BLOCK_ROWS if can_make_objects() else None


def record_lists(sources: Iterable[Located], request: Request) -> Iterator[list[Record | Message]]:
    """Read segments in order, into lists of record objects; see `columnar.scan.record_lists`."""
    with _loading():
        from seglog_format.columnar.scan import record_lists  # noqa: PLC0415 - as above
    return record_lists(sources, request)


def encode_table(
    table: pa.Table,
    fields: Mapping[str, Any],
    *,
    base_offset: int,
    batch_size: int,
    counts: Sequence[int] | None,
    compress: Callable[[Buffer], bytes] | None,
) -> Iterator[bytes]:
    """Encode the rows of a table as record batches; see `columnar.encode.encode`.

    Args:
        table: as `encode_columns`.
        fields: of each batch, by the names of `columnar.encode.BatchFields`.
        base_offset: of the first row, if there is no column of offsets.
        batch_size: maximum bytes of a batch of several records, before compression.
        counts: number of records of each batch, instead of `batch_size`.
        compress: compresses the records of a batch; required with a codec.
    """
    with _loading():
        import numpy as np  # noqa: PLC0415 - an extra

        from seglog_format.columnar.encode import BatchFields, encode  # noqa: PLC0415 - as above
    batches = encode(
        table,
        BatchFields(**fields),
        base_offset=base_offset,
        batch_size=batch_size,
        counts=None if counts is None else np.asarray(counts, np.int64),
        compress=compress,
    )
    yield from (bytes(some) for some in batches)


def make_libraries(levels: Sequence[str]) -> list[tuple[str, bool]]:
    """Compile the kernels that are not compiled yet; see `columnar.kernel_build.make_libraries`."""
    from seglog_format.columnar.kernel_build import make_libraries  # noqa: PLC0415 - as above

    return make_libraries(levels)


# -- compiled code for checks, recovery and listings, if the chosen engine has it; None for the other engines ----------


def prefilter_of(choice: Choice) -> MakePrefilter | None:
    """Return the function that makes prefilters for the checks; None if the checks read every entry."""
    return prefilter() if choice.is_columnar else None


def kernels_of(choice: Choice) -> RecoveryKernels | None:
    """Return the kernels that recover and index entries without a decision; None for other engines."""
    return recovery_kernels() if choice.is_columnar else None


def tables_of(choice: Choice) -> BatchTables | None:
    """Return the function that reads the headers of entries into tables; None for other engines."""
    return batch_tables() if choice.is_columnar else None
