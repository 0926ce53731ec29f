"""A sample of the mutants that `proofs/mutants/mutants.py` tries in great numbers, and the rules that make them."""

from __future__ import annotations

import ast
import gc
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proofs.mutants import mutants, worker
from proofs.mutants.candidates import OUT_OF_SIGHT, Mutant, equivalents
from proofs.mutants.enforcement import REPOSITORY
from proofs.mutants.operators import Mutation, mutations

if TYPE_CHECKING:
    from seglog_conformance.cases import Case

RECORD = "seglog_format/codec/reference.py"
FAMILIES = (
    "plain-batches",
    "header-order",
    "field-lengths",
    "timestamps",
    "log-append-time",
    "varints",
    "record-length",
    "header-count",
    "records-count",
    "transactions",
)
SEED = 11
SAMPLE = 8
CHANGES = {"result left out", "call left out", "arithmetic"}


def _of(text: str) -> set[tuple[str, str]]:
    return {(one.before, one.after) for one in mutations(text, "module.py")}


def test_operators_change_what_a_program_does() -> None:
    assert {("a < b", "(a <= b)"), ("a < b", "(a >= b)")} <= _of("a < b")
    assert {("7", "8"), ("7", "(6)")} <= _of("f(7)")
    assert ("data[a:b]", "data[a + 1:b]") in _of("data[a:b]")
    assert ("'>iq'", "'<iq'") in _of("Struct('>iq')")
    assert ("Int32sb", '__import__("construct").Int32sl') in _of("Int32sb")
    assert ("raise Bad(x)", "pass") in _of("if a: raise Bad(x)")
    assert ("return x", "return None") in _of("def f(x): return x")


def test_operators_leave_words_alone() -> None:
    assert _of('"""Text."""\nx: Final[1] = y\n') == set()
    assert _of("def f():\n    raise Bad(at.at('crc', 17, 4), 'SEG-BAT-003', found=a + 1)") == {
        ("raise Bad(at.at('crc', 17, 4), 'SEG-BAT-003', found=a + 1)", "pass")
    }
    assert _of("x = Doc('a' + b, 1)") == set()
    assert _of("def at_field(x) -> Location: return x\nplace = at_field(7)") == set()
    assert _of("def f():\n    handle.fsync()\n    if sys.platform == 'win32': pass\n") == set()
    assert _of("x = Struct('>b')") == set()
    assert _of("x = Struct('>bi')") == {("'>bi'", "'<bi'")}
    assert _of("class A:\n    def __str__(self): return f'{1}' + x") == set()
    assert _of("@dataclass(frozen=True)\nclass A:\n    pass") == set()


def test_every_change_is_a_program() -> None:
    for file in sorted(REPOSITORY.glob("seglog_format/codec/*.py")):
        text = file.read_text(encoding="utf-8")
        for one in mutations(text, file.name):
            ast.parse(one.apply(text))


def test_a_lot_is_drawn_by_each_mutant_for_itself() -> None:
    def made(line: str) -> tuple[None, Mutant]:
        nothing = frozenset[int]()
        return None, Mutant("generated", "sign", "a.py:f", 1, line, ("1", "2"), {}, nothing, nothing, is_inside=True)

    every = [made(f"line {number % 90}") for number in range(100)]
    first = mutants.chosen(every, 10, 1)
    assert mutants.chosen(every[::-1], 10, 1) == first
    assert mutants.chosen(every, 11, 1)[:10] == first
    assert mutants.chosen(every, 10, 2) != first
    fewer = [one for one in every if one is not first[0]]
    assert mutants.chosen(fewer, 9, 1) == first[1:]


def test_what_an_earlier_report_says_is_taken_over(tmp_path: Path) -> None:
    def made(name: str) -> Mutant:
        nothing = frozenset[int]()
        return Mutant("generated", name, "a.py:f", 1, "line", ("1", "2"), {}, nothing, nothing, is_inside=True)

    row = {"place": "a.py:f", "before": "1", "after": "2", "source": "line", "verdict": "DIFFER"}
    killed = [
        row | {"name": "old", "killedBy": "lookup/offset-0"},
        row | {"name": "gone", "killedBy": "lookup/no-such"},
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"killed": killed, "survivors": [row | {"name": "left", "killedBy": None}]}), "utf-8")
    mutants_now = [made(name) for name in ("new", "old", "gone", "left")]
    left, taken = mutants.kept(mutants_now, report)
    assert [one.name for one in left] == ["new", "gone", "left"]
    assert [(one.name, flag.case) for one, flag in taken] == [("old", "lookup/offset-0")]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case for case in worker.suite() if case.family_name in FAMILIES]


