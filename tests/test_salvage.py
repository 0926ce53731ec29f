"""Intact batches of damaged directories, copied into new ones."""

from __future__ import annotations

import json
import random
import re
import struct
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, patched, record
from helpers.made_partitions import EPOCHS, ONE, content, entry, log_sizes, make
from helpers.messages import message, wrapper
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import walk
from seglog_format.checks import verify
from seglog_format.cli.main import run
from seglog_format.log.entry_table import OffsetRange
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import open_partition
from seglog_format.recovery.salvage import salvage_partition
from seglog_format.recovery.salvage_scan import longest_increasing, salvage_scan
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.recovery.salvage_placement import SalvagedSegment

CRASHES = [name for name in authentic_names() if "/crash-" in name]


def salvage(source: Path, target: Path) -> list[SalvagedSegment]:
    before = content(source)
    found = list(salvage_partition(list_partition(source), target))
    assert content(source) == before, "nothing is written where the damage is"
    return found


def ranges(data: bytes, first: int = 0, last: int = 2**63 - 1) -> list[tuple[int, int, str]]:
    """Return what is not kept of a log: from, to, and the decisive requirement."""
    found = salvage_scan(memoryview(data), OffsetRange(first, last))
    return [(damage.start, damage.end, damage.requirements[0]) for damage in found.damaged]


FLIPPED = patched(entry(1), 70, "b", 77, seal=False)


def test_a_log_without_damage() -> None:
    assert ranges(entry(0) + entry(1) + message(2) + message(3, magic=1)) == []


@pytest.mark.parametrize(
    ("middle", "requirement"),
    [
        (FLIPPED, "SEG-BAT-003"),
        (patched(entry(1), 8, "i", 3, seal=False), "SEG-LOG-003"),
        (patched(entry(1), 8, "i", 10**6, seal=False), "SEG-LOG-004"),
        (patched(entry(1), 8, "i", 30, seal=False), "SEG-BAT-002"),
        (patched(entry(1), 16, "b", 7, seal=False), "SEG-BAT-004"),
        (bytes(5000), "SEG-LOG-003"),
        (b"\xff" * 999, "SEG-LOG-003"),
        (entry(1)[:-9], "SEG-BAT-003"),
        (entry(1)[9:], "SEG-LOG-004"),
        (message(1, crc=5), "SEG-MSG-004"),
        (entry(0), "SEG-LOG-006"),
    ],
)
def test_what_follows_damage_is_kept(middle: bytes, requirement: str) -> None:
    """Only the damaged bytes are lost, whether their size field tells the truth or not."""
    rest = entry(2) + entry(3)
    assert ranges(entry(0) + middle + rest) == [(ONE, ONE + len(middle), requirement)]


def test_two_damaged_entries_in_a_row() -> None:
    assert ranges(entry(0) + FLIPPED + FLIPPED + entry(2)) == [(ONE, ONE * 3, "SEG-BAT-003")]


@pytest.mark.parametrize(
    ("tail", "requirement"),
    [
        (b"x" * 17, "SEG-LOG-002"),
        (bytes(3), "SEG-LOG-005"),
        (bytes(10**5), "SEG-LOG-005"),
        (entry(1)[:-1], "SEG-LOG-004"),
    ],
)
def test_tails(tail: bytes, requirement: str) -> None:
    assert ranges(entry(0) + tail) == [(ONE, ONE + len(tail), requirement)]


def test_offsets_that_cannot_be_true() -> None:
    data = entry(10) + entry(3) + entry(12) + entry(40) + entry(14)
    assert ranges(data, 10, 39) == [(ONE, 2 * ONE, "SEG-LOG-008"), (3 * ONE, 4 * ONE, "SEG-PDR-013")]


def test_one_wrong_offset_costs_one_entry() -> None:
    """Offsets are under no checksum: a bit that leaps far ahead does not cost what follows."""
    data = entry(0) + entry(1 + 2**20) + b"".join(entry(offset) for offset in range(2, 9))
    assert ranges(data) == [(ONE, 2 * ONE, "SEG-LOG-006")]


def test_what_looks_like_an_entry_inside_a_record() -> None:
    """It is left alone as long as the size fields around it can be believed, and told where they cannot."""
    hidden = batch(record(value=entry(5) + entry(6)), base_offset=1)
    assert ranges(entry(0) + hidden + entry(9)) == []
    broken = patched(hidden, 8, "i", 5, seal=False)
    found = salvage_scan(memoryview(entry(0) + broken + entry(9)), OffsetRange(0))
    assert list(found.last_offsets) == [0, 5, 6, 9]
    assert all(damage.is_searched for damage in found.damaged)
    # Of another partition, whose offsets do not fit here:
    found = salvage_scan(memoryview(entry(0) + broken + entry(9)), OffsetRange(0, 4))
    assert list(found.last_offsets) == [0]


