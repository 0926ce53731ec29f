"""The amount of data that was verified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglog_format.engine.choice import Engine
    from seglog_format.scan_statistics import FallbackCause


@dataclass(slots=True)
class Extent:
    """Counts what a verification reads, while it runs.

    Attributes:
        files: files of a known kind; of leftovers only the name is checked.
        batches: intact batches and messages, in logs and metadata snapshots.
        engine: what reads the logs; None before it is chosen.
        prefiltered: batches that the columnar engine skipped, since no check can report a finding on them.
        unread: logs with bytes, and without an intact entry or a finding about one.
        fallbacks: entries that it left to the checks, by cause; empty where the reference reads.
    """

    files: int = 0
    batches: int = 0
    engine: Engine | None = None
    prefiltered: int = 0
    unread: list[str] = field(default_factory=list)
    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)
