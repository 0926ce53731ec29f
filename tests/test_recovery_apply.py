"""Recovery carried out: against what brokers made of their own crashed directories, and after a crash of its own."""

from __future__ import annotations

import fcntl
import hashlib
import json
import random
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.appends import example
from helpers.batches import patched
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    EPOCHS,
    ONE,
    CountedFiles,
    PowerCutError,
    checkpoint,
    content,
    control,
    entry,
    log_sizes,
    make,
    names,
    numbered,
    transactional,
)
from helpers.messages import message, wrapper
from helpers.support import FIXTURES, authentic, authentic_expected, authentic_names
from helpers.walking import each_of

from proofs.fuzz.random_damage import damaged
from proofs.fuzz.random_logs import random_log
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format import LogWriter, recover
from seglog_format.checks import verify
from seglog_format.cli.main import run
from seglog_format.errors import UsageError, WriteError
from seglog_format.log.index_file import IndexedOffset
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import open_partition
from seglog_format.log.segment import LogSegment
from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery, recover_partition
from seglog_format.recovery.broker_scan import Outcome, broker_scan
from seglog_format.recovery.index_settings import IndexSettings, infer_settings
from seglog_format.requirements import Severity
from seglog_format.storage.files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.recovery.plan import RecoveryPlan


pytestmark = pytest.mark.usefixtures("no_fsync")


CHAPTER = "71-flush-and-recovery"
CRASHES = [name for name in authentic_names() if "/crash-" in name]
LIKE_BROKER = RecoveryOptions(like_broker=True)
DEFAULT = RecoveryOptions()
FULL_SCAN = RecoveryOptions(is_full_scan=True)
LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"


# Directories that brokers left behind


def crashed_copy(name: str, target: Path) -> Path:
    """Return a copy of the log directory of a killed broker, and in it the partition directory."""
    shutil.copytree(authentic(name) / "before", target)
    (partition,) = (path for path in target.glob("crash-*-0"))
    return partition


