"""The templates speak the protocol as they are, and the Python one passes with a library behind it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.support import need
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.protocol import schema_errors
from seglog_conformance.registry import read_adapter
from seglog_conformance.smoke import smoke
from seglog_conformance.verdicts import Verdict

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
from seglog_format import decode_batch, walk

__version__ = "1"


class Batch(list):
    pass


def batches(data):
    for frame in walk(data):
        decoded = decode_batch(frame.data)
        batch = Batch(Record(one) for one in decoded.records)
        batch.base_offset, batch.is_control = decoded.base_offset, decoded.header.is_control
        yield batch


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
    assert hello.ops == ("decode",)
    assert {result.verdict for result in found.results} == {expected}, found
    assert language == "python" or all("call your library here" in result.detail for result in found.results)


@pytest.mark.parametrize("language", SOURCES)
def test_a_template_is_short_and_its_description_fits(language: str) -> None:
    adapter = read_adapter(TEMPLATES / language)
    lines = (TEMPLATES / language / SOURCES[language]).read_text(encoding="utf-8").splitlines()
    assert adapter.name == "your-library"
    assert len(lines) <= 75


def test_a_description_with_an_unknown_field_is_refused() -> None:
    stored = {"name": "x", "language": "C", "versions": ["1"], "run": ["x"], "colour": "red"}
    assert schema_errors(stored, "adapter")
