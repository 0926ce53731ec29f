"""The source tree keeps its own rules, and each rule notices what breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY

from tools import public_names, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.mark.parametrize("rule", tidy.RULES, ids=lambda rule: rule.__name__)
def test_tree_is_tidy(rule: Callable[[Path], Iterator[str]]) -> None:
    assert list(rule(REPOSITORY)) == []


@pytest.mark.parametrize(
    "line",
    ["open('/" + "home/ann/x')", "index = https://" + "pypi" + ".org/simple", "# TO" + "DO", "# TO" + "DO: later"],
)
def test_text_of_one_machine_and_bare_open_ends_are_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(f"fine\n{line}\n", encoding="utf-8")
    assert [complaint.split(": ")[0] for complaint in tidy.no_machine_in_text(tmp_path)] == ["notes.md:2"]


@pytest.mark.parametrize(
    "line", ["see /var/lib/kafka", "# TO" + "DO: the broker writes two", "https://kafka.apache.org"]
)
def test_ordinary_text_is_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(line, encoding="utf-8")
    assert list(tidy.no_machine_in_text(tmp_path)) == []


def test_a_large_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(tidy.LARGEST_FILE_BYTES + 1))
    assert list(tidy.files_are_small(tmp_path)) == ["big.bin: 5000001 bytes"]


def test_a_long_module_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "long.py").write_text("\n" * 351, encoding="utf-8")
    assert list(tidy.modules_are_short(tmp_path)) == ["tools/long.py: 351 lines"]


def test_a_schema_without_a_chapter_and_a_chapter_without_a_test_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "40-offset-index.md").touch()
    (tmp_path / "seglog_format" / "schema").mkdir(parents=True)
    (tmp_path / "seglog_format" / "schema" / "offsets.py").touch()
    assert list(tidy.stems_agree(tmp_path)) == [
        "seglog_format/schema/offsets.py: spec/ has no chapter of that name",
        "spec/40-offset-index.md: there is no tests/test_offset_index.py",
    ]


TOP = '__all__ = ["open_partition", "walk"]'
PRIVATE_CODE = [
    "from seglog_format.log.partition import open_partition",
    "from seglog_format import log",
    "from seglog_format.types import LogReader",
    "import seglog_format.codec.framing",
    "import seglog_format\nseglog_format.codec",
    'import_module("seglog_format.columnar")',
    'f"seglog_format.columnar.{name}"',
]
PUBLIC_CODE = [
    "from seglog_format import open_partition, types",
    "from seglog_format.types import Record",
    "from seglog_format.errors import FormatError",
    "import seglog_format\nseglog_format.walk",
    'run("-m", "seglog_format.cli")',
    "from seglog_formats import anything",
]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "seglog_format").mkdir()
    (tmp_path / "seglog_format" / "__init__.py").write_text(TOP, encoding="utf-8")
    (tmp_path / "seglog_format" / "types.py").write_text('__all__ = ["Record"]', encoding="utf-8")
    (tmp_path / "seglog_format" / "errors.py").write_text("class FormatError: ...", encoding="utf-8")
    return tmp_path


def complaints_about(package: Path, name: str, text: str) -> list[str]:
    path = package / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(public_names.private_uses(package))


@pytest.mark.parametrize("code", PRIVATE_CODE)
def test_a_private_name_in_a_benchmark_is_noticed(package: Path, code: str) -> None:
    [complaint] = complaints_about(package, "benchmarks/peers/ours.py", code)
    assert complaint.startswith("benchmarks/peers/ours.py:")
    assert complaint.endswith("is not public")


@pytest.mark.parametrize("code", PUBLIC_CODE)
def test_public_names_in_a_benchmark_are_left_alone(package: Path, code: str) -> None:
    assert complaints_about(package, "benchmarks/bench.py", code) == []


@pytest.mark.parametrize("code", PRIVATE_CODE[:4])
@pytest.mark.parametrize("language", ["python", "console", ""])
def test_a_private_name_in_the_code_of_a_document_is_noticed(package: Path, language: str, code: str) -> None:
    text = f"# Title\n\nfrom seglog_format.log import prose\n\n```{language}\n{code}\n```\n"
    [complaint] = complaints_about(package, "docs/how-to/read.md", text)
    assert complaint.startswith("docs/how-to/read.md:6: ")


def test_a_private_name_in_the_example_of_a_docstring_is_noticed(package: Path) -> None:
    text = '"""\n>>> from seglog_format.log.partition import open_partition\n"""\nfrom seglog_format.log import x\n'
    assert complaints_about(package, "seglog_format/log/partition.py", text) == [
        "seglog_format/log/partition.py:2: seglog_format.log.partition.open_partition is not public"
    ]
