"""Findings are the same whether the columnar engine passes over what is regular or the reference looks at everything.

Wherever they differ, a rule has been forgotten that the kernels do not know: so every byte of small logs is changed.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.batches import batch, patched, record
from helpers.damage import Case, damaged_cases
from helpers.messages import message, wrapper
from helpers.support import authentic, authentic_names, states, vectors
from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile_scan import FULL, INPUTS, changes, with_right_checksum

from proofs.fuzz.random_logs import random_log
from seglog_format.checks import verify, verify_log
from seglog_format.checks.log_file import LogVerification
from seglog_format.columnar import prefilter
from seglog_format.engine import Engine
from seglog_format.log.index_file import build_indexes, encode_offset_index, encode_time_index
from seglog_format.recovery.entry_walk import indexed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.checks.finding import Finding

LIMIT = 2**28
MARKER = {"attributes": 0x30, "producer_id": 7, "producer_epoch": 0}
ABORT, COMMIT = bytes(4), bytes([0, 0, 0, 1])
REGULAR = {
    "one": batch(record()),
    "two": batch(
        record(0, 0, b"k", b"v") + record(5, 1, None, None, ((b"a", b"b"), (b"c", None))), 2, max_timestamp_ms=1005
    ),
    "append-time": batch(record(3) + record(9, 1), 2, attributes=8, max_timestamp_ms=77),
    "producer": batch(record() + record(0, 1), 2, producer_id=7, producer_epoch=0, base_sequence=0),
    "transactional": batch(record(), attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=3),
    "abort": batch(record(key=ABORT, value=bytes(6)), **MARKER),
    "commit": batch(record(key=COMMIT, value=bytes(6)), **MARKER),
    "long": batch(record(value=b"x" * 9000) + record(1 << 33, 1), 2, max_timestamp_ms=1000 + (1 << 33)),
    "wraps": batch(record(-1001) + record(1, 1), 2, base_timestamp_ms=-(2**63), max_timestamp_ms=2**63 - 1001),
    "backwards": batch(record(-5) + record(-7, 1), 2, max_timestamp_ms=995),
    "message-0": message(0, b"k", b"v"),
    "message-1": message(0, b"k", b"v", magic=1, timestamp_ms=5),
    "wrapper-0": wrapper(message(0), message(1), offset=1),
    "wrapper-1": wrapper(
        *(message(number, magic=1, timestamp_ms=9) for number in range(3)), offset=2, magic=1, timestamp_ms=9
    ),
}
"""Nothing is to be said about these."""
UNCOVERED = {
    "compacted": batch(record() + record(0, 4), 2, last_offset_delta=6),
    "emptied": batch(b"", 0, last_offset_delta=2),
    "emptied-control": batch(b"", 0, last_offset_delta=0, **MARKER),
    "kraft": batch(record(key=bytes([0, 0, 0, 5]), value=bytes(3)), attributes=0x20),
    "no-marker": batch(record(key=b"key"), attributes=0x20),
    "not-ascii": batch(record(headers=(("ä".encode(), b"1"), (b"\xff", b"2")))),
    "long-varint": batch(b"\x8c\x00" + record()[1:]),
    "unknown-bits": batch(record(), attributes=0x80),
    "leader-epoch": batch(record(), partition_leader_epoch=-2),
    "epoch-without-producer": batch(record(), producer_epoch=3),
    "transaction-of-nobody": batch(record(), attributes=0x10),
    "no-sequence": batch(record(), producer_id=7, producer_epoch=0),
    "deltas-go-back": batch(record(0, 1) + record(0, 0), 2),
    "wrapper-key": wrapper(message(0), offset=0, key=b"k"),
    "wrapper-time": wrapper(message(0, magic=1, timestamp_ms=5), offset=0, magic=1, timestamp_ms=9),
    "wrapper-offset": wrapper(message(0), message(1), offset=5),
}


def assert_same_findings(data: bytes, base_offset: int = 0) -> list[Finding]:
    expected = list(verify_log(data, base_offset=base_offset, engine=Engine.REFERENCE))
    assert list(verify_log(data, base_offset=base_offset, engine=Engine.COLUMNAR)) == expected, data.hex()
    return expected


def looked_at(data: bytes, base_offset: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that were not passed over."""
    positions: list[int] = []
    checked = LogVerification._frame

    def noted(self: LogVerification, frame: Any) -> Iterator[Finding]:
        positions.append(frame.position)
        return checked(self, frame)

    monkeypatch.setattr(LogVerification, "_frame", noted)
    list(verify_log(data, base_offset=base_offset, engine=Engine.COLUMNAR))
    return positions


@each_of("name", REGULAR)
def test_what_is_regular_is_passed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(REGULAR[name], 0, monkeypatch) == []
    assert assert_same_findings(REGULAR[name]) == []


@pytest.mark.parametrize("name", [name for name in INPUTS if "gzip" not in name])
def test_every_codec_is_passed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(INPUTS[name], 0, monkeypatch) == []


@each_of("name", UNCOVERED)
def test_an_uncovered_entry_is_reported(name: str) -> None:
    assert assert_same_findings(UNCOVERED[name] + patched(REGULAR["one"], 0, "q", 100, seal=False))


def test_headers_are_looked_at_without_their_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        looked_at(UNCOVERED["compacted"] + patched(UNCOVERED["emptied"], 0, "q", 9, seal=False), 0, monkeypatch) == []
    )


UNUSUAL = {"null-of-another-number": batch(record()[:4] + b"\x03" + record()[5:])}
"""Not passed over, and nothing is to be said about it."""
SMALL = {**{name: data for name, data in (REGULAR | UNCOVERED | UNUSUAL).items() if len(data) < 1000}, **INPUTS}


