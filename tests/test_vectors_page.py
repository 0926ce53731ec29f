"""The Go program of the page on vectors does what the page says; without Go it is skipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.support import REPOSITORY, need

from seglog_format.cli.main import seglog

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = re.compile(r"^```go\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 300


@pytest.fixture
def program(tmp_path: Path) -> Path:
    page = (REPOSITORY / "docs" / "how-to" / "use-the-vectors.md").read_text(encoding="utf-8")
    (text,) = PROGRAM.findall(page)
    (tmp_path / "vectors.go").write_text(text, encoding="utf-8")
    return tmp_path / "vectors.go"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    archive = tmp_path / "seglog-vectors.zip"
    assert CliRunner().invoke(seglog, ["fixtures", "export", "-o", str(archive)]).exit_code == 0
    shutil.unpack_archive(archive, tmp_path)
    return tmp_path / "seglog-vectors"


def run(program: Path, vectors: Path) -> subprocess.CompletedProcess[str]:
    need("the program in Go", ["go"])
    environment = os.environ | {"GO111MODULE": "off"}
    command = ["go", "run", str(program), str(vectors)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False)


def test_the_go_program_reads_the_vectors(program: Path, vectors: Path) -> None:
    done = run(program, vectors)
    assert re.fullmatch(r"\d{3,} cases, \d{3,} batches: as expected\n", done.stdout), done.stdout + done.stderr


def test_the_go_program_notices_a_changed_byte(program: Path, vectors: Path) -> None:
    path = vectors / "01-plain-batches" / "one-record" / "input.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert run(program, vectors).returncode == 1
