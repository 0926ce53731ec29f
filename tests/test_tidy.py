"""The source tree keeps its own rules, and each rule notices what breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY

from tools import tidy

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
