"""The case files of the suite: up to date, sound, and laid out like the bytes that Kafka wrote."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from authoring import control, plain
from authoring.draw_generated import FILE as DRAWN
from authoring.every import all_families
from authoring.make_cases import CASES, files
from helpers.support import REPOSITORY, vector
from helpers.walking import each_of
from seglog_conformance.cases import case_problems, load_cases
from seglog_conformance.compare import compare
from seglog_conformance.recipes import is_recipe, made
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.verdicts import Verdict

from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from pathlib import Path

    from authoring.batches import Batch

YEAR_10000_MS = 253_402_300_800_000
TIMES = {"timestamp", "baseTimestamp", "maxTimestamp"}
RANKS = {"may": 0, "should": 1, "must": 2}


@cache
def cases() -> list[dict[str, Any]]:
    return [case for path in sorted(CASES.glob("*.json")) for case in json.loads(path.read_text("utf-8"))["cases"]]


def test_the_files_are_what_the_modules_make() -> None:
    made = files()
    assert [path.name for path, text in made.items() if path.read_text("utf-8") != text] == []
    assert {*(path for path in made if path.parent == CASES), DRAWN} == set(CASES.glob("*.json"))


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


def timestamps(value: object) -> list[int]:
    if isinstance(value, list):
        return [found for item in value for found in timestamps(item)]
    if not isinstance(value, dict):
        return []
    direct = [int(value[name]) for name in TIMES & value.keys() if isinstance(value[name], str)]
    return direct + [found for item in value.values() for found in timestamps(item)]


def is_far(time_ms: int) -> bool:
    return time_ms < -1 or time_ms >= YEAR_10000_MS


def test_a_reader_must_not_lose_a_timestamp_that_brokers_store() -> None:
    read = [case for case in cases() if case["op"] == "decode" and case["result"] == "valid"]
    far = {case["id"]: case["level"] for case in read if any(map(is_far, timestamps(case["expect"])))}
    assert {time < 0 for case in read if case["id"] in far for time in timestamps(case["expect"]) if is_far(time)} == {
        True,
        False,
    }
    assert {name for name, level in far.items() if level != "must"} == {
        "timestamps/sum-wraps",
        "timestamps/sum-wraps-below",
    }


def test_no_writer_is_asked_for_a_negative_timestamp() -> None:
    written = [case for case in cases() if case["op"] == "encode"]
    assert [case["id"] for case in written if min(timestamps(case["request"]), default=0) < -1] == []


def test_the_protocol_describes_every_feature_that_a_case_needs() -> None:
    described = (REPOSITORY / "docs" / "reference" / "adapter-protocol.md").read_text("utf-8")
    needed = {need.partition(":")[0] for case in cases() for need in case.get("needs", ())}
    assert sorted(name for name in needed if f"`{name}`" not in described) == []


def test_a_reason_is_a_sentence() -> None:
    assert [case["id"] for case in cases() if not case["why"].endswith(".") or not case["why"][0].isupper()] == []


def log_of(data: Any) -> str:  # noqa: ANN401 - hex, or a recipe
    return str(made(data)) if is_recipe(data) else str(data)


def test_each_refusal_but_the_last_bytes_is_followed_by_something_good() -> None:
    decoded = [case for case in cases() if case["op"] == "decode" and case["result"] == "invalid"]
    followed = [case for case in decoded if log_of(case["request"]["data"]).endswith("08676f6f6400")]
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


VECTOR_CASES = [case for case in cases() if case["source"].startswith("vector ") and case["op"] != "index"]


@each_of("case", VECTOR_CASES)
def test_cases_that_name_a_vector_begin_with_it(case: dict[str, Any]) -> None:
    said = case["expect"] if case["op"] == "encode" else case["request"]
    assert said["data"].startswith(vector(case["source"].split()[1].rstrip(";")).hex())


def test_indexes_are_those_that_kafka_wrote() -> None:
    case = next(case for case in cases() if case["id"] == "index-build/eight-batches")
    assert case["expect"]["files"] == {
        ".index": "000000030000007700000005000000ee000000070000016500000009000001dc0000000b00000253"
        "0000000d000002ca0000000f00000341",
        ".timeindex": "000000000000044d0000000300000000000004b10000000500000000000005150000000700000000000005790000"
        "000900000000000005dd0000000b00000000000006410000000d00000000000006a50000000f",
    }


def test_every_family_is_there() -> None:
    apart = {47: "scale", 50: "generated"}
    assert [family.number for family in all_families()] == [at for at in range(1, 52) if at not in apart]


@each_of("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_the_reference_answers_every_case_as_expected(path: Path) -> None:
    reference = Reference()
    wrong = []
    for case in load_cases(path, checked=True):
        wrong += [f"{case.id}: {problem}" for problem in case_problems(case)]
        judgement = compare(case, {"seq": 1, **reference.answer({"op": case.op, **case.request})}, FEATURES)
        if judgement.verdict is not Verdict.PASS:
            wrong.append(f"{case.id}: {judgement.verdict.value}: {judgement.detail}")
    assert wrong == []
