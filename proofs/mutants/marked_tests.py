"""The tests that are marked with each requirement, collected by pytest itself, so parametrized cases are included.

`marked_tests` starts ``pytest --collect-only`` with this module as a plugin, and reads its output.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_ON_BYTES = ("tests/test_trace.py", "tests/test_tidy.py", "tests/test_docs.py", "tests/test_public_api.py")
"""These look at the repository, not at bytes: they prove nothing about a requirement."""

_PREFIX = "marked-test "


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print one line for each marked test."""
    lines = []
    for item in session.items:
        ids = [identifier for mark in item.iter_markers("req") for identifier in mark.args]
        if ids:
            lines.append(_PREFIX + json.dumps([item.nodeid, ids]))
    sys.stdout.write("\n".join(["", *lines, ""]))


@cache
def marked_tests() -> dict[str, list[str]]:
    """Return the node ids of the tests on bytes, by requirement id.

    Raises:
        RuntimeError: pytest could not collect the tests.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", __name__, "tests"]
    run = child_processes.run(
        command,
        directory=REPOSITORY,
        changes={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode not in (0, 5):
        msg = f"pytest could not collect the tests:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
        raise RuntimeError(msg)
    return _by_requirement(run.stdout)


def _by_requirement(output: str) -> dict[str, list[str]]:
    tests = defaultdict(list)
    for line in output.splitlines():
        if not line.startswith(_PREFIX):
            continue
        node, ids = json.loads(line.removeprefix(_PREFIX))
        if node.split("::")[0] not in NOT_ON_BYTES:
            for identifier in ids:
                tests[identifier].append(node)
    return dict(tests)
