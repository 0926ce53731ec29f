"""Child processes: every one is started here, and none takes code or programs from the current directory (CWE-427).

A user's current directory may be an unpacked backup or a directory for temporary files, with files of anyone. So a
child gets a directory that its caller names, a program whose absolute path is looked up first, and search paths without
relative entries. A child that runs this Python does not look for modules in its directory.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError, write_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.context import BaseContext


NOWHERE: Final = Path(Path(sys.executable).anchor)
"""The root of the file system, for programs that need no directory: tool chains look for settings in it and above."""

SEARCH_PATHS: Final = (
    "PATH",
    "PYTHONPATH",
    "CLASSPATH",
    "NODE_PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PERL5LIB",
)
"""Variables whose entries are directories to search; an empty entry means the current directory."""
HOMES: Final = ("JAVA_HOME", "MAVEN_HOME", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "SPARK_HOME", "PYTHONHOME")
"""Variables that name one directory with programs."""
SAFE_PATH: Final = "PYTHONSAFEPATH"
"""The variable that keeps Python from importing from the current directory; it also keeps scripts from their own."""


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return this process's environment without names that depend on the current directory.

    Args:
        changes: variables to set, unchanged; None removes one.
    """
    found = dict(os.environ)
    for name in SEARCH_PATHS:
        if name in found:
            found[name] = os.pathsep.join(_absolute(found[name]))
            if not found[name] and name != "PATH":
                del found[name]
    for name in HOMES:
        if not Path(found.get(name) or os.sep).is_absolute():
            del found[name]
    return {name: value for name, value in {**found, **(changes or {})}.items() if value is not None}


def _absolute(search_path: str) -> list[str]:
    return [entry for entry in search_path.split(os.pathsep) if Path(entry).is_absolute()]


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program; None if it is not on the path.

    Args:
        name: of the program.
        path: directories to search instead of those of ``PATH``; relative ones are left out.
    """
    for entry in _absolute(os.environ.get("PATH", os.defpath) if path is None else path):
        if found := shutil.which(str(Path(entry) / name)):
            return found
    return None


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    directory: Path,
    changes: Mapping[str, str | None] | None = None,
    **options: Any,  # noqa: ANN401 - as subprocess has them
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end.

    Args:
        command: the program and its arguments; a program without a directory is looked up on the path.
        directory: the child's current directory.
        changes: variables of its environment, as for `environment`.
        options: of `subprocess.run`.

    Raises:
        OSError: the program is not found, or cannot be started.
        subprocess.SubprocessError: it takes too long, or fails although the options check that.
    """
    found = _resolved(command, directory)
    return subprocess.run(found, cwd=directory, env=environment(changes), **options)  # noqa: PLW1510, S603


def start(
    command: Sequence[str | os.PathLike[str]],
    *,
    directory: Path,
    changes: Mapping[str, str | None] | None = None,
    **options: Any,  # noqa: ANN401 - as subprocess has them
) -> subprocess.Popen[Any]:
    """Start a program; the arguments are those of `run`, and options of `subprocess.Popen`.

    Raises:
        OSError: the program is not found, or cannot be started.
    """
    return subprocess.Popen(  # noqa: S603 - all children are started here
        _resolved(command, directory), cwd=directory, env=environment(changes), **options
    )


def _resolved(command: Sequence[str | os.PathLike[str]], directory: Path) -> list[str]:
    program, *arguments = [os.fspath(each) for each in command]
    if program == sys.executable and arguments and arguments[0].startswith("-"):
        return [program, "-P", *arguments]
    if os.path.basename(program) != program:  # noqa: PTH119 - `Path` drops the `./` of a relative program
        return [str(directory.absolute() / program), *arguments]
    found = find_program(program)
    if found is None:
        raise FileNotFoundError(2, "no such program on the PATH", program)
    return [found, *arguments]


@contextmanager
def process_pool(processes: int | None = None, context: BaseContext | None = None) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of processes of this Python, which do not import from the current directory.

    Args:
        processes: their number; by default one for each processor.
        context: how to start them; by default as the system does.
    """
    with isolated_interpreters(), ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context) as pool:
        yield pool


@contextmanager
def isolated_interpreters() -> Iterator[None]:
    """Keep every Python that other code starts meanwhile from importing from the current directory."""
    before, safe = dict(os.environ), environment({SAFE_PATH: "1"})
    changed = [name for name in before.keys() | safe.keys() if before.get(name) != safe.get(name)]
    _set({name: safe.get(name) for name in changed})
    try:
        yield
    finally:
        _set({name: before.get(name) for name in changed})


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


# -- runs of Protobuf's compiler on files in a temporary directory ----------------------------------------------------


NAME: Final = "seglog-schema.proto"
NOISE: Final = re.compile(r"WARNING: |[IWEF]\d{4} |\s*$")
"""Lines of the compiler's own log, which it may print before its errors."""
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
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if not NOISE.match(line)]
        raise ValueError(lines[0].replace(f"{root}/", "") if lines else "the schema does not compile")
    return output.read_bytes()
