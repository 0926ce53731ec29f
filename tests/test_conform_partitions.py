"""Partitions that are made up: what is expected of them, and what a search makes of a wrong reader."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
from authoring.draw_generated import FILE, drawn
from hypothesis import given, settings
from seglog_conformance.cases import case_problems, load_cases
from seglog_conformance.compare import compare
from seglog_conformance.direct import DirectTestee
from seglog_conformance.fingerprint import fingerprint
from seglog_conformance.generated import BatchModel, LogModel, RecordModel
from seglog_conformance.judging import Examiner
from seglog_conformance.partitions import SAMPLE, SEED, PartitionModel, asked_of_partition, partitions, sample
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.search import Search, wrong_verdict
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_conformance.cases import Case

MAX_SIZE = 1 << 20
TWO = (RecordModel(value=b"a"), RecordModel(value=b"b", timestamp_delta=5))
LOG = LogModel((BatchModel(TWO, base_timestamp=100), BatchModel(TWO, gap=3, base_timestamp=200)), base_offset=10)


def asked(model: PartitionModel) -> dict[str, Case]:
    return dict(asked_of_partition(model, "test"))


def test_two_batches_are_asked_for_as_anybody_would_count() -> None:
    cases = asked(PartitionModel(LOG, asked=2))
    size = len(bytes.fromhex(cases["decode"].request["data"])) // 2
    assert cases["lookup"].expect == {"found": {"position": size, "baseOffset": "15"}}
    assert cases["lookup-time"].expect == {"found": {"offset": "15", "timestamp": "200"}}
    assert [record["offset"] for record in cases["read"].expect["records"]] == ["15", "16"]
    assert cases["read"].expect["nextOffset"] == "17"
    assert set(cases) == {"decode", "encode", "lookup", "lookup-time", "read", "index", "recover"}


@pytest.mark.parametrize(
    ("generation", "offset_entries", "time_entries"),
    [
        ("none", None, None),
        ("0.8", [(5, 1)], None),
        ("0.10.1", [(5, 1)], [(105, 1), (205, 6)]),
        ("2.0", [(6, 1)], [(105, 1), (205, 6)]),
    ],
)
def test_each_generation_has_its_indexes(
    generation: str, offset_entries: list[tuple[int, int]] | None, time_entries: list[tuple[int, int]] | None
) -> None:
    files = asked(PartitionModel(LOG, generation))["lookup"].request["files"]
    size = len(files["00000000000000000010.log"]) // 4
    found = {name.rpartition(".")[2]: bytes.fromhex(text) for name, text in files.items()}
    expected = offset_entries and b"".join(struct.pack(">ii", offset, at * size) for offset, at in offset_entries)
    assert found.get("index") == expected
    assert found.get("timeindex") == (time_entries and b"".join(struct.pack(">qi", *entry) for entry in time_entries))


def test_a_border_makes_a_second_segment() -> None:
    cases = asked(PartitionModel(LOG, border=1, asked=3))
    logs = [name for name in cases["lookup"].request["files"] if name.endswith(".log")]
    assert logs == ["00000000000000000010.log", "00000000000000000015.log"]
    assert cases["lookup"].expect == {"found": {"position": 0, "baseOffset": "15"}}
    assert "read" not in cases


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_older_formats_are_drawn_as_messages_and_wrappers(magic: int, codec: str) -> None:
    log = LogModel((BatchModel(TWO, codec=codec, base_timestamp=100),), magic=magic)
    cases = asked(PartitionModel(log))
    assert len(cases["decode"].expect["batches"]) == (2 if codec == "none" else 1)
    assert ("lookup-time" in cases) == (magic == 1)
    for case in cases.values():
        judgement = compare(case, Reference().answer({"op": case.op, **case.request}), FEATURES)
        assert (case.op, judgement.verdict, judgement.detail) == (case.op, Verdict.PASS, "")


@settings(max_examples=25, database=None)
@given(partitions())
def test_the_reference_answers_whatever_is_drawn(model: PartitionModel) -> None:
    for case in asked(model).values():
        assert case_problems(case) == []
        judgement = compare(case, Reference().answer({"op": case.op, **case.request}), FEATURES)
        assert (case.op, judgement.verdict, judgement.detail) == (case.op, Verdict.PASS, "")


class Late(Reference):
    """A reader that finds the batch behind the one it should."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        found = super().answer(request)
        if request["op"] != "lookup" or "offset" not in request or not found["found"]["position"]:
            return found
        return {**found, "found": {**found["found"], "position": found["found"]["position"] + 1}}


def test_a_wrong_lookup_is_found_and_made_small() -> None:
    examiner = Examiner(DirectTestee("late", Late()))
    search = Search(wrong_verdict(examiner.examine), partitions(), asked_of_partition, examples=60, most=1)
    (found,) = search.run()
    assert (found.kind, found.reported) == ("lookup", "DIFFER")
    assert found.case.input_size < 400


def test_the_kept_sample_has_every_magic_codec_and_operation() -> None:
    cases = load_cases(FILE, checked=True)
    assert {case.op for case in cases} == {"decode", "encode", "lookup", "read", "index", "recover"}
    assert {need for case in cases for need in case.needs} >= {"magic:0", "magic:1", "magic:2", "codec:zstd"}
    assert FILE.stat().st_size < MAX_SIZE
    assert {case.id for case in cases} <= {case.id for case in load_cases()}


def test_the_file_can_be_drawn_again(tmp_path: Path) -> None:
    path = tmp_path / FILE.name
    path.write_text(drawn(SEED + 1), encoding="utf-8")
    again = load_cases(path, checked=True)
    assert len({case.digest for case in again}) > SAMPLE
    assert not {case.id for case in again} & {case.id for case in load_cases(FILE)}
    assert [case.digest for case in sample()] == [case.digest for case in sample()]


def test_a_time_from_a_clock_and_the_sum_over_it_are_in_no_fingerprint() -> None:
    now_ms = time.time_ns() // 1_000_000
    found = {fingerprint_at(now_ms - at) for at in range(3)}
    assert len(found) == 1
    assert fingerprint_at(5) not in found


def test_the_distance_from_a_clock_to_a_fixed_time_is_in_no_fingerprint() -> None:
    """At 0a5c6856 librdkafka wrote such a delta, and failed four cases in another way at each run."""
    now_ms, fixed_ms = time.time_ns() // 1_000_000, 7
    later = [RecordModel(value=b"b", timestamp_delta=fixed_ms - (now_ms - at)) for at in range(3)]
    found = {fingerprint_at(now_ms - at, 2, (TWO[0], record)) for at, record in enumerate(later)}
    assert len(found) == 1
    assert fingerprint_at(now_ms, 2, (TWO[0], RecordModel(value=b"b", timestamp_delta=8 - now_ms))) not in found


def fingerprint_at(timestamp_ms: int, magic: int = 1, records: tuple[RecordModel, ...] = TWO[:1]) -> str:
    log = LogModel((BatchModel(records, base_timestamp=timestamp_ms),), magic=magic)
    data = asked(PartitionModel(log))["decode"].request["data"]
    return fingerprint({"ok": True, "data": data}, Verdict.DIFFER, "encode", FEATURES)