def test_a_search_ends() -> None:
    """Every position of this looks like an entry of half the file at first sight."""
    data = struct.pack(">qi", 0, 2**20) * (2**18)
    found = salvage_scan(memoryview(data), OffsetRange(0))
    assert not found.starts


def test_zeros_are_passed_quickly() -> None:
    assert ranges(entry(0) + bytes(1 << 24) + entry(1)) == [(ONE, ONE + (1 << 24), "SEG-LOG-003")]


@given(st.lists(st.integers(0, 30), max_size=12))
def test_the_longest_increasing_choice(values: list[int]) -> None:
    from array import array
    from itertools import combinations

    chosen = longest_increasing(array("q", values))
    picked = [values[which] for which in chosen]
    assert picked == sorted(set(picked))
    assert chosen == sorted(chosen)
    longer = combinations(values, len(chosen) + 1)
    assert not any(list(one) == sorted(set(one)) for one in longer)


@given(st.binary(max_size=200), st.integers(0, 250), st.booleans())
def test_no_bytes_stop_it(junk: bytes, position: int, inserted: bool) -> None:  # noqa: FBT001 - drawn
    whole = entry(0) + entry(1) + message(2)
    data = whole[:position] + junk + whole[position if inserted else position + len(junk) :]
    found = salvage_scan(memoryview(data), OffsetRange(0))
    pieces = sorted([*zip(found.starts, found.ends, strict=True), *((d.start, d.end) for d in found.damaged)])
    assert [start for start, _ in pieces] == [0, *(end for _, end in pieces)][: len(pieces)]
    assert not data or pieces[-1][1] == len(data)


@each_of("name", CRASHES)
def test_directories_that_brokers_left(name: str, tmp_path: Path) -> None:
    (source,) = (authentic(name) / "before").glob("crash-*-0")
    target = tmp_path / "rescued" / "orders-0"
    found = salvage(source, target)
    assert [error for error in verify(target) if error.severity is Severity.ERROR] == []
    for segment in found:
        assert segment.kept_size + sum(damage.end - damage.start for damage in segment.damaged) == segment.size
        old, new = segment.log.read_bytes(), (target / segment.log.name).read_bytes()
        cuts = [0, *(edge for damage in segment.damaged for edge in (damage.start, damage.end)), len(old)]
        assert new == b"".join(old[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True))
    if not any(segment.damaged for segment in found):
        assert name.endswith(("kill", "txn", "noindex"))


def test_records_behind_damage_are_readable(tmp_path: Path) -> None:
    files = {"0.log": entry(0, epoch=1) + FLIPPED + entry(2, epoch=4) + b"x", "3.log": bytes(40), "9.log": b""}
    source = make(tmp_path, {**files, EPOCHS: b"junk", "partition.metadata": METADATA})
    target = tmp_path / "rescued-0"
    found = salvage(source, target)
    assert [segment.names for segment in found] == [("0".zfill(20) + ".log",), (), ("9".zfill(20) + ".log",)]
    assert log_sizes(target) == {0: 2 * ONE, 9: 0}
    assert (target / EPOCHS).read_bytes() == b"0\n2\n1 0\n4 2\n"
    assert (target / "partition.metadata").read_bytes() == METADATA
    with open_partition(target) as log:
        assert [item.offset for item in log.records()] == [0, 2]
        assert log.log_end_offset == 9
    assert [error for error in verify(target) if error.severity is Severity.ERROR] == []


def missing(files: dict[str, bytes], tmp_path: Path) -> list[list[tuple[int, int]]]:
    return [[(*lost,) for lost in each.missing] for each in salvage(make(tmp_path, files), tmp_path / "rescued-0")]


def test_offsets_that_are_lost_are_named(tmp_path: Path) -> None:
    wide = patched(entry(1, 5), 70, "b", 77, seal=False)
    files = {"0.log": entry(0) + wide + entry(6), "7.log": wide[:-9], "9.log": entry(9) + FLIPPED}
    assert missing(files, tmp_path) == [[(1, 6)], [(7, 9)], []]


