"""A pytest plugin for runs on a copy of the package in which one rule is broken.

It makes sure that the tests import the copy, ends tests that run too long (without its rule a loop may not end), and
records the test that failed during its call: an error during collection does not count.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT = Path(os.environ["SEGLOG_COPY"])
RESULT = ROOT / "result.json"
TEST_SECONDS = 60
ADDRESS_SPACE_BYTES = 6 * 2**30

_failed: list[dict[str, str]] = []
_passed: list[str] = []


def pytest_configure() -> None:
    """Limit memory, and let hypothesis stop at the first counterexample."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    from hypothesis import HealthCheck, Phase, settings  # noqa: PLC0415 - slow to import, and only wanted here

    settings.register_profile(
        "kill",
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
        derandomize=True,
    )
    settings.load_profile("kill")


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    msg = f"the test ran for more than {TEST_SECONDS} seconds"
    raise TimeoutError(msg)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Limit the time of one test."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(TEST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a test that failed during its call."""
    if report.when == "call" and report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _failed.append({"test": report.nodeid, "message": str(getattr(crash, "message", "")).split("\n")[0]})
    elif report.when == "call" and report.passed:
        _passed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the outcome, and the path of the imported package."""
    module = sys.modules.get("seglog_format")
    origin = Path(str(module.__file__)).parent if module is not None else None
    outcome = {"copy_imported": origin == ROOT / "seglog_format", "failed": _failed, "passed": len(_passed)}
    RESULT.write_text(json.dumps(outcome), encoding="utf-8")
