"""The crossed cases: every three values stand together in one, and a wrong checksum is all that is wrong."""

from __future__ import annotations

import json

from authoring.covering import Table, covering_rows
from authoring.crossed import SEED, TABLE, entry, is_written, name_of, with_wrong_checksum
from authoring.make_cases import CASES

ROWS = covering_rows(TABLE, SEED)


def test_every_three_values_that_can_stand_together_do_so_in_some_case() -> None:
    possible = frozenset().union(*map(TABLE.parts, TABLE.possible_rows()))
    assert len(possible) > 500
    assert frozenset().union(*map(TABLE.parts, ROWS)) == possible


def test_a_covering_array_is_smaller_than_the_product() -> None:
    table = Table({name: range(3) for name in "abcd"}, lambda _row: True)
    assert 9 <= len(covering_rows(table, 0)) <= 15


def test_the_rows_are_the_cases_of_the_family() -> None:
    stored = json.loads((CASES / "46-crossed.json").read_text("utf-8"))["cases"]
    names = [name_of(row) for row in ROWS]
    assert {case["id"] for case in stored if not case["id"].endswith("-wrong-checksum")} == {
        f"crossed/{n}" for n in names
    }


def test_a_wrong_checksum_is_all_that_is_wrong() -> None:
    damaged = [row for row in ROWS if is_written(row) and row["depth"] < 2]
    assert len(damaged) > 30
    for row in damaged:
        good, bad = entry(row).encoded(), with_wrong_checksum(row)
        at = 17 if row["magic"] == 2 else 12
        assert len(good) == len(bad)
        assert (good[:at], good[at + 4 :]) == (bad[:at], bad[at + 4 :])
        assert good[at : at + 4] != bad[at : at + 4]
