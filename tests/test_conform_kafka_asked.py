"""What is put to Kafka's own classes, and what of it is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from authoring.accused import accusations, newest
from authoring.ask_kafka import OLDER, RECORDS, STORAGE, asked_of
from authoring.broker_files import answered, batches_of, directories, families, run_of_batches
from seglog_conformance.cases import Case, load_cases
from seglog_conformance.compare import compare
from seglog_conformance.features import reported
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
CASES = {"f/must": "must", "f/may": "may"}


def case(name: str, *, op: str = "validate", needs: tuple[str, ...] = (), level: str = "must", **expect: Any) -> Case:  # noqa: ANN401
    return Case(
        id=name,
        family=1,
        family_name="f",
        op=op,
        requirements=("SEG-BAT-001",),
        level=level,
        result="valid",
        why="",
        stored_request={},
        stored_expect=expect,
        needs=needs,
    )


def result(testee: str, version: str, name: str, raw: str, detail: str = "") -> Json:
    return {"testee": testee, "version": version, "case": name, "raw": raw, "detail": detail}


def found(*results: Json) -> Json:
    return accusations(list(results), {name: case(name, level=level) for name, level in CASES.items()})


def test_the_newest_release_of_each_of_kafkas_testees_counts() -> None:
    rows = [result("kafka-storage", version, "f/must", "PASS") for version in ("2.8.2", "4.10.0", "4.9.1")]
    assert newest([*rows, result("sarama", "9.0.0", "f/must", "PASS")]) == {"kafka-storage": "4.10.0"}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([("kafka-clients", "4.4.0", "PASS"), ("kafka-storage", "4.4.0", "SKIP")], {"agree": 1}),
        ([("kafka-clients", "4.4.0", "PASS"), ("kafka-storage", "4.4.0", "DIFFER")], {"depart": ["f/must"]}),
        ([("kafka-clients", "4.4.0", "SKIP")], {"cannotBeAsked": {"encode": 1}}),
        ([("kafka-clients", "4.1.1", "PASS"), ("kafka-clients", "4.4.0", "SKIP")], {"cannotBeAsked": {"encode": 1}}),
        ([], {"notAsked": ["f/must"]}),
    ],
)
def test_an_accusation_is_told_by_what_kafka_said(answers: list[tuple[str, str, str]], expected: Json) -> None:
    kafkas = [result(testee, version, "f/must", raw, "encode") for testee, version, raw in answers]
    kafka_said = found(result("sarama", "1.0", "f/must", "DIFFER"), *kafkas)
    assert kafka_said["cases"] == 1
    nothing = {"agree": 0, "depart": [], "cannotBeAsked": {}, "notAsked": []}
    assert {name: kafka_said[name] for name in nothing} == nothing | expected


def test_nobody_is_accused_by_quality_or_by_the_reference() -> None:
    assert found(result("sarama", "1.0", "f/may", "DIFFER"), result("reference", "1", "f/must", "DIFFER"))["cases"] == 0


def test_each_case_is_put_to_the_classes_that_can_say() -> None:
    assert asked_of(case("f/a", op="encode")) == RECORDS
    assert asked_of(case("f/b", op="lookup")) == STORAGE
    assert asked_of(case("f/c", needs=("appended", "magic:1"))) == OLDER
    assert asked_of(case("f/d", needs=("policy:append", "magic:1"))) == STORAGE


def test_what_is_not_told_is_not_compared() -> None:
    expect = {"names": ["a"], "entries": [{"data": "00", "maxTimestampOffset": "3"}]}
    assert reported(expect, {"names": True, "appended": True}) == expect
    assert reported(expect, {"appended": ["data"]}) == {"entries": [{"data": "00"}]}


def test_what_is_told_is_compared() -> None:
    asked = case("f/e", accept=True, entries=[{"data": "00", "maxTimestampOffset": "3"}])
    features = {"appended": ["data"]}
    assert compare(asked, {"ok": True, "accept": True, "entries": [{"data": "00"}]}, features).verdict is Verdict.PASS
    wrong = {"ok": True, "accept": True, "entries": [{"data": "01", "maxTimestampOffset": "3"}]}
    assert compare(asked, wrong, features).verdict is Verdict.DIFFER
    assert compare(asked, {"ok": True, "accept": True, "entries": []}, features).verdict is Verdict.DIFFER


def test_records_of_entries_are_compared_by_the_fields_that_are_told() -> None:
    batches = [{"magic": 1, "records": [{"offset": "0", "innerMagic": 1}]}]
    features = {"appended": ["batches"], "recordFields": ["offset"]}
    assert reported({"entries": [{"batches": batches}]}, features) == {
        "entries": [{"batches": [{"magic": 1, "records": [{"offset": "0"}]}]}]
    }


def lines(*sizes: int) -> Iterator[Json]:
    for number, size in enumerate(sizes):
        yield {
            "type": "batch",
            "sizeInBytes": size,
            "baseOffset": number,
            "lastOffset": number,
            "magic": number % 3,
            "codec": "none",
            "timestampType": "CreateTime",
            "isTransactional": False,
            "isControl": False,
            "deleteHorizonMs": None,
            "recordsCount": None,
            "isValid": True,
        }


def test_a_run_shows_the_most_kinds_in_the_fewest_bytes() -> None:
    log = batches_of(list(lines(400, 300, 300, 200, 300)))
    assert [batch["sizeInBytes"] for batch, _ in run_of_batches(log)] == [300, 300, 200]
    assert run_of_batches(batches_of(list(lines(5001)))) == ()


def test_the_bytes_of_a_broker_are_in_a_bundled_log_and_answered_as_kafka_wrote_down() -> None:
    by_name = {f"{one.version}-{one.name}": one for one in directories()}
    (family,) = families()
    decoded = [one for one in family.cases if one["op"] == "decode"]
    assert {version for name in by_name for version in [name.split("-")[0]]} == {
        one["id"].removeprefix("broker-files/").split("-")[0] for one in decoded
    }
    for one in decoded:
        directory = by_name[one["id"].removeprefix("broker-files/")]
        data = bytes.fromhex(one["request"]["data"])
        (path, start) = next(
            (path, content.find(data)) for path, content in directory.files.items() if content.find(data) >= 0
        )
        kafka_said = {batch["position"]: (batch, records) for batch, records in batches_of(directory.lines[path])}
        expected = [answered(*kafka_said[start + each["position"]], start) for each in one["expect"]["batches"]]
        assert one["expect"]["batches"] == expected


def test_the_family_shows_each_magic_and_codec_and_what_compaction_leaves() -> None:
    decoded = [one for one in load_cases() if one.family_name == "broker-files" and one.op == "decode"]
    batches = [batch for one in decoded for batch in one.expect["batches"]]
    assert {batch["magic"] for batch in batches} == {0, 1, 2}
    assert {batch["codec"] for batch in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert any(not batch["records"] for batch in batches)
    assert any(batch["deleteHorizonMs"] for batch in batches)
    assert {record.get("control") for batch in batches for record in batch["records"]} >= {"COMMIT", "ABORT"}