def test_ranges_in_a_row_share_their_offsets(tmp_path: Path) -> None:
    again = patched(entry(2), 70, "b", 77, seal=False)
    source = make(tmp_path, {"0.log": entry(0) + FLIPPED + again + entry(3), "4.log": b""})
    (first, _) = salvage(source, tmp_path / "rescued-0")
    assert [damage.missing for damage in first.damaged] == [(1, 3)] * len(first.damaged)
    assert first.missing == ((1, 3),)


def test_offsets_behind_damage_of_messages(tmp_path: Path) -> None:
    damaged = message(1, magic=1, crc=5)
    later = wrapper(message(0, magic=1), message(1, magic=1), offset=5, magic=1)
    assert missing({"0.log": message(0, magic=1) + damaged + later}, tmp_path) == [[(1, 4)]]


def test_stray_bytes_hide_no_offsets(tmp_path: Path) -> None:
    assert missing({"0.log": entry(0) + b"x", "1.log": entry(1)}, tmp_path) == [[], []]


def test_command_names_lost_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make(tmp_path, {"0.log": entry(0) + patched(entry(1, 5), 70, "b", 77, seal=False) + entry(6)})
    assert run(["salvage", str(source), "-o", str(tmp_path / "one")]) == 1
    assert ", offsets 1 to 5: a wrong checksum [SEG-BAT-003]" in capsys.readouterr().out
    assert run(["salvage", "--json", str(source), "-o", str(tmp_path / "other")]) == 1
    assert json.loads(capsys.readouterr().out)["missing"] == [{"firstOffset": 1, "nextOffset": 6, "offsetCount": 5}]


METADATA = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_metadata_that_cannot_be_read_is_not_copied(tmp_path: Path) -> None:
    source = make(tmp_path, {"0.log": entry(0), "partition.metadata": b"junk"})
    salvage(source, tmp_path / "rescued-0")
    assert not (tmp_path / "rescued-0" / "partition.metadata").exists()


def test_offsets_too_far_for_one_segment(tmp_path: Path) -> None:
    source = make(tmp_path, {"0.log": entry(5) + FLIPPED + entry(2**31 + 9) + entry(2**31 + 10)})
    salvage(source, tmp_path / "rescued-0")
    assert log_sizes(tmp_path / "rescued-0") == {0: ONE, 2**31 + 9: 2 * ONE}


def test_an_entry_too_wide_for_any_segment_gets_its_own(tmp_path: Path) -> None:
    wide = wrapper(message(0, magic=1), message(2**32, magic=1), offset=5 + 2**32, magic=1)
    source = make(tmp_path, {"0.log": entry(5) + wide + entry(2**33)})
    salvage(source, tmp_path / "rescued-0")
    assert log_sizes(tmp_path / "rescued-0") == {0: ONE, 6: len(wide), 2**33: ONE}


def test_aborted_transactions_are_listed(tmp_path: Path) -> None:
    data = batch(record(), base_offset=0, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0)
    end = batch(record(key=bytes(4), value=bytes(6)), base_offset=5, attributes=0x30, producer_id=7, producer_epoch=0)
    source = make(tmp_path, {"0.log": data + FLIPPED + end})
    salvage(source, tmp_path / "rescued-0")
    index = (tmp_path / "rescued-0" / ("0".zfill(20) + ".txnindex")).read_bytes()
    assert struct.unpack(">hqqqq", index) == (0, 7, 0, 5, 6)


def test_many_kinds_of_damage_at_once() -> None:
    """Whole batches that were not touched are all there, in whatever else was done to the file."""
    source = random.Random(7)  # noqa: S311 - the same damage every time
    for seed in range(40):
        entries = [entry(base, 2) for base in range(0, 60, 2)]
        hit = sorted(source.sample(range(30), 5))
        damaged = [source.choice(KINDS)(data, source) if number in hit else data for number, data in enumerate(entries)]
        data = b"".join(damaged)
        found = salvage_scan(memoryview(data), OffsetRange(0))
        kept = set(found.last_offsets)
        assert {2 * number + 1 for number in range(30) if number not in hit} <= kept, seed


def flip(data: bytes, source: random.Random) -> bytes:
    position = source.randrange(21, len(data))
    return data[:position] + bytes([data[position] ^ 1 << source.randrange(8)]) + data[position + 1 :]


def cut(data: bytes, source: random.Random) -> bytes:
    return data[: source.randrange(len(data))]


def blank(data: bytes, source: random.Random) -> bytes:
    start = source.randrange(len(data))
    return data[:start] + bytes(len(data) - start)


