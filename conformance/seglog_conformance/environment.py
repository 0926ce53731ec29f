"""The conditions of a run besides the testees: machine, versions, digests."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json


def suite_digest(cases: Iterable[Case]) -> str:
    """Return a digest that changes with any case."""
    text = "\n".join(sorted(f"{case.id} {case.digest}" for case in cases))
    return hashlib.sha256(text.encode()).hexdigest()


def suite_version() -> str:
    """Return the version of this package."""
    try:
        return version("seglog-format")
    except PackageNotFoundError:
        return "unknown"


def environment(cases: Iterable[Case]) -> Json:
    """Return the environment for the head of a report."""
    return {
        "suite": suite_version(),
        "casesSha256": suite_digest(cases),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