def slots(data: bytes, layout: str, base: int, column: int) -> list[list[int]]:
    """Index entries with absolute offsets; ``column`` says which number is the offset."""
    found = [
        list(numbers)
        for numbers in struct.iter_unpack(
            layout, data[: len(data) // struct.calcsize(layout) * struct.calcsize(layout)]
        )
    ]
    for numbers in found:
        numbers[column] += base
    return found


KINDS = {"offsetIndex": (">ii", 0), "timeIndex": (">qi", 1)}


def entries_of(path: Path, kind: str) -> list[list[int]]:
    layout, column = KINDS[kind]
    return slots(path.read_bytes(), layout, int(path.name.partition(".")[0]), column)


def steps_but_removals(directory: Path, options: RecoveryOptions) -> list[Any]:
    """Return what is left to do, except what a broker's next start removes: files that this one renamed."""
    steps = prepare_recovery(directory, options=options).steps
    return [step for step in steps if step.path.suffix != ".deleted"]


def expected_after(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in authentic_expected(name):
        directory, _, file = line["file"].removeprefix("after/").partition("/")
        if line["file"].startswith("after/") and directory.startswith("crash-") and file:
            yield file, line


@each_of("name", CRASHES)
def test_what_a_broker_made_of_it(name: str, tmp_path: Path) -> None:
    directory = crashed_copy(name, tmp_path / "logs")
    recover_partition(directory, options=LIKE_BROKER)
    logs = {}
    for file, line in expected_after(name):
        path = directory / file
        if line["type"] == "file" and file.endswith(".log"):
            logs[file] = line["sha256"]
        elif line["type"] in KINDS and not file.endswith(".deleted"):
            assert entries_of(path, line["type"]) == line["entries"], file
        elif line["type"] == "transactionIndex" and line["aborted"]:
            assert path.stat().st_size == 34 * len(line["aborted"])
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.glob("*.log")} == logs
    assert not steps_but_removals(directory, LIKE_BROKER)


def errors_in(directory: Path) -> list[str]:
    """Return base offsets of the segments in which something is wrong."""
    errors = [finding for finding in verify(directory) if finding.severity is Severity.ERROR]
    return [Path(error.location.path).name.partition(".")[0] for error in errors]


TRUSTED_DAMAGE = ("crash-flip-early", "crash-noindex")
"""Damage below the recovery point, which brokers believe in, in some versions."""


@each_of("name", CRASHES)
def test_what_recovery_leaves(name: str, tmp_path: Path) -> None:
    directory = crashed_copy(name, tmp_path / "logs")
    before = {path.name: path.read_bytes() for path in directory.glob("*.log")}
    broker = prepare_recovery(directory, options=LIKE_BROKER).plan
    done = recover_partition(directory)
    assert not prepare_recovery(directory).steps, "a second recovery changes nothing"
    wrong = errors_in(directory)
    assert not {f"{base:020d}" for base in done.plan.scanned} & set(wrong)
    assert not wrong or name.endswith(TRUSTED_DAMAGE)
    for file, data in before.items():
        ours = sum(path.stat().st_size for path in [directory / file] if path.exists())
        assert ours >= broker_size(broker, int(file.partition(".")[0]), len(data)), "more is kept than brokers keep"
    recover_partition(directory, options=FULL_SCAN)
    assert not prepare_recovery(directory, options=FULL_SCAN).steps
    assert errors_in(directory) == []


def broker_size(plan: RecoveryPlan, base_offset: int, size: int) -> int:
    cuts = {cut.base_offset: cut.position for cut in plan.cuts}
    return 0 if base_offset in plan.dropped else cuts.get(base_offset, size)


# Directories made by hand


def write(directory: Path, name: str, data: bytes) -> None:
    (directory / name).write_bytes(data)


@pytest.mark.req("SEG-RCV-020")
def test_files_that_wait_for_removal(tmp_path: Path) -> None:
    files = {"0.log": entry(0), "9.log.deleted": b"x", "0.log.cleaned": b"y", "note.deleted": b"z"}
    files["00000000000000000007-0000000001.checkpoint.deleted"] = b"s"
    directory = make(tmp_path, files)
    recover_partition(directory)
    assert {"9.log.deleted", "note.deleted"} <= set(names(directory))
    assert not list(directory.glob("*.cleaned"))
    recover_partition(directory, options=LIKE_BROKER)
    assert [path.name for path in directory.glob("*.deleted")] == ["00000000000000000007-0000000001.checkpoint.deleted"]


@pytest.mark.req("SEG-RCV-021")
def test_a_finished_replacement_is_completed(tmp_path: Path) -> None:
    files = {
        "0.log": entry(0) + entry(1),
        "2.log": entry(2) + entry(3),
        "2.index": b"",
        "4.log": entry(4),
        "0.log.swap": entry(0) + entry(3),
        "0.index.swap": b"",
    }
    directory = make(tmp_path, files)
    recover_partition(directory)
    assert log_sizes(directory) == {0: 2 * ONE, 4: ONE}
    with open_partition(directory) as log:
        assert [batch.base_offset for batch in log.batches()] == [0, 3, 4]


@pytest.mark.req("SEG-RCV-021")
def test_an_unfinished_replacement_is_undone(tmp_path: Path) -> None:
    files = {"0.log": entry(0) + entry(1), "0.log.cleaned": b"", "1.log.swap": entry(1)}
    directory = make(tmp_path, files)
    recover_partition(directory)
    assert log_sizes(directory) == {0: 2 * ONE}
    assert not list(directory.glob("*.swap")) + list(directory.glob("*.cleaned"))


@pytest.mark.req("SEG-RCV-021")
def test_steps_of_an_unfinished_replacement_are_in_order(tmp_path: Path) -> None:
    """Without the file that shows that it is unfinished, what is left of it would count."""
    directory = make(tmp_path, {"0.log": entry(0), "0.log.cleaned": b"", "1.log.swap": b""})
    steps = [step.path.name.lstrip("0") for step in prepare_recovery(directory).steps if step.requirement]
    assert steps.index("1.log.swap") < steps.index(".log.cleaned")


@pytest.mark.req("SEG-RCV-004")
def test_dropped_segments_keep_their_bytes(tmp_path: Path) -> None:
    bad = patched(entry(1), 60, "b", 77, seal=False)
    files = {"0.log": entry(0) + bad, "2.log": entry(2), "2.index": b"", "2.snapshot": b"x", "3.log": entry(3)}
    directory = make(tmp_path, files)
    done = recover_partition(directory)
    assert done.plan.dropped == (2, 3)
    assert log_sizes(directory) == {0: ONE}
    kept = {path.name.lstrip("0") for path in directory.glob("*.deleted")}
    assert kept == {"2.log.deleted", "2.index.deleted", "2.snapshot.deleted", "3.log.deleted"}


@pytest.mark.req("SEG-RCV-029")
def test_later_segments_go_before_the_cut_that_condemns_them(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + b"x", "1.log": entry(1), "2.log": entry(2)})
    steps = [(step.path.name.lstrip("0"), step.text.split()[0]) for step in prepare_recovery(directory).steps]
    changes = [step for step in steps if step[1] in {"rename", "cut"}]
    assert changes == [("2.log", "rename"), ("1.log", "rename"), (".log", "cut")]


