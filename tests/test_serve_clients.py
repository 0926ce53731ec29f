"""Stock Kafka clients read served directories, and get what the reference reader reads.

Each client is a program that is told its tasks as JSON and answers as JSON. The Python ones run where the conformance
suite installs them; the others are built from `serve_clients/`, into the same place.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import Served, serving
from helpers.support import REPOSITORY, bundled, bundled_cases, need
from helpers.walking import each_of
from seglog_conformance.registry import BUILDS, STAMP, Builder, listed

import seglog_format as seglog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.log.reading import Isolation
    from seglog_format.model import Message, Record

SOURCES = REPOSITORY / "tests" / "serve_clients"
PROGRAMS = {
    "kafka-python": "kafka_python_client.py",
    "aiokafka": "aiokafka_client.py",
    "librdkafka": "librdkafka_client.py",
}
"""In Python; of the others, a directory has the name."""

CLIENTS = (
    *PROGRAMS,
    "kafka-clients",
    "franz-go",
    "sarama",
    "kafka-go",
    "kafkajs",
    "platformatic-kafka",
    "rust-rdkafka",
)
SECONDS = 300

KNOWN = tomllib.loads((SOURCES / "known.toml").read_text(encoding="utf-8"))
"""Where clients depart from what is stored, whoever serves it."""


def topic_of(case: str) -> str:
    return case.replace("/", "-")


def source_of(case: str) -> Path:
    """Return the first partition of a case that holds something."""
    return min(path for path in bundled(case).glob("*-*") if any(log.stat().st_size for log in path.glob("*.log")))


READ_BY_THEIR_OWN = ("0.9.0.1/", "0.11.0.3/", "2.0.1/", "3.0.2/", "3.4.1/", "4.0.1/")
"""Lines that `test_served` compares with what their own consumers got; five more clients would take minutes more."""
CASES = tuple(
    case
    for case in bundled_cases()
    if not re.search("/(root|empty|compact-empty|crash-.*)$", case) and not case.startswith(READ_BY_THEIR_OWN)
)
"""All but the empty ones, and those that a crash has damaged."""
COMMITTED = tuple(case for case in CASES if "txn" in case)
SEARCHED = tuple(case for case in CASES if re.search("/(createtime|logappend|one|plain|segs|headers)", case))
GROUPED = "4.3.0/segs"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case, as a topic of its own."""
    path = tmp_path_factory.mktemp("served")
    for case in CASES:
        shutil.copytree(source_of(case), path / f"{topic_of(case)}-0")
    return path


@pytest.fixture(scope="module")
def served(directory: Path) -> Iterator[Served]:
    with serving(directory) as running:
        yield running


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(f"client {name}")) for name in CLIENTS]
)
def answers(request: pytest.FixtureRequest, served: Served) -> dict[str, Any]:
    """Provide what one client made of all tasks: started once, since starting it takes longer than all of them."""
    name: str = request.param
    return {"client": name, **asked(name, served.port, tasks(name))}


