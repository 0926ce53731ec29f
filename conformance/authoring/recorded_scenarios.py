"""Random logs that Kafka's own classes wrote and compacted, kept from the last time (`record_scenarios`)."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

KEPT: Final = Path(__file__).with_name("recorded_scenarios.json")


def digest(request: dict[str, Any]) -> str:
    """Return a digest that changes with what is asked."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


def random_scenarios(op: str) -> list[dict[str, Any]]:
    """Return the random ones of one operation: name, request, and what Kafka left."""
    return [row for row in _document()["scenarios"] if row["op"] == op and "request" in row]


def left_by_kafka() -> dict[str, dict[str, Any]]:
    """Return what Kafka left in each scenario: digest of what was asked, files that it began with, and answer."""
    return {row["name"]: row for row in _document()["scenarios"] if "digest" in row}


def kept_source() -> str:
    """Return who left it."""
    return str(_document()["source"])


def expectation(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the result and the answer that a case expects: either one where the newest release leaves another."""
    if "newer" not in row:
        return "valid", row["expect"]
    branches = ((f"before {_document()['newest']}", row["expect"]), (f"{_document()['newest']}", row["newer"]))
    return "acceptable", {"allowed": [{"branch": branch, **expect} for branch, expect in branches]}


@cache
def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found
