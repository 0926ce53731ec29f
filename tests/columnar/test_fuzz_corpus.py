"""What the fuzzer has found worth keeping leads to no difference between engine, reference and libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from proofs.fuzz import codec_targets as fuzz_codecs
from proofs.fuzz import fuzz
from proofs.fuzz import seeds as fuzz_seeds
from proofs.fuzz import targets as fuzz_targets
from proofs.fuzz.judging import ARENA, LOG, DifferenceError
from proofs.fuzz.targets import SEALED, TARGETS, Targets, sealed
from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import walk

if TYPE_CHECKING:
    from pathlib import Path


def test_the_corpus_is_small_and_holds_something_for_each_target() -> None:
    inputs = fuzz.packed()
    assert fuzz.CORPUS.stat().st_size < fuzz.MAX_CORPUS
    assert {data[0] & 7 for data in inputs} == set(range(len(TARGETS)))


@pytest.mark.filterwarnings("ignore:.*nothing readable:seglog_format.errors.MissingOffsetsWarning")  # inputs of noise
@pytest.mark.parametrize("name", TARGETS)
def test_every_input_of_the_corpus_has_the_same_verdict(name: str, tmp_path: Path) -> None:
    targets = Targets(tmp_path)
    for data in fuzz.packed():
        if data[0] & 7 == TARGETS.index(name):
            targets.run(data)


@pytest.mark.filterwarnings("ignore:.*nothing readable:seglog_format.errors.MissingOffsetsWarning")  # inputs of noise
def test_seeds_have_the_same_verdict(tmp_path: Path) -> None:
    targets = Targets(tmp_path)
    for data in list(fuzz_seeds.seeds())[::20]:
        targets.run(data)


def test_checksums_are_made_right() -> None:
    for log in fuzz_seeds.made_logs():
        assert sealed(log) == log
        changed = bytearray(log)
        changed[14] ^= 1
        changed[20] ^= 1
        assert all(map(checksum_is_valid, walk(sealed(bytes(changed)))))


def seed_of(name: str) -> bytes:
    """Return an input that leads to a result."""
    number = TARGETS.index(name)
    if number in fuzz_seeds.LOG_TARGETS:
        return bytes([number | SEALED]) + next(fuzz_seeds.made_logs())
    return max((data for data in fuzz_seeds.seeds() if data[0] & 7 == number), key=len)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("scan", "row_of"),
        ("lz4", "by_reference"),
        ("snappy", "by_reference"),
        ("entries_or_rows", "is_sealed"),
        ("verify", "verify_log"),
        ("recover", "scan_segment"),
    ],
)
def test_a_difference_is_noticed(name: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = fuzz_codecs if part == "by_reference" else fuzz_targets
    data, right, calls = seed_of(name), getattr(module, part), []
    Targets(tmp_path).run(data)

    def wrong(*arguments: object, **options: object) -> object:
        calls.append(part)
        if part == "scan_segment":
            return len(calls)
        if part == "verify_log":
            return iter((len(calls),))
        result = right(*arguments, **options)
        return result[:-1] if isinstance(result, (bytes, tuple)) else not result

    monkeypatch.setattr(module, part, wrong)
    with pytest.raises(DifferenceError):
        Targets(tmp_path).run(data)
    assert calls


def test_memory_ends_where_the_input_ends() -> None:
    view = LOG.holding(b"some bytes")
    assert bytes(view) == b"some bytes"
    assert view.readonly
    assert len(ARENA.last(70)) == 70


def test_inputs_are_packed_smallest_first_and_no_more_than_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [bytes([number, SEALED]) * (number + 1) for number in range(20)]
    fuzz.unpack(inputs, tmp_path / "corpus")
    count, size = fuzz.pack(tmp_path / "corpus", tmp_path / "corpus.zip")
    assert (count, fuzz.packed(tmp_path / "corpus.zip")) == (20, inputs)
    assert size == (tmp_path / "corpus.zip").stat().st_size
    monkeypatch.setattr(fuzz, "MAX_CORPUS", 1000)
    count, size = fuzz.pack(tmp_path / "corpus", tmp_path / "corpus.zip")
    assert 0 < count < 20
    assert size <= 1000
