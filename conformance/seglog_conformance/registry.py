"""Adapters: their `adapter.toml`, their builds, and testees that run them."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.direct import DirectTestee
from seglog_conformance.parts import own_builds, part
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.protocol import schema_errors
from seglog_conformance.testee import MEBIBYTE
from seglog_conformance.toolchains import complaints
from seglog_format.storage.child_processes import run

try:
    import fcntl
except ImportError:  # some systems have no such locks
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from seglog_conformance.protocol import Json
    from seglog_conformance.serving import Answering
    from seglog_conformance.testee import Testee

ADAPTERS: Final = part("adapters")
BUILDS: Final = Path("build") / "conform"
"""Directory for builds in a clone of the repository."""
REFERENCE: Final = "reference"
PLAIN: Final = "plain"
COLUMNAR: Final = "columnar"
DIRECT: Final = (REFERENCE, PLAIN, COLUMNAR)
"""Implementations that run in this process, and by default."""
IN_PROCESS: Final = (*DIRECT, "spec")
"""All testees that run in this process: also the algorithms of the specification, on request."""
STAMP: Final = ".built"
LOG: Final = "build.log"
LOCK: Final = ".lock"
SHARED: Final = "_shared"
"""Name of the directory next to the adapters for files that several of them use."""
CLAIMS: Final = "bugs.toml"
"""File of the claims about releases; a change of it causes no new build."""

BUILD_SECONDS: Final = 1800
MOST_SAID: Final = 200
"""Characters of a line of a build log in a message."""


class AdapterError(Exception):
    """An adapter's description is invalid, or its build fails."""


class UnavailableError(AdapterError):
    """A program that an adapter needs is missing on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An adapter as its `adapter.toml` describes it.

    Attributes:
        name: name of the implementation in reports and file names.
        path: path of its directory.
        title: title in reports.
        language: language of the implementation.
        homepage: homepage of the implementation.
        issues: address for reports of its defects.
        versions: versions that can be built; the first is the default.
        asked: versions that run if no testee is named.
        toolchain: programs that must be on the PATH, and work, with the versions that do (`complaints`).
        build: commands to run in order in the build directory.
        run: command that speaks the protocol.
        environment: environment variables for both.
        seconds: time limit for a case.
        start_seconds: time limit for the greeting.
        extra_memory: memory in bytes that its runtime may take besides what a case explains.
        address_space: address space in bytes besides that after its greeting; 0 for no limit.
    """

    name: str
    path: Path
    title: str = ""
    language: str = ""
    homepage: str = ""
    issues: str = ""
    versions: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    toolchain: tuple[str, ...] = ()
    build: tuple[tuple[str, ...], ...] = ()
    run: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    seconds: float = 10.0
    start_seconds: float = 60.0
    extra_memory: int = 0
    address_space: int = 8192 * MEBIBYTE

    @property
    def is_bundled(self) -> bool:
        """Return whether it is one of the suite's own."""
        return self.path.parent == ADAPTERS.resolve()


@dataclass(frozen=True, slots=True)
class Listed:
    """A testee that can run.

    Attributes:
        name: name of the adapter, also in reports.
        version: requested version; empty for the only one.
        adapter: description; None for a testee in this process.
    """

    name: str
    version: str = ""
    adapter: Adapter | None = None

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}".rstrip()


def read_adapter(directory: Path) -> Adapter:
    """Read the `adapter.toml` of a directory.

    Raises:
        AdapterError: the file is missing, or does not fit its schema.
    """
    path = directory / "adapter.toml"
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path}: {error}"
        raise AdapterError(msg) from error
    errors = schema_errors(stored, "adapter")
    if errors:
        msg = f"{path}: {'; '.join(errors)}"
        raise AdapterError(msg)
    return _adapter(directory.resolve(), stored)


