"""The amount of verified data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglog_format.engine.choice import Engine
    from seglog_format.scan_statistics import FallbackCause


@dataclass(slots=True)
class Extent:
    """Counts the data that a verification reads, while it runs.

    Attributes:
        files: files of a known kind. Only the names of leftovers are checked.
        batches: intact batches and messages, in logs and metadata snapshots.
        engine: the engine that reads the logs; None before it is chosen.
        prefiltered: batches that the columnar engine skipped, since no check can report a finding on them.
        unread: logs that are not empty, and in which no entry is intact or has a finding.
        fallbacks: entries that the columnar engine left to the checks, by cause; empty with another engine.
    """

    files: int = 0
    batches: int = 0
    engine: Engine | None = None
    prefiltered: int = 0
    unread: list[str] = field(default_factory=list)
    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)
