"""Random logs that Kafka's own classes wrote and compacted, kept from the last time (`record_lives`)."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

KEPT: Final = Path(__file__).with_name("kept_lives.json")


def digest(request: dict[str, Any]) -> str:
    """Changes with what is asked."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


def random_lives(op: str) -> list[dict[str, Any]]:
    """Return the random ones of one operation: name, request, and what Kafka left."""
    return [life for life in _document()["lives"] if life["op"] == op and "request" in life]


def left_by_kafka() -> dict[str, dict[str, Any]]:
    """What Kafka left in each scene: the digest of what was asked, the files that it began with, and the answer."""
    return {life["name"]: life for life in _document()["lives"] if "digest" in life}


def kept_source() -> str:
    """Who left it."""
    return str(_document()["source"])


@cache
def _document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found