def _ran(changes: list[Mutation], cases: list[Case], *, is_inside: bool) -> dict[int, worker.Flag]:
    text = (REPOSITORY / RECORD).read_text(encoding="utf-8")
    return dict(
        worker.run([worker.Task({RECORD: one.apply(text)}, cases, is_inside) for one in changes], {RECORD: text}, 2)
    )


def test_the_suite_flags_a_sample_in_the_decoder_of_records(cases: list[Case]) -> None:
    text = (REPOSITORY / RECORD).read_text(encoding="utf-8")
    first, last = (text[: text.index(start)].count("\n") for start in ("def decode_first_record", "BY_DECLARATION: "))
    every = [one for one in mutations(text, RECORD) if one.operator in CHANGES and first < one.line < last]
    chosen = random.Random(SEED).sample(every, SAMPLE)  # noqa: S311 - a sample, no secret
    gc.freeze()  # as the command line does, which other tests have run
    inside, started = (_ran(chosen, cases, is_inside=is_inside) for is_inside in (True, False))
    survived = {number for number, flag in started.items() if flag.case is None}
    assert survived == {number for number, flag in inside.items() if flag.case is None}
    assert len(survived) <= SAMPLE // 4  # these few families do not see everything


def test_the_package_as_it_is_survives(cases: list[Case]) -> None:
    same = Mutation(RECORD, 1, "", "nothing", "", "", 0, 0, None)
    assert _ran([same], cases, is_inside=False)[0].case is None


def test_a_mutant_that_never_ends_is_flagged(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CASE_SECONDS", 2)
    text = (REPOSITORY / RECORD).read_text(encoding="utf-8")
    endless = [
        Mutation(RECORD, 1, "", "nothing", "", "while True: pass\n", len(text.encode()), len(text.encode()), None)
    ]
    flag = _ran(endless, cases[:1], is_inside=False)[0]
    assert (flag.case, flag.verdict) == ("(import)", "HANG")


def test_the_kept_report_is_of_enough_mutants_and_hides_none() -> None:
    found = json.loads((REPOSITORY / "reports" / "mutants.json").read_text(encoding="utf-8"))
    assert found["generated"]["mutants"] >= 300
    counted = found["generated"]["mutants"] + found["byHand"]["mutants"]
    assert len(found["killed"]) + len(found["survivors"]) == counted


def test_rates_follow_the_list_of_equivalents(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"kind": "generated", "name": "sign", "place": "seglog_format/log/a.py:f", "line": 1, "before": "1"}
    killed = [{**one, "after": "2", "killedBy": "a/b", "verdict": "DIFFER"}]
    left = [{**one, "after": after, "killedBy": None, "verdict": "PASS", "source": "x = 1"} for after in ("3", "4")]
    key = (one["place"], "x = 1", "1", "3")
    monkeypatch.setattr(mutants, "equivalents", lambda: {key: "It is the same."})
    found = mutants.counted_again({"survivors": left, "killed": killed, "seed": 1})
    counts = found["generated"]
    assert (counts["killed"], counts["equivalent"], counts["survived"], counts["share"]) == (1, 1, 1, 0.5)
    assert [row["equivalent"] for row in found["survivors"]] == ["It is the same.", None]


def test_what_is_set_aside_has_a_reason() -> None:
    assert all(Path(REPOSITORY / file).is_file() for file in OUT_OF_SIGHT)
    assert all(reason.strip() for reason in equivalents().values())
    assert mutants.MIN_SHARE == 0.95


def test_every_equivalent_mutant_can_still_be_made() -> None:
    """An entry that outlives its code would excuse whatever comes to stand in its place."""
    made: dict[str, set[tuple[str, ...]]] = {}
    for scope_path, *rest in equivalents():
        file = scope_path.partition(":")[0]
        if file not in made:
            text = (REPOSITORY / file).read_text(encoding="utf-8")
            lines = text.splitlines()
            made[file] = {
                (one.scope_path, lines[one.line - 1].strip(), one.before, one.after) for one in mutations(text, file)
            }
        assert (scope_path, *rest) in made[file]
