"""How much was verified: a success says little without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Extent:
    """Counts what a verification looks at, while it goes on.

    Attributes:
        files: whose names mean something; of leftovers only the name is looked at.
        batches: intact batches and messages, in logs and metadata snapshots.
    """

    files: int = 0
    batches: int = 0