@pytest.mark.req("SEG-RCV-024")
@pytest.mark.parametrize("tail", [b"x" * 5, bytes(100), entry(1)[:-1], patched(entry(1), 8, "i", 3, seal=False)])
def test_bytes_behind_the_last_entry_after_a_clean_shutdown(tail: bytes, tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + tail, "0.index": b"", "0.timeindex": b""}, clean=True)
    like_broker = prepare_recovery(directory, options=LIKE_BROKER)
    assert not like_broker.plan.cuts
    done = recover_partition(directory)
    assert done.plan.cuts[0].requirements[0] == "SEG-RCV-024"
    assert log_sizes(directory) == {0: ONE}
    assert done.differences


def test_a_checksum_is_not_looked_at_after_a_clean_shutdown(tmp_path: Path) -> None:
    bad = patched(entry(1), 60, "b", 77, seal=False)
    directory = make(
        tmp_path, {"0.log": entry(0) + bad + entry(2) + b"tail", "0.index": b"", "0.timeindex": b""}, clean=True
    )
    recover_partition(directory)
    assert log_sizes(directory) == {0: 2 * ONE + len(bad)}


@pytest.mark.req("SEG-RCV-023")
def test_an_offset_out_of_order_where_an_index_entry_is_due(tmp_path: Path) -> None:
    data = entry(0) + entry(1) + entry(2) + entry(1) + entry(3)
    options = {"interval_bytes": 100}
    files = {"0.log": data, "0.index": b"", "5.log": entry(5), "5.index": b""}
    ours = make(tmp_path / "a", files)
    done = recover_partition(ours, options=RecoveryOptions(**options))
    assert log_sizes(ours) == {0: 3 * ONE}
    assert [difference.requirements[0] for difference in done.differences] == ["SEG-RCV-023"]
    theirs = make(tmp_path / "b", files)
    recover_partition(theirs, options=RecoveryOptions(like_broker=True, **options))
    assert log_sizes(theirs) == {0: 0}


def test_an_offset_out_of_order_where_no_index_entry_is_due(tmp_path: Path) -> None:
    """The one thing of which brokers keep more; nothing can be read behind it, so that it is cut."""
    data = entry(0) + entry(1) + entry(0) + entry(2)
    ours = make(tmp_path / "a", {"0.log": data})
    done = recover_partition(ours)
    assert log_sizes(ours) == {0: 2 * ONE}
    assert "fewer" in done.differences[0].text
    theirs = make(tmp_path / "b", {"0.log": data})
    recover_partition(theirs, options=LIKE_BROKER)
    assert log_sizes(theirs) == {0: 4 * ONE}


@pytest.mark.req("SEG-RCV-025")
def test_indexes_are_built_anew_from_the_log(tmp_path: Path) -> None:
    data = b"".join(entry(number, time=1000 + number) for number in range(5))
    directory = make(tmp_path, {"0.log": data, "0.index": b"junk" * 4, "0.timeindex": b"junk" * 6})
    recover_partition(directory, options=RecoveryOptions(interval_bytes=ONE))
    assert entries_of(directory / INDEX, "offsetIndex") == [[2, 2 * ONE], [4, 4 * ONE]]
    assert entries_of(directory / "00000000000000000000.timeindex", "timeIndex") == [[1002, 2], [1004, 4]]


@pytest.mark.req("SEG-RCV-025")
@pytest.mark.parametrize(("options", "entries"), [(DEFAULT, [[1000, 0]]), (LIKE_BROKER, [])])
def test_a_time_index_that_is_missing(options: RecoveryOptions, entries: list[list[int]], tmp_path: Path) -> None:
    """A broker makes an empty one where it does not scan the segment."""
    files = {"0.log": entry(0), "0.index": b"", "1.log": entry(1), "1.index": b"", "1.timeindex": b""}
    directory = make(tmp_path, files, clean=True)
    recover_partition(directory, options=options)
    assert entries_of(directory / "00000000000000000000.timeindex", "timeIndex") == entries
    assert recover_partition(directory, options=options).steps == ()


@pytest.mark.req("SEG-RCV-026")
def test_indexes_without_a_log_go(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0), "5.index": b"", "5.timeindex": b"", "5.txnindex": b""})
    recover_partition(directory)
    assert not list(directory.glob("*5.*"))


