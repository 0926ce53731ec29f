"""Commands on a real disk of a few kilobytes: a file system in memory that only they see."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest

from helpers.refusing_disk import REPOSITORY, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PRIVATE = ("unshare", "--mount", "--map-root-user", "sh", "-ec")
SCRIPT = """
mount -t tmpfs -o "size=$1" tmpfs "$2"
cp -a "$3/." "$2/"
directory=$2 kept=$3; shift 3
"$@" && status=0 || status=$?
rm -rf "$kept"; cp -a "$directory" "$kept"
exit $status
"""


@cache
def _can_mount(directory: Path) -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    done = subprocess.run([*PRIVATE, 'mount -t tmpfs tmpfs "$0"', str(directory)], capture_output=True, check=False)
    return done.returncode == 0


def seglog_on_small_disk(
    directory: Path, size: int, *arguments: object, environment: Mapping[str, str] | None = None
) -> Answer:
    """Run a command with a disk of so many bytes in the place of a directory, which has the disk's files afterwards.

    Args:
        directory: what it has now is on the disk, too.
        size: of the disk.
        arguments: of the command line.
        environment: of the command; None for that of this process.
    """
    if not _can_mount(directory.parent):
        pytest.skip("needs a file system in memory, which this machine does not let tests mount")
    kept = directory.with_name(f"{directory.name}-kept")
    shutil.copytree(directory, kept)
    command = [sys.executable, "-m", "seglog_format.cli", *map(str, arguments)]
    done = subprocess.run(
        [*PRIVATE, SCRIPT, "sh", str(size), str(directory), str(kept), *command],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=environment,
        check=False,
    )
    shutil.rmtree(directory)
    kept.rename(directory)
    return Answer(done.returncode, done.stdout, done.stderr)
