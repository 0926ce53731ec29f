"""The scale family: bytes by recipes, and answers by counts and digests."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import pytest
from authoring.batches import Batch, Rec
from authoring.make_cases import CASES
from authoring.scale import BASE_TIMESTAMP, Made, Repeated
from click.testing import CliRunner
from seglog_conformance.cases import case_problems, load_cases, scale_directory
from seglog_conformance.compare import compare
from seglog_conformance.features import EVERYTHING
from seglog_conformance.judging import allowance_of
from seglog_conformance.recipes import log_of
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.summary import summary
from seglog_conformance.verdicts import Verdict

from seglog_format.cli.conform import command
from seglog_format.cli.conform_options import chosen
from seglog_format.engine.choice import Engine

SCALE = {case.id: case for case in load_cases(CASES / "scale", checked=True)}
QUICK = (
    "5000-empty-batches",
    "3000-transactions",
    "2000-of-each-in-turn",
    "three-formats",
    "one-value-of-16-mebibytes",
)


def digest(*values: str) -> str:
    return hashlib.sha256("".join(f"{value}\n" for value in values).encode()).hexdigest()


def test_a_made_batch_is_the_one_that_is_laid_out_by_hand() -> None:
    made = log_of([Made(300, 2, b"ab", 3).part()], 7)
    recs = tuple(Rec(key=None, value=b"ababab", time=at) for at in range(300))
    laid = [Batch(base=base, recs=recs, base_timestamp=BASE_TIMESTAMP).encoded() for base in (7, 307)]
    assert made == b"".join(laid)


def test_a_compressed_batch_holds_the_same_records() -> None:
    plain, packed = (log_of([Made(50, codec=codec).part()], 0) for codec in ("none", "gzip"))
    assert gzip.decompress(packed[61:]) == plain[61:]


def test_repeated_entries_stand_at_offsets_of_their_own() -> None:
    units = (Batch(), Batch(base=1, recs=(Rec(), Rec())))
    log = log_of([Repeated(units, 2).part()], 10)
    laid = (Batch(base=10), Batch(base=11, recs=(Rec(), Rec())), Batch(base=13), Batch(base=14, recs=(Rec(), Rec())))
    assert log == b"".join(unit.encoded() for unit in laid)


def test_a_summary_counts_and_digests_each_field() -> None:
    long = "ab" * 5000
    records = [
        {"offset": "1", "timestamp": "5", "key": None, "value": ""},
        {"offset": 2, "timestamp": 6, "key": "6b", "value": long},
    ]
    found = summary([{"records": records[:1]}, {"records": records[1:]}, {"records": []}])
    assert found == {
        "batches": 3,
        "records": 2,
        "offset": digest("1", "2"),
        "timestamp": digest("5", "6"),
        "key": digest("-", "6b"),
        "value": digest("", f"5000:{hashlib.sha256(bytes.fromhex(long)).hexdigest()}"),
    }


@pytest.mark.parametrize("name", QUICK)
def test_the_plain_loops_answer_as_expected(name: str) -> None:
    case = SCALE[f"scale/{name}"]
    judgement = compare(case, Reference(Engine.PLAIN).answer({"op": case.op, **case.request}), FEATURES)
    assert (judgement.verdict, judgement.detail) == (Verdict.PASS, "")


def test_cases_are_sound_and_bound_by_time_alone() -> None:
    case = SCALE["scale/5000-empty-batches"]
    assert case_problems(case) == []
    assert allowance_of(case).growth is None
    assert allowance_of(case).seconds > allowance_of(load_cases(CASES / "01-plain-batches.json")[0]).seconds


def changed(answer: dict[str, Any], **fields: str) -> dict[str, Any]:
    first = next(batch for batch in answer["batches"] if batch["records"])
    rest = [batch for batch in answer["batches"] if batch is not first]
    return {**answer, "batches": [{**first, "records": [{**first["records"][0], **fields}]}, *rest]}


def test_each_wrong_answer_is_told_by_its_field() -> None:
    case = SCALE["scale/5000-empty-batches"]
    good = Reference(Engine.PLAIN).answer({"op": case.op, **case.request})
    for field in ("offset", "timestamp", "key", "value"):
        judgement = compare(case, changed(good, **{field: "77"}), EVERYTHING)
        assert judgement.verdict is Verdict.DIFFER
        assert judgement.detail.startswith(field)
    short = {**good, "batches": good["batches"][:-1]}
    assert compare(case, short, EVERYTHING).verdict is Verdict.SILENT
    refused = {"ok": False, "reject": {"class": "other", "message": "no"}, "batches": []}
    assert compare(case, refused, EVERYTHING).verdict is Verdict.REJECTS_VALID
    assert (
        compare(case, {"ok": True, "summary": case.expect["summary"]["surfaced"]}, EVERYTHING).verdict is Verdict.PASS
    )


def test_damage_behind_many_good_batches_has_to_be_refused() -> None:
    case = SCALE["scale/damage-behind-20000"]
    expected = case.expect["summary"]["surfaced"]
    refusal = {"ok": False, "reject": {"class": "crc"}, "summary": expected}
    assert compare(case, refusal, EVERYTHING).verdict is Verdict.PASS
    assert compare(case, {**refusal, "summary": {**expected, "value": "0" * 64}}, EVERYTHING).verdict is Verdict.DIFFER
    assert compare(case, {"ok": True, "summary": expected}, EVERYTHING).verdict is Verdict.SILENT
    more = {**expected, "records": expected["records"] + 1}
    assert compare(case, {"ok": True, "summary": more}, EVERYTHING).verdict is Verdict.ACCEPTS_INVALID


def test_they_are_asked_by_name_or_with_an_option() -> None:
    assert scale_directory() == CASES / "scale"
    assert not {case.id for case in load_cases()} & set(SCALE)
    listed = CliRunner().invoke(command, ["list", "--family", "scale"])
    assert listed.output.count("scale/") == len(SCALE)
    assert "scale/" not in CliRunner().invoke(command, ["list"]).output
    usual, _ = chosen((), (), ())
    with_scale, every = chosen((), (), (), with_scale=True)
    assert {case.id for case in with_scale} == {case.id for case in usual} | set(SCALE) == {case.id for case in every}