@pytest.mark.req("SEG-RCV-027", "SEG-RCV-035")
def test_snapshots_that_lead_nowhere_go(tmp_path: Path) -> None:
    snapshots = {f"{offset}.snapshot": EMPTY_SNAPSHOT for offset in (0, 1, 2, 3, 4, 9)}
    files = {"0.log": entry(0) + entry(1), "2.log": entry(2) + entry(3) + entry(4)}
    directory = make(tmp_path, {**files, **snapshots})
    recover_partition(directory)
    assert [int(path.stem) for path in sorted(directory.glob("*.snapshot"))] == [0, 2]
    write(directory, numbered("4.snapshot"), EMPTY_SNAPSHOT)
    write(directory, numbered("2.snapshot"), b"damaged")
    recover_partition(directory)
    assert [int(path.stem) for path in sorted(directory.glob("*.snapshot"))] == [0, 4]


def epochs(directory: Path) -> str:
    return (directory / EPOCHS).read_text(encoding="utf-8")


@pytest.mark.req("SEG-RCV-028", "SEG-RCV-036")
def test_leader_epochs_end_with_the_log(tmp_path: Path) -> None:
    data = entry(0, epoch=1) + entry(1, epoch=3) + b"x"
    directory = make(tmp_path, {"0.log": data, EPOCHS: b"0\n2\n1 0\n9 2\n"})
    recover_partition(directory)
    assert epochs(directory) == "0\n2\n1 0\n3 1\n" == example("recovered-epochs", CHAPTER).decode()


@pytest.mark.req("SEG-RCV-028", "SEG-RCV-036")
def test_a_broker_adds_leader_epochs_before_it_drops_others(tmp_path: Path) -> None:
    data = entry(0, epoch=1) + entry(1, epoch=3) + b"x"
    directory = make(tmp_path, {"0.log": data, EPOCHS: b"0\n2\n1 0\n9 2\n"})
    recover_partition(directory, options=LIKE_BROKER)
    assert epochs(directory) == "0\n1\n1 0\n"
    recover_partition(directory, options=LIKE_BROKER)
    assert epochs(directory) == "0\n2\n1 0\n3 1\n"


@pytest.mark.req("SEG-RCV-036")
def test_brokers_do_not_start_with_leader_epochs_that_they_cannot_read(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + b"x", EPOCHS: b"0\n2\n0 0\n"})
    imitated = prepare_recovery(directory, options=LIKE_BROKER)
    assert imitated.failure is not None
    assert "brokers do not start: entry_count" in imitated.failure.text
    assert not imitated.steps
    plan = prepare_recovery(directory)
    assert plan.differences == (imitated.failure,)
    assert plan.steps


@pytest.mark.req("SEG-RCV-032")
def test_a_log_with_the_name_of_another_segment_is_not_cut(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(9), "9.log": entry(0) + entry(1) + b"x"})
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    done = recover_partition(directory)
    assert done.failure is not None
    assert done.failure.location.path.endswith(numbered("9.log"))
    assert not done.steps
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


@pytest.mark.req("SEG-RCV-032")
def test_a_writer_does_not_open_a_log_with_the_name_of_another_segment(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(9), "9.log": entry(0)})
    with LogWriter(directory.parent) as writer, pytest.raises(UsageError, match="does not belong to this file name"):
        writer.open("orders", 0)


def lost(files: dict[str, bytes], path: Path) -> list[tuple[str, str, str]]:
    losses = prepare_recovery(make(path, files)).losses()
    return [(one.file.lstrip("0"), one.reason.name, one.missing.span) for one in losses.lost]


def at(*offsets: int) -> bytes:
    return b"".join(entry(offset) for offset in offsets)