def wrong_size(data: bytes, source: random.Random) -> bytes:
    return patched(data, 8, "i", source.randrange(-(2**31), 2**31), seal=False)


KINDS = (flip, cut, blank, wrong_size)


WHOLE = [name for name in authentic_names() if name.startswith(("0.10.2.2/", "4.3.0/")) and "crash" not in name]


@each_of("name", WHOLE, share=3)
@pytest.mark.parametrize("keeps_keys", [False, True])
def test_a_redacted_copy_has_everything_else(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, keeps_keys: bool
) -> None:
    for number, source in enumerate(sorted(each.parent for each in authentic(name).rglob(f"{0:020}.log"))):
        with open_partition(source) as partition:
            before = list(partition.records())
        if len(before) < 2 or source.name.startswith("__"):
            continue
        one, other = before[1], before[-1]
        target = tmp_path / str(number) / source.name
        words = [
            "--redact",
            str(one.offset),
            *(["--redact-key", other.key.decode(errors="surrogateescape")] if other.key else []),
        ]
        run(["salvage", str(source), "-o", str(target), *words, *(["--null"] if keeps_keys else [])])
        gone = {each.offset for each in before if each is one or (other.key and each.key == other.key)}
        out = capsys.readouterr().out
        assert f"redacted {len(gone)} record" in out
        assert ("timestamp and key" in out) == keeps_keys
        with open_partition(source) as old, open_partition(target) as new:
            after = {each.offset: each for each in new.records()}
            assert new.log_end_offset == old.log_end_offset
        for each in before:
            found = after.get(each.offset)
            assert (found is None) == (each.offset in gone and not keeps_keys)
            if found is not None:
                same = (each.key, each.timestamp_ms, None if each.offset in gone else each.value)
                assert (found.key, found.timestamp_ms, found.value) == same
                assert found.headers == (() if each.offset in gone else each.headers)
        assert not [each for each in verify(target) if each.severity is Severity.ERROR]


def test_a_redacted_batch_keeps_its_delete_horizon(tmp_path: Path) -> None:
    section = record(key=b"a") + record(offset_delta=1, key=b"b", value=None)
    path = make(tmp_path, {"0.log": batch(section, 2, attributes=0x40, base_timestamp_ms=99)})
    assert run(["salvage", str(path), "-o", str(tmp_path / "new"), "--redact-key", "a"]) == 0
    (frame,) = walk((tmp_path / "new" / f"{0:020}.log").read_bytes())
    assert frame.header.delete_horizon_ms == 99


def test_what_was_not_found_is_not_called_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5)})
    assert run(["salvage", str(path), "-o", str(tmp_path / "new"), "--redact", "9"]) == 1
    assert f"redacted 0 records in {tmp_path / 'new'}\n" in capsys.readouterr().out
    for number in (1, 2):
        (path.parent / f"orders-{number}").mkdir()
        (path.parent / f"orders-{number}" / f"{0:020}.log").write_bytes(batch(record(key=b"k")))
    for status, *keys in ((0, "k"), (1, "k", "other"), (1, "other")):
        words = [part for key in keys for part in ("--redact-key", key)]
        assert run(["salvage", str(path.parent), "-o", str(tmp_path / "-".join(keys)), *words]) == status
        count = int("k" in keys)
        assert re.findall(r"redacted (\d)", capsys.readouterr().out) == ["0", str(count), str(count)]
    assert run(["salvage", f"{path}", "-o", str(tmp_path / "both"), "--redact", "1", "--redact-key", "other"]) == 1
    assert run(["salvage", str(path.parent), "-o", str(tmp_path / "all"), "--redact", "1"]) == 2
    assert run(["salvage", str(path), "-o", str(tmp_path / "all"), "--null"]) == 2
    undecodable = batch(b"\x00" * 3, base_offset=5)
    (path / f"{0:020}.log").write_bytes(entry(0, 5) + undecodable)
    assert run(["salvage", str(path), "-o", str(tmp_path / "unread"), "--redact", "1"]) == 3
    assert not list((tmp_path / "unread").glob("*.log"))


# -- ranges of offsets and of times ------------------------------------------------------------------------------------


def timed(count: int, start: int = 0) -> bytes:
    """Return batches of ten records each, a second apart."""
    return b"".join(entry(10 * n, 10, time=1000 * n) for n in range(start, start + count))


RANGED = {"0.log": timed(20), "200.log": timed(20, 20), "400.log": timed(20, 40)}

