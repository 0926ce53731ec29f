"""The result of a comparison with Kafka's classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

SHOWN: Final = 20
"""Limit on printed disagreements; the rest is only counted."""
LONGEST: Final = 300


@dataclass(slots=True)
class Result:
    """The result of one part of the comparison.

    Attributes:
        about: description of the comparison.
        checked: number of cases.
        counts: numbers of events, by name.
        departures: differences from Kafka that the specification explains; by requirement.
        failures: differences that it does not explain.
        failure_count: number of failures.
    """

    about: str
    checked: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    departures: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    failure_count: int = 0

    def fail(self, case: str, text: str) -> None:
        """Record a disagreement."""
        self.failure_count += 1
        if len(self.failures) < SHOWN:
            self.failures.append(f"{case}: {text}"[:LONGEST])

    def equal(self, case: str, name: str, ours: object, theirs: object) -> bool:
        """Record a disagreement unless both values are equal; return whether they are."""
        if ours == theirs:
            return True
        self.fail(case, f"{name}: ours {_short(ours)}, Kafka's {_short(theirs)}")
        return False

    def as_object(self) -> dict[str, Any]:
        """Return the result as the report holds it."""
        return {
            "about": self.about,
            "checked": self.checked,
            "counts": dict(sorted(self.counts.items())),
            "departures": dict(sorted(self.departures.items())),
            "disagreements": self.failure_count,
            "first": self.failures,
        }


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST // 3 else f"{text[: LONGEST // 3]}... ({len(text)})"