@pytest.mark.req("SEG-RCV-031")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"0.log": at(*range(15)), "7.log": b""}, [(".log", "HIDDEN", "8 offsets, 7 to 14")], id="stray"),
        pytest.param({"0.log": at(0, 1, 2, 3), "2.log": at(2, 3)}, [], id="twice"),
        pytest.param({"0.log": at(0, 1, 2, 3), "2.log": at(3)}, [], id="within-the-next"),
        pytest.param({"0.log": at(0, 1, 2, 1, 2)}, [], id="repeated"),
        pytest.param({"0.log": at(0, 1, 2, 1, 2, 3, 4)}, [(".log", "CUT", "2 offsets, 3 to 4")], id="back-and-on"),
        pytest.param({"0.log": at(0, 1, 2, 1, 9)}, [(".log", "CUT", "7 offsets, 3 to 9")], id="compacted"),
        pytest.param({"0.log": at(0, 1) + b"\1" * 40}, [(".log", "CUT", "offsets from 2 on")], id="no-whole-entry"),
        pytest.param(
            {"0.log": at(0, 1, 0), "4.log": at(4, 5), "6.log": at(7)},
            [
                (".log", "CUT", "2 offsets, 2 to 3"),
                ("4.log", "DROPPED", "2 offsets, 4 to 5"),
                ("6.log", "DROPPED", "offset 7"),
            ],
            id="dropped",
        ),
        pytest.param(
            {"0.log": at(0, 1, 2), "5.log": at(5, 6, 1, 9)}, [("5.log", "CUT", "3 offsets, 7 to 9")], id="held-before"
        ),
    ],
)
def test_offsets_are_lost_if_no_segment_holds_them(
    files: dict[str, bytes], expected: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    assert lost(files, tmp_path) == expected


@pytest.mark.req("SEG-RCV-036")
def test_leader_epochs_are_completed_from_the_log(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, epoch=1) + entry(1, epoch=3), EPOCHS: b"0\n1\n1 0\n"})
    recover_partition(directory)
    assert epochs(directory) == "0\n2\n1 0\n3 1\n"


@pytest.mark.req("SEG-RCV-036")
def test_leader_epochs_below_a_known_one_are_not_added(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, epoch=1) + entry(1, epoch=4), EPOCHS: b"0\n1\n3 0\n"})
    recover_partition(directory)
    assert epochs(directory) == "0\n2\n3 0\n4 1\n"


@pytest.mark.req("SEG-RCV-037")
def test_leader_epochs_begin_with_the_log(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + entry(1, 4, epoch=2), EPOCHS: b"0\n2\n0 0\n2 1\n"})
    checkpoint(directory, "log-start-offset-checkpoint", 3)
    recover_partition(directory)
    assert epochs(directory) == "0\n1\n2 3\n" == example("epochs-from-the-log-start", CHAPTER).decode()


@pytest.mark.req("SEG-RCV-037")
def test_the_latest_epoch_outlives_a_log_that_ends_where_it_starts(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + entry(1, 4, epoch=0), EPOCHS: b"0\n1\n3 0\n"}, log_start=5)
    recover_partition(directory)
    assert epochs(directory) == "0\n1\n3 5\n"  # not that of the batches, which is lower
    recover_partition(directory)
    assert epochs(directory) == "0\n1\n3 5\n"


def test_leader_epochs_that_cannot_be_read_stay(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0), EPOCHS: b"7\n"})
    recover_partition(directory)
    assert epochs(directory) == "7\n"


@pytest.mark.req("SEG-RCV-007", "SEG-RCV-030")
def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0), EPOCHS: b"0\n1\n0 0\n"}, log_start=50)
    done = recover_partition(directory)
    assert done.plan.restarts
    assert log_sizes(directory) == {50: 0}
    assert epochs(directory) == "0\n0\n"


@pytest.mark.req("SEG-RCV-030")
def test_an_empty_directory_gets_a_segment(tmp_path: Path) -> None:
    directory = make(tmp_path, {})
    recover_partition(directory)
    assert log_sizes(directory) == {0: 0}


def far(offset: int) -> bytes:
    return entry(offset)


@pytest.mark.req("SEG-RCV-022")
@pytest.mark.parametrize("options", [DEFAULT, LIKE_BROKER], ids=["default", "like broker"])
def test_a_segment_that_reaches_too_far_is_split(options: RecoveryOptions, tmp_path: Path) -> None:
    first = 5 if options.like_broker else 0
    offsets = [5, 6, first + 2**31 - 1, first + 2**31, 2**33]
    directory = make(tmp_path, {"0.log": b"".join(map(far, offsets)), f"{2**34}.log": far(2**34)})
    recover_partition(directory, options=options)
    assert log_sizes(directory) == {first: 3 * ONE, first + 2**31: ONE, 2**33: ONE, 2**34: ONE}
    with open_partition(directory) as log:
        assert [found.base_offset for found in log.batches()] == [*offsets, 2**34]
    assert [finding for finding in verify(directory) if finding.severity is Severity.ERROR] == []
    assert not recover_partition(directory, options=options).steps


