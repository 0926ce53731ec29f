"""The verdict on an answer to a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.byte_difference import byte_difference, nearest_part
from seglog_conformance.features import EVERYTHING, Mask, reported
from seglog_conformance.free_fields import with_usual_values
from seglog_conformance.positions import after_error, compare_positions, with_positions
from seglog_conformance.summary import compare_summary
from seglog_conformance.values import differences, same
from seglog_conformance.verdicts import MISSING, Difference, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

MAX_DIFFERENCES: Final = 20
RECORDS_FIRST: Final = "correct records, then the error"
"""Name of the branch for readers that deliver records one at a time: the records before the damage, then an error."""
UNSTABLE: Final = frozenset({"position", "sizeInBytes", "crc"})
"""Fields that depend on the compressor; they are not compared in encoded batches."""


def compare(case: Case, answer: Json, features: Json) -> Judgement:
    """Give a verdict on an answer.

    Args:
        case: the case.
        answer: a result or a refusal; no skip and no error.
        features: of the implementation; fields that it does not report are not compared.
    """
    if case.result == "undefined":
        return Judgement(Verdict.PASS)
    if case.op == "encode":
        answer = _decoded(answer)
    if case.result == "acceptable":
        return _acceptable(case, answer, features)
    return _against(case, case.expect, answer, features)


def _acceptable(case: Case, answer: Json, features: Json) -> Judgement:
    branches = case.expect["allowed"]
    found = [(_against(case, branch, answer, features), str(branch["branch"])) for branch in branches]
    for judgement, branch in found:
        if judgement.verdict is Verdict.PASS:
            return Judgement(Verdict.PASS, compared=judgement.compared, branch=branch)
    nearest, branch = min(found, key=lambda item: len(item[0].differences))
    same = {judgement.verdict for judgement, _ in found}
    verdict = nearest.verdict if len(same) == 1 else Verdict.DIFFER
    return Judgement(verdict, f"none of {len(found)} allowed answers; nearest is {branch}", nearest.differences)


def _against(case: Case, expect: Json, answer: Json, features: Json) -> Judgement:
    judgement = _by_op(case, expect, answer, features)
    is_refused = judgement.verdict is Verdict.PASS and case.result == "invalid" and not answer["ok"]
    if not is_refused or not features.get("requirements"):
        return judgement
    return _compare_rule(case, expect, judgement, answer)


def _compare_rule(case: Case, expect: Json, judgement: Judgement, answer: Json) -> Judgement:
    """Compare the rule that a refusal names: with the rule of the expected answer, or with the first of the case.

    A refusal without a rule rests on none, such as the refusal of a setting that is out of its range.
    """
    wanted = expect.get("reject", {}).get("requirement", case.requirements[0])
    found = answer["reject"].get("requirement")
    compared = (*judgement.compared, "reject.requirement")
    if found is None or found == wanted:
        return Judgement(Verdict.PASS, judgement.detail, (), compared, judgement.branch)
    difference = Difference("reject.requirement", wanted, found)
    return Judgement(Verdict.DIFFER, str(difference), (difference,), compared)


def _by_op(case: Case, expect: Json, answer: Json, features: Json) -> Judgement:
    op = case.op
    if case.is_summed_up:
        return with_positions(compare_summary(expect, answer, Mask(features)), expect, answer)
    if op in {"decode", "encode", "read"}:
        comparison = _Comparison(op, expect, answer, Mask(EVERYTHING if op == "encode" else features))
        judgement = comparison.refusal(case) if "reject" in expect else comparison.result()
        return after_error(with_positions(judgement, expect, answer), expect, answer)
    if op == "position" and answer["ok"]:
        return compare_positions(expect["positions"], answer["positions"])
    if op == "lookup" and features.get("indexEntry") is False:
        expect = {**expect, "found": _without_entry(expect.get("found"))}
    return _refused(answer) if "reject" in expect else _plain(op, reported(expect, features), answer)


def _without_entry(found: Json | None) -> Json | None:
    """Return the result of a lookup without the index entry at which the search began."""
    return found and {name: value for name, value in found.items() if name != "entry"}


def _refused(answer: Json) -> Judgement:
    if answer["ok"]:
        return Judgement(Verdict.ACCEPTS_INVALID, "it was not refused", compared=("ok",))
    return Judgement(Verdict.PASS, compared=("ok",))


def _rejected(answer: Json) -> Judgement:
    return Judgement(Verdict.REJECTS_VALID, reject_text(answer), compared=("ok",))


def reject_text(answer: Json) -> str:
    """Return the text of a refusal, in one line."""
    reject = answer.get("reject", {})
    return " ".join(str(reject[name]) for name in ("class", "error", "message") if reject.get(name)) or "refused"


def _plain(op: str, expect: Json, answer: Json) -> Judgement:
    """Compare the fields of an answer one by one, as far as they are expected."""
    if not answer["ok"]:
        return _rejected(answer)
    names = tuple(name for name in expect if name != "branch")
    found = tuple(difference for name in names for difference in differences(name, expect[name], answer, name))
    if found:
        return Judgement(Verdict.DIFFER, str(found[0]), found[:MAX_DIFFERENCES], names)
    return Judgement(Verdict.PASS, compared=tuple(f"{op}.{name}" for name in names))


def _decoded(answer: Json) -> Json:
    """Return the encoded batches as the reference reads them."""
    if not answer["ok"]:
        return answer
    from seglog_conformance.reference import decode  # noqa: PLC0415 - the reference is needed for this alone

    data = str(answer.get("data", ""))
    try:
        found = decode({"data": data})
    except ValueError as error:
        found = {"ok": False, "reject": {"class": "other", "message": f"data is no hex: {error}"}}
    return {
        **found,
        "ok": True,
        "data": with_usual_values(data),
        "unreadable": not found["ok"],
        "reject": found.get("reject"),
    }


class _Comparison:
    """The comparison of batches, or of records alone, with the expected ones."""

    def __init__(self, op: str, expect: Json, answer: Json, mask: Mask) -> None:
        self.op = op
        self.expect = expect
        self.answer = answer
        self.mask = mask
        self.compared: dict[str, None] = {}
        self.found: list[Difference] = []

    @property
    def expected_batches(self) -> list[Json]:
        return _batches(self.op, self.expect)

    @property
    def given_batches(self) -> list[Json]:
        return _batches(self.op, self.answer)

    def result(self) -> Judgement:
        """Return the verdict on the answer to bytes that must be read."""
        if not self.answer["ok"]:
            return _rejected(self.answer)
        if self.op == "encode" and self.answer["unreadable"]:
            return self._judgement(Verdict.DIFFER, f"the encoded bytes cannot be read: {reject_text(self.answer)}")
        if "batches" in self.expect or "records" in self.expect:
            self._compare(self.expected_batches, self.given_batches)
        for name in self._other_fields():
            self.compared[name] = None
            found = list(differences(name, self.expect[name], self.answer, name))
            is_encoding = name == "data" and found and "data" in self.answer
            self.found += [byte_difference(name, self.expect[name], self.answer[name])] if is_encoding else found
        self._look_for_fixed_bytes()
        if not self.found:
            return self._judgement(Verdict.PASS)
        lost = self._lost_count()
        if lost:
            return self._judgement(Verdict.SILENT, f"{lost} records are missing, and there is no error")
        return self._judgement(Verdict.DIFFER, str(self.found[0]))

    def _other_fields(self) -> Iterator[str]:
        if self.op == "decode" and self.mask.has_tail:
            yield from (name for name in ("consumed",) if name in self.expect)
            self._compare_tail()
        if self.op in {"encode", "read"}:
            yield from (name for name in ("data", "nextOffset") if name in self.expect)

    def _look_for_fixed_bytes(self) -> None:
        """Compare the bytes of an encoding that the format fixes; the encoder chooses the others."""
        wanted = self.expect.get("contains", "") if self.op == "encode" else ""
        if wanted not in self.answer.get("data", ""):
            self.found.append(nearest_part("data", wanted, self.answer["data"]))

    def _compare_tail(self) -> None:
        """Compare whether bytes follow, and from where on; the kind that the answer gives is not compared."""
        if "tail" not in self.expect:
            return
        self.compared["tail"] = None
        expected, found = self.expect["tail"], self.answer.get("tail", MISSING)
        positions = [value.get("at") if isinstance(value, dict) else value for value in (expected, found)]
        if not same(*positions):
            self.found.append(Difference("tail", expected, found))

    def _lost_count(self) -> int:
        """Return the number of records that are missing from an answer, if all others are right."""
        expected, given = self._records(self.expected_batches), self._records(self.given_batches)
        if len(given) >= len(expected):
            return 0
        return len(expected) - len(given) if self._are_part_of(given, expected) else 0

    def _are_part_of(self, given: Sequence[Json], expected: Sequence[Json]) -> bool:
        """Return whether records are part of the expected ones, in the same order."""
        left = iter(expected)
        return all(any(self._is_same_record(one, record) for one in left) for record in given)

    def refusal(self, case: Case) -> Judgement:
        """Return the verdict on an answer to bytes that must be refused; records before the damage may be delivered."""
        allowed, given = self._records(self.expected_batches), self._records(self.given_batches)
        if len(given) > len(allowed):
            return self._records_from_damage_on(case, given, len(given) - len(allowed))
        for number, (one, other) in enumerate(zip(allowed, given, strict=False)):
            self._compare_record(f"records[{number}]", one, other)
        if self.found:
            return self._judgement(Verdict.DIFFER, str(self.found[0]))
        if not self.answer["ok"]:
            return self._judgement(Verdict.PASS)
        if self.op == "encode":
            return self._judgement(Verdict.ACCEPTS_INVALID, "it was encoded")
        return self._judgement(Verdict.SILENT, "there is no error, and nothing from the damage on")

    def _judgement(self, verdict: Verdict, detail: str = "") -> Judgement:
        return Judgement(verdict, detail, tuple(self.found[:MAX_DIFFERENCES]), tuple(self.compared))

    def _compare(self, expected: list[Json], given: list[Json]) -> None:
        if self.mask.has_batches and self.op != "read":
            self._compare_batches(expected, given)
        else:
            self._compare_records("", self._records(expected), self._records(given))

    def _compare_batches(self, expected: list[Json], given: list[Json]) -> None:
        if not self.mask.has_control:
            expected, given = _without_control(expected), _without_control(given)
        self.compared["batches.length"] = None
        if len(expected) != len(given):
            self.found.append(Difference("batches.length", len(expected), len(given)))
        for number, (one, other) in enumerate(zip(expected, given, strict=False)):
            field_path = f"batches[{number}]"
            for name in self.mask.batch_fields(one):
                if self.op != "encode" or name not in UNSTABLE:
                    self._compare_field("batch", field_path, name, one[name], other.get(name, MISSING))
            self._compare_records(f"{field_path}.", _records(one), _records(other))

    def _compare_records(self, field_path: str, expected: Sequence[Json], given: Sequence[Json]) -> None:
        self.compared["records.length"] = None
        if len(expected) != len(given):
            self.found.append(Difference(f"{field_path}records.length", len(expected), len(given)))
        for number, (one, other) in enumerate(zip(expected, given, strict=False)):
            self._compare_record(f"{field_path}records[{number}]", one, other)

    def _compare_record(self, field_path: str, expected: Json, given: Json) -> None:
        for name in self.mask.record_fields(expected):
            one, other = expected.get(name, MISSING), given.get(name, MISSING)
            if name == "headers":
                one, other = self._headers(expected), self._headers(given)
            if self.op != "encode" or name not in UNSTABLE:
                self._compare_field("record", field_path, name, one, other)

    def _compare_field(self, kind: str, field_path: str, name: str, expected: object, found: object) -> None:
        self.compared[f"{kind}.{name}"] = None
        if not same(expected, found):
            self.found.append(Difference(f"{field_path}.{name}", expected, found))

    def _headers(self, record: Json) -> list[Any]:
        headers = list(record.get("headers") or [])
        return sorted(headers, key=_header_order) if self.mask.header_order == "unordered" else headers

    def _records_from_damage_on(self, case: Case, given: Sequence[Json], extra: int) -> Judgement:
        """Return the verdict on an answer with more records than those of the batches before the damage."""
        if not self.answer["ok"]:
            if self._begins(given, self._records(_leading_batches(case))):
                return Judgement(Verdict.PASS, compared=tuple(self.compared), branch=RECORDS_FIRST)
        elif self._are_part_of(given, self._records(_sound_batches(case))):
            return self._judgement(Verdict.SILENT, "the damage was skipped without an error")
        return self._judgement(Verdict.ACCEPTS_INVALID, f"{extra} records were delivered from the damage on")

    def _begins(self, given: Sequence[Json], whole: Sequence[Json]) -> bool:
        """Return whether records are the first ones of the whole."""
        if len(given) > len(whole):
            return False
        for number, (one, other) in enumerate(zip(whole, given, strict=False)):
            self._compare_record(f"records[{number}]", one, other)
        begins, self.found = not self.found, []
        return begins

    def _is_same_record(self, expected: Json, given: Json) -> bool:
        other = _Comparison(self.op, {}, {}, self.mask)
        other._compare_record("", expected, given)
        return not other.found

    def _records(self, batches: list[Json]) -> list[Json]:
        wanted = batches if self.mask.has_control else _without_control(batches)
        return [record for batch in wanted for record in _records(batch)]


def _sound_batches(case: Case) -> list[Json]:
    """Return the batches of a log that a reader delivers if it skips damaged batches."""
    from seglog_conformance.reference import sound_batches  # noqa: PLC0415 - as above

    return sound_batches(case.request) if case.op == "decode" else []


def _leading_batches(case: Case) -> list[Json]:
    """Return the records before the damage, one by one."""
    from seglog_conformance.reference import leading_batches  # noqa: PLC0415 - as above

    return leading_batches(case.request) if case.op == "decode" else []


def _records(batch: Json) -> list[Json]:
    return list(batch.get("records") or [])


def _batches(op: str, answer: Json) -> list[Json]:
    if op == "read":
        return [{"records": answer.get("records") or []}]
    return list(answer.get("batches") or [])


def _without_control(batches: list[Json]) -> list[Json]:
    return [batch for batch in batches if not batch.get("isControl")]


def _header_order(pair: Any) -> tuple[str, str]:  # noqa: ANN401 - a pair of JSON values
    key, value = (*pair, None, None)[:2]
    return str(key), "" if value is None else f"={value}"
