"""The output of `seglog dump` for a path, line by line."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from seglog_format.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path


def dumped(path: Path, *options: str) -> list[dict[str, Any]]:
    """Return the lines that ``seglog dump --json`` prints, including those that report damage."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as complaints:
        status = run(["dump", "--json", *options, str(path)])
    if status > 1:
        raise RuntimeError(complaints.getvalue())
    return [json.loads(line) for line in output.getvalue().splitlines()]