@pytest.mark.req("SEG-RCV-022")
def test_a_segment_that_begins_too_far_leaves_an_empty_one(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": far(2**40)})
    recover_partition(directory)
    assert log_sizes(directory) == {0: 0, 2**40: ONE}


def test_a_part_that_would_meet_the_next_segment_is_left(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": far(1) + far(2**40), "9.log": far(9)})
    recover_partition(directory)
    assert log_sizes(directory) == {0: 2 * ONE, 9: ONE}


WIDE = wrapper(message(0, magic=1), message(2**32, magic=1), offset=5 + 2**32, magic=1)
"""A message that holds offsets 5 and 4294967301."""


def test_an_entry_too_wide_for_any_segment_is_left(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": far(1) + WIDE})
    recover_partition(directory)
    assert log_sizes(directory) == {0: ONE + len(WIDE)}


@pytest.mark.parametrize(
    ("data", "requirement"),
    [
        (WIDE, "SEG-LOG-009"),
        (far(2**40) + b"x", "SEG-LOG-002"),
        (far(2**40) + patched(far(0), 8, "i", 3, seal=False), "SEG-LOG-003"),
        (far(2**40) + far(3), "SEG-LOG-009"),
        (far(2**40) + far(2**39), "SEG-LOG-006"),
    ],
)
def test_overflows_on_which_brokers_fail(data: bytes, requirement: str, tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": data})
    before = content(directory)
    done = recover_partition(directory, options=LIKE_BROKER)
    assert done.failure is not None
    assert done.failure.requirements == (requirement,)
    assert content(directory) == before
    assert prepare_recovery(directory).differences == (done.failure,)


def test_names_that_no_broker_opens_are_put_right(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0)})
    (directory / LOG).rename(directory / "0.log")
    recover_partition(directory)
    assert log_sizes(directory) == {0: ONE}


# What brokers' own scan makes of a segment


def scan_of(data: bytes, base: int = 0, *, interval: int = 4096, **settings: Any) -> Any:  # noqa: ANN401
    return broker_scan(memoryview(data), base, settings=IndexSettings(interval, **settings))


def test_a_marker_that_cannot_be_read_stays_and_ends_the_segment() -> None:
    broken = control(1, 0, value=bytes(1))
    found = scan_of(entry(0) + broken + entry(2))
    assert (found.outcome, found.valid_size) == (Outcome.RECOVERED, ONE + len(broken))
    assert found.requirements == ("SEG-CTL-004",)


@pytest.mark.req("SEG-CTL-006", "SEG-CTL-003", "SEG-COD-001", "SEG-APP-023", "SEG-BAT-005")
@pytest.mark.parametrize(
    ("data", "requirement"),
    [
        (control(0, 2), "SEG-CTL-006"),
        (control(0, 77), "SEG-CTL-003"),
        (patched(control(0, 0), 21, "h", 0x35), "SEG-COD-001"),
        (transactional(0) + entry(1, producer_id=7, producer_epoch=0, base_sequence=1), "SEG-APP-023"),
        (patched(entry(-1, 2), 12, "i", 4, seal=False), "SEG-BAT-005"),
    ],
)
def test_entries_with_which_brokers_do_not_start(data: bytes, requirement: str) -> None:
    found = scan_of(data)
    assert (found.outcome, found.requirements[0]) == (Outcome.FAILURE, requirement)


def test_an_abort_listed_out_of_order_stops_a_broker() -> None:
    data = transactional(0) + transactional(1, 8) + control(9, 0) + control(8, 0, producer=8)
    assert scan_of(data).outcome is Outcome.FAILURE


def test_aborts_of_a_segment() -> None:
    found = scan_of(transactional(0) + transactional(1, 8) + control(2, 0) + control(3, 1, producer=8))
    assert [(one.first_offset, one.last_offset, one.last_stable_offset) for one in found.aborted] == [(0, 2, 1)]


@pytest.mark.parametrize("offset", [-1, 2**31, 2**63 - 1])
def test_offsets_out_of_range_end_a_broker_s_scan(offset: int) -> None:
    assert scan_of(entry(0) + entry(offset)).outcome is Outcome.OVERFLOW


def test_a_time_index_entry_out_of_order_empties_the_segment() -> None:
    """At the end the largest timestamp is added; it stands at a lower offset than an entry before."""
    data = entry(9, time=1) + entry(10, time=2) + entry(11, time=3) + entry(5, time=9)
    assert scan_of(data, interval=2 * ONE).outcome is Outcome.RECOVERED
    assert scan_of(data, interval=ONE).outcome is Outcome.INVALID_OFFSET


def test_where_a_broker_sees_the_end_of_a_segment() -> None:
    data = entry(0) + entry(99) + entry(100) + entry(101, 4) + entry(50)
    found = scan_of(data, interval=len(entry(101, 4)))
    assert (found.next_offset, found.next_offset_since_4_1) == (51, 0)
    assert scan_of(data).next_offset_since_4_1 == 51


@pytest.mark.req("SEG-RCV-038")
@pytest.mark.parametrize("name", ["magic 3", "magic 3 with a wrong checksum"])
def test_a_batch_of_a_later_magic_stays_if_its_checksum_is_right(name: str, tmp_path: Path) -> None:
    """Kafka's classes of three releases say where the log ends."""
    started = json.loads((FIXTURES / "witnesses" / "started_logs.json").read_text(encoding="ascii"))
    (case,) = [case for case in started["cases"] if case["name"] == name]
    ends = {answer["logEndOffset"] for answer in case["answers"].values()}
    assert (len(case["answers"]), ends) == (3, {7} if name == "magic 3" else {5})
    directory = make(tmp_path, {file: bytes.fromhex(data) for file, data in case["files"].items()})
    assert {recover(directory, options=options).plan.log_end_offset for options in (DEFAULT, LIKE_BROKER)} == ends


def test_messages_are_scanned_by_their_own_checksum() -> None:
    data = message(0) + message(1, crc=1)
    found = scan_of(data)
    assert (found.valid_size, found.requirements) == (len(message(0)), ("SEG-MSG-004",))


# Settings


def settings_of(directory: Path) -> IndexSettings:
    return infer_settings([LogSegment(files) for files in list_partition(directory).segments])


@each_of("name", CRASHES)
def test_the_interval_is_inferred_from_what_a_broker_left(name: str) -> None:
    (directory,) = (authentic(name) / "before").glob("crash-*-0")
    found = settings_of(directory)
    assert found.interval_bytes == 1024
    version = name.partition("/")[0]
    early = version in {"0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1"}
    if version != "0.10.2.2":  # its plain messages leave both possible, with the same result
        assert (found.indexed_offset is IndexedOffset.FIRST) == early


def test_settings_without_any_index(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0), "0.index": bytes(80)})
    assert settings_of(directory) == IndexSettings(
        interval_reason="the default: no index shows otherwise",
        offset_reason="as brokers since 2.0: no index shows otherwise",
    )
    write(directory, LOG, message(0))
    found = settings_of(directory)
    assert (found.indexed_offset, found.has_time_index) == (IndexedOffset.FIRST, False)
    assert "no time index" in found.offset_reason


