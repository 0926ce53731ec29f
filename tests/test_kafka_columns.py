"""Records of Kafka's own topics as columns: what the decoder for people says, which Kafka was asked about."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from helpers.batches import batch, record
from helpers.support import FIXTURES, authentic
from helpers.walking import each_of

from proofs.unpacking import unpack_archive
from seglog_format import export, open_partition, value_decoder
from seglog_format.cli.main import run
from seglog_format.codec.coordinator_records import decode_application_record, encode_metadata_record
from seglog_format.codec.protocol import encode_message
from seglog_format.errors import UsageError
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import SIMPLE_TYPES, ArrayOf, Structure
from seglog_format.values.decoder import decoded

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = {"bool": True, "float64": 0.5, "uuid": "AAAAAAAAAAEAAAAAAAAAAg", "string": "ä", "bytes": "AP8="}
SAMPLE_OF = {id(kind): SAMPLES.get(name, 7) for name, kind in SIMPLE_TYPES.items()}


def sample(kind: Any, version: int) -> Any:  # noqa: ANN401 - any value of a message
    if isinstance(kind, ArrayOf):
        return [sample(kind.element, version)] * 2
    if isinstance(kind, Structure):
        return {each.name: sample(each.type, version) for each in kind.fields if each.exists(version)}
    return SAMPLE_OF[id(kind)]


def records_of(topic: str) -> list[tuple[bytes | None, bytes | None, str]]:
    """Return a record of each type in each of its versions, with every field."""
    found: list[tuple[bytes | None, bytes | None, str]] = []
    for number, kind in COORDINATOR_TOPICS.get(topic, {}).items():
        key = number.to_bytes(2, "big") + encode_message(kind.key, 0, sample(Structure(kind.key.fields), 0))
        for version in range(kind.value.earliest, kind.value.latest + 1):
            body = encode_message(kind.value, version, sample(Structure(kind.value.fields), version))
            found.append((key, version.to_bytes(2, "big") + body, kind.type))
        found.append((key, None, kind.type))
    for each in FRAMED_TOPICS.get(topic, {}).values():
        for version in range(each.earliest, each.latest + 1):
            fields = sample(Structure(each.fields), version)
            found.append((None, encode_metadata_record(topic, each.name, version, fields), each.name))
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - columns, as the decoder for people shows them
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    return [plain(each) for each in value] if isinstance(value, list) else value


def without_null(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def columns_of(topic: str, rows: list[tuple[bytes | None, bytes | None, str]]) -> tuple[list[Any], list[Any]]:
    keys, values = (pa.array([row[part] for row in rows], pa.binary()) for part in (0, 1))
    found, failures = decoded(value_decoder("kafka", f"{topic}-value"), values, keys)
    assert not failures
    if topic in FRAMED_TOPICS:
        return [None] * len(rows), found.to_pylist()
    named, failures = decoded(value_decoder("kafka", f"{topic}-key"), keys)
    assert not failures
    return named.to_pylist(), found.to_pylist()


@each_of("topic", [*COORDINATOR_TOPICS, *FRAMED_TOPICS])
def test_each_version_of_each_record_has_its_columns(topic: str) -> None:
    rows = records_of(topic)
    for (key, value, kind), named, found in zip(rows, *columns_of(topic, rows), strict=True):
        expected = decode_application_record(topic, key, value)
        assert expected is not None
        if topic in FRAMED_TOPICS:
            head = {"type": kind, "version": expected["version"]}
            assert plain(found) == head | ({kind: without_null(expected["data"])} if expected["data"] else {})
            continue
        assert plain(named) == {"type": kind, "version": expected["version"], kind: expected["key"]}
        if value is None:
            assert found is None
        else:
            head = {"type": kind, "version": expected["valueVersion"]}
            assert plain(found) == {**head, kind: without_null(expected["value"])}


@each_of("version", ["3.9.1", "4.4.0"])
def test_topics_of_a_broker_are_tables(version: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    unpack_archive(FIXTURES / "coordinators" / version / "files.tar.gz", logs)
    partitions = sorted(path for path in logs.rglob("__*-*") if path.is_dir() and not path.name.startswith("__share"))
    for topic in ("__consumer_offsets", "__transaction_state", "__cluster_metadata"):
        chosen = [path for path in partitions if path.name.startswith(topic)]
        expected = [
            without_null(decode_application_record(topic, each.key, each.value))
            for path in chosen
            for each in open_partition(path).records()
        ]
        key = "bytes" if topic == "__cluster_metadata" else "kafka"
        form = "iceberg" if version == "4.4.0" else "parquet"
        done = export(chosen, tmp_path / topic, value="kafka", key=key, format=form)
        assert (sum(each.row_count for each in done), sum(each.undecoded_count for each in done)) == (len(expected), 0)
    files = f"{tmp_path}/__consumer_offsets/**/*.parquet"
    columns = "key.offsetCommit.topic, max(value.offsetCommit.offset)"
    found = duckdb.sql(f"select {columns} from '{files}' where key.type = 'offsetCommit' group by 1").fetchall()  # noqa: S608
    assert found
    assert all(topic and offset >= 0 for topic, offset in found)


UNKNOWN = [
    ("__consumer_offsets", b"\0\x63x", b"", "a key of version 99, which no release up to "),
    ("__consumer_offsets", None, b"", "no key, which no release"),
    ("__consumer_offsets", b"\0", b"", "key.version at byte 0"),
    (
        "__consumer_offsets",
        b"\0\2\0\1g",
        b"\0\x63",
        "groupMetadata: a value of an unknown version",
    ),
    ("__consumer_offsets", b"\0\2\0\1g", b"\0\3\0", "expected"),
    ("__cluster_metadata", None, b"\1\x63\0", "a record of type 99 and version 0, which no release"),
    ("__cluster_metadata", None, b"\1\2\x63", "a record of type TOPIC_RECORD and version 99"),
    ("__cluster_metadata", None, b"\2\2\0", "expected 0 or 1, found 2"),
]


@each_of(("topic", "key", "value", "reason"), UNKNOWN)
def test_what_is_unknown_is_named(topic: str, key: bytes | None, value: bytes, reason: str, tmp_path: Path) -> None:
    log = tmp_path / f"{topic}-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(batch(record(0, 0, key, value), 1))
    assert run(["export", str(log), "--to", str(tmp_path / "out"), "--value", "kafka"]) == 1
    ((found,),) = duckdb.sql(f"select reason from '{tmp_path}/out-undecoded/**/*.parquet'").fetchall()  # noqa: S608
    assert reason in found


def test_other_topics_are_refused(tmp_path: Path) -> None:
    log = authentic("4.3.0/segs")
    both: list[dict[str, Any]] = [{"value": "kafka"}, {"key": "kafka"}]
    for options in both:
        with pytest.raises(UsageError, match=r"kafka decodes the topics __cluster_metadata, .*, and not segs"):
            export(log, tmp_path / "out", **options)
    topics = [tmp_path / f"{topic}-0" for topic in COORDINATOR_TOPICS]
    for each in topics:
        each.mkdir()
    with pytest.raises(UsageError, match="kafka takes no schema"):
        export(topics, tmp_path / "out", value="kafka", schema="one for all of them")
    with pytest.raises(UsageError, match="the keys of __cluster_metadata are null"):
        value_decoder("kafka", "__cluster_metadata-key")
    (partition,) = (each for each in log.rglob("segs-*") if each.is_dir())
    decoder = value_decoder("kafka", "__consumer_offsets-value")
    with open_partition(partition) as opened, pytest.raises(UsageError, match="also read the column key"):
        opened.scan(["value"], value=decoder).read_all()
