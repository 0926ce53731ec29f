"""Faults are located by symbol and text, and found again when code moves."""

from __future__ import annotations

import pytest

from proofs.mutants import fault_locations
from tools import rehome_faults

SOURCE = """
LIMIT: int = 5

class Index:
    size = 8

    @property
    def count(self):
        found = self.size
        return found

def count():
    found = 1
    return found
"""

LISTED = """# Faults of a chapter.

[[fault]]
requirement = "SEG-XXX-001"
file = "old.py"
symbol = "Index.count"
find = "        return found"
replace = "        return 0"
"""


def test_every_place_names_the_innermost_symbol() -> None:
    assert [occurrence.symbol for occurrence in fault_locations.occurrences(SOURCE, "return found")] == [
        "Index.count",
        "count",
    ]
    assert [occurrence.symbol for occurrence in fault_locations.occurrences(SOURCE, "size = 8")] == ["Index.size"]
    assert [occurrence.symbol for occurrence in fault_locations.occurrences(SOURCE, "= 5")] == ["LIMIT"]
    assert [occurrence.symbol for occurrence in fault_locations.occurrences(SOURCE, "@property")] == ["Index.count"]
    assert [occurrence.symbol for occurrence in fault_locations.occurrences(SOURCE, "class Index:\n    size")] == [
        "Index"
    ]


@pytest.mark.parametrize(("symbol", "count"), [("Index.size", 0), ("", 0), ("Index.count", 2)])
def test_a_text_that_is_not_once_in_its_symbol_is_refused(symbol: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"occurs {count} times in"):
        fault_locations.occurrence_in(SOURCE, symbol, "found")


def test_a_moved_fault_is_found_in_its_new_module() -> None:
    text, reported = rehome_faults.rehomed(LISTED, {"old.py": "", "new.py": SOURCE})
    assert text == LISTED.replace("old.py", "new.py")
    assert reported == ["SEG-XXX-001: new.py: Index.count"]


def test_a_fault_whose_class_was_renamed_is_found_by_its_last_name() -> None:
    text, _ = rehome_faults.rehomed(LISTED, {"old.py": SOURCE.replace("class Index", "class OffsetIndex")})
    assert 'symbol = "OffsetIndex.count"' in text


@pytest.mark.parametrize("source", ["", SOURCE.replace("return found", "return self")])
def test_a_lost_fault_is_reported_and_left_alone(source: str) -> None:
    text, reported = rehome_faults.rehomed(LISTED, {"old.py": source})
    assert text == LISTED
    assert reported == ["LOST SEG-XXX-001: 0 places hold 'return found'"]


def test_a_fault_at_home_is_left_alone() -> None:
    assert rehome_faults.rehomed(LISTED, {"old.py": SOURCE}) == (LISTED, [])
