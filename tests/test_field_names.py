"""People and programs read Kafka's names of fields, the same ones everywhere."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from helpers.support import REPOSITORY, vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.cli.inspect import command as inspect
from seglog_format.cli.structures import structures
from seglog_format.errors import Location
from seglog_format.field_names import kafka_name

NOT_IN_A_TABLE = {
    "MetadataFrame",  # names that the project gives to parts of a value
    "SegmentFileName",
    "MetadataSnapshotFileName",
    "EntryPrefix",
    "MetaProperties",  # text files, whose keys the chapters show as they stand
    "QuorumState",
    "CheckpointHeader",
    "LeaderEpochCheckpointEntry",
    "LeaderEpochCheckpoint",
    "OffsetCheckpoint",
}
TAGGED = "taggedFields"


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("crc", "crc"),
        ("base_timestamp_ms", "baseTimestamp"),
        ("records[3].offset_delta", "records[3].offsetDelta"),
        ("batch @61.last_offset_delta", "batch @61.lastOffsetDelta"),
        ("topic_id", "topic_id"),
        ("segmentSizeInBytes", "segmentSizeInBytes"),
        ("__consumer_offsets", "__consumer_offsets"),
        ("", ""),
    ],
)
def test_names(field: str, wanted: str) -> None:
    assert kafka_name(field) == wanted


@given(st.text())
def test_a_name_is_converted_once(field: str) -> None:
    assert kafka_name(kafka_name(field)) == kafka_name(field)


def test_the_chapters_have_the_names_that_are_shown() -> None:
    chapters = {path.name[:2]: path.read_text(encoding="utf-8") for path in (REPOSITORY / "spec").glob("[0-9]*.md")}
    missing = [
        (structure.name, kafka_name(field.name))
        for structure in structures()
        if structure.name not in NOT_IN_A_TABLE
        for field in structure.fields
        if kafka_name(field.name) != TAGGED and kafka_name(field.name) not in chapters[f"{structure.chapter:02}"]
    ]
    assert missing == []


def test_errors_and_rows_use_them() -> None:
    assert str(Location("x.log", 57, "records_count")) == "x.log:57: recordsCount"
    result = CliRunner().invoke(inspect, ["-", "--json"], input=vector("V-06").hex())
    names = {json.loads(line)["field"] for line in result.stdout.splitlines()}
    assert {"batch @0.lastOffsetDelta", "batch @0.records[0].timestampDelta"} <= names
    assert not {name for name in names if "_" in name}
