"""The suite passes decoders that were written from the specification alone, and flags a fault planted into one.

`make proof NAME=planted` plants all 78, and the 447 of a reader.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, need
from seglog_conformance.registry import read_adapter

from proofs.planted import (
    ALGORITHMS,
    DECODERS,
    READERS,
    Fault,
    by_level,
    complaints,
    decoders,
    faults,
    flag,
    flag_readers,
    readers_complaints,
    readers_faults,
)

if TYPE_CHECKING:
    from seglog_conformance.cases import Case

SAMPLE = ("crc-not-of-control", "append-time-not-compressed", "wrapper-at-offset-0", "one-xerial-header", "tail-of-12")
"""Of the faults of the decoder in Python: checksums, crossed axes, wrappers, compression, the end of a log."""
FAMILIES = ("crc", "crossed", "magic-1-wrappers", "snappy-xerial", "tails")
"""That flag the sample."""


@cache
def sampled_cases() -> list[Case]:
    return [case for case in by_level() if case.family_name in FAMILIES and case.op == "decode"]


@pytest.mark.parametrize("decoder", decoders())
def test_there_are_26_different_faults(decoder: str) -> None:
    listed = faults(decoder)
    assert len({fault.id for fault in listed}) == len(listed) == 26
    assert [fault.id for fault in listed if not fault.why.endswith(".") or not fault.what.endswith(".")] == []


@pytest.mark.parametrize("decoder", decoders())
def test_every_fault_still_finds_its_text(decoder: str) -> None:
    texts = {path.name: path.read_text("utf-8") for path in (DECODERS / decoder).iterdir() if path.is_file()}
    assert [fault.id for fault in faults(decoder) if texts[fault.file].count(fault.find) != 1] == []


@pytest.mark.parametrize("decoder", decoders())
def test_a_decoder_without_a_fault_passes(decoder: str) -> None:
    need(f"the decoder in {decoder}", read_adapter(DECODERS / decoder).toolchain)
    found = flag(decoder, None, sampled_cases())
    assert found.result is None, (found.result.case, found.result.detail)
    assert found.asked > 200


@pytest.mark.parametrize("decoder", ["javascript", "python"])
def test_a_decoder_that_looks_up_passes_too(decoder: str) -> None:
    """At 0a5c6856 seven lookups out of range accused both: they refuse, as a read has to, and answer no null."""
    need(f"the decoder in {decoder}", read_adapter(DECODERS / decoder).toolchain)
    found = flag(decoder, None, [case for case in by_level() if case.op == "lookup"])
    assert found.result is None, (found.result.case, found.result.detail)
    assert found.asked > 200


@pytest.mark.parametrize(
    "fault", [fault for fault in faults("python") if fault.id in SAMPLE], ids=lambda fault: fault.id
)
def test_a_planted_fault_is_flagged(fault: Fault) -> None:
    found = flag("python", fault, sampled_cases())
    assert found.result is not None
    assert complaints("python", flag("python", None, ()), [fault], [found]) == []


def test_a_fault_that_nothing_flags_is_named() -> None:
    fault = faults("python")[0]
    missed = flag("python", fault, ())
    assert complaints("python", missed, [fault], [missed])[0] == f"python with {fault.id}: passes all 0 cases"


def test_the_list_of_the_reader_is_that_of_its_first_run() -> None:
    listed = (DECODERS / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(gzip.decompress(READERS.read_bytes())).hexdigest() in listed
    every = readers_faults()
    assert len({fault.id for fault in every}) == len(every) == 447 + 107
    texts = {fault.file: (REPOSITORY / fault.file).read_text(encoding="utf-8") for fault in every}
    assert [fault.id for fault in every if texts[fault.file].count(fault.find) != 1] == []


def test_faults_of_the_reader_are_flagged_in_this_process() -> None:
    wanted = [fault for fault in readers_faults() if fault.id in {"p002", "p085", "p198"}]
    found = list(flag_readers(wanted, 2))
    assert [bool(one.result) for one in found] == [True, True, True]
    assert wanted[1].file.startswith(ALGORITHMS)
    assert readers_complaints(wanted[:2], found[:2]) == []
    ruled_out = [replace(wanted[0], unflagged="It is no fault.")]
    assert "which the list rules out" in readers_complaints(ruled_out, found[:1])[0]
    assert "0 of 1 faults" in readers_complaints(wanted[2:], [replace(found[2], also="")])[0]
