"""The templates speak the protocol as they are, and the Python one passes with a library behind it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.support import need
from helpers.template_finders import FINDERS
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.protocol import schema_errors
from seglog_conformance.registry import Builder, Listed, read_adapter
from seglog_conformance.smoke import smoke
from seglog_conformance.testee import Allowance
from seglog_conformance.verdicts import Verdict

from seglog_format.cli.main import seglog

if TYPE_CHECKING:
    from seglog_conformance.testee import Testee

MAX_LINES = 105
TEMPLATES = Path(__file__).parent.parent / "conformance" / "templates"
SOURCES = {
    "python": "adapter.py",
    "go": "main.go",
    "rust": "src/main.rs",
    "java": "Adapter.java",
    "javascript": "adapter.mjs",
}
LIBRARY = '''
"""What the template calls, over the reference."""
from seglog_format import decode_batch, open_partition, walk

__version__ = "1"


class Batch(list):
    pass


def batches(data):
    for frame in walk(data):
        decoded = decode_batch(frame.data)
        batch = Batch(Record(one) for one in decoded.records)
        batch.base_offset, batch.is_control = decoded.base_offset, decoded.header.is_control
        yield batch


def find(directory, offset):
    with open_partition(directory) as partition:
        return next((batch for batch in partition.batches() if offset <= batch.last_offset), None)


class Record:
    def __init__(self, one):
        self.offset, self.timestamp, self.key, self.value = one.offset, one.timestamp_ms, one.key, one.value
        self.headers = [(pair.key, pair.value) for pair in one.headers]
'''


def program(name: str) -> str:
    need("the template", [name])
    return name


def built(language: str, directory: Path) -> tuple[str, ...]:
    """Return the command of a template, built without its library."""
    source = TEMPLATES / language
    match language:
        case "python":
            (directory / "your_library.py").write_text(LIBRARY, encoding="utf-8")
            return sys.executable, str(source / "adapter.py")
        case "javascript":
            return program("node"), str(source / "adapter.mjs"), "1"
        case "java":
            subprocess.run(
                [program("javac"), "-d", str(directory), str(source / "Adapter.java")], check=True, timeout=120
            )
            return program("java"), "-cp", str(directory), "Adapter", "1"
        case _:
            for name in ("main.go", "go.mod"):
                shutil.copy(source / name, directory)
            subprocess.run([program("go"), "build", "-o", "adapter", "."], check=True, cwd=directory, timeout=300)
            return str(directory / "adapter"), "1"


@pytest.mark.parametrize("language", ["python", "javascript", "java", "go"])
def test_the_template_speaks_the_protocol(language: str, tmp_path: Path) -> None:
    arguments = built(language, tmp_path)
    testee = ProcessTestee(
        language, Command(arguments=arguments, environment={"PYTHONPATH": str(tmp_path)}), strict=True
    )
    examiner = Examiner(testee, seconds=20, extra_growth=128 << 20)
    try:
        hello = examiner.start()
        found = smoke(examiner, [case for case in load_cases() if case.needs == ("magic:2",)])
    finally:
        examiner.close()
    expected = Verdict.PASS if language == "python" else Verdict.REJECTS_VALID
    assert hello.ops == ("decode", "lookup")
    assert {result.verdict for result in found.results} == {expected}, found
    assert language == "python" or all("call your library here" in result.detail for result in found.results)


def filled_in(language: str, directory: Path) -> Testee:
    """Return what ``conform new`` writes, built as it says, without the library and with a lookup of a few lines."""
    if language == "python":
        environment = {"PYTHONPATH": str(directory)}
        return ProcessTestee(
            language, Command(arguments=built(language, directory), environment=environment), strict=True
        )
    adapter = directory / "adapter"
    done = CliRunner().invoke(seglog, ["conform", "new", language, str(adapter)])
    assert done.exit_code == 0, done.output
    description, source = adapter / "adapter.toml", adapter / SOURCES[language]
    kept = [line for line in description.read_text().splitlines() if "your-library@" not in line]
    description.write_text("\n".join(kept))
    before, after = FINDERS[language]
    text = source.read_text().replace(before, after)
    assert after in text
    source.write_text(text.replace('"encoding/hex"\n', '"encoding/binary"\n\t"encoding/hex"\n'))
    found = read_adapter(adapter)
    need("the template", found.toolchain)
    return Builder(directory / "build", strict=True).testee(Listed(found.name, "1.0.0", found))


@pytest.mark.parametrize("language", SOURCES)
def test_a_template_looks_up_offsets(language: str, tmp_path: Path) -> None:
    examiner = Examiner(filled_in(language, tmp_path), seconds=20, extra_growth=128 << 20)
    cases = [case for case in load_cases() if case.family_name == "lookup" and not case.needs and case.level == "must"]
    try:
        results = {case.id: examiner.examine(case) for case in cases}
    finally:
        examiner.close()
    assert results["lookup/offset-0"].verdict is Verdict.PASS
    by_offset = [results[case.id].verdict for case in cases if set(case.request) == {"files", "offset"}]
    assert by_offset.count(Verdict.PASS) > 20
    assert results["lookup/time-1012"].verdict is Verdict.SKIP


def test_the_go_template_builds_with_a_library_that_is_not_published(tmp_path: Path) -> None:
    need("the template", ["go"])
    adapter, library = tmp_path / "adapter", tmp_path / "your-library"
    shutil.copytree(TEMPLATES / "go", adapter)
    library.mkdir()
    (library / "go.mod").write_text("module example.org/your-library\n\ngo 1.21\n")
    (library / "library.go").write_text('package library\n\nconst Name = "not published"\n')
    source = (
        (adapter / "main.go").read_text().replace('"strconv"\n', '"strconv"\n\n\tlibrary "example.org/your-library"\n')
    )
    (adapter / "main.go").write_text(source.replace('"call your library here', 'library.Name+"call your library here'))
    lines = (adapter / "adapter.toml").read_text().splitlines()
    kept = [line.replace("# [", "[") for line in lines if '"get"' not in line or line.lstrip().startswith("#")]
    (adapter / "adapter.toml").write_text("\n".join(kept))
    testee = Builder(tmp_path / "build").testee(Listed("your-library", "v1.0.0", read_adapter(adapter)))
    try:
        assert testee.start().ops == ("decode", "lookup")
        reply = testee.ask({"seq": 1, "op": "decode", "data": "00"}, Allowance())
    finally:
        testee.close()
    assert reply.answer is not None
    assert reply.answer["reject"]["message"].startswith("not published")


@pytest.mark.parametrize("language", SOURCES)
def test_a_template_is_short_and_its_description_fits(language: str) -> None:
    adapter = read_adapter(TEMPLATES / language)
    lines = (TEMPLATES / language / SOURCES[language]).read_text(encoding="utf-8").splitlines()
    assert adapter.name == "your-library"
    assert len(lines) <= MAX_LINES


def test_a_description_with_an_unknown_field_is_refused() -> None:
    stored = {"name": "x", "language": "C", "versions": ["1"], "run": ["x"], "colour": "red"}
    assert schema_errors(stored, "adapter")