def _adapter(directory: Path, stored: Json) -> Adapter:
    limits = stored.get("limits", {})
    return Adapter(
        name=stored["name"],
        path=directory,
        title=str(stored.get("title", stored["name"])),
        language=stored["language"],
        homepage=stored.get("homepage", ""),
        issues=stored.get("issues", ""),
        versions=tuple(stored["versions"]),
        asked=tuple(stored.get("asked", stored["versions"][:1])),
        toolchain=tuple(stored.get("toolchain", ())),
        build=tuple(tuple(command) for command in stored.get("build", ())),
        run=tuple(stored["run"]),
        environment=dict(stored.get("environment", {})),
        seconds=float(limits.get("seconds", 10.0)),
        start_seconds=float(limits.get("start_seconds", 60.0)),
        extra_memory=int(limits.get("extra_memory_mib", 0)) * MEBIBYTE,
        address_space=int(limits.get("address_space_mib", 8192)) * MEBIBYTE,
    )


def adapters(directory: Path | None = None) -> list[Adapter]:
    """Return all adapters of a directory, by name.

    Raises:
        AdapterError: one of them cannot be read.
    """
    base = directory or ADAPTERS
    return [read_adapter(path.parent) for path in sorted(base.glob("*/adapter.toml"))]


def listed(name: str, *, directory: Path | None = None) -> Listed:
    """Return a testee by name: ``reference``, or an adapter's name or directory, with ``@version`` for another version.

    A name of one of the suite's adapters is always that adapter.

    Raises:
        AdapterError: the adapter does not exist.
    """
    plain, _, version = name.partition("@")
    if plain in IN_PROCESS:
        return Listed(plain)
    described = (directory or ADAPTERS) / plain
    if (
        Path(plain).name != plain or not described.is_dir()
    ):  # a name is not that of a directory which happens to be here
        described = Path(plain)
    if not described.is_dir():
        known = ", ".join([*IN_PROCESS, *(adapter.name for adapter in adapters(directory))])
        msg = f"there is no adapter {plain!r}; there are {known}"
        raise AdapterError(msg)
    adapter = read_adapter(described)
    return Listed(adapter.name, version or adapter.versions[0], adapter)


class Builder:
    """Builds adapters, and makes testees of them.

    Args:
        builds: directory for builds, with one directory for each adapter and version; by default `own_builds`.
        strict: whether to validate every line against its schema.
        rebuild: whether to repeat finished builds.
    """

    def __init__(self, builds: Path | None = None, *, strict: bool = False, rebuild: bool = False) -> None:
        self.builds = own_builds() if builds is None else builds
        self.strict = strict
        self.rebuild = rebuild

    def testee(self, wanted: Listed) -> Testee:
        """Return the testee, after building it.

        Raises:
            UnavailableError: a tool chain is missing.
            AdapterError: the build fails.
        """
        if wanted.adapter is None:
            return DirectTestee(wanted.name, _direct(wanted.name), strict=self.strict)
        self._build(wanted.adapter, wanted.version)
        return ProcessTestee(wanted.name, self.command(wanted.adapter, wanted.version), strict=self.strict)

    def build_directory(self, adapter: Adapter, version: str) -> Path:
        """Return the build directory of an adapter."""
        return (self.builds / f"{adapter.name}-{version}").absolute()

    def is_built(self, adapter: Adapter, version: str) -> bool:
        """Return whether an adapter is built from its present files, or needs no build."""
        stamp = self.build_directory(adapter, version) / STAMP
        return not adapter.build or (stamp.is_file() and stamp.read_text(encoding="utf-8") == _source_digest(adapter))

    def command(self, adapter: Adapter, version: str) -> Command:
        """Return the command and limits of a built adapter."""
        words = self._words(adapter, version)
        environment = {name: _filled(value, words) for name, value in adapter.environment.items()}
        return Command(
            arguments=tuple(_filled(argument, words) for argument in adapter.run),
            directory=self.build_directory(adapter, version),
            environment=environment,
            start_seconds=adapter.start_seconds,
            address_space=adapter.address_space,
        )

    def _words(self, adapter: Adapter, version: str) -> dict[str, str]:
        return {
            "build": str(self.build_directory(adapter, version)),
            "version": version,
            "adapter": str(adapter.path),
            "python": sys.executable,
        }

    def _build(self, adapter: Adapter, version: str) -> None:
        if unusable := complaints(adapter.toolchain, version):
            msg = f"{adapter.name} needs {'; '.join(unusable)}"
            raise UnavailableError(msg)
        build_directory, mark = self.build_directory(adapter, version), _source_digest(adapter)
        build_directory.mkdir(parents=True, exist_ok=True)
        with _alone_in(build_directory):
            stamp = build_directory / STAMP
            if self.rebuild or not stamp.is_file() or stamp.read_text(encoding="utf-8") != mark:
                self._run_steps(adapter, version, build_directory)
                stamp.write_text(mark, encoding="utf-8")

    def _run_steps(self, adapter: Adapter, version: str, build_directory: Path) -> None:
        (build_directory / STAMP).unlink(missing_ok=True)
        words = self._words(adapter, version)
        environment = {name: _filled(value, words) for name, value in adapter.environment.items()}
        with (build_directory / LOG).open("wb") as log:
            for command in adapter.build:
                _run_step([_filled(argument, words) for argument in command], build_directory, environment, log)


