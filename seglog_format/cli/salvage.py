"""``seglog salvage``: a copy of the intact batches of a damaged directory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, PassingOver
from seglog_format.cli.options import (
    PATH,
    generation_option,
    index_interval_option,
    json_option,
    offset_of,
    range_option,
)
from seglog_format.cli.output import diagnose, progress, write_json, write_line, write_lines, write_text
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from seglog_format.cleaning.compaction_rules import Redaction
    from seglog_format.cluster.merged_replicas import MergedReplicas
    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.recovery.salvage_scan import DamagedRange
    from seglog_format.state.config import BrokerGeneration

EPILOG: Final = """\b
Examples:
  seglog salvage my-topic-0 -o rescued/my-topic-0
  seglog salvage /var/lib/kafka/data -o rescued
  seglog salvage my-topic-0 backup/my-topic-0 -o rescued/my-topic-0
  seglog salvage my-topic-0 -o without/my-topic-0 --redact 4711
  seglog salvage my-topic-0 -o yesterday/my-topic-0 --since 2d --until 1d
  seglog salvage --json my-topic-0 -o rescued/my-topic-0 | jq .damaged[]"""

SHOWN_OFFSETS: Final = 20
"""Maximum number of redacted offsets that text shows."""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", type=PATH, required=True, metavar="DIR", help="Write here: a new or empty directory.")
@click.option("--redact", "offsets", type=offset_of, multiple=True, metavar="OFFSET", help="Leave this record out.")
@click.option("--redact-key", "keys", multiple=True, metavar="KEY", help="Leave all records with this key out.")
@click.option("--null", "keeps_keys", is_flag=True, help="Leave out only the value and the headers of these records.")
@range_option
@index_interval_option
@generation_option
@json_option
def command(  # noqa: PLR0913 - one for each option
    paths: tuple[Path, ...],
    *,
    output: Path,
    offsets: tuple[int, ...],
    keys: tuple[str, ...],
    keeps_keys: bool,
    index_interval_bytes: int | None,
    generation: BrokerGeneration | None,
    as_json: bool,
    **wanted: Any,  # noqa: ANN401 - click passes what the options gave
) -> int:
    """Copy the intact batches of the partition or log directory at PATH into a new directory.

    Batches, including those after damage, are copied byte for byte with their offsets; indexes are built. Nothing at
    PATH is changed. Ranges that are not copied are listed, with the offsets between the batches around them; "found by
    searching" means that the size field before the batch is damaged: its start was found by scanning, and its checksum
    is valid.

    A batch with the right checksum is copied even if its records cannot be decoded or break a rule; it is named.

    With several PATHs, these are replicas: of one partition, or log directories with such. A batch that is damaged in
    one is taken from another. Where they hold different batches, those of the history are copied that an election
    keeps; the others are listed as diverged. The exit status is 1 then, and if offsets are lost that no replica has.

    With --redact or --redact-key, the copy is one without these records, as compaction would leave it: all other
    offsets stay, and what remains visible of a record is said. Nothing is redacted at PATH. The exit status is 1 if one
    was not found.

    With --from, --to, --since or --until, only the batches of this range are read and copied, each whole, and the exit
    status is that of these batches: 1 if there is none. What is missing around them is not said. TIME is milliseconds,
    an ISO time, or how long ago: 2h, 30m, 7d. A batch is older than --since if its latest record is, and newer than
    --until if its first record is; a batch that does not say that of its first is copied if the one before is older.

    The exit status is 1 if something was not copied, cannot be read in the copy, or is missing by the files beside a
    log; 3 if a limit kept something from being read. An incomplete last batch and zeros at the end of a log are also
    listed, but are no loss by themselves. If writing fails, DIR holds the segments listed so far, complete, and nothing
    of any other.
    """
    from seglog_format import salvage
    from seglog_format.cleaning.compaction_rules import redaction_of
    from seglog_format.storage.new_directory import directories_for

    status, passing = DONE, PassingOver("partitions")
    redact: list[int | bytes] = [*offsets, *(each.encode(errors="surrogateescape") for each in keys)]
    if keeps_keys and not redact:
        msg = "--null needs --redact or --redact-key"
        raise UsageError(msg)
    missed, is_range = set(redact), any(each is not None for each in wanted.values())
    _require_apart(paths, output, is_range=is_range)
    with directories_for(output):
        for name, directories in _partitions(paths):
            target = output / name if name else output
            if name and offsets:
                msg = "--redact takes offsets of one partition: give a partition directory"
                raise UsageError(msg)
            with passing.errors_of(directories[0]):
                if len(directories) > 1:
                    redaction = redaction_of(redact, keeps_keys=keeps_keys)
                    found = _merge(directories, target, index_interval_bytes, generation, redaction, as_json=as_json)
                    status = max(status, found)
                    if redaction is not None:
                        _write_redacted(target, missed, redaction.redacted, keeps_keys=keeps_keys, as_json=as_json)
                    continue
                (directory,) = directories
                options = {"interval_bytes": index_interval_bytes, "generation": generation, **wanted}
                plan = salvage(directory, target, redact=redact, keeps_keys=keeps_keys, **options)
                segments = plan.apply(partial(_report, directory, as_json=as_json))
                if redact:
                    _write_redacted(target, missed, plan.redacted, keeps_keys=keeps_keys, as_json=as_json)
                is_loss = any(segment.is_loss for segment in segments)
                is_found = any(segment.entry_count for segment in segments)
                is_loss |= not is_found if is_range else _write_gaps(directory, segments, as_json=as_json)
                status = max(status, FINDINGS if is_loss else DONE)
                if any(segment.names for segment in segments):
                    status = max(status, _write_faults(target, as_json=as_json))
    if is_range:
        diagnose("only batches of this range were read and copied: nothing is said about what is around them")
    return max(status, FINDINGS if missed else DONE, passing.status())


def _write_redacted(
    target: Path, missed: set[int | bytes], redacted: Collection[int | bytes], *, keeps_keys: bool, as_json: bool
) -> None:
    """Report what was redacted in a copy, and what stays visible, and remove from a set what was found."""
    from seglog_format.cli.output import count_text

    missed.difference_update(redacted)
    found = sorted(each for each in redacted if isinstance(each, int))
    visible = "offset, timestamp and key" if keeps_keys else "offset, and the time if nothing of a batch is left"
    if as_json:
        write_json({"type": "redaction", "target": str(target), "offsets": found, "visible": visible})
        return
    shown = ", ".join(str(each) for each in found[:SHOWN_OFFSETS])
    write_text(f"redacted {count_text(len(found), 'record')} in {target}{f': {shown}' if found else ''}")
    if found:
        write_text(f"  visible in the copy: {visible}; and its size, by the batches and sequences around it")
        write_text("  not redacted: PATH with its renamed files, other replicas, the remote store, copies of consumers")


def _merge(
    directories: Sequence[Path],
    target: Path,
    interval_bytes: int | None,
    generation: BrokerGeneration | None,
    redaction: Redaction | None,
    *,
    as_json: bool,
) -> int:
    """Write one log out of several replicas, report it, and return the exit status."""
    from seglog_format.cluster.merged_replicas import merge_replicas
    from seglog_format.log.listing import list_partition

    listings = [list_partition(directory) for directory in directories]
    merged = merge_replicas(listings, target, interval_bytes=interval_bytes, generation=generation, redaction=redaction)
    write_lines([merged_object(target, merged)] if as_json else _merged_text(target, merged))
    status = FINDINGS if merged.lost or any(each.diverged for each in merged.replicas) else DONE
    return max(status, _write_faults(target, as_json=as_json))


def _write_faults(target: Path, *, as_json: bool) -> int:
    """Report what was copied although it is wrong; return the exit status."""
    from seglog_format.checks.verify import faults_of_logs
    from seglog_format.cli.output import printable
    from seglog_format.cli.verify import as_object as finding_object
    from seglog_format.cli.verify import status_of

    status = DONE
    for fault in faults_of_logs(target):
        status = max(status, status_of(fault))
        write_line(finding_object(fault) if as_json else f"  copied unchanged: {printable(str(fault))}")
    return status


def _report(directory: Path, segment: SalvagedSegment, *, as_json: bool) -> None:
    write_lines([as_object(directory.name, segment)] if as_json else _text(segment))


def _write_gaps(directory: Path, segments: Sequence[SalvagedSegment], *, as_json: bool) -> bool:
    """Report offsets that the files beside the logs prove, and no damaged range names; return whether any are lost."""
    from seglog_format.cli.output import gap_line
    from seglog_format.log.gaps import GapKind, watch_over
    from seglog_format.log.listing import list_partition

    listing = list_partition(directory)
    named = [missing for segment in segments for missing in segment.missing]
    reached = {segment.log: segment.next_offset for segment in segments}
    ends = {files.base_offset: reached[files.log] for files in listing.segments if files.log in reached}
    for files in listing.replaced_logs:  # these are copied, too
        if (beside := listing.segment_for(files.base_offset)) is not None and beside.base_offset in ends:
            ends[beside.base_offset] = max(ends[beside.base_offset], reached.get(files.log, 0))
    if listing.segments:
        ends[listing.base_offsets[-1]] = max(reached.values(), default=0)
    found = watch_over(listing).gaps(ends)
    gaps = [gap for gap in found if gap.missing not in named and gap.kind is not GapKind.REPLACED]
    for gap in gaps:
        write_line(gap_line(gap, directory) if as_json else gap.span_text)
    return any(gap.is_loss for gap in gaps)


def _require_apart(paths: tuple[Path, ...], output: Path, *, is_range: bool) -> None:
    from seglog_format.log.path_kind import require_directory
    from seglog_format.recovery.salvage import require_apart

    for path in paths:
        require_directory(path)
        require_apart(path, output)
    if is_range and len(paths) > 1:
        msg = "a range is copied of one replica: give one PATH, or no range"
        raise UsageError(msg)


def _partitions(paths: Sequence[Path]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Yield names below the output, and the partition directories for each, which are replicas."""
    from seglog_format.cli.paths import kept_partitions, log_directory_at

    opened = [log_directory_at(path) for path in paths]
    if not all(opened):
        if any(opened):
            msg = "give partition directories, or log directories, and not both"
            raise UsageError(msg)
        yield "", tuple(paths)
        return
    found: dict[str, list[Path]] = {}
    for path, directory in zip(paths, opened, strict=True):
        assert directory is not None
        for entry in kept_partitions(path, directory):
            found.setdefault(entry.path.name, []).append(entry.path)
    with progress("Copying", len(found)) as advance:
        for number, (name, directories) in enumerate(sorted(found.items()), 1):
            yield name, tuple(directories)
            advance(number)


