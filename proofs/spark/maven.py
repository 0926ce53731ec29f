"""Jars from Maven Central, downloaded once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.kafka.oracle import OracleError

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY: Final = Path(__file__).resolve().parents[2]
FETCH_SECONDS: Final = 300


def fetched(artifacts: Iterable[str], directory: Path) -> list[Path]:
    """Return jars; Maven downloads those that are missing.

    Args:
        artifacts: each as ``group:name:version``.
        directory: directory for the jars.

    Raises:
        OracleError: Maven cannot download one.
    """
    return [_fetched(artifact, directory) for artifact in artifacts]


def _fetched(artifact: str, directory: Path) -> Path:
    _, name, version = artifact.split(":")
    path = directory / f"{name}-{version}.jar"
    if not path.exists():
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
        done = child_processes.run(
            command, directory=REPOSITORY, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
        if done.returncode:
            msg = f"{artifact} cannot be fetched: {done.stdout[-500:]}"
            raise OracleError(msg)
    return path
