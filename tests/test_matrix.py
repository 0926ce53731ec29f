"""Every command that reads, over every damaged directory: what is missing is the same in all of them.

What a command says comes from its ``--json``. The tables below say what the damage took away.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.damage import damaged_cases
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    EPOCHS,
    UNREADABLE_BATCHES,
    checkpoint,
    entry,
    flipped,
    make,
    numbered,
    singles,
)
from helpers.messages import message, wrapper
from helpers.said import (
    FOUND,
    IN_FULL,
    UNREAD,
    WHOLE,
    Capture,
    by_dump,
    by_ls,
    by_records,
    by_salvage,
    by_verify,
    documented_status,
    lines_of,
    spans,
    status_of_command,
)
from helpers.support import bundled, bundled_cases
from helpers.walking import each_of

from seglog_format import Engine, LogConfig, PartitionWriter, compact, open_partition, retain
from seglog_format.cli.main import run
from seglog_format.errors import CorruptRecordError, FormatError, MissingOffsetsWarning, UsageError
from seglog_format.log.gaps import GapKind
from seglog_format.model import MissingOffsets
from seglog_format.spark import plan_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from helpers.damage import Case
    from helpers.said import Span

    from seglog_format.log.gaps import Gap

MARK: Final = "replication-offset-checkpoint"
START: Final = "log-start-offset-checkpoint"


MIDDLE = entry(5, 5)
GAPS: Mapping[str, tuple[dict[str, bytes], dict[str, int], set[Span]]] = {
    "nothing": ({"0.log": entry(0, 5) + MIDDLE, "10.log": entry(10, 5)}, {MARK: 15}, set()),
    "between segments": ({"0.log": entry(0, 5), "9.log": entry(9, 5)}, {}, {(5, 9)}),
    "two holes": ({"0.log": entry(0, 5), "9.log": entry(9, 5)}, {MARK: 20}, {(5, 9), (14, 20)}),
    "the end of the log": ({"0.log": entry(0, 5)}, {MARK: 12}, {(5, 12)}),
    "an empty log": ({"0.log": b""}, {MARK: 6}, {(0, 6)}),
    "a log that is cut": ({"0.log": entry(0, 5) + MIDDLE[:-9], "10.log": entry(10, 5)}, {}, {(5, 10)}),
    "a log that ends in zeros": ({"0.log": entry(0, 5) + bytes(99), "10.log": entry(10, 5)}, {}, {(5, 10)}),
    "an index after the last log": ({"0.log": entry(0, 5), "9.index": b""}, {}, {(5, 9)}),
    "an index before the first log": ({"0.index": b"", "9.log": entry(9, 5)}, {}, {(0, 9)}),
    "indexes alone": ({"0.index": b"", "9.index": b""}, {}, {(0, 9)}),
    "indexes alone, and a high watermark": ({"0.index": b""}, {MARK: 4}, {(0, 4)}),
    "an index with entries after the last log": (
        {"0.log": entry(0, 5), "9.index": struct.pack(">iiii", 2, 7, 4, 99), "9.timeindex": struct.pack(">qi", 1, 2)},
        {},
        {(5, 14)},
    ),
    "an absurd index after the last log": (
        {"0.log": entry(0, 5), "9.index": struct.pack(">iiii", 2, 7, 2**31 - 1, 99)},
        {},
        {(5, 12)},
    ),
    "an absurd time index after the last log": (
        {"0.log": entry(0, 5), "9.timeindex": struct.pack(">qi", 1, 2**31 - 1)},
        {},
        {(5, 9)},
    ),
    "a producer snapshot after the log": ({"0.log": entry(0, 5), "9.snapshot": EMPTY_SNAPSHOT}, {}, {(5, 9)}),
    "a snapshot below the high watermark": ({"0.log": entry(0, 5), "9.snapshot": EMPTY_SNAPSHOT}, {MARK: 9}, {(5, 9)}),
    "an empty log that replaces the last one": (
        {"0.log": entry(0, 5), "5.log": MIDDLE, "5.log.swap": b""},
        {},
        {(5, 10)},
    ),
    "a recovery point above the end": ({"0.log": entry(0, 5)}, {"recovery-point-offset-checkpoint": 9}, {(5, 9)}),
    "two checkpoints that differ": (
        {"0.log": entry(0, 5)},
        {MARK: 7, "recovery-point-offset-checkpoint": 12, "cleaner-offset-checkpoint": 9},
        {(5, 12)},
    ),
    "a checkpoint below a snapshot": ({"0.log": entry(0, 5), "9.snapshot": EMPTY_SNAPSHOT}, {MARK: 7}, {(5, 9)}),
    "a checkpoint below a leader epoch": ({"0.log": entry(0, 5), EPOCHS: b"0\n2\n0 0\n1 9\n"}, {MARK: 7}, {(5, 9)}),
    "a checkpoint above an index": ({"0.log": entry(0, 5), "9.index": b""}, {MARK: 12}, {(5, 12)}),
    "a checkpoint below an index": ({"0.log": entry(0, 5), "9.index": b""}, {MARK: 7}, {(5, 9)}),
    "a snapshot above an index": (
        {"0.log": entry(0, 5), "9.index": b"", "12.snapshot": EMPTY_SNAPSHOT},
        {MARK: 7},
        {(5, 12)},
    ),
    "a leader epoch above two indexes": (
        {"0.log": entry(0, 5), "9.index": b"", "11.timeindex": b"", EPOCHS: b"0\n2\n0 0\n1 12\n"},
        {},
        {(5, 12)},
    ),
    "indexes alone, and more checkpoints": ({"0.index": b"", "9.index": b""}, {MARK: 7, START: 3}, {(3, 9)}),
    "the cleaner has been further": ({"0.log": entry(0, 5)}, {"cleaner-offset-checkpoint": 9}, {(5, 9)}),
    "a log start above the end": ({"0.log": entry(0, 5)}, {START: 9}, {(5, 9)}),
    "a log start in a hole": ({"0.log": entry(0, 5), "9.log": entry(9, 5)}, {START: 7}, {(7, 9)}),
    "a log start after a hole": ({"0.log": entry(0, 5), "9.log": entry(9, 5)}, {START: 9}, set()),
    "a high watermark alone": ({}, {MARK: 4}, {(0, 4)}),
    "an entry that begins inside the one before": (
        {"0.log": entry(0, 5) + entry(3, 5) + entry(8, 2), "10.log": entry(10, 5)},
        {},
        {(3, 5)},
    ),
    "an entry whose header ends too late": (
        {"0.log": entry(0, 5, last_offset_delta=6) + MIDDLE, "10.log": entry(10, 5)},
        {},
        {(5, 7)},
    ),
    "entries that overlap in the last segment": (
        {"0.log": entry(0, 5) + MIDDLE, "10.log": entry(10, 5, last_offset_delta=7) + entry(15, 5) + entry(18, 3)},
        {},
        {(15, 18), (18, 20)},
    ),
    "a leader epoch above the end": ({"0.log": entry(0, 5), EPOCHS: b"0\n2\n0 0\n1 9\n"}, {}, {(5, 9)}),
    "a leader epoch at the end": ({"0.log": entry(0, 5), EPOCHS: b"0\n2\n0 0\n1 5\n"}, {}, set()),
    "a leader epoch above the end of a compacted log": (
        {"0.log": entry(0, 5), "7.log": entry(7, 3), EPOCHS: b"0\n2\n0 0\n1 20\n"},
        {"cleaner-offset-checkpoint": 7, MARK: 12},
        {(10, 12)},
    ),
    "what is tiered": ({"9.log": entry(9, 5)}, {START: 3}, set()),
}
"""Files, checkpointed offsets, and what is missing."""
DAMAGED: Mapping[str, tuple[dict[str, bytes], set[Span]]] = {
    "a record of the first batch": ({"0.log": flipped(entry(0, 5)) + MIDDLE, "10.log": entry(10, 5)}, {(0, 5)}),
    "a record in the middle": ({"0.log": entry(0, 5) + flipped(MIDDLE), "10.log": entry(10, 5)}, {(5, 10)}),
    "a record of the last batch": ({"0.log": entry(0, 5) + MIDDLE, "10.log": flipped(entry(10, 5))}, {(10, 15)}),
    "a size below zero": ({"0.log": entry(0, 5) + flipped(MIDDLE, 8, 0xFF), "10.log": entry(10, 5)}, {(5, 10)}),
}
"""Files, and the offsets that no reader can give."""


def built(name: str, root: Path) -> Path:
    """Write a directory of one of the tables, and return the partition directory."""
    files, *marks = (GAPS | DAMAGED)[name]
    directory = make(root, files)
    for checkpoint_name, offset in marks[0].items() if name in GAPS else ():
        checkpoint(directory, checkpoint_name, offset)
    return directory


@pytest.mark.parametrize("command", IN_FULL)
@each_of("name", GAPS)
def test_what_is_missing_is_the_same_in_every_command(name: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    missing = GAPS[name][-1]
    status, found = IN_FULL[command](built(name, tmp_path), capsys)
    if command == "salvage" and name == "an empty log that replaces the last one":
        assert (status, found) == (WHOLE, set())  # it copies the log that is replaced
        return
    if command == "resurrect" and name == "what is tiered":
        assert (status, found) == (FOUND, {(3, 9)})  # the node lacks these, unless --remote gives them
        return
    if command == "resurrect" and name == "a leader epoch above the end of a compacted log":
        assert (status, found) == (FOUND, {(10, 20)})  # the new node gives none of these offsets again
        return
    if command in {"doctor", "resurrect"} and name == "a log start above the end":
        assert status == FOUND  # one adds what a start removes, the other lets the log start at its first record
        return
    assert found == missing
    assert status == (FOUND if missing else WHOLE)


@each_of("command", [*IN_FULL, "cluster", "export", "diff", "find"])
def test_a_lost_log_counts_although_the_number_of_its_offsets_is_unknown(
    command: str, tmp_path: Path, capsys: Capture
) -> None:
    for name, index in {"empty": b"", "absurd": struct.pack(">ii", 2**31 - 1, 100)}.items():
        path = make(tmp_path / name, {"0.log": entry(0, 5), "5.index": index})
        if command == "cluster":
            assert lines_of([command, str(path.parent)], capsys)[0] == FOUND
        else:
            assert status_of_command(command, path, capsys) == (UNREAD if command == "find" else FOUND)


@pytest.mark.parametrize("command", ["ls", "cluster"])
@each_of("name", GAPS)
def test_commands_that_open_the_last_segment_name_what_is_missing_around_all(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    directory = built(name, tmp_path)
    last = max((int(path.stem) for path in directory.glob("*.log")), default=0)
    missing = {(first, following) for first, following in GAPS[name][-1] if first >= last or following > last}
    missing |= {span for span in GAPS[name][-1] if name == "an index before the first log"}
    missing -= {(first, following) for first, following in missing if first and following == last}
    status, lines = lines_of([command, str(directory.parent)], capsys)
    assert spans([each for line in lines for each in line.get("missing", ())]) == missing
    assert status == (FOUND if missing else WHOLE)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow"])
@each_of("name", [*GAPS, *DAMAGED])
def test_an_export_names_what_is_missing_or_ends_there(name: str, form: str, tmp_path: Path, capsys: Capture) -> None:
    missing = (GAPS | DAMAGED)[name][-1]
    assert isinstance(missing, set)
    words = ["export", str(built(name, tmp_path)), "--to", str(tmp_path / "table"), "--format", form]
    status, lines = lines_of(words, capsys)
    found = spans([line for line in lines if line["type"] == "missing"])
    if status == UNREAD:
        (exported,) = (line for line in lines if line["type"] == "export")
        assert exported["nextOffset"] == min(missing)[0]
    else:
        assert found == missing
        assert status == (FOUND if missing else WHOLE)


@pytest.mark.parametrize("command", ["dump", "salvage", "recover", "doctor", "verify", "diff", "ls"])
@each_of("name", DAMAGED)
def test_damage_is_the_same_in_every_command(name: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    directory, damaged = built(name, tmp_path), DAMAGED[name][-1]
    if command == "diff":
        status, (*_, line) = lines_of(["diff", str(directory), str(directory)], capsys)
        assert (status, line["notComparedFrom"]) == (UNREAD, min(damaged)[0])
        return
    status, found = IN_FULL[command](directory, capsys)
    if command == "ls":  # it reads headers: a record may be wrong
        assert status == (FOUND if name == "a size below zero" else WHOLE)
        return
    assert status == FOUND
    if command in {"recover", "doctor"}:  # brokers also cut what follows in the segment
        assert min(found)[0] == min(damaged)[0]
    elif command == "salvage" and name == "a record of the last batch":
        assert found == set()  # no batch after it proves which offsets it had
    elif command == "salvage" or (command == "dump" and name != "a size below zero"):
        assert found == damaged


DISORDERED: Mapping[str, dict[str, bytes]] = {
    "two segments with the same offsets": {"0.log": entry(0, 5) + MIDDLE, "5.log": MIDDLE},
    "a segment that ends in the next one": {"0.log": entry(0, 5) + entry(5, 7), "10.log": entry(10, 5)},
    "offsets that go back": {"0.log": entry(0, 5) + MIDDLE + entry(3, 2)},
    "offsets that go back, and on": {"0.log": entry(0, 5) + MIDDLE + entry(3, 2) + entry(10, 5)},
    "offsets below the base offset": {"10.log": entry(3, 2) + entry(10, 5)},
    "an empty segment inside another": {"0.log": entry(0, 5) + MIDDLE, "7.log": b""},
}
"""Files with batches that are whole, and have offsets that their place in the log cannot hold."""


def wrapped(magic: int, first: int, last: int) -> bytes:
    """Return a wrapper; the header does not say its first offset."""
    inner = range(last + 1 - first) if magic else range(first, last + 1)
    return wrapper(*(message(offset, magic=magic) for offset in inner), offset=last, magic=magic)


OVERLAPPING: Mapping[str, dict[str, bytes]] = {
    f"{kind}, magic {magic}": {name: b"".join(wrapped(magic, *each) for each in spans) for name, spans in logs.items()}
    for magic in (0, 1)
    for kind, logs in {
        "in a segment": {"0.log": [(0, 3), (2, 6), (7, 8)]},
        "in the last segment": {"0.log": [(0, 1)], "2.log": [(2, 3), (2, 6), (7, 8)]},
        "over a border": {"0.log": [(0, 3)], "4.log": [(2, 6), (7, 8)]},
    }.items()
}
"""Wrappers that begin at offset 2, below the end of what precedes them, which is offset 4."""


@pytest.mark.req("SEG-LOG-007")
@pytest.mark.parametrize("command", [*IN_FULL, "cluster", "diff", "export", "find"])
@each_of("name", OVERLAPPING)
def test_every_command_that_decodes_names_wrappers_that_overlap(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    path, kind = make(tmp_path, OVERLAPPING[name]), "a wrapper that begins below the end"
    if command in {"ls", "ls --long", "cluster"}:  # they read headers
        words = [*command.split(), str(path if command == "ls" else path.parent)]
        assert lines_of(words, capsys)[0] == documented_status(kind, command.split(maxsplit=1)[0])
    elif command in {"diff", "export", "find"}:
        assert status_of_command(command, path, capsys) == (UNREAD if command == "find" else FOUND)
    else:
        assert IN_FULL[command](path, capsys) == (FOUND, {(2, 4)})


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.PLAIN, Engine.COLUMNAR])
@each_of("name", OVERLAPPING)
def test_every_reader_gives_offsets_of_wrappers_that_overlap_once(name: str, engine: Engine, tmp_path: Path) -> None:
    with open_partition(make(tmp_path, OVERLAPPING[name])) as partition:
        gaps: list[Any] = []
        assert [record.offset for record in partition.records(engine=engine, on_gap=gaps.append)] == list(range(9))
        assert [(gap.first_offset, gap.next_offset, gap.kind.value) for gap in gaps] == [(2, 4, "overlapping entries")]
        if name.startswith("in a segment"):
            with pytest.warns(MissingOffsetsWarning, match="2 to 3 .*overlapping"):
                assert [record.offset for record in partition.read(0).records] == list(range(9))


@pytest.mark.parametrize("trust", [[], ["--trust-indexes"]], ids=["proved", "trusted"])
@each_of("name", [*OVERLAPPING, *(name for name in GAPS if "overlap" in name or "begins inside" in name)])
def test_a_lookup_finds_the_record_that_readers_give(
    name: str, trust: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, OVERLAPPING[name]) if name in OVERLAPPING else built(name, tmp_path)
    with open_partition(path) as partition:
        given = partition.scan(columns=["offset", "position"], on_gap=lambda _: None).read_all().to_pylist()
    for row in given:
        _, (line,) = lines_of(["lookup", *trust, str(path), "--offset", str(row["offset"])], capsys)
        assert {name: line[name] for name in row} == row


ONE_EACH: Mapping[str, bytes] = {f"{base}.log": singles(range(base, base + 10)) for base in (0, 10, 20)}
REPLACEMENTS: Mapping[str, tuple[dict[str, bytes], set[Span]]] = {
    "an offset that no segment of this number can hold": ({"0.log.swap": flipped(entry(0), 0)}, {(0, 30)}),
    "an offset above all replaced logs": ({"0.log.swap": entry(0) + flipped(entry(5), 6, 4)}, {(1, 30)}),
    "an offset above all replaced logs of a compacted log": (
        {"0.log.swap": entry(0) + flipped(entry(5), 6, 4), "2000.log": singles((2000, 2005))},
        {(1, 30)},
    ),
    "an offset above the last segment": ({"20.log.swap": flipped(entry(20), 0)}, {(20, 30)}),
    "an offset as wrong as in the log before it": (
        {"0.log": flipped(entry(0), 0) + singles(range(1, 10)), "0.log.swap": flipped(entry(0), 0)},
        {(0, 30)},
    ),
    "no entry at the end of a compacted log": ({"0.log": singles((0, 2, 9)), "20.log.swap": b""}, {(20, 30)}),
    "an entry cut off at the end of a compacted log": (
        {"0.log": singles((0, 2, 9)), "20.log.swap": singles((20, 21, 25))},
        {(26, 30)},
    ),
    "an entry cut short": ({"0.log.swap": singles(range(10))[:-9]}, {(9, 10)}),
    "an entry cut off": ({"0.log.swap": singles(range(9))}, {(9, 10)}),
    "an entry cut off at the end": ({"20.log.swap": singles(range(20, 29))}, {(29, 30)}),
    "no entry": ({"0.log.swap": b""}, {(0, 10)}),
    "other bytes": ({"0.log.swap": b"\x77" * 300}, {(0, 10)}),
    "a last offset inside the next segment": ({"0.log.swap": singles(range(16))}, {(16, 20)}),
    "a wrong checksum": ({"0.log.swap": singles(range(5)) + flipped(entry(5)) + singles(range(6, 10))}, {(5, 6)}),
    "a wrong checksum at the end": ({"20.log.swap": singles(range(20, 29)) + flipped(entry(29))}, {(29, 30)}),
    "a first offset below its name": ({"10.log.swap": singles(range(8, 20))}, {(10, 20)}),
    "offsets below its name": ({"10.log.swap": singles(range(10))}, {(10, 20)}),
    "every entry": ({"0.log.swap": singles(range(10))}, set()),
    "what compaction leaves": ({"0.log.swap": singles((3, 7, 11, 19))}, set()),
    "what compaction leaves of a removed log": (
        {"0.log": b"", "0.log.deleted": singles(range(10)), "0.log.swap": singles((3, 7))},
        set(),
    ),
}
"""Damages of a replacement, as files beside three segments of ten batches, and what the log lacks with them."""


def joined(found: set[Span]) -> set[Span]:
    """Return spans in which those that touch or overlap are one."""
    runs: list[Span] = []
    for first, after in sorted(found):
        if runs and first <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(after, runs[-1][1]))
        else:
            runs.append((first, after))
    return set(runs)


@pytest.mark.req("SEG-PDR-010", "SEG-PDR-025")
@pytest.mark.parametrize("command", [*IN_FULL, "cluster", "diff", "export", "find"])
@each_of("name", REPLACEMENTS)
def test_every_command_names_what_a_damaged_replacement_lacks(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    files, missing = REPLACEMENTS[name]
    path = make(tmp_path, {**ONE_EACH, **files})
    is_seen = bool(missing) and not (command in {"ls", "ls --long"} and "checksum" in name)
    if command == "cluster":  # it opens the last segment
        is_around_all = name.startswith("an offset") or ("at the end" in name and "checksum" not in name)
        assert lines_of([command, str(path.parent)], capsys)[0] == (FOUND if is_around_all else WHOLE)
    elif command == "salvage":  # it copies what is replaced, too
        is_copied = name.startswith(("every", "what compaction", "an offset above", "an entry cut off", "no entry"))
        assert by_salvage(path, capsys) == (WHOLE, set()) if is_copied else by_salvage(path, capsys)[0] in {0, 1}
        with open_partition(path.parent.parent / "out") as copy:
            kept = {record.offset for record in copy.records(on_gap=lambda _: None)}
        assert kept >= {*range(10 if "removed" in name or "end of" in name else int("as wrong" in name), 30)}
    elif command in {"diff", "export", "find"}:
        status = status_of_command(command, path, capsys)
        assert (status != (FOUND if command == "find" else WHOLE)) == is_seen
    elif command in {"records", "scan"} and ("checksum" in name or "below" in name):
        with pytest.raises(CorruptRecordError), open_partition(path) as partition:
            list(partition.records() if command == "records" else partition.scan(columns=["offset"]).read_all())
    else:
        status, found = IN_FULL[command](path, capsys)
        assert status == (FOUND if is_seen else WHOLE)
        if "checksum" not in name and "below" not in name and command != "resurrect":
            assert joined(found) == missing


@each_of("name", [*OVERLAPPING, *(name for name in GAPS if "overlap" in name or "begins inside" in name)])
def test_what_gives_one_record_or_none_hides_no_offset_of_an_overlap(
    name: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, OVERLAPPING[name]) if name in OVERLAPPING else built(name, tmp_path)
    logs = sorted(path.glob("*.log"))
    with open_partition(path) as partition:
        given = partition.scan(columns=["offset", "timestamp"], on_gap=lambda _: None).read_all().to_pylist()
        stored = sum(len(batch.records) for segment in partition.segments for batch in segment.batches())
    for row in [each for each in given if each["timestamp"] is not None]:
        _, (line,) = lines_of(["lookup", str(path), "--timestamp", str(row["timestamp"])], capsys)
        assert line["offset"] == min(each["offset"] for each in given if each["timestamp"] >= row["timestamp"])
    compared = [lines_of(["diff", str(log), str(log)], capsys) for log in logs]
    assert [status for status, _ in compared] == [WHOLE] * len(logs)
    assert sum(line["equal"] for _, lines in compared for line in lines) == stored  # also those that readers pass over
    status, _ = lines_of(["retain", str(path), "--config", "retention.ms=-1"], capsys)
    assert status == documented_status("a wrapper that begins below the end", "ls")  # of headers, too


def named(gaps: Iterable[Gap]) -> set[Span]:
    return {(gap.first_offset, gap.next_offset) for gap in gaps if gap.is_loss}


HIDING_INSIDE: Final = (*OVERLAPPING, *(name for name in GAPS if "overlap" in name or "begins inside" in name))


@pytest.mark.req("SEG-LOG-007")
@each_of("name", HIDING_INSIDE)
def test_a_part_names_the_offsets_that_its_entries_hide(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = make(tmp_path, OVERLAPPING[name]) if name in OVERLAPPING else built(name, tmp_path)
    whole: list[Gap] = []
    found: list[Gap] = []
    with open_partition(path) as partition:
        partition.scan(columns=["offset"], on_gap=whole.append).read_all()
        for each in partition.segments:
            part = (each.base_offset, 0, each.size)
            partition.scan(columns=["offset"], on_gap=found.append, part=part).read_all()
    skipped = [gap for gap in whole if gap.kind is GapKind.OVERLAP]
    assert found == skipped
    assert skipped
    caplog.clear()
    sum(len(each) for planned in plan_ranges(path) for each in planned.read("offset"))
    assert caplog.messages == [f"seglog: {gap}" for gap in skipped]


@pytest.mark.req("SEG-PDR-025")
@pytest.mark.parametrize("way", ["records", "scan", "find"])
@each_of("name", [name for name in REPLACEMENTS if "checksum" not in name and "below" not in name])
def test_reading_from_an_offset_names_what_a_replacement_hides_from_there_on(
    name: str, way: str, tmp_path: Path
) -> None:
    path = make(tmp_path, {**ONE_EACH, **REPLACEMENTS[name][0]})
    with open_partition(path) as partition, warnings.catch_warnings(record=True) as warned:
        whole: list[Gap] = []
        list(partition.records(on_gap=whole.append))
        for start in range(partition.log_start_offset, min(partition.log_end_offset, 30), 7):
            found: list[Gap] = []
            expected = {(max(start, first), after) for first, after in named(whole) if after > start}
            if way == "records":
                list(partition.records(start, on_gap=found.append))
            elif way == "scan":
                partition.scan(["offset"], start, on_gap=found.append).read_all()
            else:
                warned.clear()
                warnings.simplefilter("always")
                list(partition.find("no record has this", from_offset=start))
                texts = [str(each.message) for each in warned]
                assert len(texts) == len(expected)
                assert all(any(str(MissingOffsets(*span)) in text for text in texts) for span in expected)
                continue
            assert named(found) == expected


@each_of("name", [*(name for name in REPLACEMENTS if "checksum" not in name and "below" not in name), *GAPS])
def test_a_lookup_of_a_lost_offset_has_the_status_of_a_loss(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = make(tmp_path, {**ONE_EACH, **REPLACEMENTS[name][0]}) if name in REPLACEMENTS else built(name, tmp_path)
    with open_partition(path) as partition:
        gaps: list[Gap] = []
        given = {record.offset for record in partition.records(on_gap=gaps.append)}
        offsets = range(partition.log_start_offset, min(partition.log_end_offset, 30))
    lost = {offset for first, after in named(gaps) for offset in range(first, min(after, 30))}
    for offset in offsets:
        status, (line,) = lines_of(["lookup", str(path), "--offset", str(offset)], capsys)
        assert (status == FOUND) == (offset in lost - given), offset
        said = spans(line.get("missing", []))
        assert not line["found"] or any(offset in range(*span) for span in said) == (offset in lost - given), offset


CONTRADICTED: Final = {"0.log": entry(0, 5) + entry(10, 5), "15.log": entry(15, 5)}
"""A batch was removed from inside a segment; its index still has it."""


@pytest.mark.parametrize("command", [*IN_FULL, "cluster", "diff", "export"])
def test_an_index_alone_proves_no_loss_inside_a_segment(command: str, tmp_path: Path, capsys: Capture) -> None:
    index = struct.pack(">iiii", 9, len(MIDDLE), 14, 2 * len(MIDDLE))
    path = make(tmp_path, {**CONTRADICTED, "0.index": index})
    if command == "cluster":
        status = lines_of([command, str(path.parent)], capsys)[0]
    else:
        status = status_of_command(command, path, capsys)
    assert status == (FOUND if command in {"verify", "doctor"} else WHOLE)


@pytest.mark.parametrize(
    "command", ["ls", "ls --long", "verify", "dump", "recover", "salvage", "diff", "export", "find"]
)
@each_of("name", DISORDERED)
def test_every_command_tells_of_offsets_that_are_out_of_order(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    status = status_of_command(command, make(tmp_path, DISORDERED[name]), capsys)
    if command == "salvage" and name == "an empty segment inside another":
        assert status == WHOLE  # every batch is copied, and the copy is in order
    else:
        assert status == (UNREAD if command in {"diff", "export", "find"} else FOUND)


@each_of("name", ["copy.log", "5.log.gz", "5.log.bak", "5.log.deleted"])
def test_a_file_that_is_no_segment_has_no_gap_around_it(name: str, tmp_path: Path, capsys: Capture) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5), "5.log": MIDDLE, name: MIDDLE})
    checkpoint(path, MARK, 10)
    assert by_dump(path, capsys)[1] == set()


@each_of("command", ["ls", "verify", "dump", "find v", "salvage", "export", "resurrect", "cluster"])
def test_a_partition_directory_may_be_a_link_that_leads_out(command: str, tmp_path: Path, capsys: Capture) -> None:
    plain, linked = (built("a record in the middle", tmp_path / name) for name in ("plain", "linked"))
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    more = {"salvage": ["-o"], "export": ["--format", "jsonl", "--to"]}.get(command, [])
    found = []
    for path in (plain, linked):
        status, lines = lines_of(
            [*command.split(), str(path.parent), *more, *([str(path.parent.parent / "out")] if more else [])], capsys
        )
        found.append((status, [line["type"] for line in lines if "type" in line]))
    assert found[0] == found[1]
    assert len(found[0][1]) > 0


@each_of("command", IN_FULL)
def test_the_last_line_of_a_partition_counts_in_every_command(command: str, tmp_path: Path, capsys: Capture) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5)})
    (path.parent / MARK).write_text("0\n2\norders 0 99\norders 0 5\n", encoding="utf-8")
    assert IN_FULL[command](path, capsys)[1] == set()


WRITING: Mapping[str, Callable[[Path], object]] = {
    "retain": lambda path: retain(path, LogConfig(retention_ms=1)).apply(),
    "compact": lambda path: compact(path, LogConfig(cleanup_policy=frozenset({"compact"}))).apply(),
    "append": lambda path: PartitionWriter(path).close(),
}


@each_of("name", WRITING)
def test_nothing_is_written_beside_a_stale_index_of_a_lost_log(name: str, tmp_path: Path) -> None:
    files = {"0.log": entry(0, 5), "5.index": struct.pack(">ii", 4, 100), "5.timeindex": b""}
    path = make(tmp_path, files, clean=True)
    with pytest.raises(UsageError, match=r"recover the directory first"):
        WRITING[name](path)
    assert {each.name for each in path.iterdir()} == {numbered(each) for each in files}
    assert run(["recover", "--write", str(path)]) == FOUND
    WRITING[name](path)


REPLICAS: Mapping[str, tuple[dict[str, bytes], dict[str, bytes]]] = {
    "a hole in the longer one": ({"0.log": entry(0, 5), "10.log": entry(10, 5)}, {"0.log": entry(0, 5) + MIDDLE}),
    "a hole in each": (
        {"0.log": entry(0, 5), "10.log": entry(10, 5)},
        {"0.log": entry(0, 5) + MIDDLE, "13.log": entry(13, 2)},
    ),
    "records that do not decode": (
        {"0.log": entry(0, 5) + UNREADABLE_BATCHES["records that do not decode"] + entry(10, 5)},
        {"0.log": entry(0, 5) + MIDDLE + entry(10, 5)},
    ),
}
"""Two replicas that together hold the offsets 0 to 14."""


@each_of("name", REPLICAS)
def test_a_node_gets_from_another_replica_what_one_lacks(name: str, tmp_path: Path, capsys: Capture) -> None:
    paths = [make(tmp_path / str(number), files).parent for number, files in enumerate(REPLICAS[name])]
    node = tmp_path / "node"
    status, _ = lines_of(["resurrect", "--unknown-topics", "-o", str(node), *map(str, paths)], capsys)
    assert status == FOUND
    with open_partition(node / "orders-0") as partition:
        assert [record.offset for record in partition.records()] == list(range(15))


def test_no_checkpoint_is_written_with_a_topic_whose_name_is_no_text(tmp_path: Path) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5), "5.log": MIDDLE})
    checkpoint(path, MARK, 10)
    path.rename(os.fsdecode(os.fsencode(path.parent) + b"/t\xff-0"))
    assert run(["retain", "--config", "retention.ms=1", str(path.parent)]) == UNREAD


@pytest.mark.parametrize("words", [[], ["--like-broker"], ["--full-scan"]], ids=["default", "like a broker", "full"])
@each_of("name", [*GAPS, *DAMAGED, *DISORDERED, *UNREADABLE_BATCHES])
def test_a_recovery_says_the_same_before_and_after_it(
    name: str, words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    if name in GAPS or name in DAMAGED:
        path = built(name, tmp_path)
    else:
        batches = entry(0, 5) + UNREADABLE_BATCHES.get(name, b"") + entry(10, 5)
        path = make(tmp_path, DISORDERED.get(name, {"0.log": batches}))
    (planned, (before,)), (done, (after,)) = (
        lines_of(["recover", *words, *more, str(path)], capsys) for more in ([], ["--write"])
    )
    said = ("plan", "fullScan", "lost", "missing", "kept", "failure")
    assert {key: after[key] for key in said} == {key: before[key] for key in said}
    assert done == planned


def test_a_salvage_names_what_no_reader_of_the_copy_can_read(tmp_path: Path, capsys: Capture) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5) + UNREADABLE_BATCHES["an undefined codec"] + entry(10, 5)})
    _, (copied, fault) = lines_of(["salvage", str(path), "-o", str(tmp_path / "out")], capsys)
    assert copied["keptBytes"] == copied["fileBytes"]
    assert (fault["type"], fault["requirement"]) == ("finding", "SEG-COD-001")
    assert run(["salvage", str(path), "-o", str(tmp_path / "again")]) == FOUND
    assert "copied unchanged: 00000000000000000000.log:" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["ls", "dump"])
def test_damage_in_the_middle_is_named_by_the_offsets_behind_it(command: str, tmp_path: Path, capsys: Capture) -> None:
    _, found = IN_FULL[command](built("a size below zero", tmp_path), capsys)
    assert found == {(5, 10)}


@each_of("name", GAPS)
def test_a_comparison_names_what_is_missing(name: str, tmp_path: Path, capsys: Capture) -> None:
    directory, missing = str(built(name, tmp_path)), GAPS[name][-1]
    status, (line,) = lines_of(["diff", directory, directory], capsys)
    assert len(set(line["problems"])) == len(missing)
    assert all(any(f"{first} to {after - 1} " in text for text in line["problems"]) for first, after in missing)
    assert status == (FOUND if missing else WHOLE)


NO_FILES: Final[Mapping[str, Callable[[Path], None]]] = {
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize(
    "command", ["ls", "ls --long", "verify", "doctor", "dump", "recover", "salvage", "diff", "lookup"]
)
@each_of("kind", NO_FILES)
def test_what_is_no_file_was_not_read(kind: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5), "10.log": entry(10, 5)})
    NO_FILES[kind](directory / numbered("5.log"))
    more = {"diff": [str(directory)], "lookup": ["--offset", "0"], "recover": []}
    if command in more:
        status, _ = lines_of([command, str(directory), *more[command]], capsys)
    else:
        status, found = IN_FULL[command](directory, capsys)
        assert found == {(5, 10)}
    assert status == UNREAD


SIDE_FILES: Final = (
    *("264.index", "264.timeindex", "264.txnindex", "264.snapshot", "0.index", "0.snapshot", EPOCHS),
    *("partition.metadata", "0.timeindex"),
)
"""Files beside the logs of a compacted topic, whose first segment is empty."""


@pytest.mark.req("SEG-PDR-030")
@pytest.mark.parametrize("command", IN_FULL)
@each_of(("name", "kind"), [(name, kind) for name in SIDE_FILES for kind in NO_FILES])
def test_what_is_no_side_file_takes_no_offset_away(
    name: str, kind: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    directory = make(tmp_path, {"0.log": b"", "264.log": entry(264) + entry(270)})
    checkpoint(directory, "cleaner-offset-checkpoint", 264)
    NO_FILES[kind](directory / numbered(name))
    if command == "recover":
        assert lines_of([command, str(directory)], capsys) == (UNREAD, [])
        return
    status, found = IN_FULL[command](directory, capsys)
    assert found == set()
    assert command in {"records", "scan"} or status == UNREAD


DAMAGED_BESIDE: Mapping[str, tuple[dict[str, bytes], set[str]]] = {
    "a producer snapshot with a bit flipped": ({"5.snapshot": flipped(EMPTY_SNAPSHOT)}, {"verify", "doctor", "dump"}),
    "a producer snapshot cut short": ({"5.snapshot": EMPTY_SNAPSHOT[:-1]}, {"verify", "doctor", "dump"}),
    "an empty producer snapshot": ({"5.snapshot": b""}, {"verify", "doctor", "dump"}),
    "leader epochs that are no text": ({EPOCHS: b"\xff\n"}, {"verify", "doctor"}),
    "a topic id that is none": ({"partition.metadata": b"version: 0\ntopic_id: x\n"}, {"verify", "doctor", "cluster"}),
    "indexes that end inside an entry": ({"0.index": b"\0\0\0", "0.timeindex": b"\0", "0.txnindex": b"\0"}, {"doctor"}),
}
"""Side files that are damaged, and the commands that decode these, and so name them."""


@pytest.mark.parametrize(
    "command", [*IN_FULL, "cluster", "export", "find", "diff", "lookup --offset 3", "retain --config retention.ms=-1"]
)
@each_of("name", DAMAGED_BESIDE)
def test_a_damaged_side_file_takes_no_offset_away(name: str, command: str, tmp_path: Path, capsys: Capture) -> None:
    files, naming = DAMAGED_BESIDE[name]
    path = make(tmp_path, {"0.log": entry(0, 5), "5.log": MIDDLE, **files})
    if command in IN_FULL:
        status, found = IN_FULL[command](path, capsys)
        assert found == set()
    elif command in {"export", "find", "diff"}:
        status = status_of_command(command, path, capsys) - (command == "find")
    else:
        status, _ = lines_of([*command.split(), str(path.parent if command == "cluster" else path)], capsys)
    assert status == (FOUND if command in naming else WHOLE)


UNREAD_LOGS: Mapping[str, bytes] = {
    "the first bytes of a batch": MIDDLE[:40],
    "all but a byte of a batch": MIDDLE[:-1],
    "other bytes": b"\x77" * 300,
    "zeros before a batch": bytes(12) + MIDDLE,
}
"""What a last segment holds, after whole ones, of which nothing is readable."""


@pytest.mark.parametrize("command", [*IN_FULL, "cluster", "diff", "export", "find"])
@each_of("name", UNREAD_LOGS)
def test_a_last_segment_that_nothing_is_read_of_counts_in_every_command(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5), "5.log": UNREAD_LOGS[name]})
    if command == "cluster":
        status = lines_of([command, str(path.parent)], capsys)[0]
    elif command in {"records", "scan"}:
        gaps: list[Gap] = []
        with open_partition(path) as partition, suppress(CorruptRecordError):
            list(partition.records(on_gap=gaps.append))
            assert gaps
        return
    else:
        status = status_of_command(command, path, capsys)
    assert status in {FOUND, UNREAD}
    beside = make(tmp_path / "beside", {"0.log": entry(0, 5), "5.log": MIDDLE, "0.log.cleaned": UNREAD_LOGS[name]})
    if command not in {"cluster", "find", "dump"} or (command == "dump" and name != "zeros before a batch"):
        assert status_of_command(command, beside, capsys) == WHOLE


ENDS: Mapping[str, tuple[str, dict[str, bytes], dict[str, int]]] = {
    "an incomplete tail": ("an incomplete batch", {"0.log": entry(0, 5) + MIDDLE[:-9]}, {}),
    "a few bytes at the end": ("an incomplete batch", {"0.log": entry(0, 5) + MIDDLE[:9]}, {}),
    "zeros at the end": ("zeros at the end", {"0.log": entry(0, 5) + bytes(4096)}, {}),
    "nothing but zeros": ("zeros at the end", {"0.log": bytes(4096)}, {}),
    "zeros at each end": ("zeros at the end", {"0.log": entry(0, 5) + bytes(99), "5.log": MIDDLE + bytes(99)}, {}),
    "a tiered partition": ("a log that begins in a remote", {"9.log": entry(9, 5)}, {START: 3}),
    "a last offset that is too small": (
        "a batch with a rule broken",
        {"0.log": entry(0, 5) + entry(5, 5, last_offset_delta=3) + entry(10, 5)},
        {},
    ),
    "tiered by its epochs": ("a log that begins in a remote", {"9.log": entry(9, 5), EPOCHS: b"0\n1\n0 3\n"}, {}),
}
"""What the page of commands calls it, files that look incomplete or wrong, and checkpointed offsets; none is lost."""


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "ls --long", "cluster", "verify", "doctor", "dump", "recover", "recover --write", "salvage"),
        *("export", "diff", "find"),
    ],
)
@each_of("name", ENDS)
def test_what_only_looks_incomplete_has_the_documented_status(
    name: str, command: str, tmp_path: Path, capsys: Capture
) -> None:
    kind, files, marks = ENDS[name]
    directory = make(tmp_path, files)
    for checkpoint_name, offset in marks.items():
        checkpoint(directory, checkpoint_name, offset)
    if command == "cluster":
        status, _ = lines_of(["cluster", str(directory.parent)], capsys)
    elif command == "recover --write":
        status, _ = lines_of(["recover", "--write", str(directory)], capsys)
    elif command == "find":
        assert status_of_command(command, directory, capsys) == (UNREAD if "remote" in kind else FOUND)
        return
    else:
        status = status_of_command(command, directory, capsys)
    assert status == documented_status(kind, command.split(maxsplit=1)[0])


RANDOM: Final = 20
"""Seeds of the random damages."""


def randomly_damaged(seed: int, root: Path) -> Path:
    """Copy a small partition of a real broker, change a log or a file beside it, and return the directory."""
    seeded = random.Random(seed)  # noqa: S311 - a seed for each input
    logs = (path for name in bundled_cases() for path in bundled(name).rglob("*.log") if path.stat().st_size)
    partitions = sorted({path.parent for path in logs})
    source = seeded.choice([path for path in partitions if sum(each.stat().st_size for each in path.iterdir()) < 10**5])
    directory = root / "logs" / source.name
    shutil.copytree(source, directory)
    log = seeded.choice([path for path in sorted(directory.glob("*.log")) if path.stat().st_size])
    data, size = bytearray(log.read_bytes()), seeded.choice([1, 7, 61, 500])
    at = seeded.randrange(len(data))
    end = at + min(size, len(data) - at)
    first = bytes(data[: 12 + struct.unpack_from(">i", data, 8)[0]])
    delta = struct.unpack_from(">i", first, 23)[0] if first[16] > 1 else 0
    next_offset = struct.unpack_from(">q", first)[0] + delta + 1
    match seeded.choice(["flip", "flip", "cut", "zero", "insert", "erase", "repeat", "wrap", "mark", "epoch"]):
        case "flip":
            data[at] ^= 1 << seeded.randrange(8)
        case "cut":
            del data[at:]
        case "zero":
            data[at:end] = bytes(end - at)
        case "insert":
            data[at:at] = seeded.randbytes(size)
        case "erase":
            del data[at:end]
        case "wrap":
            begin = max(0, next_offset - seeded.randrange(4))
            data[len(first) : len(first)] = wrapped(seeded.randrange(2), begin, max(begin, next_offset) + 1)
        case "mark":
            topic, _, number = source.name.rpartition("-")
            (directory.parent / MARK).write_text(
                f"0\n1\n{topic} {number} {int(log.stem) + seeded.choice([1, 10**4])}\n"
            )
        case "epoch":
            (directory / EPOCHS).write_text(f"0\n1\n9 {int(log.stem) + seeded.choice([1, 10**4])}\n")
        case _:
            data[len(first) : len(first)] = first
    log.write_bytes(data)
    return directory


@each_of("seed", range(RANDOM))
def test_commands_agree_about_random_damage(seed: int, tmp_path: Path, capsys: Capture) -> None:
    path = randomly_damaged(seed, tmp_path)
    try:
        is_read = by_records(path, capsys)[0] == WHOLE
    except FormatError:
        is_read = False
    words = ["export", str(path), "--to", str(tmp_path / "table"), "--format", "jsonl", "--bytes", "hex"]
    statuses = {command: status_of_command(command, path, capsys) for command in ("dump", "diff")}
    statuses["export"] = lines_of(words, capsys)[0]
    assert {command: status == WHOLE for command, status in statuses.items()} == dict.fromkeys(statuses, is_read)
    assert is_read or (by_verify(path, capsys)[0], lines_of(["recover", str(path)], capsys)[0]) == (FOUND, FOUND)


@each_of("case", damaged_cases(), ids=lambda case: case.name)
def test_the_damaged_cases_miss_the_same_offsets(case: Case, tmp_path: Path, capsys: Capture) -> None:
    path = case.build(tmp_path / "case" / "x-0")
    path = path.parent if path.is_file() else path
    if not list(path.glob("*.log")):
        return  # no log is damaged
    _, verified = by_verify(path, capsys)
    _, listed = by_ls(path, capsys)
    _, lines = lines_of(["dump", "--no-records", str(path)], capsys)
    dumped = spans([line for line in lines if line["type"] == "missing"])
    assert listed == dumped
    assert listed == verified
