"""Pages about the changes of Kafka's releases, from ``reports/kafka-*.json``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tools.docs.report_pages import REPORTS
from tools.kafka_next.text import page
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INTRODUCTION = """\
# What changed in Kafka {release}

This page lists the differences between {base} and {release} that `make kafka-next VERSION={release} BASE={base}` found
in the jars of both. [Appendix B](../spec/B-version-history.md) says in a few words which of them change files on disk.

The comparison covers definitions of messages, settings, feature levels, names, signatures and code of classes, and the
answers of Kafka's storage classes and client to the cases of the [conformance suite](../conformance/index.md). It
includes every name. Signatures and code are compared in the packages that decide which bytes a broker writes and how it
reads them. The comparison of code ignores the positions of constants and instructions, and uses the current names of
classes that were moved.

{birth}
"""


def pages(notice: str) -> dict[str, str]:
    """Return a page for each report."""
    return {name_of(path): text(path, notice) for path in sorted(REPORTS.glob("kafka-[0-9]*.json"))}


def name_of(report: Path) -> str:
    """Return the page of a report."""
    return f"docs/reference/{report.stem}.md"


def text(path: Path, notice: str) -> str:
    """Return the text of a page."""
    report = json.loads(path.read_text(encoding="utf-8"))
    return "\n".join([notice + INTRODUCTION.format(**report, birth=birth(report)), *page(report)]).rstrip() + "\n"


def entries() -> Iterator[str]:
    """Yield lines for a list of the pages."""
    for path in sorted(REPORTS.glob("kafka-[0-9]*.json")):
        release = path.stem.partition("-")[2]
        yield f"- [Kafka {release}]({path.stem}.md): what it changed, from messages to code"
