"""The suite passes decoders that were written from the specification alone, and flags a fault planted into one.

`make proof NAME=planted` plants all 78.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from helpers.support import need
from seglog_conformance.registry import read_adapter

from proofs.planted import DECODERS, Fault, by_level, complaints, decoders, faults, flag

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