@contextmanager
def _alone_in(build_directory: Path) -> Iterator[None]:
    """Lock the build directory against other processes, if the system supports such locks."""
    with (build_directory / LOCK).open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_step(command: list[str], build_directory: Path, environment: dict[str, str], log: BinaryIO) -> None:
    log.write(f"$ {shlex.join(command)}\n".encode())
    log.flush()
    try:
        done = run(
            command,
            directory=build_directory,
            changes=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        why = f"{command[0]} did not end in {BUILD_SECONDS} seconds; what it made stays for another try"
        msg = f"it does not build: {why}; see {build_directory / LOG}"
        raise AdapterError(msg) from error
    except OSError as error:
        msg = f"it does not build: {error}; see {build_directory / LOG}"
        raise AdapterError(msg) from error
    if done.returncode:
        path = build_directory / LOG
        msg = f"it does not build: {command[0]} ends with {done.returncode}: {_what_was_wrong(path)}; see {path}"
        raise AdapterError(msg)


def _what_was_wrong(log: Path) -> str:
    """Return the line of a build log that tells most: the first of its last command with an error, else the last."""
    _, _, last = log.read_text("utf-8", "replace").rpartition("\n$ ")
    lines = [line.strip() for line in last.splitlines() if line.strip()]
    return next((line for line in lines[1:] if "error" in line.lower()), lines[-1])[:MOST_SAID]


def _filled(text: str, words: dict[str, str]) -> str:
    """Replace ``{build}``, ``{version}``, ``{adapter}`` and ``{python}`` in a text; other braces stay."""
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _direct(name: str) -> Answering:
    """Return the object that answers in this process; it is unavailable if it needs an engine that is not installed."""
    if name in {REFERENCE, PLAIN}:
        from seglog_conformance.reference import Reference  # noqa: PLC0415 - needed for these alone
        from seglog_format.engine import Engine  # noqa: PLC0415 - as above

        return Reference(Engine(name))
    if name not in DIRECT:
        from seglog_conformance.specification import Specification  # noqa: PLC0415 - as above

        return Specification()
    from seglog_conformance.columnar import Columnar  # noqa: PLC0415 - as above
    from seglog_format.engine import lacking  # noqa: PLC0415 - as above

    if (lack := lacking()) is not None:
        raise UnavailableError(lack)
    return Columnar()


def _source_digest(adapter: Adapter) -> str:
    """Return a digest of all files from which an adapter is built, including the shared ones."""
    total = hashlib.sha256()
    for directory in (adapter.path, adapter.path.parent / SHARED):
        for path in _sources(directory):
            total.update(f"{path.relative_to(directory)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def _sources(directory: Path) -> Iterable[Path]:
    found = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in found if path.name != CLAIMS)
