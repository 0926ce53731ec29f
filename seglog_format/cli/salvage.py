"""``seglog salvage``: a copy of the intact batches of a damaged directory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import PATH, generation_option, index_interval_option, json_option, path_argument
from seglog_format.cli.output import write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.cli.progress import progress
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.recovery.salvage_scan import DamagedRange
    from seglog_format.state.config import BrokerGeneration

EPILOG: Final = """\b
Examples:
  seglog salvage my-topic-0 -o rescued/my-topic-0
  seglog salvage /var/lib/kafka/data -o rescued
  seglog salvage --json my-topic-0 -o rescued/my-topic-0 | jq .damaged[]"""


@click.command(epilog=EPILOG)
@path_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="DIR", help="Write here: a new or empty directory.")
@index_interval_option
@generation_option
@json_option
def command(
    path: Path,
    *,
    output: Path,
    index_interval_bytes: int | None,
    generation: BrokerGeneration | None,
    as_json: bool,
) -> int:
    """Copy the intact batches of the partition or log directory at PATH into a new directory.

    Batches, including those after damage, are copied byte for byte with their offsets; indexes are built. Nothing at
    PATH is changed. Ranges that are not copied are listed, with the offsets between the batches around them; "found by
    searching" means that the size field before the batch is damaged: its start was found by scanning, and its checksum
    is valid.

    The exit status is 1 if something was not copied, or if offsets are missing that the files beside a log prove. If
    writing fails, DIR holds the segments listed so far, complete, and nothing of any other.
    """
    from seglog_format import salvage
    from seglog_format.storage.new_directory import directories_for

    _require_apart(path, output)
    status, passing = 0, PassingOver("partitions")
    with directories_for(output):
        for name, directory in _partitions(path):
            with passing.errors_of(directory):
                target = output / name if name else output
                plan = salvage(directory, target, interval_bytes=index_interval_bytes, generation=generation)
                segments = plan.apply(partial(_report, directory, as_json=as_json))
                status = FINDINGS if any(segment.damaged for segment in segments) else status
                if _write_gaps(directory, segments, as_json=as_json):
                    status = FINDINGS
    return max(status, passing.status())


def _report(directory: Path, segment: SalvagedSegment, *, as_json: bool) -> None:
    if as_json:
        write_json(as_object(directory.name, segment))
        return
    for line in _text(segment):
        write_text(line)


def _write_gaps(directory: Path, segments: Sequence[SalvagedSegment], *, as_json: bool) -> bool:
    """Report offsets that the files beside the logs prove, and no damaged range names; return whether any are lost."""
    from seglog_format.cli.gap_lines import gap_line, gaps_of
    from seglog_format.log.gaps import watch_over
    from seglog_format.log.listing import list_partition

    listing = list_partition(directory)
    named = [missing for segment in segments for missing in segment.missing]
    reached = {segment.log: segment.next_offset for segment in segments}
    ends = {files.base_offset: reached[files.log] for files in listing.segments if files.log in reached}
    gaps = [gap for gap in gaps_of(watch_over(listing), ends) if gap.missing not in named]
    for gap in gaps:
        write_json(gap_line(gap, directory)) if as_json else write_text(gap.span_text)
    return any(gap.is_loss for gap in gaps)


def _require_apart(path: Path, output: Path) -> None:
    from seglog_format.log.path_kind import PathKind, path_kind
    from seglog_format.recovery.salvage import require_apart

    if path_kind(path) is PathKind.FILE:
        msg = f"{path}: give a partition directory or a log directory"
        raise UsageError(msg)
    require_apart(path, output)


def _partitions(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield names below the output, and the partition directory for each."""
    from seglog_format.cli.paths import kept_partitions, log_directory_at

    directory = log_directory_at(path)
    if directory is None:
        yield "", path
        return
    entries = kept_partitions(path, directory)
    with progress("Copying", len(entries)) as advance:
        for number, entry in enumerate(entries, 1):
            yield entry.path.name, entry.path
            advance(number)


def _text(segment: SalvagedSegment) -> Iterator[str]:
    from seglog_format.cli.output import count_text, printable, styled

    name = styled(printable(f"{segment.log.parent.name}/{segment.log.name}"), "bold")
    kept = count_text(segment.entry_count, "batch")
    yield f"{name}: {kept}, {segment.kept_size:,} of {segment.size:,} bytes, next offset {segment.next_offset}"
    for damage in segment.damaged:
        how = ", the next one found by searching" if damage.is_searched else ""
        what = f"{damage.reason}{how} [{', '.join(damage.requirements)}]"
        yield f"  not copied: bytes {damage.start} to {damage.end}{_offsets(damage)}: {printable(what)}"


def _offsets(damage: DamagedRange) -> str:
    if damage.missing is None:
        return ""
    first, last = damage.missing.first_offset, damage.missing.next_offset - 1
    return f", offset {first}" if first == last else f", offsets {first} to {last}"


def as_object(directory: str, segment: SalvagedSegment) -> dict[str, Any]:
    """Return one segment for JSON."""
    return {
        "type": "salvage",
        "file": f"{directory}/{segment.log.name}",
        "fileBytes": segment.size,
        "keptBytes": segment.kept_size,
        "batches": segment.entry_count,
        "nextOffset": segment.next_offset,
        "written": list(segment.names),
        "damaged": [_damage(damage) for damage in segment.damaged],
        "missing": [missing.as_object() for missing in segment.missing],
    }


def _damage(damage: DamagedRange) -> dict[str, Any]:
    return {
        "position": damage.start,
        "bytes": damage.end - damage.start,
        "requirements": list(damage.requirements),
        "reason": damage.reason,
        "isSearched": damage.is_searched,
    }