@each_of("name", SMALL)
def test_every_change_has_the_same_findings(name: str) -> None:
    before, after = REGULAR["two"], patched(REGULAR["producer"], 0, "q", 50, seal=False)
    entry = with_right_checksum(patched(SMALL[name], 0, "q", 4, seal=False)) if SMALL[name][16] == 2 else SMALL[name]
    every = 1 if FULL else 4
    for number, changed in enumerate(changes(entry)):
        if number % every == 0:
            assert_same_findings((before + changed + after) if number % 3 else changed)


@pytest.mark.parametrize("base_offset", [1, 2**31, 2**63 - 1])
def test_offsets_are_held_against_the_segment(base_offset: int) -> None:
    for name, data in SMALL.items():
        assert assert_same_findings(data, base_offset) or base_offset == 1, name


@pytest.mark.parametrize(
    "offsets", [(0, 0), (5, 3), (0, 1), (5, 5, 4, 9), (2**31 - 2,), (2**31 - 1, 2**31), (0, 2**62)]
)
def test_offsets_are_held_against_each_other(offsets: tuple[int, ...]) -> None:
    for name in ("one", "two", "wrapper-1", "message-0", "compacted"):
        data = SMALL[name]
        assert_same_findings(b"".join(patched(data, 0, "q", offset, seal=False) for offset in offsets))


def test_vectors_have_the_same_findings() -> None:
    for name, data in vectors().items():
        for tail in (b"", bytes(40), b"tail", data[:-1], data):
            assert_same_findings(data + tail), name


def test_parts_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "ROWS", 3)
    monkeypatch.setattr(prefilter, "ARENA_SIZE", 100)
    for seed in range(40):
        log = random_log(seed)
        assert_same_findings(log.data, log.base_offset)


def test_decompression_has_the_same_limit() -> None:
    for name, data in INPUTS.items():
        for limit in (0, 1, 50, 100, 200):
            expected = list(verify_log(data, limit=limit, engine=Engine.REFERENCE))
            assert list(verify_log(data, limit=limit, engine=Engine.COLUMNAR)) == expected, name


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3))
def test_logs_by_chance_have_the_same_findings(seed: int, flips: list[tuple[int, int]]) -> None:
    log = random_log(seed)
    data = bytearray(log.data)
    for flipped_byte, value in flips:
        data[flipped_byte % len(data)] = value
    assert_same_findings(bytes(data), log.base_offset)


@each_of("name", authentic_names())
def test_authentic_directories_have_the_same_findings(name: str) -> None:
    for state in states(authentic(name)):
        assert list(verify(state, engine=Engine.COLUMNAR)) == list(verify(state, engine=Engine.REFERENCE))


@each_of("case", damaged_cases(), ids=lambda case: case.name)
def test_damaged_cases_have_the_same_findings(case: Case, tmp_path: Path) -> None:
    path = case.build(tmp_path)
    if case.content.get("reader") != "directory-name":
        assert list(verify(path, engine=Engine.COLUMNAR)) == list(verify(path, engine=Engine.REFERENCE))


# Indexes


def indexed(directory: Path, seed: int) -> Path:
    """Return a partition directory of two segments, with indexes as recovery builds them."""
    log = random_log(seed)
    entries = log.entries[:15]
    cut = sum(map(len, entries))
    following = log.base_offset + 2**24
    directory.mkdir()
    for base, data in ((log.base_offset, log.data[:cut]), (following, INPUTS["batch-none"])):
        built = build_indexes(indexed_rows(memoryview(data)), interval_bytes=min(log.interval_bytes, 200))
        (directory / f"{base:020d}.log").write_bytes(data)
        (directory / f"{base:020d}.index").write_bytes(encode_offset_index(built.offset_entries, base))
        (directory / f"{base:020d}.timeindex").write_bytes(encode_time_index(built.time_entries, base))
    return directory


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])
def test_every_change_of_an_index_has_the_same_findings(kind: str, seed: int, tmp_path: Path) -> None:
    directory = indexed(tmp_path / "topic-0", seed)
    index = min(directory.glob(f"*.{kind}"))
    right = index.read_bytes()
    for changed in islice(changed_indexes(right), None if FULL else 90):
        index.write_bytes(changed)
        assert list(verify(directory, engine=Engine.COLUMNAR)) == list(verify(directory, engine=Engine.REFERENCE)), (
            changed.hex()
        )


def changed_indexes(right: bytes) -> Iterator[bytes]:
    yield from (
        right,
        b"",
        right[:-1],
        right + bytes(12),
        right + bytes(8),
        right * 2,
        right[8:],
        right[12:],
        bytes(24),
    )
    for flipped_byte in range(len(right)):
        for value in (right[flipped_byte] ^ 1, right[flipped_byte] ^ 0x80, 0xFF):
            yield right[:flipped_byte] + bytes([value]) + right[flipped_byte + 1 :]


def test_indexes_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglog_format.checks import partition

    subjects: list[object] = []
    monkeypatch.setattr(partition, "OffsetIndexSubject", lambda *fields: subjects.append(fields))
    monkeypatch.setattr(partition, "TimeIndexSubject", lambda *fields: subjects.append(fields))
    directory = tmp_path / "topic-0"
    directory.mkdir()
    data = b"".join(patched(REGULAR["two"], 0, "q", 2 * number, seal=False) for number in range(100))
    built = build_indexes(indexed_rows(memoryview(data)), interval_bytes=200)
    stem = directory / f"{0:020d}"
    stem.with_suffix(".log").write_bytes(data)
    stem.with_suffix(".index").write_bytes(encode_offset_index(built.offset_entries, 0))
    stem.with_suffix(".timeindex").write_bytes(encode_time_index(built.time_entries, 0))
    assert list(verify(directory, engine=Engine.COLUMNAR)) == []
    assert subjects == []
