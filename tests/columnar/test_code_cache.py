"""Machine code is not taken from where others can put it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")

import numba

from seglog_format.columnar import code_cache, kernel_loading
from seglog_format.columnar.code_cache import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHECKSUM = """\
import numpy as np
from seglog_format.columnar.checksum import checksum
from seglog_format.columnar.cpu import checksum_path
data = np.arange(256, dtype=np.uint8)
data.flags.writeable = False
print(checksum(True, checksum_path(), data, 0, 256))
"""
WARM = "import sys; from seglog_format.cli.main import run; sys.exit(run(['warm']))"
needs_modes = pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes say nothing on this system")
pytestmark = needs_modes


@pytest.fixture
def code_directory(tmp_path: Path) -> Iterator[Path]:
    """Provide a directory of this user alone."""
    directory = tmp_path / "own" / "cache"
    directory.mkdir(parents=True, mode=0o755)
    refusal.cache_clear()
    yield directory
    refusal.cache_clear()


def python(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "SEGLOG_KERNELS": "jit"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def kept(directory: Path) -> list[Path]:
    return list(directory.rglob("*.nb[ic]"))


def test_a_world_writable_directory_is_refused_by_warm(code_directory: Path) -> None:
    code_directory.chmod(0o777)
    done = python(WARM, code_directory)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{code_directory} can be written by every user" in done.stderr
    assert kept(code_directory) == []


def test_the_engine_keeps_nothing_there_and_says_so_once(code_directory: Path) -> None:
    code_directory.chmod(0o777)
    done = python(CHECKSUM, code_directory)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "seglog: compiling the columnar engine, in this process only: no compiled code is kept, "
        f"since {code_directory} can be written by every user\n"
    )
    assert kept(code_directory) == []
    code_directory.chmod(0o755)
    assert python(CHECKSUM, code_directory).stdout == done.stdout
    assert kept(code_directory)


def test_the_version_of_numba_that_is_installed_is_known() -> None:
    assert numba.version_info.short == kernel_loading.KNOWN_VERSION


def test_with_another_version_code_is_kept_by_its_own_means(code_directory: Path) -> None:
    another = "from seglog_format.columnar import kernel_loading\nkernel_loading.KNOWN_VERSION = (0, 1)\n" + CHECKSUM
    another += "print(type(checksum._cache).__name__)\n"
    first, second = python(another, code_directory), python(another, code_directory)
    assert "compiling" in first.stderr
    assert second.stderr == ""
    assert kept(code_directory)
    assert first.stdout == second.stdout
    assert second.stdout.split()[1] == "FunctionCache"


def test_code_that_was_planted_is_not_loaded(code_directory: Path) -> None:
    """The pickle that numba would load is replaced by one that leaves a file behind."""
    python(CHECKSUM, code_directory)
    mark = code_directory.parent / "ran"
    planted = f'cbuiltins\nexec\n(S\'open("{mark}", "w")\'\ntR.'.encode()
    for path in kept(code_directory):
        path.write_bytes(planted)
    code_directory.chmod(0o777)
    assert python(CHECKSUM, code_directory).returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o733])
def test_a_directory_above_is_as_dangerous(mode: int, code_directory: Path) -> None:
    code_directory.parent.chmod(mode)
    assert refusal(str(code_directory)) == f"{code_directory.parent} can be written by every user"


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775, 0o1777])
def test_directories_that_are_taken(mode: int, code_directory: Path) -> None:
    """Group members are trusted: many systems give each user a group of their own. Sticky directories are like /tmp."""
    code_directory.parent.chmod(mode)
    assert refusal(str(code_directory)) is None


def test_a_file_that_everybody_can_write(code_directory: Path) -> None:
    path = code_directory / "kernel-1.py311.1.nbc"
    path.write_bytes(b"")
    assert refusal(str(code_directory)) is None
    refusal.cache_clear()
    path.chmod(0o666)
    assert refusal(str(code_directory)) == f"{path} can be written by every user"


def test_a_link_leads_to_what_it_names(code_directory: Path) -> None:
    link = code_directory.parent / "link"
    link.symlink_to(code_directory)
    assert refusal(str(link)) is None
    refusal.cache_clear()
    code_directory.chmod(0o777)
    assert refusal(str(link)) == f"{code_directory} can be written by every user"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["", "kernel-1.py311.nbi", "link"])
def test_what_belongs_to_another_user(name: str, code_directory: Path) -> None:
    path = code_directory / name if name else code_directory
    asked = code_directory
    if name == "link":
        path.symlink_to(code_directory.parent)
        asked = path
    elif name:
        path.write_bytes(b"")
    os.chown(path, 4711, 4711, follow_symlinks=False)
    assert refusal(str(asked)) == f"{path} belongs to another user"


def test_the_owner_of_the_package_is_trusted(code_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "PACKAGE", code_directory)
    assert refusal(str(code_directory)) is None
