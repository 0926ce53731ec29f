"""The verdict on an answer to a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.byte_difference import byte_difference, nearest_part
from seglog_conformance.delivered import batches_in, header_order, leading_of, records_in, sound_of, without_control
from seglog_conformance.features import EVERYTHING, Mask, reported
from seglog_conformance.free_fields import with_usual_values
from seglog_conformance.positions import after_error, compare_positions, with_positions
from seglog_conformance.protocol import field_names, untold_in
from seglog_conformance.summary import compare_summary
from seglog_conformance.values import differences, extras, same
from seglog_conformance.verdicts import MISSING, Difference, Judgement, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

MAX_DIFFERENCES: Final = 20
RECORDS_FIRST: Final = "correct records, then the error"
"""Name of the branch for readers that deliver records one at a time: the records before the damage, then an error."""
ENCODED: Final = ("ok", "data", "reject")
"""Names in an answer with encoded batches; the rest comes from the reference, which reads them."""
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
        untold = untold_in(case.op)
        found = (*extras(answer, ENCODED, untold), *extras(answer.get("reject") or {}, (), untold, "reject"))
        judgement = _compare(case, _decoded(answer), features)
        is_more = judgement.verdict is Verdict.PASS and found
        return Judgement(Verdict.DIFFER, str(found[0]), found) if is_more else judgement
    return _compare(case, answer, features)


def _compare(case: Case, answer: Json, features: Json) -> Judgement:
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
    untold = (*untold_in(op), *case.untold)
    if case.is_summed_up:
        return with_positions(compare_summary(expect, answer, Mask(features)), expect, answer)
    if op in {"decode", "encode", "read"}:
        mask = Mask(EVERYTHING if op == "encode" else features)
        comparison = _Comparison(op, expect, answer, mask, case.also, untold)
        judgement = comparison.refusal(case) if "reject" in expect else comparison.result()
        return after_error(with_positions(judgement, expect, answer), expect, answer)
    if op == "position" and answer["ok"]:
        return compare_positions(expect["positions"], answer["positions"])
    if "reject" in expect:
        return _refused(answer, untold)
    wanted = reported(expect, features)
    unreported = {name: value for name, value in expect.items() if name not in wanted and name != "branch"}
    return _plain(op, wanted, answer, {**unreported, **case.also}, untold)


def _refused(answer: Json, untold: Sequence[str]) -> Judgement:
    """Compare a refusal, beside which nothing else may be in the answer."""
    if answer["ok"]:
        return Judgement(Verdict.ACCEPTS_INVALID, "it was not refused", compared=("ok",))
    found = tuple(differences({"ok": False, "reject": {}}, answer, untold=untold))
    return Judgement(Verdict.DIFFER if found else Verdict.PASS, str(found[0]) if found else "", found, ("ok",))


def _rejected(answer: Json) -> Judgement:
    return Judgement(Verdict.REJECTS_VALID, reject_text(answer), compared=("ok",))


def reject_text(answer: Json) -> str:
    """Return the text of a refusal, in one line."""
    reject = answer.get("reject", {})
    return " ".join(str(reject[name]) for name in ("class", "error", "message") if reject.get(name)) or "refused"


def _plain(op: str, expect: Json, answer: Json, also: Json, untold: Sequence[str]) -> Judgement:
    """Compare all fields of an answer one by one."""
    if not answer["ok"]:
        return _rejected(answer)
    names = tuple(name for name in expect if name != "branch")
    wanted = {name: expect[name] for name in names}
    found = tuple(differences({"ok": True, **wanted}, answer, also=also, untold=untold))
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

    def __init__(self, op: str, expect: Json, answer: Json, mask: Mask, also: Json, untold: Sequence[str]) -> None:
        self.op = op
        self.also = also
        self.untold = untold
        self.expect = expect
        self.answer = answer
        self.mask = mask
        self.compared: dict[str, None] = {}
        self.found: list[Difference] = []

    @property
    def expected_batches(self) -> list[Json]:
        return batches_in(self.op, self.expect)

    @property
    def given_batches(self) -> list[Json]:
        return batches_in(self.op, self.answer)

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
            expected, given = self.expect[name], self.answer.get(name, MISSING)
            found = [] if same(expected, given) else [Difference(name, expected, given)]
            is_encoding = name == "data" and found and given is not MISSING
            self.found += [byte_difference(name, expected, given)] if is_encoding else found
        self._look_for_fixed_bytes()
        self._look_for_more()
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

    def _look_for_more(self) -> None:
        """Find what is beside the batches or records, and not expected."""
        if self.op == "encode":
            return
        masked = {"consumed", "tail"} if self.op == "decode" and not self.mask.has_tail else set()
        names = {"ok", "batches" if self.op == "decode" else "records", *self.expect, *masked} - {"reject"}
        beside = {name: value for name, value in self.answer.items() if name not in names}
        self.found += differences({}, beside, also={**self.also, "reject": {}}, untold=self.untold)
        self.found += extras(self.answer.get("tail") or {}, ("at", "class"), self.untold, "tail")
        for number, one in enumerate(self.given_batches if self.op == "decode" else ()):
            self._find_extras(f"batches[{number}]", field_names("batch"), one)

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
        if not self.answer["ok"]:
            self._look_for_more()
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
            expected, given = without_control(expected), without_control(given)
        self.compared["batches.length"] = None
        if len(expected) != len(given):
            self.found.append(Difference("batches.length", len(expected), len(given)))
        for number, (one, other) in enumerate(zip(expected, given, strict=False)):
            field_path = f"batches[{number}]"
            for name in self.mask.batch_fields(one):
                if self.op != "encode" or name not in UNSTABLE:
                    self._compare_field("batch", field_path, name, one[name], other.get(name, MISSING))
            self._find_extras(field_path, {*one, "records"}, other)
            self._compare_records(f"{field_path}.", records_in(one), records_in(other))

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
        self._find_extras(field_path, {*expected, "headers"}, given)

    def _find_extras(self, field_path: str, names: Collection[str], given: Json) -> None:
        """Find members of a batch or record that are not expected; the reference's reading may have any."""
        if self.op != "encode":
            self.found += extras(given, names, self.untold, field_path)

    def _compare_field(self, kind: str, field_path: str, name: str, expected: object, found: object) -> None:
        self.compared[f"{kind}.{name}"] = None
        if not same(expected, found):
            self.found.append(Difference(f"{field_path}.{name}", expected, found))

    def _headers(self, record: Json) -> list[Any]:
        headers = list(record.get("headers") or [])
        return sorted(headers, key=header_order) if self.mask.header_order == "unordered" else headers

    def _records_from_damage_on(self, case: Case, given: Sequence[Json], extra: int) -> Judgement:
        """Return the verdict on an answer with more records than those of the batches before the damage."""
        if not self.answer["ok"]:
            if self._begins(given, self._records(leading_of(case))):
                return Judgement(Verdict.PASS, compared=tuple(self.compared), branch=RECORDS_FIRST)
        elif self._are_part_of(given, self._records(sound_of(case))):
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
        other = _Comparison(self.op, {}, {}, self.mask, {}, self.untold)
        other._compare_record("records[0]", expected, given)
        return not other.found

    def _records(self, batches: list[Json]) -> list[Json]:
        wanted = batches if self.mask.has_control else without_control(batches)
        return [record for batch in wanted for record in records_in(batch)]
