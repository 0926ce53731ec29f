"""Kafka's own classes in a child process: a Maven project of ours, built once for each release.

Maven keeps downloads in its own repository, and the classes go to ``build/<project>/<release>``; both are reused.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[2]


class JavaProject(NamedTuple):
    """A Maven project that answers with Kafka's classes, one JSON object per line.

    Attributes:
        path: directory of the project; its name is also that of its directory below ``build/``.
        releases: its profiles, and the version of Kafka in each.
        main: name of the class that answers.
        shared: sources of other projects that it also compiles.
    """

    path: Path
    releases: Mapping[str, str]
    main: str
    shared: tuple[Path, ...] = ()

    @property
    def build(self) -> Path:
        """Return the directory for its classes."""
        return REPOSITORY / "build" / self.path.name

    @property
    def changed(self) -> float:
        """Return when one of its sources was last changed."""
        return max(newest(path) for path in (self.path, *self.shared))


RELEASES: Final = {"3.9": "3.9.0", "4.1": "4.1.1"}
"""Profiles of the log's project: one release before and one after the rule of the offset index changed."""

LOGS: Final = JavaProject(
    REPOSITORY / "tests" / "java",
    RELEASES,
    "seglog.oracle.Oracle",
    (REPOSITORY / "conformance" / "adapters" / "_shared" / "java-storage",),
)
TIERS: Final = JavaProject(LOGS.path, {"4.4": "4.4.0"}, "seglog.oracle.TierOracle", LOGS.shared)
"""The part of the log's project that asks about remote segments; the classes of the other parts moved in 4.4."""
CLUSTERS: Final = JavaProject(
    REPOSITORY / "tests" / "java-cluster", {"3.9": "3.9.1", "4.1": "4.1.1", "4.4": "4.4.0"}, "seglog.cluster.Cluster"
)

TOOL_CHAIN: Final = ("java", "mvn")
BUILD_SECONDS: Final = 600
JAVA_OPTIONS: Final = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-ea",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


class OracleError(Exception):
    """Kafka's classes could not be built, or do not answer."""


def newest(folder: Path) -> float:
    """Return when a file below a folder was last changed; 0 if there is none."""
    return max((path.stat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)


def class_path(release: str, project: JavaProject = LOGS) -> str:
    """Build a project for a release, unless it is up to date.

    Args:
        release: one of the project's releases.
        project: project to build.

    Raises:
        OracleError: Maven failed.
    """
    home = project.build / release
    home.mkdir(parents=True, exist_ok=True)
    listed = home / "classpath.txt"
    with (project.build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start together
        _build(project, release, listed)
    return os.pathsep.join([str(home / "classes"), listed.read_text(encoding="utf-8").strip()])


def _build(project: JavaProject, release: str, listed: Path) -> None:
    if not listed.exists() or listed.stat().st_mtime < project.changed:
        command = ["mvn", "-q", "-B", "-P", release, "compile"]
        try:
            done = child_processes.run(
                command, directory=project.path, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            msg = f"{' '.join(command)}: no end after {BUILD_SECONDS} s"
            raise OracleError(msg) from error
        if done.returncode:
            msg = f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise OracleError(msg)
        listed.touch()


class Oracle(AbstractContextManager["Oracle"]):
    """A process that runs a release of Kafka; use it as a context manager.

    Args:
        release: a release of `RELEASES`.
        scratch: directory for its temporary files; in memory it is fast.
        project: project whose class answers.
        options: options of Java. The default starts fast; for long work other options are faster.
    """

    def __init__(
        self,
        release: str,
        scratch: Path | None = None,
        *,
        project: JavaProject = LOGS,
        options: Sequence[str] = JAVA_OPTIONS,
    ) -> None:
        self.release = release
        self.version = project.releases[release]
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
        command = ["java", *options, f"-Djava.io.tmpdir={scratch or scratch_root()}"]
        self._process = child_processes.start(
            [*command, "-cp", class_path(release, project), project.main],
            directory=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )

    def ask(self, operation: str, /, **fields: object) -> dict[str, Any]:
        """Send a request, and return the answer.

        Args:
            operation: name of the operation; see ``Oracle.java``.
            fields: fields of the request.

        Returns:
            The answer; it has ``error`` and ``message`` if Kafka threw an exception.

        Raises:
            OracleError: Kafka gives no answer.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps({"op": operation, **fields}, separators=(",", ":"))
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            msg = f"Kafka {self.version} does not answer {operation}: {self._errors.read()[-2000:]}"
            raise OracleError(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def must(self, operation: str, /, **fields: object) -> dict[str, Any]:
        """Send a request that must succeed, and return the answer.

        Raises:
            OracleError: Kafka gives no answer, or threw an exception.
        """
        answer = self.ask(operation, **fields)
        if "error" in answer:
            msg = f"Kafka {self.version}: {operation}: {answer['error']}: {answer['message']}"
            raise OracleError(msg)
        return answer

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()


def scratch_root() -> Path:
    """Return the best directory for temporary files."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary directory whose name shows its owner."""
    return tempfile.TemporaryDirectory(prefix="kafka-reads-", dir=scratch_root())


def bytes_of(answer: Mapping[str, Any], name: str) -> bytes:
    """Return a file from an answer; empty if the file does not exist."""
    return bytes.fromhex(answer[name] or "")
