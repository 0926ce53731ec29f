"""What a comparison with Kafka's classes found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

SHOWN: Final = 20
"""So many disagreements are written out; the rest is counted."""
LONGEST: Final = 300


@dataclass(slots=True)
class Result:
    """Of one part of the comparison.

    Attributes:
        about: what was compared.
        checked: how many cases.
        counts: of what came up, by name.
        departures: where Kafka does something else, and the specification says why; by requirement.
        failures: where it does, and nothing says why.
        failure_count: how many of these there were.
    """

    about: str
    checked: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    departures: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    failure_count: int = 0

    def fail(self, case: str, text: str) -> None:
        """Note a disagreement."""
        self.failure_count += 1
        if len(self.failures) < SHOWN:
            self.failures.append(f"{case}: {text}"[:LONGEST])

    def equal(self, case: str, name: str, ours: object, theirs: object) -> bool:
        """Note a disagreement unless both are the same."""
        if ours == theirs:
            return True
        self.fail(case, f"{name}: ours {_short(ours)}, Kafka's {_short(theirs)}")
        return False

    def as_object(self) -> dict[str, Any]:
        """For the report."""
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
