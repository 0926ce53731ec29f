"""What brokers of older releases did otherwise, kept from the last time they were asked (`record_generations`)."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from seglog_conformance.releases import release_key

from authoring.asked import digest

KEPT: Final = Path(__file__).with_name("recorded_generations.json")
RELEASES: Final = ("2.8.2", "3.9.1")
"""The older releases that are asked, oldest first."""
TODAY: Final = "4.1.1"
"""The oldest release whose answers the cases expect."""

Json = dict[str, Any]


def with_generations(case: Json) -> Json:
    """Return a case with what older brokers did, and with the release from which it is known to hold.

    A requirement may be younger than the oldest release whose classes pass the case: then that release counts.
    """
    asked = digest(case)
    kept = _kept()
    passing = [release for release in RELEASES if kept[release]["passes"].get(case["id"]) == asked]
    since = min([case["since"], *passing], key=release_key)
    older: list[Json] = []
    for release, newer in pairwise((*RELEASES, TODAY)):
        found = kept[release]["differs"].get(case["id"], {})
        if found.get("digest") != asked:
            continue
        if older and older[-1]["expect"] == found["expect"]:
            older.pop()
        older.append({"through": release, "before": newer, "expect": found["expect"]})
    parts = {**case, "since": since}
    return {**parts, "older": older} if older else parts


@cache
def _kept() -> dict[str, Json]:
    found: dict[str, Json] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found
