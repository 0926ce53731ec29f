"""Verification of one file, whose name decides its kind; an index is compared with the log beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seglog_format.checks.extent import Extent
from seglog_format.checks.finding import Finding, findings_of
from seglog_format.checks.log_file import LogSummary
from seglog_format.checks.partition import (
    index_findings,
    log_findings,
    metadata_snapshot_findings,
    opened_index,
    snapshot_findings,
)
from seglog_format.checks.partition_directory import NumberedName
from seglog_format.checks.text_files import text_file_findings
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.foreign_files import UNKNOWN, foreign_at, unnamed_base_offset
from seglog_format.names import INDEX_KINDS, NUMBERED_KINDS, FileKind, FileName, parse_file_name, segment_file_name
from seglog_format.object_names import FILE_KINDS, parse_cached_index, parse_object_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.checks.partition import Options

SNAPSHOT_KINDS: Final = (FileKind.METADATA_SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT)


def single_file_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about one file; a name that ends in ``.log``, or a file that begins with a batch, is a log.

    Raises:
        UsageError: the name does not belong to a known kind.
    """
    options.extent.files += 1
    stored = parse_object_name(path.name) or parse_cached_index(path.name)
    if stored is not None and stored.kind in FILE_KINDS:
        yield from _named_findings(path, FileName(stored.start_offset, FILE_KINDS[stored.kind]), options)
        return
    try:
        name = parse_file_name(path.name)
    except FormatError as error:
        yield Finding.of_error(error)
        name = None
    if name is not None:
        yield from _named_findings(path, name, options)
    elif (base_offset := unnamed_base_offset(path)) is not None or path.suffix == FileKind.LOG.value:
        given = options.base_offset
        yield from log_findings(path, base_offset or 0 if given is None else given, options)
    else:
        msg = f"{path}: {foreign_at(path) or UNKNOWN}"
        raise UsageError(msg)


def _named_findings(path: Path, name: FileName, options: Options) -> Iterator[Finding]:
    if name.kind in NUMBERED_KINDS and name.digits:
        yield from findings_of(NumberedName(str(path), name))
    if name.kind is FileKind.LOG:
        yield from log_findings(path, name.base_offset, options)
    elif name.kind in SNAPSHOT_KINDS:
        yield from metadata_snapshot_findings(path, options)
    elif name.kind in INDEX_KINDS:
        index = opened_index(name.kind, path, name.base_offset, options.storage)
        yield from index_findings(index, _summary_beside(path, name, options), is_active=True)
    elif name.kind is FileKind.PRODUCER_SNAPSHOT:
        yield from snapshot_findings(path, name.base_offset, options.storage)
    else:
        yield from text_file_findings(path, name.kind)


def _summary_beside(path: Path, name: FileName, options: Options) -> LogSummary:
    """Check the log beside an index; without one, only the order of the index entries can be checked."""
    beside = segment_file_name(name.base_offset, FileKind.LOG) if name.digits else path.stem + FileKind.LOG.value
    log = path.with_name(beside)
    if not log.is_file():
        return LogSummary(damaged=0)
    findings = log_findings(log, name.base_offset, replace(options, extent=Extent()))  # only to compare with
    while True:
        try:
            next(findings)
        except StopIteration as end:
            summary: LogSummary = end.value
            return summary