def test_an_index_of_another_log_proves_nothing(tmp_path: Path) -> None:
    index = struct.pack(">ii", 1, 17)
    directory = make(tmp_path, {"0.log": entry(0) + entry(1), "0.index": index, "0.timeindex": b""})
    assert settings_of(directory).interval_bytes == 4096


# Crashes of recovery itself


def damaged_everywhere() -> dict[str, bytes]:
    """Leftovers, orphans, a cut in the middle, dropped segments, snapshots, epochs."""
    bad = patched(entry(5), 60, "b", 77, seal=False)
    return {
        "0.log": entry(0, epoch=1) + entry(1, epoch=1),
        "0.index": b"junk",
        "2.log": entry(2) + entry(3, epoch=2) + entry(4, epoch=2) + bad + entry(6, epoch=2),
        "2.index": b"",
        "2.snapshot": EMPTY_SNAPSHOT,
        "7.log": entry(7),
        "7.index": b"",
        "7.timeindex": b"",
        "7.snapshot": EMPTY_SNAPSHOT,
        "8.log": entry(8),
        "6.snapshot": EMPTY_SNAPSHOT,
        "1.index": b"",
        "30.log.cleaned": b"",
        "31.log.swap": entry(31),
        "40.log.deleted": b"",
        EPOCHS: b"0\n3\n1 0\n2 3\n5 6\n",
    }


def replaced() -> dict[str, bytes]:
    """Return a replacement that was completed, and a segment that is to be split."""
    return {
        "0.log": entry(0) + entry(1),
        "0.index": b"",
        "2.log": entry(2),
        "0.log.swap": entry(1) + entry(2),
        "0.index.swap": b"",
        "0.timeindex.swap": b"",
        "3.log": entry(4) + entry(2**31 + 4) + entry(2**31 + 5) + entry(2**33),
        "3.index": b"",
        f"{2**40}.log": entry(2**40),
    }


