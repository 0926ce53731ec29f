"""The templates speak the protocol as they are, and judge what fills them in: one operation alone, right or wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.filled_templates import FILLED, written, written_storage
from helpers.support import need
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.protocol import schema_errors
from seglog_conformance.registry import Builder, Listed, read_adapter
from seglog_conformance.testee import Allowance
from seglog_conformance.verdicts import Verdict

from seglog_format.cli.main import seglog

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LINES = 165
TEMPLATES = Path(__file__).parent.parent / "conformance" / "templates"
STORAGE = ("write", "recover", "truncate", "retain", "compact", "read")


def smoked(adapter: Path) -> tuple[int, str]:
    """Return status and output of the smoke test of an adapter, which is built as its description says."""
    need("the template", read_adapter(adapter).toolchain)
    return invoked("smoke", "--adapter", str(adapter), "--build", f"{adapter}-build")


def invoked(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(seglog, ["conform", *arguments], standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value or 0), done.output


def filled_and_smoked(language: str, adapter: Path, ops: Sequence[str], wrong: Sequence[str] = ()) -> tuple[int, str]:
    written(language, adapter, ops, wrong)
    return smoked(adapter)


@pytest.mark.parametrize("op", ["encode", "index"])
@pytest.mark.parametrize("language", FILLED)
def test_an_operation_alone_passes(language: str, op: str, tmp_path: Path) -> None:
    """The templates answered `decode` and `lookup` whether or not these were filled in, and nothing else."""
    status, text = filled_and_smoked(language, tmp_path / "mine", [op])
    assert (status, "the adapter works" in text) == (0, True), text
    assert f"; {op}\n" in text
    assert "hint" not in text


@pytest.mark.parametrize("language", FILLED)
def test_a_wrong_operation_fails_by_its_name(language: str, tmp_path: Path) -> None:
    status, text = filled_and_smoked(language, tmp_path / "mine", ["encode", "index"], wrong=["encode", "index"])
    assert (status, "the adapter is broken" in text) == (1, True), text
    said = "hint: encode answers otherwise than expected, at first encoding/three-records: the encoded bytes "
    assert said in text.splitlines()[0], text
    assert "  index-build/eight-batches: DIFFER: files" in text


@pytest.mark.parametrize("language", [language for language in FILLED if language != "python"])
def test_a_template_as_it_is_is_asked_nothing(language: str, tmp_path: Path) -> None:
    """They answered each request with a refusal: *call your library here*."""
    adapter = tmp_path / "mine"
    written(language, adapter, [])
    next(adapter.rglob(FILLED[language].library)).unlink()
    status, text = smoked(adapter)
    assert status == 1
    assert "every case was skipped: ops and features in the answer to hello exclude all cases" in text


@pytest.mark.parametrize("language", FILLED)
def test_a_template_looks_up_offsets(language: str, tmp_path: Path) -> None:
    adapter = tmp_path / "mine"
    written(language, adapter, ["lookup"])
    found = read_adapter(adapter)
    need("the template", found.toolchain)
    testee = Builder(tmp_path / "build", strict=True).testee(Listed(found.name, "1.0.0", found))
    examiner = Examiner(testee, seconds=20, extra_growth=128 << 20)
    cases = [case for case in load_cases() if case.family_name == "lookup" and not case.needs and case.level == "must"]
    try:
        assert examiner.start().ops == ("lookup",)
        results = {case.id: examiner.examine(case) for case in cases}
    finally:
        examiner.close()
    assert results["lookup/offset-0"].verdict is Verdict.PASS
    by_offset = [results[case.id].verdict for case in cases if set(case.request) == {"files", "offset"}]
    assert by_offset.count(Verdict.PASS) > 20
    assert results["lookup/time-1012"].verdict is Verdict.SKIP


def test_the_python_template_decodes_over_a_library(tmp_path: Path) -> None:
    status, text = filled_and_smoked("python", tmp_path / "mine", ["decode", "lookup", "encode", "index"])
    assert (status, "the adapter works" in text) == (0, True), text
    assert "; decode, lookup, encode, index\n" in text


def test_a_storage_passes_in_all_its_operations(tmp_path: Path) -> None:
    written_storage(tmp_path / "mine")
    status, text = smoked(tmp_path / "mine")
    assert (status, "the adapter works" in text) == (0, True), text
    assert f"; {', '.join(STORAGE)}\n" in text
    assert "hint" not in text
    run = ["run", "--adapter", str(tmp_path / "mine"), "--build", str(tmp_path / "mine-build"), "--strict"]
    status, text = invoked(*run, "--no-smoke", "--family", "compaction-results")
    assert status == 0, text


@pytest.mark.parametrize(
    ("op", "right", "wrong"),
    [
        ("write", "first_offset=done.first_offset", "first_offset=done.first_offset + 1"),
        ("recover", "after.plan.log_end_offset", "after.plan.log_end_offset + 1"),
        ("truncate", "done.plan.offset", "done.plan.offset + 1"),
        ("retain", "start=plan.log_start_offset", "start=plan.log_start_offset + 1"),
        ("compact", "end=plan.end_offset", "end=plan.end_offset + 1"),
        ("read", "found.next_offset", "found.next_offset + 1"),
    ],
)
def test_a_storage_that_is_wrong_fails_by_the_operation(op: str, right: str, wrong: str, tmp_path: Path) -> None:
    written_storage(tmp_path / "mine", (right, wrong))
    status, text = smoked(tmp_path / "mine")
    assert (status, "the adapter is broken" in text) == (1, True), text
    assert f"{op} answers otherwise than expected, at first " in text


def test_the_go_template_builds_with_a_library_that_is_not_published(tmp_path: Path) -> None:
    need("the template", ["go"])
    adapter, library = tmp_path / "adapter", tmp_path / "your-library"
    shutil.copytree(TEMPLATES / "go", adapter)
    library.mkdir()
    (library / "go.mod").write_text("module example.org/your-library\n\ngo 1.21\n")
    (library / "library.go").write_text('package library\n\nconst Name = "not published"\n')
    source = 'package main\n\nimport library "example.org/your-library"\n\n'
    decoder = "func([]byte) ([]object, error) { return nil, skip(library.Name) }"
    (adapter / "mine.go").write_text(f"{source}func init() {{ decode = {decoder} }}\n")
    lines = (adapter / "adapter.toml").read_text().splitlines()
    kept = [line.replace("# [", "[") for line in lines if '"get"' not in line or line.lstrip().startswith("#")]
    (adapter / "adapter.toml").write_text("\n".join(kept))
    testee = Builder(tmp_path / "build").testee(Listed("your-library", "v1.0.0", read_adapter(adapter)))
    try:
        assert testee.start().ops == ("decode",)
        reply = testee.ask({"seq": 1, "op": "decode", "data": "00"}, Allowance())
    finally:
        testee.close()
    assert reply.answer is not None
    assert reply.answer["skip"]["reason"] == "not published"


@pytest.mark.parametrize("language", FILLED)
def test_a_template_is_short_and_its_description_fits(language: str) -> None:
    adapter = read_adapter(TEMPLATES / language)
    lines = (TEMPLATES / language / FILLED[language].source).read_text(encoding="utf-8").splitlines()
    assert adapter.name == "your-library"
    assert len(lines) <= MAX_LINES


def test_a_description_with_an_unknown_field_is_refused() -> None:
    stored = {"name": "x", "language": "C", "versions": ["1"], "run": ["x"], "colour": "red"}
    assert schema_errors(stored, "adapter")