def _merged_text(target: Path, merged: MergedReplicas) -> Iterator[str]:
    from seglog_format.cli.output import count_text, printable, styled

    name = styled(printable(str(target)), "bold")
    of = f"of {len(merged.replicas)} replicas, with the history of {merged.chosen}"
    yield f"{name}: {count_text(merged.entry_count, 'batch')} {printable(of)}, next offset {merged.next_offset}"
    for each in merged.replicas:
        whole = count_text(each.whole_count, "whole batch")
        yield f"  {printable(str(each.path))}: {each.taken_count:,} of {whole} copied"
        for log, damage in each.damaged:
            yield f"    damaged: {printable(log.name)} {_damage_text(damage)}"
        for first, last, epoch in each.diverged:
            yield f"    diverged: offsets {first} to {last}, leader epoch {epoch}: another history was kept"
    for missing in merged.lost:
        yield f"  lost: {missing.span}, in no replica"


def merged_object(target: Path, merged: MergedReplicas) -> dict[str, Any]:
    """Return what was made of several replicas for JSON."""
    return {
        "type": "merged",
        "directory": str(target),
        "chosen": str(merged.chosen),
        "batches": merged.entry_count,
        "nextOffset": merged.next_offset,
        "replicas": [
            {
                "directory": str(each.path),
                "wholeBatches": each.whole_count,
                "copiedBatches": each.taken_count,
                "damaged": [{"file": log.name, **_damage(damage)} for log, damage in each.damaged],
                "diverged": [
                    {"firstOffset": first, "lastOffset": last, "leaderEpoch": epoch}
                    for first, last, epoch in each.diverged
                ],
            }
            for each in merged.replicas
        ],
        "lost": [missing.as_object() for missing in merged.lost],
    }


def _text(segment: SalvagedSegment) -> Iterator[str]:
    from seglog_format.cli.output import count_text, printable, styled

    name = styled(printable(f"{segment.log.parent.name}/{segment.log.name}"), "bold")
    kept = count_text(segment.entry_count, "batch")
    yield f"{name}: {kept}, {segment.kept_size:,} of {segment.size:,} bytes, next offset {segment.next_offset}"
    for damage in segment.damaged:
        yield f"  not copied: {_damage_text(damage)}"


def _damage_text(damage: DamagedRange) -> str:
    from seglog_format.cli.output import printable

    how = ", the next one found by searching" if damage.is_searched else ""
    what = f"{damage.reason}{how} [{', '.join(damage.requirements)}]"
    return f"bytes {damage.start} to {damage.end}{_offsets(damage)}: {printable(what)}"


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
