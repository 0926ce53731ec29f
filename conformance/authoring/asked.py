"""What Kafka's own classes said to the cases, kept from the last time they were asked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

ASKED: Final = Path(__file__).with_name("asked.json")
Asked = dict[str, list[str]]


def digest(case: dict[str, Any]) -> str:
    """Return a digest that changes with what is asked and with what is expected."""
    parts = [case["op"], case["result"], case["request"], case["expect"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def document(answers: dict[str, Asked]) -> str:
    """As it is kept."""
    return json.dumps(answers, indent=0, sort_keys=True) + "\n"


def with_answers(case: dict[str, Any], answers: dict[str, Asked]) -> dict[str, Any]:
    """Return the same case, its source saying who was asked and how far they agree."""
    texts = [case["source"]]
    for name, said in answers.items():
        found, text = said.get(case["id"], ["", ""])
        if found == digest(case):
            texts.append(f"{name} {text}")
    return {**case, "source": "; ".join(texts)}


def kept_answers() -> dict[str, Asked]:
    """From the last time."""
    answers: dict[str, Asked] = json.loads(ASKED.read_text(encoding="utf-8")) if ASKED.exists() else {}
    return answers
