"""Verification of any path: a file, a partition directory or a log directory."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.checks.extent import Extent
from seglog_format.checks.log_directory import log_directory_findings, lone_partition_findings
from seglog_format.checks.log_file import LogVerification
from seglog_format.checks.partition import Options
from seglog_format.checks.single_file import single_file_findings
from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.engine.choice import Engine, engine_for
from seglog_format.engine.chosen import prefilter_of
from seglog_format.log.log_sizes import size_of_logs
from seglog_format.log.path_kind import PathKind, path_kind
from seglog_format.log.scanning import bytes_for, storage_for
from seglog_format.names import FileKind
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.checks.finding import Finding
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.storage.byte_source import Buffer

SEGMENT_FILES: Final = frozenset(
    kind.value for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
)
"""Endings of the files of a segment that readers use."""


def verify(  # noqa: PLR0913 - options by name
    path: str | os.PathLike[str],
    *,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    advance: Callable[[int], None] | None = None,
    engine: Engine = Engine.AUTO,
    compacted: bool | None = None,
    extent: Extent | None = None,
    remote: KnowsTiered | None = None,
    base_offset: int | None = None,
) -> Iterator[Finding]:
    """Check everything at a path against the specification.

    Args:
        path: a file, a partition directory, or a log directory.
        limit: maximum bytes that one entry may decompress to; more is refused, with a warning.
        advance: called with the size of checked log entries, to show progress.
        engine: reads the logs; findings do not depend on it. `Extent.engine` reports the chosen one.
        compacted: whether the logs are compacted, so gaps between segments are no warning; None if unknown: a log
            then counts as compacted if it shows signs of compaction, such as a hole inside a segment (SEG-PDR-023).
        extent: counts the checked data, while the verification runs.
        remote: the store with the tiered segments of partitions, where offsets are looked up that are missing in a
            directory; `RemoteTier.verify` checks its content. See `open_tier`.
        base_offset: of a single log whose name has none; None for its first offset.

    Yields:
        Findings, file by file; locations name files below the given path. Notes of one kind in a file are one finding.

    Raises:
        UsageError: the path does not exist or is not of a known kind (see `path_kind`), an engine is not installed,
            or the store does not answer.

    Examples:
        >>> from seglog_format import Severity, verify
        >>> for finding in verify("demo/broken"):
        ...     if finding.severity is Severity.ERROR:
        ...         print(finding)
        crash-flip-0/00000000000000000270.log:14722: crc: expected 0x0051bb4c, found 0xdf10a37f [SEG-BAT-003]
    """
    root = Path(path)
    counted = extent or Extent()
    choice = engine_for(engine, size_of_logs(root) if engine is Engine.AUTO else 0)
    counted.engine = choice.engine
    options = Options(
        limit,
        advance=advance,
        prefilter=prefilter_of(choice),
        storage=storage_for(choice.engine),
        is_compacted=compacted,
        extent=counted,
        remote=remote,
        base_offset=base_offset,
    )
    for finding in notes_once(_findings(root, options)):
        yield _below(root, finding)


def faults_of_logs(path: Path, engine: Engine = Engine.AUTO) -> Iterator[Finding]:
    """Yield what is wrong in the logs and indexes at a path, or was not checked, and what a broker does not look at.

    Brokers accept a batch by its checksum, which does not cover its magic, and do not decode its records. They compare
    no index of a closed segment with its log.
    """
    for finding in verify(path, engine=engine):
        is_of_segment = SEGMENT_FILES & {*Path(finding.location.path).suffixes}
        if (finding.severity is Severity.ERROR and is_of_segment) or finding.is_unchecked:
            yield finding


def verify_log(
    data: Buffer,
    *,
    path: str = "",
    base_offset: int = 0,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    engine: Engine = Engine.AUTO,
) -> Iterator[Finding]:
    """Check the bytes of a log on their own.

    Args:
        data: entries, as in a `.log` file or a fetch response.
        path: name of the bytes in locations.
        base_offset: of the segment.
        limit: maximum bytes that one entry may decompress to.
        engine: reads the log; findings do not depend on it.
    """
    choice = engine_for(engine, len(data))
    source = bytes_for(choice.engine, data, path)
    return notes_once(LogVerification(source, path, base_offset, limit, prefilter=prefilter_of(choice)))


def _findings(root: Path, options: Options) -> Iterator[Finding]:
    kind = path_kind(root)
    if kind is PathKind.FILE:
        return single_file_findings(root, options)
    if kind is PathKind.PARTITION:
        return lone_partition_findings(root, options)
    return log_directory_findings(root, options)


def _below(root: Path, finding: Finding) -> Finding:
    """Return the finding with its path relative to the given directory, or to the directory of the given file."""
    start = root if root.is_dir() else root.parent
    path = Path(finding.location.path)
    if not path.is_relative_to(start):
        return finding
    return replace(finding, location=replace(finding.location, path=str(path.relative_to(start))))


def notes_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield errors and warnings unchanged, and each kind of note once for a file, with a count, after the others."""
    for _, of_file in groupby(findings, key=lambda finding: finding.location.path):
        notes: dict[str, Finding] = {}
        for finding in of_file:
            if finding.severity is not Severity.NOTE:
                yield finding
            elif finding.requirement in notes:
                seen = notes[finding.requirement]
                notes[finding.requirement] = replace(seen, count=seen.count + 1)
            else:
                notes[finding.requirement] = finding
        yield from notes.values()
