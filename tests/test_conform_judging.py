"""Verdicts: what an answer is worth against a case, with what an implementation does not tell left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from authoring.matrix import testees as asked_and_found
from seglog_conformance.cases import Case, CaseError, case_problems, load_cases, selected
from seglog_conformance.causes import causes
from seglog_conformance.compare import RECORDS_FIRST, compare
from seglog_conformance.features import ASSUMED, EVERYTHING, has_feature, missing_feature
from seglog_conformance.judging import Examiner, allowance_of
from seglog_conformance.protocol import Hello, Implementation
from seglog_conformance.reference import leading_batches
from seglog_conformance.registry import Listed
from seglog_conformance.report_badge import badge
from seglog_conformance.report_table import result_lines
from seglog_conformance.runner import Outcome
from seglog_conformance.testee import Allowance, Kind, Reply
from seglog_conformance.values import same
from seglog_conformance.verdicts import FINE, Verdict

from seglog_format.codec.checksum import crc32c

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_conformance.protocol import Json

RECORDS = [
    {"offset": "0", "timestamp": "5", "key": "6b", "value": None, "headers": [["61", None], ["62", "01"]]},
    {"offset": "1", "timestamp": "6", "key": None, "value": "76"},
]
BATCH = {"position": 0, "baseOffset": "0", "magic": 2, "isControl": False, "records": RECORDS}
MARKER = {"position": 90, "baseOffset": "2", "magic": 2, "isControl": True, "records": [{"offset": "2"}]}


def case(result: str = "valid", op: str = "decode", **expect: object) -> Case:
    return Case(
        id="test/one",
        family=1,
        family_name="test",
        op=op,
        requirements=("SEG-BAT-001",),
        level="must",
        result=result,
        why="A test of the tests.",
        stored_request={"data": ""},
        stored_expect=expect,
    )


def verdict(of: Case, answer: dict[str, Any], **features: object) -> Verdict:
    return compare(of, answer, {**EVERYTHING, **features}).verdict


def answer(*batches: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"ok": True, "batches": list(batches), "consumed": 100, "tail": None, **more}


REFUSAL = {"ok": False, "reject": {"class": "other", "message": "no"}, "batches": []}
VALID = case(batches=[BATCH], consumed=100, tail=None)


def changed(record: int = 0, **fields: object) -> dict[str, Any]:
    records = [dict(one) for one in RECORDS]
    records[record] |= fields
    return {**BATCH, "records": records}


def test_valid_bytes() -> None:
    assert verdict(VALID, answer(BATCH)) is Verdict.PASS
    assert verdict(VALID, REFUSAL) is Verdict.REJECTS_VALID
    assert verdict(VALID, answer(changed(key=""))) is Verdict.DIFFER
    assert verdict(VALID, answer({**BATCH, "records": RECORDS[:1]})) is Verdict.SILENT
    assert verdict(VALID, answer()) is Verdict.SILENT
    assert verdict(VALID, answer({**BATCH, "records": [*RECORDS, RECORDS[0]]})) is Verdict.DIFFER
    assert verdict(VALID, answer(BATCH, consumed=99)) is Verdict.DIFFER
    assert verdict(VALID, answer(BATCH, tail={"class": "zeros", "at": 100})) is Verdict.DIFFER


@pytest.mark.parametrize(
    ("fields", "is_same"),
    [
        ({"value": ""}, False),
        ({"offset": 0}, True),
        ({"offset": "1"}, False),
        ({"headers": [["62", "01"], ["61", None]]}, False),
        ({"headers": [["61", ""], ["62", "01"]]}, False),
        ({"headers": []}, False),
        ({"key": {"bytes": 1, "sha256": "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"}}, True),
        ({"key": {"bytes": 1, "sha256": "00" * 32}}, False),
    ],
)
def test_fields_of_a_record(fields: dict[str, Any], is_same: bool) -> None:  # noqa: FBT001 - a table
    assert (verdict(VALID, answer(changed(**fields))) is Verdict.PASS) == is_same


def test_what_is_not_told_is_not_compared() -> None:
    swapped = changed(headers=[["62", "01"], ["61", None]])
    assert verdict(VALID, answer(swapped), headers="unordered") is Verdict.PASS
    assert verdict(VALID, answer(changed(headers=[])), headers="none") is Verdict.PASS
    bare = {"records": RECORDS}
    assert verdict(VALID, answer(bare)) is Verdict.DIFFER
    assert verdict(VALID, answer(bare), batchMeta=False) is Verdict.PASS
    assert verdict(VALID, answer({**bare, "magic": 1}), batchMeta=["magic"]) is Verdict.DIFFER
    assert verdict(VALID, answer(BATCH, consumed=1, tail={"at": 1}), partialTail=False) is Verdict.PASS
    split = [{"records": RECORDS[:1]}, {"records": RECORDS[1:]}]
    assert verdict(VALID, answer(*split), batchMeta=False) is Verdict.PASS


def test_an_index_entry_that_is_not_told_is_not_compared() -> None:
    found = {"position": 91, "baseOffset": "3"}
    wanted = case(op="lookup", found={"entry": {"offset": "5", "position": 91}, **found})
    assert verdict(wanted, {"ok": True, "found": found}) is Verdict.DIFFER
    assert verdict(wanted, {"ok": True, "found": found}, indexEntry=False) is Verdict.PASS
    assert verdict(wanted, {"ok": True, "found": {**found, "position": 0}}, indexEntry=False) is Verdict.DIFFER
    assert verdict(wanted, {"ok": True, "found": None}, indexEntry=False) is Verdict.DIFFER


def test_hidden_control_records() -> None:
    with_marker = case(batches=[BATCH, MARKER], consumed=100)
    assert verdict(with_marker, answer(BATCH), control="hidden") is Verdict.PASS
    assert verdict(with_marker, answer(BATCH)) is Verdict.SILENT
    assert verdict(with_marker, answer({"records": RECORDS}), control="hidden", batchMeta=False) is Verdict.PASS


def test_the_report_says_what_was_compared() -> None:
    compared = compare(VALID, answer(BATCH), {**EVERYTHING, "batchMeta": ["magic"]}).compared
    assert "batch.magic" in compared
    assert "batch.baseOffset" not in compared
    assert "record.headers" in compared


def test_bytes_that_have_to_be_refused() -> None:
    invalid = case("invalid", reject={"class": "crc"}, batches=[BATCH])
    assert verdict(invalid, REFUSAL) is Verdict.PASS
    assert verdict(invalid, {**REFUSAL, "batches": [BATCH]}) is Verdict.PASS
    assert verdict(invalid, {**REFUSAL, "batches": [BATCH, MARKER]}) is Verdict.ACCEPTS_INVALID
    assert verdict(invalid, {**REFUSAL, "batches": [changed(key="00")]}) is Verdict.DIFFER
    assert verdict(invalid, answer(BATCH, MARKER)) is Verdict.ACCEPTS_INVALID
    assert verdict(invalid, answer(BATCH)) is Verdict.SILENT
    assert verdict(invalid, answer()) is Verdict.SILENT


def of_suite(identifier: str) -> Case:
    return next(case for case in load_cases() if case.id == identifier)


@pytest.mark.parametrize(
    ("identifier", "count"),
    [
        ("records-count/count-one-more", 3),
        ("records-count/gzip-count-one-more", 3),
        ("record-length/length-16-compressed", 1),
        ("bad-compression/gzip-wrong-crc", 3),
        ("bad-compression/zstd-cut-at-27", 2),
        ("crc/magic-1-inside-a-wrapper-last", 2),
        ("crc/magic-1-inside-a-wrapper-first", 0),
        ("crc/flip-last-byte", 0),
        ("crc/control-commit", 0),
    ],
)
def test_correct_records_and_then_the_error_is_a_branch_of_its_own(identifier: str, count: int) -> None:
    of = of_suite(identifier)
    before = [record for batch in of.expect["batches"] for record in batch["records"]]
    leading = [record for batch in leading_batches(of.request) for record in batch["records"]]
    assert len(leading) == len(before) + count
    bare = {**EVERYTHING, "batchMeta": False}
    for taken in range(len(before) + 1, len(leading) + 1):
        given = {**REFUSAL, "batches": [{"records": leading[:taken]}]}
        found = compare(of, given, bare)
        assert (found.verdict, found.branch) == (Verdict.PASS, RECORDS_FIRST)
        assert compare(of, {**given, "ok": True}, bare).verdict is not Verdict.PASS
        wrong = {**REFUSAL, "batches": [{"records": [*leading[: taken - 1], {**leading[taken - 1], "value": "00ff"}]}]}
        assert compare(of, wrong, bare).verdict is Verdict.ACCEPTS_INVALID
    more = {**REFUSAL, "batches": [{"records": [*leading, RECORDS[0]]}]}
    assert compare(of, more, bare).verdict is Verdict.ACCEPTS_INVALID


def test_a_refusal_without_more_records_has_no_branch() -> None:
    of = of_suite("records-count/count-one-more")
    assert compare(of, {**REFUSAL, "batches": of.expect["batches"]}, EVERYTHING).branch == ""


def test_an_encoder_is_free_where_there_is_no_producer() -> None:
    of = of_suite("encoding/three-records")
    data = bytearray.fromhex(of.expect["data"])
    for position, value, is_right in ((53, 0, True), (51, 0, True), (43, 0, False), (23, 9, False)):
        changed = bytearray(data)
        changed[position : position + 2] = bytes([value, value])
        changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
        assert (verdict(of, {"ok": True, "data": changed.hex()}) is Verdict.PASS) == is_right, position
        changed[17] ^= 1
        assert verdict(of, {"ok": True, "data": changed.hex()}) is not Verdict.PASS
    epoch = of_suite("encoding/epoch-without-producer")
    assert epoch.level == "should"
    assert epoch.expect["batches"][0]["producerEpoch"] == -1


def test_who_names_the_rule_of_a_refusal_is_held_to_it() -> None:
    refused = case("invalid", reject={"class": "crc"}, batches=[])
    named = [{**REFUSAL, "reject": {"class": "crc", "requirement": name}} for name in ("SEG-BAT-001", "SEG-BAT-002")]
    assert [verdict(refused, one, requirements=True) for one in named] == [Verdict.PASS, Verdict.DIFFER]
    assert [verdict(refused, one) for one in named] == [Verdict.PASS, Verdict.PASS]
    assert verdict(refused, REFUSAL, requirements=True) is Verdict.PASS  # it rests on no rule


def test_a_damaged_batch_that_is_left_out_without_a_word_is_silence() -> None:
    of = next(case for case in load_cases() if case.family_name == "crc" and case.result == "invalid")
    from seglog_conformance.reference import sound_batches

    rest = sound_batches(of.request)
    assert len(rest) > len(of.expect["batches"])
    assert verdict(of, {"ok": True, "batches": rest}) is Verdict.SILENT
    assert verdict(of, {**REFUSAL, "batches": rest}) is Verdict.ACCEPTS_INVALID


def test_one_of_several_answers() -> None:
    several = case(
        "acceptable",
        allowed=[
            {"branch": "reads", "batches": [BATCH], "consumed": 100},
            {"branch": "refuses", "reject": {"class": "crc"}},
        ],
    )
    assert compare(several, answer(BATCH), EVERYTHING).branch == "reads"
    assert compare(several, REFUSAL, EVERYTHING).branch == "refuses"
    assert verdict(several, answer(changed(key="00"))) is Verdict.DIFFER


def test_bytes_that_have_only_to_be_survived() -> None:
    assert verdict(case("undefined"), answer()) is Verdict.PASS
    assert verdict(case("undefined"), REFUSAL) is Verdict.PASS


def test_other_operations() -> None:
    files = case(op="index", files={".index": "00ff", ".txnindex": None})
    assert verdict(files, {"ok": True, "files": {".index": "00ff", ".txnindex": ""}}) is Verdict.PASS
    assert verdict(files, {"ok": True, "files": {".index": "00ff", ".timeindex": ""}}) is Verdict.DIFFER
    assert verdict(files, {"ok": True, "files": {".index": "00fe"}}) is Verdict.DIFFER
    assert verdict(files, {"ok": True, "files": {}}) is Verdict.DIFFER
    assert verdict(case("invalid", "parse", reject={"class": "text"}), {"ok": True, "object": {}}) is (
        Verdict.ACCEPTS_INVALID
    )
    assert verdict(case(op="validate", accept=True), {"ok": True, "accept": True}) is Verdict.PASS


def test_positions() -> None:
    moves = case(op="position", positions=["0", "10"])
    assert verdict(moves, {"ok": True, "positions": ["0", "10", "10"]}) is Verdict.PASS
    assert verdict(moves, {"ok": True, "positions": ["0", "0", "0"]}) is Verdict.STALL
    assert verdict(moves, {"ok": True, "positions": ["0", "12"]}) is Verdict.JUMP


def test_encoding_is_judged_by_what_it_reads_as() -> None:
    from seglog_conformance.reference import Reference

    model = {
        "magic": 2,
        "baseOffset": "7",
        "lastOffset": "7",
        "codec": "gzip",
        "timestampType": "CreateTime",
        "baseTimestamp": "5",
        "maxTimestamp": "5",
        "producerId": "-1",
        "producerEpoch": -1,
        "baseSequence": -1,
        "partitionLeaderEpoch": 0,
        "records": [{"offset": "7", "timestamp": "5", "key": None, "value": "76"}],
    }
    data = Reference().answer({"seq": 1, "op": "encode", "batches": [model]})
    of = case(op="encode", batches=[model])
    assert verdict(of, data) is Verdict.PASS
    assert verdict(of, {"ok": True, "data": data["data"][:-2]}) is not Verdict.PASS
    assert verdict(of, {"ok": True, "data": "00" + data["data"][2:-8] + "00000000"}) is Verdict.DIFFER


def expected_flag() -> bool:
    return True


def test_values() -> None:
    assert same("9223372036854775807", 9223372036854775807)
    assert not same(1, expected_flag())
    assert not same(None, "")
    assert same([["61", None]], [["61", None]])


def test_features() -> None:
    features = {"magic": [0, 2], "crc": False, "control": "none", "policy": True, "headers": "ordered"}
    assert has_feature("magic:2", features)
    assert not has_feature("magic:1", features)
    assert not has_feature("crc", features)
    assert not has_feature("control", features)
    assert has_feature("policy:append", features)
    assert has_feature("headers:ordered", features)
    assert missing_feature(("magic:2", "codec:zstd"), features) == "codec:zstd"
    assert missing_feature(("crc", "magic:2"), features) is None, "a check that is not made is no reason to skip"
    assert missing_feature(("provesIndexes",), features) is None, "what is assumed need not be said"
    assert missing_feature(("provesIndexes",), {**features, "provesIndexes": False}) == "provesIndexes"


def test_an_answer_in_json_is_explained_by_its_records() -> None:
    """The Rust adapters were seen to take 2,000 bytes for each small record: a tree of JSON values."""
    one, many = (
        allowance_of(case(batches=[{**BATCH, "records": RECORDS * count}], consumed=100, tail=None))
        for count in (1, 5001)
    )
    assert one.growth is not None
    assert many.growth is not None
    assert many.growth - one.growth > 2000 * 10_000


def test_no_rule_that_must_be_kept_rests_on_what_an_implementation_may_say_that_it_does_not_do() -> None:
    needing = [case for case in load_cases() if ASSUMED & set(case.needs)]
    assert {case.level for case in needing} == {"should"}
    assert {case.family_name for case in needing} == {"lookup"}


def test_cases_are_chosen_by_id_family_or_pattern() -> None:
    every = load_cases()
    first = every[0]
    assert selected(every, [first.id]) == [first]
    assert selected(every, [first.family_name]) == selected(every, [str(first.family)])
    assert first in selected(every, [f"{first.family_name}/*"])
    assert selected(every, ["no-such-case"]) == []


def test_a_case_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text('{"family": 1, "name": "x", "title": "x", "cases": [{"id": "x/y", "colour": "red"}]}')
    with pytest.raises(CaseError, match="unknown fields: colour"):
        load_cases(path)
    with pytest.raises(CaseError, match="colour"):
        load_cases(path, checked=True)


def test_problems_of_a_case() -> None:
    assert case_problems(case(batches=[{"records": [{"offset": "0"}]}], consumed=0, tail=None)) == []
    assert "expect has no reject" in case_problems(case("invalid", batches=[]))
    assert any("fewer than two" in text for text in case_problems(case("acceptable", allowed=[])))
    assert any("offset" in text for text in case_problems(case(batches=[{"records": [{"offset": "x"}]}])))


@pytest.mark.parametrize("identifier", ["transactions/open", "transactions/open-hides-later", "transactions/two-open"])
def test_reading_all_that_is_committed_ends_where_reading_from_its_start_does(identifier: str) -> None:
    from seglog_conformance.reference import Reference

    case = of_suite(identifier)
    whole = {key: value for key, value in case.request.items() if key != "offset"}
    answer = Reference().answer({"op": "read", "seq": 1, **whole})
    assert answer["nextOffset"] == case.expect["nextOffset"]


class Refuser:
    """Refuses everything by one error."""

    name = "refuser"

    def __init__(self, reject: dict[str, Any], features: dict[str, Any]) -> None:
        self.reject = reject
        self.features = features

    def start(self) -> Hello:
        return Hello(Implementation("refuser", "1", "Python"), ("decode",), {**EVERYTHING, **self.features})

    def ask(self, request: Json, allowance: Allowance) -> Reply:  # noqa: ARG002 - the same answer whatever is allowed
        refusal = {"seq": request["seq"], "ok": False, "reject": self.reject, "batches": []}
        return Reply(Kind.ANSWER, refusal)

    def close(self) -> None:
        pass


OWN = {"errors": ["mine.*", "builtins.ValueError"]}
INVALID = case("invalid", reject={"class": "crc"})


@pytest.mark.parametrize(
    ("error", "features", "verdict"),
    [
        ("builtins.IndexError", OWN, Verdict.ACCIDENT),
        ("builtins.AssertionError", OWN, Verdict.ACCIDENT),
        ("java.lang.NullPointerException", OWN, Verdict.ACCIDENT),
        ("mine.errors.CrcError", OWN, Verdict.PASS),
        ("builtins.ValueError", OWN, Verdict.PASS),
        ("builtins.IndexError", {}, Verdict.PASS),
        (None, OWN, Verdict.PASS),
    ],
)
def test_a_refusal_by_an_error_that_nobody_declares_is_an_accident(
    error: str | None, features: dict[str, Any], verdict: Verdict
) -> None:
    reject = {"class": "other", "message": "no", **({"error": error} if error else {})}
    result = Examiner(Refuser(reject, features)).examine(INVALID)
    assert result.verdict is verdict
    assert (str(error) in result.detail) is (verdict is Verdict.ACCIDENT)
    assert Examiner(Refuser(reject, features)).examine(VALID).verdict is Verdict.REJECTS_VALID
    assert Examiner(Refuser(reject, features)).examine(case("undefined")).verdict is Verdict.PASS


def test_an_accident_is_of_level_should_and_no_failed_must() -> None:
    accident = Examiner(Refuser({"class": "other", "error": "builtins.IndexError"}, OWN)).examine(INVALID)
    passed = Examiner(Refuser({"class": "other", "error": "mine.Error"}, OWN)).examine(replace(INVALID, id="test/two"))
    known = {INVALID.id: INVALID, "test/two": replace(INVALID, id="test/two")}
    assert "1 of 1 must" in badge(Outcome(Listed("mine", "1"), results=[accident, passed]), known)
    lines = list(result_lines(accident, INVALID))
    (cause,) = causes([accident, passed], known)
    assert (cause.level, cause.headline) == (
        "should",
        "refuses what is wrong with the layout of a batch header only by accident",
    )
    assert "ACCIDENT" in lines[0]
    assert lines[1].strip().startswith("should, SEG-BAT-001")
    assert accident.verdict not in FINE
    (level, count), *others = asked_and_found(
        [
            {"type": "testee", "testee": "mine", "version": "1"},
            {"type": "result", "testee": "mine", "version": "1", "case": INVALID.id, "raw": str(accident.raw)},
        ],
        known,
    )[0]["levels"].items()
    assert (level, count) == ("must", {})
    assert dict(others)["should"] == {"ACCIDENT": 1}
