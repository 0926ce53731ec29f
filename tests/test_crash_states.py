"""The model of power cuts: the exact states of small histories, and what the judge says of what a reader gets."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from helpers.walking import each_of
from seglog_conformance.crash.history import History, Marker, Naming, Resize, Sync, Write, read_history
from seglog_conformance.crash.profiles import Cut
from seglog_conformance.crash.promises import ONE_MORE, Seen, complaints
from seglog_conformance.crash.states import Disk
from seglog_conformance.crash.workload import ANSWERED, CALLED, Batch, Promise, Step, promised

from proofs.crash_states import WRITER, Journal

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_conformance.crash.history import Operation

CREATE = Naming(((0, "f", 1),))
CREATE_OTHER = Naming(((0, "g", 2),))
AB = (Resize(1, 2, by_write=True), Write(1, 0, b"ab"))
DICE = random.Random(1)  # noqa: S311 - not a secret
SYNC, SYNC_ROOT = Sync(1), Sync(0)
WHOLE = (CREATE, *AB, SYNC, SYNC_ROOT)


def states(*operations: Operation, profile: str = "posix") -> set[tuple[tuple[str, bytes | None], ...]]:
    """Return the contents of all states at the end of a history."""
    disk = Disk(History(operations), profile)
    found = disk.states(disk.cut(len(operations)), 1000, DICE)
    return {
        tuple((path, None if done is None else disk.content(done)[0]) for path, done in sorted(state.tree.items()))
        for state in found
    }


def test_nothing_synced_may_leave_the_name_or_not_and_the_bytes_or_zeros_or_no_length() -> None:
    assert states(CREATE, *AB) == {(), (("f", b""),), (("f", b"\0\0"),), (("f", b"ab"),)}


def test_xfs_never_shows_the_length_of_a_write_without_its_bytes_and_ext4_does() -> None:
    with_bytes = {(), (("f", b""),), (("f", b"ab"),)}
    assert states(CREATE, *AB, profile="xfs") == with_bytes
    assert states(CREATE, *AB, profile="ext4-ordered") == {*with_bytes, (("f", b"\0\0"),)}


def test_a_sync_of_the_file_keeps_its_bytes_and_not_its_name() -> None:
    assert states(CREATE, *AB, SYNC) == {(), (("f", b"ab"),)}


def test_on_ext4_a_sync_of_a_new_file_keeps_its_name_and_all_names_before_it() -> None:
    assert states(CREATE_OTHER, CREATE, *AB, SYNC, profile="ext4-ordered") == {(("f", b"ab"), ("g", b""))}


@each_of("profile", ["posix", "xfs", "ext4-ordered"])
def test_a_synced_file_in_a_synced_directory_has_one_state(profile: str) -> None:
    assert states(*WHOLE, profile=profile) == {(("f", b"ab"),)}


def test_names_come_in_any_order_under_posix_and_in_theirs_on_ext4() -> None:
    none, first, second, both = (), (("f", b""),), (("g", b""),), (("f", b""), ("g", b""))
    assert states(CREATE, CREATE_OTHER) == {none, first, second, both}
    assert states(CREATE, CREATE_OTHER, profile="ext4-ordered") == {none, first, both}


def test_a_file_in_a_lost_directory_is_lost_though_both_are_synced() -> None:
    inside = (Naming(((0, "d", 5),), directory=5), Naming(((5, "f", 1),)), *AB, SYNC, Sync(5))
    assert states(*inside) == {(), (("d", None), ("d/f", b"ab"))}


def test_a_rename_is_whole_or_not_and_its_new_file_may_have_zeros_and_is_not_empty_on_ext4() -> None:
    written = (CREATE_OTHER, Resize(2, 1, by_write=True), Write(2, 0, b"n"), SYNC_ROOT)
    rename = Naming(((0, "g", None), (0, "f", 2)), replaces=True)
    old = (("f", b"ab"), ("g", b"")), (("f", b"ab"), ("g", b"\0")), (("f", b"ab"), ("g", b"n"))
    new = (("f", b""),), (("f", b"\0"),), (("f", b"n"),)
    assert states(*WHOLE, *written, rename) == {*old, *new}
    assert states(*WHOLE, *written, rename, profile="ext4-ordered") == {*old, *new[1:]}
    assert states(*WHOLE, *written, rename, SYNC_ROOT, profile="ext4-ordered") == {*new[1:]}
    assert states(*WHOLE, *written, rename, profile="xfs") == {old[0], old[2], new[0], new[2]}


def test_a_data_sync_does_not_cover_a_shorter_length() -> None:
    assert states(*WHOLE, Resize(1, 1, shrinks=True), Sync(1, data_only=True)) == {(("f", b"ab"),), (("f", b"a"),)}
    assert states(*WHOLE, Resize(1, 1, shrinks=True), SYNC) == {(("f", b"a"),)}


CUT_INSIDE = Resize(1, 1, shrinks=True)


def test_on_ext4_a_truncation_inside_a_synced_block_brings_the_bytes_of_that_block() -> None:
    written = (*WHOLE, Write(1, 0, b"AB"), CUT_INSIDE)
    assert (("f", b"a"),) in states(*written)
    assert states(*written, profile="ext4-ordered") == {(("f", b"ab"),), (("f", b"AB"),), (("f", b"A"),)}


@each_of(
    "before",
    [
        (CREATE, SYNC_ROOT, *AB),
        (CREATE, Resize(1, 2), SYNC, SYNC_ROOT, Write(1, 0, b"ab", is_mapped=True)),  # an index: a hole until then
        (*WHOLE, Resize(1, 0, shrinks=True), SYNC, *AB),  # the block was freed
    ],
)
def test_on_ext4_a_truncation_inside_a_block_that_no_sync_covered_may_leave_zeros(
    before: tuple[Operation, ...],
) -> None:
    assert {(("f", b"\0"),), (("f", b"a"),)} < states(*before, CUT_INSIDE, profile="ext4-ordered")


def test_a_lost_truncation_lets_old_bytes_stand_behind_new_ones() -> None:
    found = states(*WHOLE, Resize(1, 0, shrinks=True), Resize(1, 1, by_write=True), Write(1, 0, b"N"))
    assert (("f", b"Nb"),) in found


def test_each_piece_of_a_write_is_kept_or_lost_for_itself() -> None:
    data = bytes([1]) * 512 + bytes([2]) * 512
    lines = [
        {"op": "create", "path": "/f", "node": 1, "changes": [[0, "f", 1]]},
        {"op": "resize", "path": "/f", "node": 1, "size": 1024},
        {"op": "sync", "path": "/f", "node": 1, "dataOnly": False},
        {"op": "sync", "path": "/", "node": 0, "dataOnly": False},
        {"op": "write", "path": "/f", "node": 1, "position": 0, "data": data.hex(), "isMapped": False},
    ]
    texts = [json.dumps({"time": 1, **line}) for line in lines]
    assert len(states(*read_history(texts, piece=512).operations)) == 4
    assert len(states(*read_history(texts, piece=4096).operations)) == 2


def test_a_mapped_page_may_be_on_the_disk_since_the_marker_before_it() -> None:
    page = Write(1, 0, b"AB", is_mapped=True)
    operations = (*WHOLE, Marker({}), SYNC_ROOT, page, Marker({}))
    disk = Disk(History(operations), "posix")
    assert [state.changes for state in disk.states(disk.cut(6), 9, DICE)] == [frozenset(), frozenset({7})]
    assert not disk.cut(5).early, "the marker after it says that it was not changed yet"


def test_a_history_with_many_candidates_is_sampled_within_the_limit_and_begins_with_the_control() -> None:
    operations = [Naming(((0, f"{number}", number + 1),)) for number in range(30)]
    disk = Disk(History(operations), "posix")
    found = list(disk.states(disk.cut(30), 50, DICE))
    assert not found[0].changes
    assert len({state.digest for state in found}) == len(found) == 50


def test_a_failure_is_shrunk_to_the_operations_that_matter() -> None:
    operations = [Naming(((0, f"{number}", number + 1),)) for number in range(30)]
    disk = Disk(History(operations), "posix")
    state = disk.state(disk.cut(30), frozenset(range(30)))
    assert disk.shrunk(state, lambda other: not {"3", "7"} & other.tree.keys()).changes == {3, 7}


def test_a_state_is_written_with_its_bytes_and_times(tmp_path: Path) -> None:
    history = History((Naming(((0, "d", 5),), directory=5), Naming(((5, "f", 1),)), *AB), times_ns=(1, 2, 3, 10**18))
    disk = Disk(history, "posix")
    disk.write(disk.state(Cut(history, 4)), tmp_path)
    assert (tmp_path / "d" / "f").read_bytes() == b"ab"
    assert (tmp_path / "d" / "f").stat().st_mtime_ns == 10**18


# What was promised


BATCHES = (
    Batch("", 2, ("00", "01"), start=0),
    Batch("", 1, ("02",), start=2, producer=1001, is_transactional=True),
    Batch("", 1, (), start=3, producer=1001, end_marker="abort", is_transactional=True),
    Batch("", 1, ("04",), start=4, producer=1002),
)
STEPS = (
    Step("append", BATCHES[:3]),
    Step("flush", is_flushed=True),
    Step("append", BATCHES[3:]),
    Step("truncate", offset=2),
)


def promise_after(*events: tuple[int, str]) -> Promise:
    return promised(STEPS, [{"step": step, "is": said} for step, said in events])


def test_what_is_called_may_be_there_and_what_a_flush_answers_must() -> None:
    called = [(0, CALLED), (0, ANSWERED), (1, CALLED)]
    assert promise_after(*called) == Promise(BATCHES[:3], 0, 0)
    assert promise_after(*called, (1, ANSWERED), (2, CALLED)) == Promise(BATCHES, 4, 0)


def test_a_truncation_takes_the_promise_back_when_it_begins_and_the_records_when_it_ends() -> None:
    flushed = [(0, CALLED), (1, ANSWERED), (2, CALLED)]
    assert promise_after(*flushed, (3, CALLED)) == Promise(BATCHES, 2, 0)
    assert promise_after(*flushed, (3, CALLED), (3, ANSWERED)) == Promise(BATCHES[:1], 2, 0)


# What the judge says


ALL = ((0, "00"), (1, "01"), (2, "02"), (4, "04"))
WELL = Seen(
    next_offset=5,
    uncommitted=ALL,
    committed=tuple(record for record in ALL if record[0] != 2),
    sent_again=((4, ""),),
    appended_at=5,
    aborted=((1001, 3),),
    second=(*ALL, (5, ONE_MORE)),
)
PROMISE = Promise(BATCHES, acknowledged=4, start=0)


def without(*offsets: int) -> Seen:
    left = tuple(record for record in ALL if record[0] not in offsets)
    return replace(WELL, uncommitted=left, second=(*left, (5, ONE_MORE)))


def test_a_log_with_everything_or_without_what_was_not_flushed_is_well() -> None:
    assert complaints(WELL, PROMISE) == {}
    less = replace(
        WELL,
        next_offset=4,
        uncommitted=ALL[:3],
        committed=ALL[:2],
        sent_again=(),
        appended_at=4,
        second=(*ALL[:3], (4, ONE_MORE)),
    )
    assert complaints(less, PROMISE) == {}


@each_of(
    ("kind", "seen"),
    [
        ("does not start", Seen(failure="open: damaged")),
        ("does not work", replace(WELL, failure="append: the disk is full")),
        ("loses what was flushed", without(1)),
        ("hole", without(4)),
        ("never written", replace(WELL, uncommitted=(*ALL[:3], (4, "ff")))),
        ("at another offset", replace(WELL, uncommitted=((0, "01"), *ALL[1:]))),
        ("twice", replace(WELL, uncommitted=((0, "00"), *ALL))),
        ("order", replace(WELL, uncommitted=tuple(reversed(ALL)))),
        ("clean end", replace(WELL, believed=("SEG-TIX-001",))),
        ("begins too late", replace(WELL, log_start=2)),
        ("ends inside a batch", replace(WELL, next_offset=1)),
        ("read_committed", replace(WELL, committed=ALL)),
        ("next offset", replace(WELL, appended_at=4)),
        ("duplicate", replace(WELL, sent_again=((4, "is appended at offset 5"),))),
        ("verify", replace(WELL, findings=("SEG-BAT-003",))),
        ("aborted", replace(WELL, aborted=((1001, 2),))),
        ("second start", replace(WELL, second=ALL)),
    ],
)
def test_each_kind_of_wrong_is_told(kind: str, seen: Seen) -> None:
    assert kind in complaints(seen, PROMISE)


def test_an_open_transaction_holds_readers_of_committed_records_back() -> None:
    is_open = Promise(BATCHES[:2])
    seen = replace(
        WELL, next_offset=3, uncommitted=ALL[:3], committed=ALL[:2], appended_at=3, second=(*ALL[:3], (3, ONE_MORE))
    )
    assert complaints(seen, is_open) == {}
    assert "read_committed" in complaints(replace(seen, committed=ALL[:3]), is_open)


def test_an_open_transaction_below_the_log_start_may_hold_readers_back_or_not() -> None:
    later = (BATCHES[1], replace(BATCHES[3], start=3))
    found = replace(WELL, log_start=3, next_offset=4, uncommitted=((3, "04"),), committed=(), sent_again=((3, ""),))
    found = replace(found, appended_at=4, second=((3, "04"), (4, ONE_MORE)))
    promise = Promise((BATCHES[0], *later), start=3)
    for committed in ((), ((3, "04"),)):
        assert complaints(replace(found, committed=committed), promise) == {}
    inside = replace(found, log_start=2, uncommitted=((2, "02"), (3, "04")), committed=((3, "04"),))
    assert "read_committed" in complaints(inside, promise)


# What the proof makes of its journal


def journal_of(path: Path, implementation: str, *kinds: str) -> Journal:
    """Return a journal, read again, with a history that shows something wrong and one that shows nothing."""
    for seed, found in ((1, kinds), (3, ())):
        failures = [{"kind": kind, "text": f"{kind}!", "lost": ["1 write"]} for kind in found]
        line = {
            "of": implementation,
            "seed": seed,
            "counts": {"states": 2},
            "failures": failures,
            "states": ["a", str(seed)],
        }
        Journal(path).add(line)
    return Journal(path)


def test_a_journal_counts_equal_states_of_an_implementation_once(tmp_path: Path) -> None:
    counts = journal_of(tmp_path / "journal", WRITER).counts(WRITER)
    assert (counts["distinctStates"], counts["histories"], counts["states"]) == (3, 2, 4)
    assert counts["statesByProfileAndPiece"] == {"posix 512": 2, "ext4-ordered 4096": 2}


def test_nothing_may_be_wrong_with_our_writer(tmp_path: Path) -> None:
    assert journal_of(tmp_path / "journal", WRITER, "hole").wrong(WRITER) == ["hole!"]


@each_of(
    ("release", "found", "wrong"),
    [
        ("4.3.0", {"closed": 9, "believed": 2}, []),
        ("4.3.0", {"closed": 9}, ["KAFKA-20979 is not found"]),
        ("4.4.0", {"closed": 9, "believed": 2}, ["KAFKA-20979 is found"]),
        ("4.4.0", {"closed": 9}, []),
        ("3.9.1", {"closed": 9, "believed": 2}, []),
        ("3.9.1", {"closed": 9}, []),
    ],
)
def test_the_known_answers_of_kafka_have_to_be_found(
    tmp_path: Path, release: str, found: dict[str, int], wrong: list[str]
) -> None:
    Journal(tmp_path / "journal").add({"known": release, "found": found})
    name = f"kafka-storage@{release}"
    assert journal_of(tmp_path / "journal", name, "hole").wrong(name) == wrong


def test_what_is_not_known_in_public_is_told_without_steps(tmp_path: Path) -> None:
    found = journal_of(tmp_path / "journal", "kafka-storage@4.3.0", "hole").findings("kafka-storage@4.3.0")
    assert [(one["kind"], one["disclosure"]) for one in found] == [("hole", "withheld")]
    assert found[0].keys() == {"implementation", "kind", "disclosure", "histories"}
    assert found[0]["histories"] == {"posix 512": {"with": 1, "of": 1}, "ext4-ordered 4096": {"with": 0, "of": 1}}


def test_histories_go_on_where_the_journal_of_each_implementation_ends(tmp_path: Path) -> None:
    found = journal_of(tmp_path / "journal", WRITER)
    assert next(found.seeds(WRITER, 1)) == 2
    assert next(found.seeds("kafka-storage@4.4.0", 1)) == 1
