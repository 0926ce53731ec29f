"""The page of the lines that brokers log: what each means, and the command that shows more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seglog_format.cli.explain import broker_lines
from tools.witnesses import RECORDED, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PAGE: Final = "docs/reference/broker-lines.md"
INTRODUCTION: Final = """\
# What the broker logs

<!-- Made by make docs from seglog_format/cli/broker_lines.toml. -->

Lines of a broker's own log about its files, what each means, and the command that shows more. The words are constants
or names of Kafka's classes, with the releases among {releases} that hold one, or those of the system.
`seglog explain 'TEXT OF A LINE'` finds a line here.

| the broker logs | it means | run | in |
|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """Return the page by its path."""
    witness = json.loads((REPOSITORY / RECORDED / "broker_lines.json").read_text(encoding="utf-8"))
    rows = (
        f"| {'<br>'.join(f'`{word}`' for word in line['words'])} | {line['means']}"
        f" | `{line['run']}` | {_releases(line['words'], witness['lines'])} |\n"
        for line in broker_lines()
    )
    return {PAGE: INTRODUCTION.format(releases=", ".join(witness["releases"])) + "".join(rows)}


def _releases(words: Iterable[str], lines: Mapping[str, Mapping[str, object]]) -> str:
    wanted = set(words)
    return ", ".join(release for release, known in lines.items() if wanted & known.keys()) or "the operating system"