RANGES = {
    "from and to": (["--from", "95", "--to", "115"], range(9, 12)),
    "in another segment": (["--from", "250", "--to", "251"], range(25, 26)),
    "over a border": (["--from", "190", "--to", "210"], range(19, 21)),
    "from": (["--from", "585"], range(58, 60)),
    "to": (["--to", "11"], range(2)),
    "since": (["--since", "58000"], range(58, 60)),
    "since between two": (["--since", "57001"], range(58, 60)),
    "until": (["--until", "2000"], range(2)),
    "since and until": (["--since", "25000", "--until", "26001"], range(25, 27)),
    "both kinds": (["--from", "240", "--to", "300", "--since", "28000"], range(28, 30)),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("misnamed", [False, True], ids=["by name", "by content"])
def test_a_range_is_copied_whole_batch_by_whole_batch(
    name: str,
    misnamed: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, batches = RANGES[name]
    files = {"7.log" if misnamed and at == "0.log" else at: data for at, data in RANGED.items()}
    source, target = make(tmp_path, files), tmp_path / "copy"
    assert run(["salvage", str(source), "-o", str(target), *words]) == 0
    copied = b"".join(path.read_bytes() for path in sorted(target.glob("*.log")))
    wanted = b"".join(entry(10 * n, 10, time=1000 * n) for n in batches)
    assert copied == wanted
    assert "only batches of this range" in capsys.readouterr().err
    with open_partition(target) as partition:
        assert misnamed or partition.log_start_offset == 10 * batches[0]
        assert {each.offset // 10 for each in partition.records()} == {*batches}


def test_damage_in_a_range_is_said_and_damage_outside_is_not_read(tmp_path: Path) -> None:
    data = timed(60)
    size = len(data) // 60
    source = make(tmp_path, {"0.log": data})
    log = source / "00000000000000000000.log"
    log.write_bytes(patched_at(data, 30 * size + 70))
    assert run(["salvage", str(source), "-o", str(tmp_path / "in"), "--from", "290", "--to", "320"]) == 1
    assert sum(log_sizes(tmp_path / "in").values()) == 2 * size
    for words in (["--from", "330"], ["--to", "290"], ["--since", "33000"]):
        target = tmp_path / "-".join(words)
        assert run(["salvage", str(source), "-o", str(target), *words]) == 0, words
        assert sum(log_sizes(target).values()) in {27 * size, 29 * size}, words


def patched_at(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("fields", "is_copied"),
    [
        ({"base_timestamp_ms": 1999, "max_timestamp_ms": 9000}, True),
        ({"base_timestamp_ms": 1999, "max_timestamp_ms": 9000, "attributes": 8}, False),  # LogAppendTime
        ({"base_timestamp_ms": 2000, "max_timestamp_ms": 1999}, False),
        ({"base_timestamp_ms": 9000, "max_timestamp_ms": 1999, "attributes": 0x40}, True),  # a delete horizon
    ],
)
def test_until_asks_for_the_first_record_of_a_batch(
    fields: dict[str, int],
    is_copied: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    last = batch(record(value=b"last"), base_offset=10, **fields)
    source = make(tmp_path, {"0.log": entry(0, 10) + last})
    assert run(["salvage", str(source), "-o", str(tmp_path / "new"), "--until", "2000"]) == 0
    assert next((tmp_path / "new").glob("*.log")).read_bytes() == entry(0, 10) + last * is_copied


def test_one_damaged_offset_does_not_end_a_range(tmp_path: Path) -> None:
    parts = [entry(10 * n, 10) for n in range(30)]
    parts[12] = entry(10**9, 10)  # no checksum covers an offset
    source, target = make(tmp_path, {"0.log": b"".join(parts)}), tmp_path / "copy"
    assert run(["salvage", str(source), "-o", str(target), "--to", "150"]) in {0, 1}
    assert next(target.glob("*.log")).read_bytes() == b"".join(parts[:12] + parts[13:15])


def test_a_range_without_batches_and_one_of_several_replicas(tmp_path: Path) -> None:
    source = make(tmp_path, RANGED)
    assert run(["salvage", str(source), "-o", str(tmp_path / "none"), "--from", "5000"]) == 1
    assert not list((tmp_path / "none").glob("*.log"))
    words = ["salvage", str(source), "-o", str(tmp_path / "new"), "--from", "5"]
    assert run([*words, str(make(tmp_path / "other", RANGED))]) == 2
    assert run([*words, "--to", "5"]) == 2
    assert not (tmp_path / "new").exists()
