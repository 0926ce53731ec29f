"""Names and replacements as brokers take them: what Kafka's loader (3.9.0, 4.1.1) made of the same files.

`proofs/kafka/loads.py` asks it anew, over many more directories.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    EPOCHS,
    ONE,
    checkpoint,
    content,
    control,
    entry,
    log_sizes,
    make,
    transactional,
)
from helpers.walking import each_of

from seglog_format.model import OffsetPosition
from seglog_format.recovery.apply import RecoveryOptions, recover_partition
from seglog_format.recovery.broker_scan import searched

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.recovery.apply import PreparedRecovery

pytestmark = pytest.mark.usefixtures("no_fsync")

LIKE_BROKER = RecoveryOptions(like_broker=True)
INDEX_SIZE = 10 * 1024 * 1024
FIRST, SECOND = "00000000000000000000", "00000000000000000002"
LOGS = {"0.log": entry(0) + entry(1), "0.index": b"", "0.timeindex": b"", "2.log": entry(2), "2.index": b"",
        "2.timeindex": b""}  # fmt: skip
TORN = entry(0) + entry(1)[:-3]


def recovered(
    tmp_path: Path,
    files: dict[str, bytes],
    *,
    recovery_point: int = 3,
    clean: bool = False,
    log_start: int | None = None,
    unusual: dict[str, bytes] | None = None,
) -> tuple[Path, PreparedRecovery]:
    """``files`` get names of 20 digits, ``unusual`` keep theirs."""
    directory = make(tmp_path, files, clean=clean, log_start=log_start)
    for name, data in (unusual or {}).items():
        (directory / name).write_bytes(data)
    checkpoint(directory, "recovery-point-offset-checkpoint", recovery_point)
    return directory, recover_partition(directory, options=LIKE_BROKER)


def index_sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.glob("*index")}


# Replacements


@pytest.mark.req("SEG-PDR-010")
def test_a_torn_replacement_below_the_recovery_point_is_kept_as_it_is(tmp_path: Path) -> None:
    """A broker opens the index of the replacement first, which creates it: zeros. So nothing makes it scan the log."""
    directory, done = recovered(tmp_path, LOGS | {"0.log.swap": TORN})
    assert log_sizes(directory) == {0: len(TORN), 2: ONE}
    assert done.plan.scanned == (2,)
    assert not done.plan.cuts
    assert done.plan.log_end_offset == 3
    assert index_sizes(directory)[f"{FIRST}.index"] == INDEX_SIZE
    assert not (directory / f"{FIRST}.index").read_bytes().strip(b"\0")
    assert index_sizes(directory)[f"{FIRST}.timeindex"] == 0
    assert not list(directory.glob("*.swap"))


@pytest.mark.req("SEG-PDR-010")
def test_a_torn_replacement_above_the_recovery_point_ends_the_log(tmp_path: Path) -> None:
    directory, done = recovered(tmp_path, LOGS | {"0.log.swap": TORN}, recovery_point=0)
    assert log_sizes(directory) == {0: ONE}
    assert done.plan.log_end_offset == 1
    assert index_sizes(directory)[f"{FIRST}.index"] == 0


@pytest.mark.req("SEG-PDR-010")
def test_an_empty_replacement_gets_an_index_of_zeros(tmp_path: Path) -> None:
    directory, _ = recovered(tmp_path, LOGS | {"0.log.swap": b""})
    assert log_sizes(directory) == {0: 0, 2: ONE}
    assert index_sizes(directory)[f"{FIRST}.index"] == INDEX_SIZE


@pytest.mark.req("SEG-PDR-010")
def test_an_empty_replacement_behind_another_covers_what_is_between(tmp_path: Path) -> None:
    """A broker takes the base offset of an empty one for its end. By the rule it has none, and covers nothing."""
    files = LOGS | {"4.log": entry(4), "4.index": b"", "4.timeindex": b"", "0.log.swap": TORN, "4.log.swap": b""}
    directory, done = recovered(tmp_path / "like a broker", files, recovery_point=5)
    assert log_sizes(directory) == {0: len(TORN), 4: 0}
    assert done.plan.log_end_offset == 4
    directory = make(tmp_path / "by default", files)
    checkpoint(directory, "recovery-point-offset-checkpoint", 5)
    recover_partition(directory)
    assert log_sizes(directory) == {0: ONE, 2: ONE, 4: 0}


@pytest.mark.req("SEG-PDR-010")
def test_the_index_of_a_replacement_leads_to_its_end(tmp_path: Path) -> None:
    """It points behind the log, so a broker finds no entry, and the replacement covers nothing of the next segment."""
    files = LOGS | {"0.log.swap": entry(0) + entry(1) + entry(2), "0.index.swap": index((9, 9 * ONE))}
    directory, done = recovered(tmp_path, files)
    assert log_sizes(directory) == {0: 3 * ONE, 2: ONE}
    assert done.failure is None


@pytest.mark.req("SEG-PDR-010")
def test_a_replacement_with_its_indexes_keeps_them(tmp_path: Path) -> None:
    files = LOGS | {"0.log.swap": TORN, "0.index.swap": b"", "0.timeindex.swap": b""}
    directory, _ = recovered(tmp_path, files)
    assert log_sizes(directory) == {0: len(TORN), 2: ONE}
    assert index_sizes(directory)[f"{FIRST}.index"] == 0


@pytest.mark.req("SEG-PDR-010")
@pytest.mark.parametrize("zeros", [18, 4096])
def test_a_broker_does_not_start_with_a_replacement_that_it_cannot_walk(zeros: int, tmp_path: Path) -> None:
    directory, done = recovered(tmp_path, LOGS | {"0.log.swap": entry(0) + bytes(zeros)})
    assert done.failure is not None
    assert (done.failure.location.position, done.failure.location.field) == (ONE, "size")
    assert (directory / f"{FIRST}.log.swap").exists()


@pytest.mark.req("SEG-PDR-010")
def test_a_broker_walks_past_a_magic_that_it_does_not_know(tmp_path: Path) -> None:
    swap = bytearray(entry(0) + entry(1))
    swap[16] = 9
    directory, done = recovered(tmp_path, LOGS | {"0.log.swap": bytes(swap)})
    assert done.failure is None
    assert log_sizes(directory) == {0: 2 * ONE, 2: ONE}


# Ends


def index(*slots: tuple[int, int]) -> bytes:
    """Relative offsets and positions."""
    return b"".join(struct.pack(">ii", *slot) for slot in slots)


@pytest.mark.req("SEG-LKP-015")
@pytest.mark.parametrize(
    ("base", "offsets", "slots", "end"),
    [
        (7, (5,), (), 7),  # no entry reaches the wanted offset, which is the base offset: the segment counts as empty
        (7, (5, 9, 6), (), 7),  # the last entry decides where the log ends, the others whether it was found
        (5, (5, 6, 7), ((1, ONE),), 8),
        (5, (5, 6, 7), ((1, ONE), (0, 0)), 8),
        (5, (5, 6, 7), ((9, ONE),), 5),
        (5, (5, 6, 7), ((1, 10 * ONE),), 5),
        (5, (5, 6, 7), ((1, ONE + 7),), 5),
        (5, (5, 6, 7), ((1, -1),), 8),
        (5, (5, 6, 7), ((2, 2 * ONE), (9, ONE), (1, 5 * ONE)), 8),  # a search finds none of the slots below
    ],
)
def test_an_index_leads_a_broker_to_the_end(
    base: int, offsets: tuple[int, ...], slots: tuple[tuple[int, int], ...], end: int, tmp_path: Path
) -> None:
    """What Kafka 3.9.0 and 4.1.1 gave as the log end offset after a clean shutdown."""
    log = b"".join(entry(offset) for offset in offsets)
    files = {f"{base}.log": log, f"{base}.index": index(*slots), f"{base}.timeindex": b""}
    directory, done = recovered(tmp_path, files, clean=True)
    assert done.failure is None
    assert done.plan.log_end_offset == end
    assert log_sizes(directory) == {base: len(log)}


@pytest.mark.req("SEG-LKP-015")
def test_a_broker_does_not_start_where_its_index_leads_to_no_entry(tmp_path: Path) -> None:
    files = {"5.log": entry(5) + entry(6), "5.index": index((1, ONE + 13)), "5.timeindex": b""}
    _, done = recovered(tmp_path, files, clean=True)
    assert done.failure is not None
    assert done.failure.location.position == ONE + 13


def test_a_long_index_is_searched_at_its_end_first() -> None:
    slots = [OffsetPosition(number, number) for number in range(3000)]
    assert [searched(slots, offset, 0) for offset in (0, 7, 1974, 1975, 1976, 2999)] == [
        slots[offset] for offset in (0, 7, 1974, 1975, 1976, 2999)
    ]
    slots[500] = OffsetPosition(5000, 0)
    assert searched(slots, 2500, 0) == slots[2500]
    assert searched([], 7, 5) == searched(slots, -1, 5) == OffsetPosition(5, 0)


@pytest.mark.req("SEG-RCV-025")
def test_a_segment_that_begins_inside_its_first_batch_is_indexed(tmp_path: Path) -> None:
    """The indexes store last offsets only, which are not below the base offset: what Kafka 3.9.0 and 4.1.1 wrote."""
    first = entry(3, 4)
    log = first + entry(7, time=1001) + entry(8, 90, time=1002)
    options = RecoveryOptions(like_broker=True, interval_bytes=len(first))
    directory = make(tmp_path, {"5.log": log})
    done = recover_partition(directory, options=options)
    assert done.plan.log_end_offset == 98
    assert log_sizes(directory) == {5: len(log)}
    assert (directory / "00000000000000000005.index").read_bytes() == index((92, len(first) + ONE))
    assert (directory / "00000000000000000005.timeindex").read_bytes() == struct.pack(">qi", 1002, 92)


# Producers

HOLE = LOGS | {"0.log": entry(0) + bytes(18) + entry(1)}


@pytest.mark.req("SEG-RCV-002")
@each_of(
    ("clean", "snapshots", "starts"),
    [
        (False, (), False),
        (False, (0,), False),
        (False, (1,), False),
        (False, (2,), True),
        (False, (3,), False),
        (False, (2, 3), True),
        (False, (1, 4), False),
        (True, (), True),  # a log without producers: nothing is read
        (True, (0,), False),
        (True, (1,), True),  # no segment begins there: it is removed, and none is left
        (True, (2,), True),
        (True, (3,), True),
        (True, (2, 3), True),
        (True, (1, 4), False),
    ],
)
def test_damage_that_a_broker_meets_on_its_way_from_a_snapshot(
    snapshots: tuple[int, ...], *, clean: bool, starts: bool, tmp_path: Path
) -> None:
    """The segment is below the recovery point, but its batches are read if no snapshot is above them."""
    files = HOLE | {f"{offset}.snapshot": EMPTY_SNAPSHOT for offset in snapshots}
    directory, done = recovered(tmp_path, files, clean=clean)
    assert log_sizes(directory) == {0: 2 * ONE + 18, 2: ONE}
    if starts:
        assert done.failure is None
        assert done.plan.log_end_offset == 3
    else:
        assert done.failure is not None
        assert (done.failure.location.position, done.failure.requirements) == (ONE, ("SEG-LOG-003",))


@pytest.mark.req("SEG-RCV-002", "SEG-APP-023")
def test_a_transaction_that_loses_its_end_below_the_recovery_point(tmp_path: Path) -> None:
    outside = entry(1, producer_id=7, producer_epoch=0, base_sequence=1)
    files = LOGS | {"0.log": transactional(0) + outside}
    _, done = recovered(tmp_path, files)
    assert done.failure is not None
    assert (done.failure.location.position, done.failure.requirements) == (ONE, ("SEG-APP-023",))


@pytest.mark.req("SEG-RCV-002")
def test_bytes_that_a_broker_passes_on_its_way(tmp_path: Path) -> None:
    """Neither a wrong checksum stops it nor a batch too small for its fields, unless the file ends in them."""
    small = struct.pack(">qiib", 1, 20, 0, 2) + bytes(15)
    wrong = bytearray(transactional(0))
    wrong[17:21] = bytes(4)
    _, done = recovered(tmp_path / "in the middle", LOGS | {"0.log": bytes(wrong) + small + entry(1)})
    assert done.failure is None
    assert done.plan.scanned == (2,)
    _, done = recovered(tmp_path / "at the end", LOGS | {"0.log": bytes(wrong) + small})
    assert done.failure is not None
    assert (done.failure.location.position, done.failure.requirements) == (ONE, ("SEG-BAT-002",))


@pytest.mark.req("SEG-RCV-025")
@pytest.mark.parametrize(("log_start", "first"), [(0, 0), (1, 1), (2, 1), (3, 1)])
def test_a_broker_knows_no_transaction_from_before_the_log_start(log_start: int, first: int, tmp_path: Path) -> None:
    """Unless it begins in the segment that is scanned, which is scanned from its start."""
    logs = {0: transactional(0), 1: transactional(1) + control(2, 0), 3: transactional(3) + control(4, 0)}
    files = {f"{base}.{kind}": b"" for base in logs for kind in ("index", "timeindex")}
    files |= {f"{base}.log": log for base, log in logs.items()}
    directory, _ = recovered(tmp_path, files, recovery_point=0, log_start=log_start)
    found = {path.name.lstrip("0"): path.read_bytes() for path in directory.glob("*.txnindex")}
    assert found == {
        "1.txnindex": struct.pack(">hqqqq", 0, 7, first, 2, 3),
        "3.txnindex": struct.pack(">hqqqq", 0, 7, 3, 4, 5),
    }


@pytest.mark.req("SEG-RCV-027", "SEG-RCV-035")
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize(("log_start", "kept"), [(0, "136"), (1, "36"), (2, "36"), (3, "6")])
def test_snapshots_at_the_log_start_and_below_it(log_start: int, kept: str, *, clean: bool, tmp_path: Path) -> None:
    """Brokers remove them, and after a scan those above all segments that are not at the log end."""
    logs = {0: entry(0), 1: entry(1) + entry(2), 3: entry(3) + entry(4) + entry(5)}
    files = {f"{base}.{kind}": b"" for base in logs for kind in ("index", "timeindex")}
    files |= {f"{base}.log": log for base, log in logs.items()}
    files |= {f"{offset}.snapshot": EMPTY_SNAPSHOT for offset in (0, 1, 3, 4, 5, 6)}
    directory, _ = recovered(tmp_path, files, recovery_point=6, clean=clean, log_start=log_start)
    assert sorted(path.stem.lstrip("0") for path in directory.glob("*.snapshot")) == list(kept)


@pytest.mark.req("SEG-RCV-035")
@pytest.mark.parametrize(("clean", "kept"), [(False, ["2"]), (True, ["2", "4"])])
def test_a_snapshot_above_all_segments_that_is_not_at_the_end(kept: list[str], *, clean: bool, tmp_path: Path) -> None:
    files = LOGS | {"2.log": entry(2) + entry(3) + entry(4), "2.snapshot": EMPTY_SNAPSHOT, "4.snapshot": EMPTY_SNAPSHOT}
    directory, _ = recovered(tmp_path, files, clean=clean)
    assert sorted(path.stem.lstrip("0") for path in directory.glob("*.snapshot")) == kept


# Leader epochs


@pytest.mark.req("SEG-RCV-037")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1 0\n3 2\n5 1\n", "1 0\n5 1\n"),
        ("1 0\n1 1\n", "1 0\n"),
        ("5 0\n3 1\n", "5 0\n3 1\n"),  # it knows only epoch 3, from 1 on: none at the log start, so nothing is written
    ],
)
def test_leader_epochs_out_of_order_replace_those_before(before: str, after: str, tmp_path: Path) -> None:
    """A broker adds one after the other, as it does with those of new batches."""
    files = LOGS | {EPOCHS: f"0\n{before.count(' ')}\n{before}".encode()}
    directory, _ = recovered(tmp_path, files, clean=True)
    assert (directory / EPOCHS).read_text(encoding="utf-8") == f"0\n{after.count(' ')}\n{after}"


@pytest.mark.req("SEG-CKP-007")
@pytest.mark.parametrize("line", ["-1 0", "1 -5"])
def test_a_broker_does_not_start_with_a_negative_leader_epoch(line: str, tmp_path: Path) -> None:
    _, done = recovered(tmp_path, LOGS | {EPOCHS: f"0\n1\n{line}\n".encode()}, clean=True)
    assert done.failure is not None
    assert done.failure.requirements == ("SEG-CKP-007",)
    assert not done.steps


# Names


@pytest.mark.req("SEG-PDR-007")
@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("-0000000000000000001", "-00000000000000000001"),
        ("-1", "-00000000000000000001"),
        ("-9223372036854775808", "-09223372036854775808"),
    ],
)
@pytest.mark.parametrize("recovery_point", [0, 3])
def test_a_log_below_offset_0_gets_an_empty_one_beside_it(
    name: str, opened: str, recovery_point: int, tmp_path: Path
) -> None:
    directory, done = recovered(tmp_path, LOGS, unusual={f"{name}.log": entry(7)}, recovery_point=recovery_point)
    assert done.failure is None
    assert done.plan.log_end_offset == 3
    found = content(directory)
    assert found[f"{name}.log"] == entry(7)
    assert [found[opened + ending] for ending in (".log", ".index", ".timeindex")] == [b"", b"", b""]
    recover_partition(directory, options=LIKE_BROKER)
    assert content(directory) == found


@pytest.mark.req("SEG-PDR-007")
def test_a_log_below_offset_0_by_the_name_that_a_broker_gives_it(tmp_path: Path) -> None:
    """It is scanned, as it has no index."""
    name = "-00000000000000000001"
    directory, _ = recovered(tmp_path, LOGS, unusual={f"{name}.log": entry(0) + entry(1)[:-3]})
    assert (directory / f"{name}.log").stat().st_size == ONE
    assert (directory / f"{name}.timeindex").read_bytes() == (1000).to_bytes(8, "big") + (1).to_bytes(4, "big")


@pytest.mark.req("SEG-PDR-005")
@pytest.mark.parametrize("name", ["5.5.log", "+5.log", "\u0665.log"])
def test_a_log_by_another_name_is_overlooked(name: str, tmp_path: Path) -> None:
    directory, done = recovered(tmp_path, LOGS, unusual={name: entry(5)})
    assert (directory / name).read_bytes() == entry(5)
    assert (directory / "00000000000000000005.log").read_bytes() == b""
    assert done.plan.log_end_offset == 5


@pytest.mark.req("SEG-PDR-005")
@pytest.mark.parametrize(
    "name",
    ["x.log", "x.timeindex", "x.snapshot", "x.swap", "x.log.cleaned", ".log", "5x.log", "9223372036854775808.log"],
)
def test_a_broker_does_not_start_without_a_number(name: str, tmp_path: Path) -> None:
    directory, done = recovered(tmp_path, LOGS, unusual={name: b""})
    assert done.failure is not None
    assert done.failure.location.path == str(directory / name)
    assert (directory / name).exists()


@pytest.mark.req("SEG-PDR-005")
@pytest.mark.parametrize("name", ["5.log.swap", "-1.log.swap", "5.index.swap"])
def test_a_replacement_by_another_name_is_left_alone(name: str, tmp_path: Path) -> None:
    """A broker creates an empty replacement beside it, and so loses a segment: that is not imitated."""
    directory, done = recovered(tmp_path, LOGS, unusual={name: b"a"})
    assert done.failure is not None
    assert done.failure.text.startswith("nothing is done: ")
    assert (directory / name).read_bytes() == b"a"
    assert log_sizes(directory) == {0: 2 * ONE, 2: ONE}


@pytest.mark.req("SEG-PDR-011")
@pytest.mark.parametrize("name", ["x.tmp", "00000000000000000002.index.tmp", "1.log.bak", "x", "x.checkpoint"])
def test_names_that_a_broker_does_not_look_at(name: str, tmp_path: Path) -> None:
    directory, done = recovered(tmp_path, LOGS, unusual={name: b"a"})
    assert done.failure is None
    assert (directory / name).read_bytes() == b"a"


@pytest.mark.req("SEG-PDR-008")
@pytest.mark.parametrize("name", ["-1.index", "-00000000000000000001.timeindex", "-1.log.cleaned"])
def test_files_below_offset_0_that_a_broker_removes(name: str, tmp_path: Path) -> None:
    directory, _ = recovered(tmp_path, LOGS, unusual={name: b"a"})
    assert not (directory / name).exists()
