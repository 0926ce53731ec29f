"""Runs of Protobuf's compiler on files in a temporary directory."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError, write_errors
from seglog_format.storage.child_processes import run

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = "seglog-schema.proto"
SAFE_NAME: Final = re.compile(r"(?!.*\.\.)\w[\w./-]*", re.ASCII)
"""Pattern of file names that stay in the temporary directory."""
NAMES_REFUSED: Final = frozenset({errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
"""Errors of names that are too long, or that are those of a file and of a directory."""
SECONDS: Final = 60


def compiled(text: str, others: Mapping[str, str]) -> bytes:
    """Return the descriptors of a schema and of all that it imports, the schema's last.

    Args:
        text: of the schema.
        others: texts of files that it imports, by their names.

    Raises:
        ValueError: the schema does not compile.
        UsageError: the compiler is not installed.
    """
    if find_spec("grpc_tools") is None:
        msg = "Protobuf schemas need grpcio-tools: pip install 'seglog-format[decode]'"
        raise UsageError(msg)
    with write_errors("writing a schema"), tempfile.TemporaryDirectory(prefix="seglog-") as directory:
        root = Path(directory)
        for name, content in {**others, NAME: text}.items():
            _write(root, name, content)
        return _run(root)


def _write(root: Path, name: str, content: str) -> None:
    if not SAFE_NAME.fullmatch(name):
        msg = f"an imported file has the name {name!r}, which is not allowed"
        raise ValueError(msg)
    try:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    except OSError as error:
        if error.errno not in NAMES_REFUSED:
            raise
        msg = f"an imported file cannot have the name {name[:80]!r}: {error.strerror}"
        raise ValueError(msg) from error


def _run(root: Path) -> bytes:
    """Run the compiler in a child process, because it writes its errors to standard error."""
    output = root / "descriptors"
    options = ["-I", str(root), "--include_imports", "-o", str(output), NAME]
    try:
        done = run(
            [sys.executable, "-m", "grpc_tools.protoc", *options],
            directory=root,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"the schema took more than {SECONDS} seconds to compile"
        raise ValueError(msg) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(lines[0] if lines else "the schema does not compile")
    return output.read_bytes()