def restarted() -> dict[str, bytes]:
    return {"0.log": entry(0), "0.index": b"", "1.log": entry(1) + b"x", "1.snapshot": EMPTY_SNAPSHOT}


def but_deleted(directory: Path) -> dict[str, bytes]:
    """Return every file, except those that are due for removal: an imitated broker removes them at its next start."""
    return {name: data for name, data in content(directory).items() if not name.endswith(".deleted")}


@pytest.mark.parametrize("options", [DEFAULT, LIKE_BROKER], ids=["default", "like broker"])
@pytest.mark.parametrize("files", [damaged_everywhere, replaced, restarted])
@pytest.mark.req("SEG-RCV-029", "SEG-RCV-021")
def test_the_power_may_go_at_any_moment(
    files: Callable[[], dict[str, bytes]], options: RecoveryOptions, tmp_path: Path
) -> None:
    whole = built(tmp_path / "whole", files)
    recover_partition(whole, options=options)
    expected = but_deleted(whole)
    for moment in range(1000):
        directory = built(tmp_path / str(moment), files)
        try:
            recover_partition(directory, options=options, files=CountedFiles(moment))
        except PowerCutError:
            recover_partition(directory, options=options)
            assert but_deleted(directory) == expected, moment
        else:
            assert but_deleted(directory) == expected
            assert moment > 10
            return
    pytest.fail("recovery does not end")


@pytest.mark.req("SEG-RCV-004")
@each_of("seed", range(20))
def test_segments_that_are_dropped_leave_no_hole(seed: int, tmp_path: Path) -> None:
    """A full scan may drop what no later scan would look at: what is left when the power goes is a log all the same."""
    segments = {f"{base}.log": entry(base, 10) for base in range(0, 60, 10)}
    segments["0.log"] = patched(segments["0.log"], 70, "b", 9, seal=False)
    for moment in range(1, 200):
        directory = make(tmp_path / str(moment), segments)
        disk = SimulatedFiles(directory.parent, random.Random(f"{seed} {moment}"))  # noqa: S311 - chance that repeats
        disk.load(directory.parent)
        disk.cut_at = moment
        try:
            recover_partition(directory, options=FULL_SCAN, files=MirroredFiles(disk))
        except PowerCut:
            disk.lose_power()
            survived = tmp_path / f"{moment}-survived"
            disk.store(survived)
            bases = sorted(log_sizes(survived / directory.name))
            assert bases == list(range(0, 10 * len(bases), 10))
        else:
            return
    pytest.fail("there is no end")


def built(root: Path, files: Callable[[], dict[str, bytes]]) -> Path:
    return make(root, files(), log_start=50 if files is restarted else None)


@pytest.mark.parametrize("options", [DEFAULT, FULL_SCAN, LIKE_BROKER], ids=["default", "full scan", "like broker"])
def test_whatever_the_damage_recovery_comes_to_rest(options: RecoveryOptions, tmp_path: Path) -> None:
    for seed in range(20):
        log = random_log(seed)
        data, damages = damaged(seed, log.data)
        name = str(log.base_offset)
        files = {f"{name}.log": data, f"{name}.timeindex": b"", f"{2**62}.log": b""}
        directory = make(tmp_path / str(seed), files | ({f"{name}.index": b""} if seed % 2 else {}))
        recover_partition(directory, options=options)
        assert not steps_but_removals(directory, options), (seed, damages)


def test_a_failing_disk_is_told(tmp_path: Path) -> None:
    class Full(LocalFiles):
        def create(self, path: Path, size: int = 0) -> Any:  # noqa: ANN401, ARG002
            raise OSError(28, "No space left on device")

    directory = make(tmp_path, {"0.log": entry(0) + b"x"})
    with pytest.raises(WriteError, match="No space left"):
        recover_partition(directory, files=Full())
    recover_partition(directory)
    assert log_sizes(directory) == {0: ONE}


def test_nothing_is_done_where_a_broker_is_at_work(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0) + b"x"})
    lock = directory.parent / ".lock"
    lock.touch()
    recover_partition(directory)
    write(directory, LOG, entry(0) + b"x")
    with lock.open("r+") as held:
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        with pytest.raises(UsageError, match="in use"):
            recover_partition(directory)
    assert log_sizes(directory) == {0: ONE + 1}


def test_a_partition_without_a_segment_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    assert run(["recover", str(tmp_path / "data")]) == 0
    assert run(["recover", str(tmp_path / "data" / "orders-0")]) == 0
