"""Hostile bytes, names and text: an answer, a finding or a `FormatError`, within two seconds and 64 MiB.

`proofs/fuzz/hostile.py` changes small inputs everywhere; its full run is in `reports/hostile.json`. Here it runs on a
seeded twentieth, and what it watches for is tried on readers that do fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, REPOSITORY, bundled, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.checks import verify_log
from seglog_format.codec.checkpoints import (
    decode_clean_shutdown,
    decode_leader_epoch_checkpoint,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
    decode_quorum_state,
)
from seglog_format.codec.decode import checksum_is_valid, decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location
from seglog_format.log.listing import resolve
from seglog_format.names import parse_file_name, parse_partition_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

from proofs.fuzz import hostile, hostile_readers

INPUTS = hostile_readers.inputs()
SEED = 11


# The inputs


def rows() -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads((FIXTURES / "hostile" / "inputs.json").read_text(encoding="utf-8"))
    return content


@each_of("row", [row for row in rows() if "parts" in row], ids=lambda row: row["name"])
def test_inputs_are_slices_of_what_brokers_wrote(row: dict[str, Any]) -> None:
    parts = [
        (bundled(part["case"]) / part["file"]).read_bytes()[part["position"] :][: part["size"]] for part in row["parts"]
    ]
    assert b"".join(parts).hex() == row["hex"]


def test_inputs_are_many_small_and_of_every_kind() -> None:
    small = [one for one in INPUTS.values() if 300 <= len(one.data) <= 1000]
    assert len(small) >= 20
    assert all(len(one.data) <= 1000 for one in INPUTS.values())
    assert {one.kind for one in INPUTS.values()} == {*hostile_readers.FILE_NAMES, *hostile_readers.NAMES}
    names = " ".join(INPUTS)
    assert all(f"magic{magic}-{codec}" in names for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4"))
    assert all(f"magic2-{codec}" in names for codec in ("none", "gzip", "snappy", "lz4", "zstd"))


@each_of("name", [name for name, one in INPUTS.items() if one.kind in {"log", "metadata-snapshot"}])
def test_unchanged_logs_are_sound(name: str) -> None:
    data = INPUTS[name].data
    frames = list(walk(data))
    assert frames[-1].end == len(data)
    assert all(decode_frame(frame, at=Location()) for frame in frames)


# Changed inputs


@each_of("name", INPUTS)
def test_a_twentieth_of_all_changes(name: str) -> None:
    result = hostile.watched(name, 0.05, SEED)
    assert result.failures == []
    assert result.changes
    assert sum(result.outcomes.values()) == result.changes
    assert result.growth <= hostile.MAX_GROWTH


def test_changes_cut_flip_and_set_every_byte() -> None:
    found = dict(hostile.changes(b"\x01\x80"))
    assert [data for name, data in found.items() if name.startswith("cut")] == [b"", b"\x01"]
    first = {data[0] for name, data in found.items() if name.startswith("byte 0 ")}
    assert first == {0x00, 0x03, 0x05, 0x09, 0x11, 0x21, 0x41, 0x81, 0x7F, 0x80, 0xFF}
    second = {data[1] for name, data in found.items() if name.startswith("byte 1 ")}
    assert second == {0x81, 0x82, 0x84, 0x88, 0x90, 0xA0, 0xC0, 0x00, 0x7F, 0xFF}


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    given_input = INPUTS["magic2-none"]
    names = [[name for name, _ in hostile.chosen(given_input, 0.05, seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == pytest.approx(0.05 * sum(1 for _ in hostile.changes(given_input.data)), rel=0.25)


@pytest.mark.parametrize("name", ["magic0-none", "magic1-lz4", "magic2-none", "producer-snapshot"])
def test_sealed_variants_reach_what_the_checksum_hides(name: str) -> None:
    given_input = INPUTS[name]
    changed = given_input.data[:-1] + bytes([given_input.data[-1] ^ 1])
    (_, raw), (_, sealed) = hostile_readers.variants(given_input, changed)
    assert raw == changed
    assert sealed[-1] == changed[-1]
    if given_input.kind == "log":
        assert not checksum_is_valid(list(walk(raw))[-1])
        assert checksum_is_valid(list(walk(sealed))[-1])


def test_a_wrapper_around_any_messages_is_intact() -> None:
    for name, magic in (("magic0-inside", 0), ("magic1-inside", 1)):
        (frame,) = walk(hostile_readers.wrapper_of(INPUTS[name].data, magic))
        assert len(decode_frame(frame, at=Location()).records) > 1


# What is watched for


class Broken:
    """Stands in for a reader that does what none may do."""

    def __init__(self, problem: Exception | None = None, outcome: str = "result") -> None:
        self.problem = problem
        self.outcome = outcome

    def read(self, data: bytes, depth: hostile_readers.Depth) -> Broken:
        del depth
        if self.problem and data != INPUTS["partition-metadata"].data:
            raise self.problem
        return self


def worker(target: Broken, monkeypatch: pytest.MonkeyPatch, root: Path) -> hostile.Worker:
    monkeypatch.setattr(hostile, "Target", lambda *_: target)
    monkeypatch.setattr(hostile, "limit_address_space", lambda: None)
    return hostile.Worker(INPUTS["partition-metadata"], root, bytearray(64))


@pytest.mark.parametrize(
    "problem", [ValueError("bad"), MemoryError(), RecursionError(), UnicodeDecodeError("a", b"", 0, 1, "")]
)
def test_any_other_exception_is_a_failure(problem: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = worker(Broken(problem), monkeypatch, tmp_path).run(1, 1)
    assert len(result.failures) == hostile.MAX_FAILURES
    assert result.failures[0]["change"] == "cut to 0"
    assert type(problem).__name__ in result.failures[0]["problem"]


def test_a_slow_reader_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hostile, "MAX_SECONDS", -1.0)
    result = worker(Broken(), monkeypatch, tmp_path).run(1, 1)
    assert result.failures[0]["problem"].startswith("took ")


def test_growth_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    peaks = iter([0, hostile.MAX_GROWTH + 1])
    monkeypatch.setattr(hostile, "peak_memory", lambda: next(peaks))
    result = worker(Broken(), monkeypatch, tmp_path).run(0, 1)
    assert result.failures == [{"change": "all", "problem": f"memory grew by {hostile.MAX_GROWTH + 1} bytes"}]


@pytest.mark.parametrize(
    ("program", "problem"),
    [("import time; time.sleep(60)", "no answer within"), ("import os; os.abort()", "exit -6")],
)
def test_a_worker_that_hangs_or_dies_names_its_change(
    program: str, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    beat = tmp_path / "beat"
    beat.write_bytes(b"17 byte 3 set to ff sealed".ljust(64))
    monkeypatch.setattr(hostile, "HANG_SECONDS", 1.0)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        answer, failure = hostile.supervise(run, beat)
    assert answer == ""
    assert failure["change"] == "byte 3 set to ff sealed"
    assert problem in failure["problem"]


def test_a_refusal_is_a_failure() -> None:
    def read() -> None:
        raise hostile_readers.RefusedError(Location(), "SEG-COD-016", expected="less", found="more")

    with pytest.raises(AssertionError, match="refused"):
        hostile_readers.Reading().attempt(read)


def test_the_committed_report_is_of_a_full_run() -> None:
    report = json.loads((REPOSITORY / "reports" / "hostile.json").read_text(encoding="utf-8"))
    assert (report["share"], report["failures"]) == (1.0, 0)
    assert {row["input"]: row["bytes"] for row in report["results"]} == {
        name: len(one.data) for name, one in INPUTS.items()
    }
    assert report["slowest"]["seconds"] <= hostile.MAX_SECONDS
    assert report["largestGrowth"]["bytes"] <= hostile.MAX_GROWTH


# Any text and any name


def answer(read: Callable[[], object]) -> object:
    try:
        return read()
    except FormatError as error:
        assert error.requirements  # noqa: PT017 - the error is an answer here
        return str(error)


def words(text: str) -> list[str]:
    return text.encode("ascii").decode("unicode_escape").split(" ")


NAME_WORDS = words(
    r"topic - -- . _ 0 7 007 -1 2147483647 2147483648 9999999999999999999 00000000000000000000 -delete -future -stray "
    r".log .index .timeindex .txnindex .snapshot .checkpoint .deleted .cleaned .swap .tmp .part __cluster_metadata / "
    r"0123456789abcdef0123456789abcdef \u0660 \u06f1 \U0001d7d8 \u00b2 \udcff \x00 \n"
)
NAME_PARTS = st.one_of(st.sampled_from([*NAME_WORDS, " ", "9" * 20, "x" * 300]), st.text(max_size=5))
NAMES = st.lists(NAME_PARTS, max_size=7).map("".join)


@given(NAMES)
def test_any_name_is_understood_or_refused(name: str) -> None:
    answer(lambda: parse_file_name(name))
    answer(lambda: parse_partition_directory(name))


@given(st.lists(NAMES, max_size=8), st.integers(-1, 2**63))
def test_any_names_together_are_resolved(names: list[str], next_offset: int) -> None:
    answer(lambda: resolve(names, lambda _: next_offset, directory="topic-0"))


TEXT_DECODERS: list[Callable[[bytes], object]] = [
    decode_offset_checkpoint,
    decode_leader_epoch_checkpoint,
    decode_partition_metadata,
    decode_meta_properties,
    decode_quorum_state,
    decode_clean_shutdown,
]
TEXT_WORDS = words(
    r"0 1 -1 topic version : = topic_id # cluster.id node.id broker.id directory.id \\ \\u \\u00e9 9999999999999999999 "
    r'{ } [ ] " , null true 1e999 NaN {"version": "brokerEpoch": "currentVoters": "voterId": '
    r"AAAAAAAAAAAAAAAAAAAAAA AAAAAAAAAAAAAAAAAAAAAQ \xd9\xa1 \xef\xbb\xbf \xed\xa0\x80 \x85 \x0c \xff \x00 \t \n \r\n"
)
TEXT_PARTS = st.one_of(
    st.sampled_from([*(word.encode("latin-1") for word in TEXT_WORDS), b" ", b"9" * 5000, b"[" * 5000]),
    st.binary(max_size=6),
)


@pytest.mark.parametrize("decode", TEXT_DECODERS, ids=lambda decode: decode.__name__)
@given(text=st.lists(TEXT_PARTS, max_size=12).map(b"".join))
def test_any_text_is_understood_or_refused(decode: Callable[[bytes], object], text: bytes) -> None:
    answer(lambda: decode(text))


VECTORS = [vector(name) for name in ("V-01", "V-02", "V-03", "V-05", "V-06", "V-08", "V-10", "V-13", "V-19", "V-22")]


@given(st.lists(st.one_of(st.sampled_from(VECTORS), st.binary(max_size=80)), max_size=4).map(b"".join))
def test_any_bytes_are_walked_and_verified(data: bytes) -> None:
    answer(lambda: [decode_frame(frame, at=Location()) for frame in walk(data)])
    for finding in verify_log(data):
        assert str(finding)
