"""Writers by readers: a sample through a real server, and that a difference is told, and whose it is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import REPOSITORY, need
from seglog_conformance.features import EVERYTHING, Mask
from seglog_conformance.reference import decode
from seglog_conformance.registry import BUILDS, STAMP, Builder, Listed, listed

from proofs.pairing.reading import Reader, differing, read_logs, readers, written_differences
from proofs.pairing.subjects import Subject, subjects_of
from proofs.pairing.writing import Log, newest, write_logs
from proofs.writers.cells import Kind, Way, Writer
from proofs.writers.rows import Row
from seglog_format import CompressionCodec, build_batch, encode_batch, new_record
from tools.docs import pairs_page

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("pairs")
"""The logs are written once."""

pytest.importorskip("kio")
pytest.importorskip("pyarrow")

OURS = Writer("seglog-format", "", Way.OURS)
ENCODER = Writer("aiokafka", "aiokafka", Way.ENCODER, (Kind.IDEMPOTENT,))
CLIENT = Writer("kafka-python", "kafka-python-wire", Way.CLIENT)
SAMPLE = (OURS, ENCODER, CLIENT)
READERS = ("reference", "columnar", "aiokafka", "kafka-python-wire")
REFUSED = {"null key and value", "null header value"}
"""What the producer of kafka-python does not take."""


def built(name: str) -> Listed:
    """Return a reader; where it is not built, it is built now in CI, and the test is skipped elsewhere."""
    wanted = next(one for one in readers() if one.name == name)
    if wanted.adapter is not None:
        need(name, wanted.adapter.toolchain)
        directory = Builder(REPOSITORY / BUILDS).build_directory(wanted.adapter, wanted.version)
        if not (directory / STAMP).is_file() and not os.environ.get("CI"):
            pytest.skip(f"{name} is not built; seglog conform smoke --testee {name} builds it")
    return wanted


@pytest.fixture(scope="module")
def wanted() -> list[Listed]:
    return [built(name) for name in READERS]


@pytest.fixture(scope="module")
def logs(wanted: list[Listed], tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    assert wanted
    home = tmp_path_factory.mktemp("pairs")
    found = list(write_logs(home, subjects_of(1), lambda _: None, list(map(newest, SAMPLE)), ("gzip",)))
    assert not [one for one in found if isinstance(one, str)]
    return [one for one in found if isinstance(one, Log)]


def test_each_writer_writes_what_it_takes_of_what_it_is_given(logs: list[Log]) -> None:
    kinds = [(log.writer.title, log.kind) for log in logs]
    assert kinds == [
        ("seglog-format", Kind.PLAIN),
        ("aiokafka", Kind.IDEMPOTENT),
        ("kafka-python", Kind.PLAIN),
        ("kafka-python", Kind.IDEMPOTENT),
    ]
    assert [set(log.refused) for log in logs] == [set(), set(), REFUSED, REFUSED]
    assert [written_differences(log) for log in logs] == [[]] * 4
    batches = decode({"data": logs[3].data.hex()})["batches"]
    assert all(int(batch["producerId"]) >= 0 for batch in batches)


def test_python_readers_read_what_python_writers_write(logs: list[Log], wanted: list[Listed]) -> None:
    found = {one.name: (reader, differences) for one, reader, differences in read_logs(logs, wanted)}
    assert {name: differences for name, (_, differences) in found.items()} == {name: [[]] * 4 for name in READERS}
    assert [reader.way for reader, _ in found.values() if isinstance(reader, Reader)] == ["records"] * 3 + ["wire"]


def test_a_reader_that_reads_another_log_is_told(logs: list[Log]) -> None:
    other = replace(logs[0], data=made(Row(b"k", b"", 1), Row(b"k", b"v", 2, ((b"a", b"1"),))))
    assert written_differences(other)[0] == "2 of 172 records"


def made(*rows: Row) -> bytes:
    records = [
        new_record(key=row.key, value=row.value, timestamp_ms=row.timestamp_ms, headers=list(row.headers))
        for row in rows
    ]
    return encode_batch(build_batch(records, codec=CompressionCodec.NONE))


GIVEN = (Subject("one", (Row(b"k", None, 1),)), Subject("other", (Row(b"\xff", b"v", 2, ((b"a", None),)),)))


@pytest.mark.parametrize(
    ("rows", "reported"),
    [
        ((GIVEN[0].rows[0], GIVEN[1].rows[0]), []),
        ((Row(b"k", b"", 1), GIVEN[1].rows[0]), ['one: value null as ""']),
        ((GIVEN[0].rows[0], Row(b"\xff", b"v", 3, ((b"a", None),))), ["other: timestamp 2 as 3"]),
        ((GIVEN[0].rows[0], Row(b"\xfe", b"v", 2, ((b"a", None),))), ["other: key 0xff as 0xfe"]),
        ((GIVEN[0].rows[0], Row(b"\xff", b"v", 2, ((b"a", b""),))), ['other: headers "a"=null as "a"=""']),
        ((GIVEN[0].rows[0], Row(b"\xff", b"v", 2)), ['other: headers "a"=null as none']),
        ((GIVEN[0].rows[0],), ["1 of 2 records"]),
    ],
)
def test_what_a_writer_changed_is_told_by_subject_and_field(rows: tuple[Row, ...], reported: list[str]) -> None:
    log = Log(
        writer=OURS, kind=Kind.PLAIN, codec="none", version="1", language="Python", subjects=GIVEN, data=made(*rows)
    )
    assert written_differences(log) == reported


def test_the_order_of_headers_counts_only_where_it_is_told() -> None:
    one, other = ({"headers": headers} for headers in ([["61", "31"], ["62", "32"]], [["62", "32"], ["61", "31"]]))
    assert differing([one], [other], ["headers"], Mask({**EVERYTHING, "headers": "unordered"})) == []
    assert differing([one], [other], ["headers"], Mask(EVERYTHING)) == [
        'headers: headers "a"="1" "b"="2" as "b"="2" "a"="1"'
    ]


def test_a_reader_that_cannot_be_built_is_named_with_the_reason() -> None:
    adapter = listed("kio").adapter
    assert adapter is not None
    absent = Listed("absent", "1", replace(adapter, name="absent", toolchain=("no-such-compiler",)))
    assert [(one.name, reason) for one, reason, _ in read_logs([], [absent])] == [
        ("absent", "absent needs no-such-compiler, which is not on the PATH")
    ]


def report(**changes: object) -> dict[str, Any]:
    log: dict[str, Any] = {"writer": "sarama", "through": "client", "version": "1.0", "kind": "plain", "codec": "gzip"}
    log |= {"refused": {}, "wrote": [], "skipped": [], "differs": {}}
    return {
        "made": {
            "command": "python -m proofs pairs",
            "commit": "0" * 40,
            "dirty": False,
            "date": "2026-11-27",
            "versions": {},
            "machine": {"cores": 2, "system": "Linux", "architecture": "x86_64"},
        },
        "subjects": {"null": 1, "many": 9},
        "readers": [
            {"name": "good", "version": "2", "way": "wire"},
            {"name": "other", "version": "3", "way": "wire"},
            {"name": "gone", "version": "4", "reason": "no compiler"},
        ],
        "logs": [log, log | {"codec": "lz4"} | changes],
        "notWritten": [],
    }


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "| sarama, client 1.0, plain | 2/2 | 2/2 |"),
        ({"skipped": ["other"]}, "| sarama, client 1.0, plain | 2/2 | 1/1 |"),
        ({"differs": {"other": ["null: key null as x"]}}, "| sarama, client 1.0, plain | 2/2 | **1/2** |"),
        ({"differs": {"other": ["null: key null as x"]}}, "- other: null: key null as x (sarama, client, plain, lz4)"),
        ({"differs": {"other": ["null: key null as x"]}}, "of 4 pairs of a log and a reader, 3 are equal"),
        ({"wrote": ["null: key null as x"]}, "- null: key null as x (sarama, client 1.0)"),
        ({"refused": {"null": "no"}}, "- sarama, client: null: no"),
        ({}, "- gone: no compiler"),
    ],
)
def test_the_page_shows_each_pair(
    changes: dict[str, Any], shown: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(report(**changes)), encoding="utf-8")
    monkeypatch.setattr(pairs_page, "REPORT", path)
    assert shown in pairs_page.pages("")[pairs_page.PAGE]
