"""How much was verified: a success says little without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seglog_format.engine.choice import Engine
    from seglog_format.scan_statistics import FallbackCause


@dataclass(slots=True)
class Extent:
    """Counts what a verification looks at, while it goes on.

    Attributes:
        files: whose names mean something; of leftovers only the name is looked at.
        batches: intact batches and messages, in logs and metadata snapshots.
        engine: what reads the logs; None before it is chosen.
        prefiltered: batches that the columnar engine skipped, since no check can report a finding on them.
        fallbacks: entries that it left to the checks, by cause; empty where the reference reads.
    """

    files: int = 0
    batches: int = 0
    engine: Engine | None = None
    prefiltered: int = 0
    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)