def asked(name: str, port: int, wanted: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Have a client carry out tasks."""
    result = subprocess.run(
        command(name),
        input=json.dumps({"port": port, "tasks": list(wanted.values())}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return dict(zip(wanted, json.loads(result.stdout), strict=True))


def command(name: str) -> list[str]:
    """Return how to run a client; where it is not built, it is built now in CI, and the test is skipped elsewhere."""
    wanted = listed(name if name in PROGRAMS else str(SOURCES / name))
    builder = Builder(REPOSITORY / BUILDS, strict=True)
    assert wanted.adapter is not None
    need(name, wanted.adapter.toolchain)
    build_directory = builder.build_directory(wanted.adapter, wanted.version)
    if name in PROGRAMS:
        if not (build_directory / STAMP).is_file():
            if not os.environ.get("CI"):
                pytest.skip(f"{name} is not built; seglog conform smoke --testee {name} builds it")
            builder.testee(wanted)
        return [str(build_directory / "bin" / "python"), str(SOURCES / PROGRAMS[name])]
    builder.testee(wanted)
    return list(builder.command(wanted.adapter, wanted.version).arguments)


def is_asked_for(name: str, case: str) -> bool:
    return re.search(KNOWN.get(name, {}).get("reads", ""), case) is not None


def tasks(name: str) -> dict[str, dict[str, Any]]:
    read = [case for case in CASES if is_asked_for(name, case)]
    plain = {f"{case} read_uncommitted": records_task(case, "read_uncommitted") for case in read}
    committed = {f"{case} read_committed": records_task(case, "read_committed") for case in COMMITTED if case in read}
    searched = {
        f"{case} lookups": {"kind": "lookups", "topic": topic_of(case), "timestamps": timestamps(case)}
        for case in SEARCHED
    }
    group = {"kind": "group", "topic": topic_of(GROUPED), "group": name, "ends": [10, 25, 40]}
    return plain | committed | searched | {"group": group}


@cache
def records_task(case: str, isolation: Isolation) -> dict[str, Any]:
    with seglog.open_partition(source_of(case)) as partition:
        end = partition.last_stable_offset if isolation == "read_committed" else partition.log_end_offset
        last = max((record.offset for record in partition.records(isolation=isolation)), default=-1)
    return {"kind": "records", "topic": topic_of(case), "isolation": isolation, "end": end, "last": last}


@cache
def timestamps(case: str) -> list[int]:
    with seglog.open_partition(source_of(case)) as partition:
        found = sorted({record.timestamp_ms for record in partition.records() if record.timestamp_ms >= 0})
    return [0, *found[:: max(1, len(found) // 5)], found[-1] + 1] if found else [0]


def row(record: Record | Message) -> list[Any]:
    key, value = (None if part is None else part.hex() for part in (record.key, record.value))
    headers = [
        [each.key.decode(), None if each.value is None else each.value.hex()] for each in getattr(record, "headers", ())
    ]
    return [record.offset, record.timestamp_ms, key, value, headers]


@cache
def expected(case: str, isolation: Isolation) -> list[list[Any]]:
    with seglog.open_partition(source_of(case)) as partition:
        return list(map(row, partition.records(isolation=isolation)))


@each_of("case", CASES)
def test_every_record_is_the_one_that_the_reference_reads(answers: dict[str, Any], case: str) -> None:
    compare(answers, case, "read_uncommitted")


@each_of("case", COMMITTED)
def test_committed_records_are_those_that_the_reference_reads(answers: dict[str, Any], case: str) -> None:
    compare(answers, case, "read_committed")


def compare(answers: dict[str, Any], case: str, isolation: Isolation) -> None:
    client = answers["client"]
    if not is_asked_for(client, case):
        pytest.skip(f"{client} does not read this")
    found, known = answers[f"{case} {isolation}"], KNOWN.get(client, {})
    right, found = adapted(expected(case, isolation), known), adapted(found, known)
    departure = next((each for each in known.get("departures", ()) if departs(each, case, isolation)), None)
    if departure is None:
        assert found == right
    elif "sometimes" not in departure:
        assert found != right, f"{client} reads {case} as it should: known.toml says otherwise"


def departs(departure: dict[str, Any], case: str, isolation: str) -> bool:
    return case in departure["cases"] and isolation in departure.get("isolation", isolation)


def adapted(rows: list[list[Any]] | str, known: dict[str, Any]) -> list[list[Any]] | str:
    """Rows without what a client never tells."""
    if isinstance(rows, str):
        return rows
    if known.get("no_timestamp_is_0"):
        rows = [[offset, max(timestamp_ms, 0), *rest] for offset, timestamp_ms, *rest in rows]
    if known.get("empty_is_null"):
        rows = [
            [offset, timestamp_ms, key or None, value or None, headers_or_null(headers)]
            for offset, timestamp_ms, key, value, headers in rows
        ]
    if known.get("headers_by_name"):
        rows = [[*rest, sorted(headers, key=str)] for *rest, headers in rows]
    return rows


def headers_or_null(headers: list[list[Any]]) -> list[list[Any]]:
    return [[name, value or None] for name, value in headers]


@each_of("case", SEARCHED)
def test_lookups_by_timestamp_find_what_the_reference_finds(answers: dict[str, Any], case: str) -> None:
    found = answers[f"{case} lookups"]
    with seglog.open_partition(source_of(case)) as partition:
        for timestamp_ms, answer in zip(timestamps(case), found, strict=True):
            wanted = partition.offset_for_timestamp(timestamp_ms)
            nothing = partition.log_end_offset if KNOWN.get(answers["client"], {}).get("missing_is_end") else None
            assert (answer and answer[1]) == (wanted.offset if wanted else nothing)


def test_a_group_goes_on_where_it_has_committed(answers: dict[str, Any]) -> None:
    assert answers["group"] == [list(range(10)), list(range(10, 25)), list(range(25, 40))]
