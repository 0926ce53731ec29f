"""Each public function, setting and enum shows an example of its use, and the example does what it shows."""

from __future__ import annotations

import doctest
import inspect
import shutil
from typing import TYPE_CHECKING

import pytest

import seglog_format
from tools import demo_data

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = ("broken", "kafka-4.3.0")
"""Directories of the demonstration data that examples may read and change."""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_data.unpack(tmp_path_factory.mktemp("demo"))


@pytest.mark.usefixtures("no_fsync")
@pytest.mark.parametrize("name", seglog_format.__all__)
def test_the_example_does_what_it_shows(name: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(getattr(seglog_format, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert any(name in each.source and "import" not in each.source for each in example.examples), "no example"
    if "pyarrow" in text:
        pytest.importorskip("pyarrow")
    if "demo/" in text:
        for each in SHOWN:
            shutil.copytree(demo / each, tmp_path / "demo" / each)
    monkeypatch.chdir(tmp_path)
    reported: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(example, out=reported.append).failed == 0, "".join(reported)
