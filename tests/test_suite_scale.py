"""The scale family: bytes by recipes, and answers by counts and digests."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from authoring.batches import Batch, Rec
from authoring.make_cases import CASES
from authoring.scale import BASE_TIMESTAMP, Made, Repeated
from click.testing import CliRunner
from seglog_conformance.cases import Case, case_problems, every_case, load_cases, scale_directory, selected
from seglog_conformance.commands.conform import command
from seglog_conformance.commands.conform_options import chosen
from seglog_conformance.compare import compare
from seglog_conformance.features import EVERYTHING
from seglog_conformance.judging import allowance_of
from seglog_conformance.recipes import log_of
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.registry import Builder, Listed
from seglog_conformance.report_badge import badge
from seglog_conformance.report_html import content
from seglog_conformance.report_jsonl import testee_line as line_of_testee
from seglog_conformance.report_table import not_asked, table
from seglog_conformance.runner import Options, Outcome, Runner
from seglog_conformance.session import rewrite_known
from seglog_conformance.summary import summary
from seglog_conformance.verdicts import Result, Verdict

from seglog_format.engine import Engine

if TYPE_CHECKING:
    from pathlib import Path

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


def test_all_cases_include_them_unless_a_run_leaves_them_out() -> None:
    assert scale_directory() == CASES / "scale"
    assert not {case.id for case in load_cases()} & set(SCALE)
    listed = CliRunner().invoke(command, ["list", "--family", "scale"])
    assert listed.output.count("scale/") == len(SCALE)
    assert CliRunner().invoke(command, ["list"]).output.count("scale/") == len(SCALE)
    usual, _ = chosen((), (), ())
    assert {case.id for case in usual} == {case.id for case in load_cases()}
    with_scale, every = chosen((), (), (), with_scale=True)
    assert {case.id for case in with_scale} == {case.id for case in usual} | set(SCALE) == {case.id for case in every}
    assert {case.id for case in every_case()} == {case.id for case in every}


@pytest.mark.parametrize("large", [("scale",), ("47",)])
@pytest.mark.parametrize("usual", [("crc",), ("26",), ("crc", "15")])
def test_options_that_select_cases_add_up(large: tuple[str, ...], usual: tuple[str, ...]) -> None:
    expected = {case.id for case in selected(load_cases(), usual)} | set(SCALE)
    for families in (large + usual, usual + large):
        assert {case.id for case in chosen((), families, ())[0]} == expected
    assert {case.id for case in chosen((next(iter(SCALE)),), usual, ())[0]} == expected - set(SCALE) | {
        next(iter(SCALE))
    }


def test_a_run_asks_them_with_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, set[str]] = {}

    def run_session(_builder: object, _wanted: object, cases: list[Case], **_options: object) -> list[object]:
        asked["run"] = {case.id for case in cases}
        return []

    monkeypatch.setattr("seglog_conformance.session.run_session", run_session)
    for options, expected in (((), set()), (("--scale",), set(SCALE)), (("--family", "crc"), set())):
        assert CliRunner().invoke(command, ["run", "--testee", "reference", *options]).exit_code == 0
        assert asked["run"] & set(SCALE) == expected


def test_what_a_run_publishes_counts_them(tmp_path: Path) -> None:
    case = SCALE["scale/5000-empty-batches"]
    result = Result(
        testee="mine", version="1", case=case.id, digest=case.digest, verdict=Verdict.SILENT, raw=Verdict.SILENT
    )
    outcome = Outcome(Listed("mine", "1"), results=[result])
    assert [one["id"] for one in content([outcome], [case], {})["cases"]] == [case.id]
    assert "0 of 1 must" in badge(outcome, {case.id: case})
    (path,) = rewrite_known([outcome], [case], tmp_path)
    assert case.id in path.read_text(encoding="utf-8")


def test_a_run_without_them_says_so_and_counts_them_nowhere() -> None:
    """At 0a5c6856 no line, badge or page of such a run named them, and its report counted them among its cases."""
    usual = selected(load_cases(), ["plain-batches"])
    every = [*usual, *SCALE.values()]
    without = Runner(Builder(), usual, all_cases=every, options=Options(smoke=False)).run_one(Listed("reference"))
    known = {case.id: case for case in usual}
    note = f"family scale not asked: {len(SCALE)} cases"
    assert without.left_out == len(SCALE)
    assert list(not_asked(without, known)) == [f"  {note} (--scale)"]
    count = sum(case.level == "must" for case in usual)
    assert f"{count} of {count} must ({note})" in badge(without, known)
    assert content([without], usual, {})["testees"][0]["leftOut"] == note
    assert line_of_testee(without, known)["leftOut"] == len(SCALE)
    assert [text for text in table([without], usual).columns[0].cells if "scale" in str(text)] == []


@pytest.mark.parametrize("part", [1, None])
def test_a_run_of_some_cases_or_of_all_leaves_none_out(part: int | None) -> None:
    small = [*selected(load_cases(), ["plain-batches"]), SCALE["scale/5000-empty-batches"]]
    outcome = Runner(Builder(), small[:part], all_cases=small, options=Options(smoke=False)).run_one(
        Listed("reference")
    )
    assert outcome.left_out == 0
    assert list(not_asked(outcome, {case.id: case for case in small})) == []
