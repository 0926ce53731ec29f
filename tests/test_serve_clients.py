"""Stock Kafka clients read served directories, and get what the reference reader reads."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from seglog_conformance.registry import BUILDS, STAMP, Builder, listed
from serve_client import Served, serving
from support import REPOSITORY, bundled

import seglog_format as seglog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.log.reading import Isolation
    from seglog_format.model import Message, Record

CLIENTS = {
    "kafka-python": "kafka_python_client.py",
    "aiokafka": "aiokafka_client.py",
    "librdkafka": "librdkafka_client.py",
}
SECONDS = 120

CASES = (
    "4.3.0/segs",
    "4.3.0/txn",
    "4.3.0/txn-open",
    "4.3.0/codec-gzip",
    "4.3.0/codec-lz4",
    "4.3.0/codec-zstd",
    "4.3.0/delrec",
    "3.9.1/compact-txn",
    "3.9.1/headers",
    "2.8.2/compact-codec",
    "2.8.2/idem",
    "1.1.1/mixed-segs",
    "1.1.1/logappend",
    "0.10.2.2/createtime",
    "0.8.2.2/codec-snappy",
)
"""Of every broker version, no topic twice."""

COMMITTED = ("4.3.0/txn", "4.3.0/txn-open", "3.9.1/compact-txn")
SEARCHED = ("4.3.0/segs", "1.1.1/logappend", "0.10.2.2/createtime")


UNREADABLE = {("aiokafka", "1.1.1/mixed-segs"): "LZ4 is not supported for broker version 0.8/0.9"}
"""What a client refuses, whoever serves it, and in which words."""


def partition_of(name: str) -> Path:
    return next(bundled(name).glob("*-0"))


def topic_of(name: str) -> str:
    return partition_of(name).name[:-2]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(*map(partition_of, CASES)) as running:
        yield running


@pytest.fixture(scope="module", params=CLIENTS)
def answers(request: pytest.FixtureRequest, served: Served) -> dict[str, Any]:
    """What one client made of all tasks: started once, since starting it takes longer than all of them."""
    name: str = request.param
    told = {"port": served.port, "tasks": list(tasks(name).values())}
    result = subprocess.run(
        [interpreter(name), REPOSITORY / "tests" / "serve_clients" / CLIENTS[name]],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return {"client": name, **dict(zip(tasks(name), json.loads(result.stdout), strict=True))}


def interpreter(name: str) -> Path:
    """The Python that has the client, as the conformance suite installs it."""
    wanted = listed(name)
    builder = Builder(REPOSITORY / BUILDS, strict=True)
    assert wanted.adapter is not None
    place = builder.place(wanted.adapter, wanted.version)
    if not (place / STAMP).is_file():
        if not os.environ.get("CI"):
            pytest.skip(f"{name} is not built; seglog conform smoke --testee {name} builds it")
        builder.testee(wanted)
    return place / "bin" / "python"


def tasks(name: str) -> dict[str, dict[str, Any]]:
    plain = {f"{case} read_uncommitted": records_task(case, "read_uncommitted") for case in CASES}
    committed = {f"{case} read_committed": records_task(case, "read_committed") for case in COMMITTED}
    searched = {
        f"{case} lookups": {"kind": "lookups", "topic": topic_of(case), "timestamps": timestamps(case)}
        for case in SEARCHED
    }
    group = {"kind": "group", "topic": topic_of("4.3.0/segs"), "group": name, "ends": [10, 25, 40]}
    return plain | committed | searched | {"group": group}


def records_task(case: str, isolation: Isolation) -> dict[str, Any]:
    with seglog.open_partition(partition_of(case)) as partition:
        end = partition.last_stable_offset if isolation == "read_committed" else partition.log_end_offset
        last = max((record.offset for record in partition.records(isolation=isolation)), default=-1)
    return {"kind": "records", "topic": topic_of(case), "isolation": isolation, "end": end, "last": last}


@cache
def timestamps(case: str) -> list[int]:
    with seglog.open_partition(partition_of(case)) as partition:
        found = sorted({record.timestamp_ms for record in partition.records()})
    return [0, *found[:: max(1, len(found) // 5)], found[-1] + 1]


def row(record: Record | Message) -> list[Any]:
    key, value = (None if part is None else part.hex() for part in (record.key, record.value))
    headers = [
        [each.key.decode(), None if each.value is None else each.value.hex()] for each in getattr(record, "headers", ())
    ]
    return [record.offset, record.timestamp_ms, key, value, headers]


@pytest.mark.parametrize("case", CASES)
def test_every_record_is_the_one_that_the_reference_reads(answers: dict[str, Any], case: str) -> None:
    with seglog.open_partition(partition_of(case)) as partition:
        expected = list(map(row, partition.records()))
    found = answers[f"{case} read_uncommitted"]
    if answers["client"] == "librdkafka":  # which does not tell the timestamp 0 from none
        expected = [[offset, max(timestamp_ms, 0), *rest] for offset, timestamp_ms, *rest in expected]
    if (answers["client"], case) in UNREADABLE:
        assert UNREADABLE[answers["client"], case] in found
    else:
        assert found == expected


@pytest.mark.parametrize("case", COMMITTED)
def test_committed_records_are_those_that_the_reference_reads(answers: dict[str, Any], case: str) -> None:
    with seglog.open_partition(partition_of(case)) as partition:
        assert answers[f"{case} read_committed"] == list(map(row, partition.records(isolation="read_committed")))


@pytest.mark.parametrize("case", SEARCHED)
def test_lookups_by_timestamp_find_what_the_reference_finds(answers: dict[str, Any], case: str) -> None:
    found = answers[f"{case} lookups"]
    with seglog.open_partition(partition_of(case)) as partition:
        for timestamp_ms, answer in zip(timestamps(case), found, strict=True):
            expected = partition.offset_for_timestamp(timestamp_ms)
            assert (answer and answer[1]) == (expected and expected.offset)


def test_a_group_goes_on_where_it_has_committed(answers: dict[str, Any]) -> None:
    assert answers["group"] == [list(range(10)), list(range(10, 25)), list(range(25, 40))]
