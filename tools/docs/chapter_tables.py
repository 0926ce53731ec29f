"""Tables of chapters that are made from the declarations: the messages of ``__remote_log_metadata`` in chapter 46."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from seglog_format.schema.metadata_records import FRAMED_TOPICS
from tools.docs import algorithm_blocks, message_tables

REPOSITORY: Final = Path(__file__).resolve().parents[2]
CHAPTERS: Final = ("spec/46-remote-log-metadata.md",)
BLOCK: Final = re.compile(
    r"(?P<mark><!-- declared: (?P<topic>\w+) type (?P<type>\d+) -->\n\n).*?(?=\n<!-- end -->\n)", re.DOTALL
)
"""A table between marks: the topic, and the number of the message's type there."""


def pages() -> dict[str, str]:
    """Return the text of each chapter with its tables and algorithms made again, by path below the repository."""
    texts = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in CHAPTERS}
    return {path: with_tables(algorithm_blocks.refreshed(text)) for path, text in texts.items()}


def with_tables(text: str) -> str:
    """Return the text of a chapter with its tables made again.

    Args:
        text: of the chapter, with marks around each table.
    """
    return BLOCK.sub(lambda match: match["mark"] + _table(match["topic"], int(match["type"])) + "\n", text)


def _table(topic: str, number: int) -> str:
    return message_tables.fields_table(FRAMED_TOPICS[topic][number])
