"""Command-line transcripts in Markdown: run them, compare them, write them anew.

A fenced block ``console`` holds commands, each after ``$ ``, and what they print. A line ``...`` in the output stands
for any number of lines. The commands run in a directory that holds the unpacked demonstration data as ``demo/``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELISION = "..."
WIDTH = 110


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a transcript and the lines that it is said to print."""

    command: str
    output: tuple[str, ...]


def steps(block: str) -> list[Step]:
    """The commands of one block."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return [Step(command, tuple(output)) for command, output in found]


def blocks(markdown: str) -> list[list[Step]]:
    """The transcripts of one page."""
    return [steps(match.group(1)) for match in BLOCK.finditer(markdown)]


def run(command: str, directory: Path) -> list[str]:
    """What a command prints, errors included, with the environment's ``seglog`` in front."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])  # noqa: PTH120
    environment = os.environ | {"PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    result = subprocess.run(
        ["bash", "-c", command],  # noqa: S607 - whichever bash there is
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return [line.rstrip() for line in result.stdout.splitlines()]


def agrees(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a command printed what the page says, elisions apart."""
    parts = [re.escape(line.rstrip()) + "\n" if line.strip() != ELISION else "(?:.*\n)*?" for line in expected]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in printed)) is not None


def refreshed(markdown: str, directory: Path) -> str:
    """The page with its transcripts run anew; outputs that were cut stay cut after as many lines."""

    def block(match: re.Match[str]) -> str:
        lines = [line for step in steps(match.group(1)) for line in _rerun(step, directory)]
        return "\n".join(["```console", *lines, "```"])

    return BLOCK.sub(block, markdown)


def _rerun(step: Step, directory: Path) -> list[str]:
    printed = run(step.command, directory)
    if agrees(step.output, printed):
        return [f"$ {step.command}", *step.output]
    shown = next((number for number, line in enumerate(step.output) if line.strip() == ELISION), None)
    if shown is not None and len(printed) > shown:
        printed = [*printed[:shown], ELISION]
    return [f"$ {step.command}", *printed]
