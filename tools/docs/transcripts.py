"""Transcripts in Markdown, which are run and written again.

A fenced block ``console`` holds commands, each after ``$ ``, with their output; a block ``pycon`` holds Python with its
prompts. In the output of a command, a line ``...`` stands for any number of lines, and a line that ends in ``...`` for
one that starts like it. Everything runs in a directory that holds the unpacked demonstration data as ``demo/``; the
Python blocks of one page share their variables.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

from seglog_conformance.toolchains import child_processes

BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELISION = "..."
WIDTH = 120


def refreshed(markdown: str, directory: Path) -> str:
    """Return the page with its transcripts run again; if no output has changed, the same page.

    Args:
        markdown: the page.
        directory: working directory, which holds ``demo/``.
    """
    names: dict[str, object] = {"__name__": "__main__"}

    def block(match: re.Match[str]) -> str:
        language, text = match.groups()
        lines = _commands(text, directory) if language == "console" else _python(text, names)
        return "\n".join([f"```{language}", *lines, "```"])

    with contextlib.chdir(directory):
        return BLOCK.sub(block, markdown)


def _commands(text: str, directory: Path) -> list[str]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [line for command, output in found for line in [f"$ {command}", *_output(command, output, directory)]]


def _output(command: str, shown: list[str], directory: Path) -> list[str]:
    """Return the output to show: the old one if it still agrees, else the new one, shortened like the old one."""
    printed = run(command, directory)
    if agrees(shown, printed):
        return shown
    printed = [line if len(line) <= WIDTH else line[: WIDTH - len(ELISION)] + ELISION for line in printed]
    cut = next((number for number, line in enumerate(shown) if line.strip() == ELISION), None)
    return [*printed[:cut], ELISION] if cut is not None and len(printed) > cut else printed


def run(command: str, directory: Path) -> list[str]:
    """Return the lines that a command prints, errors included; ``seglog`` is that of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {"PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    result = child_processes.run(
        ["bash", "-c", command],
        directory=directory,
        changes=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return [line.rstrip() for line in result.stdout.splitlines()]


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Return whether a command printed the lines that the page shows, apart from elisions."""
    return re.fullmatch("".join(map(_pattern, shown)), "".join(f"{line}\n" for line in printed)) is not None


def _pattern(line: str) -> str:
    if line.strip() == ELISION:
        return "(?:.*\n)*?"
    if line.endswith(ELISION):
        return re.escape(line.removesuffix(ELISION)) + ".*\n"
    return re.escape(line.rstrip()) + "\n"


def _python(text: str, names: dict[str, object]) -> list[str]:
    lines = []
    for example in doctest.DocTestParser().get_examples(text):
        first, *more = example.source.splitlines()
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in more), *_evaluate(example.source, names)]
    return lines


def _evaluate(source: str, names: dict[str, object]) -> list[str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(source, "<page>", "single"), names)  # noqa: S102 - our own pages
        except Exception as error:  # noqa: BLE001 - a page may show any
            printed.write("".join(["Traceback (most recent call last):\n", *traceback.format_exception_only(error)]))
    return printed.getvalue().splitlines()
