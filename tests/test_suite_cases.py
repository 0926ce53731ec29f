"""The case files of the suite: up to date, sound, and laid out like the bytes that Kafka wrote."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from make_cases import CASES, files
from suite_cases import control, plain
from suite_cases.every import all_families
from support import vector

from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from suite_cases.batches import Batch

RANKS = {"may": 0, "should": 1, "must": 2}


@cache
def cases() -> list[dict[str, Any]]:
    return [case for path in sorted(CASES.glob("*.json")) for case in json.loads(path.read_text("utf-8"))["cases"]]


def test_the_files_are_what_the_modules_make() -> None:
    made = files()
    assert [path.name for path, text in made.items() if path.read_text("utf-8") != text] == []
    assert {path for path in made if path.parent == CASES} == set(CASES.glob("*.json"))


def test_ids_occur_once() -> None:
    assert [name for name, count in Counter(case["id"] for case in cases()).items() if count > 1] == []


def test_requirements_are_known_and_no_case_is_stricter_than_they_are() -> None:
    known = {name: RANKS[one.level.lower()] for name, one in requirements().items()}
    strict = [
        case["id"]
        for case in cases()
        if RANKS[case["level"]] > max(known[requirement] for requirement in case["requirements"])
    ]
    assert strict == []


def test_a_reason_is_a_sentence() -> None:
    assert [case["id"] for case in cases() if not case["why"].endswith(".") or not case["why"][0].isupper()] == []


def test_each_refusal_but_the_last_bytes_is_followed_by_something_good() -> None:
    decoded = [case for case in cases() if case["op"] == "decode" and case["result"] == "invalid"]
    followed = [case for case in decoded if case["request"]["data"].endswith("08676f6f6400")]
    assert len(followed) > len(decoded) * 0.6


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("V-06", plain.THREE),
        ("V-08", plain.TWO_HEADERS),
        ("V-13", control.marker("COMMIT", 5)),
        ("V-14", control.marker("ABORT", 5)),
        ("V-15", control.kraft("LEADER_CHANGE", control.LEADER_CHANGE)),
        ("V-16", control.kraft("SNAPSHOT_HEADER", control.SNAPSHOT_HEADER, 0)),
        ("V-17", control.kraft("SNAPSHOT_FOOTER", control.SNAPSHOT_FOOTER)),
        ("V-18", control.kraft("KRAFT_VERSION", control.KRAFT_VERSION)),
        ("V-19", control.kraft("KRAFT_VOTERS", control.KRAFT_VOTERS)),
    ],
)
def test_the_assembler_lays_out_what_kafka_wrote(name: str, unit: Batch) -> None:
    assert unit.encoded().hex() == vector(name).hex()


VECTOR_CASES = [case for case in cases() if case["source"].startswith("vector ")]


@pytest.mark.parametrize("case", VECTOR_CASES, ids=[case["id"] for case in VECTOR_CASES])
def test_cases_that_name_a_vector_begin_with_it(case: dict[str, Any]) -> None:
    data = vector(case["source"].split()[1].rstrip(";"))
    assert case["request"]["data"].startswith(data.hex())


def test_families_are_numbered_in_a_row() -> None:
    numbers = [family.number for family in all_families()]
    assert numbers == sorted(set(numbers))
