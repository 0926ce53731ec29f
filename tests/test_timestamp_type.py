"""Each record says who set its timestamp: the producer or the broker (SEG-BAT-011, SEG-MSG-008, SEG-MSG-015)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.messages import LOG_APPEND_TIME, SNAPPY, message, wrapper
from helpers.support import authentic, vector

from seglog_format import decode_batch, engine, open_partition
from seglog_format.codec.build import build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.log import reading
from seglog_format.model import INT64_MAX, CompressionCodec, TimestampType

if TYPE_CHECKING:
    from pathlib import Path

CREATED, APPENDED = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
NO_TYPE = TimestampType.NO_TIMESTAMP_TYPE


@pytest.fixture(params=("reference", "quick", "kernels"))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by the declared schema, by the quick loop or by the columnar engine, whatever the size of a log."""
    monkeypatch.setattr(reading, "QUICK_SIZE", INT64_MAX if request.param == "reference" else 0)
    monkeypatch.setattr(engine, "COLUMNAR_SIZE", INT64_MAX)
    if request.param == "kernels":
        pytest.importorskip("pyarrow")
        from helpers.scans import take_kernels

        take_kernels(monkeypatch)


def types_in(path: Path) -> set[TimestampType]:
    with open_partition(path) as partition:
        found = {record.timestamp_type for record in partition.records()}
        one = next(partition.records(from_offset=(partition.log_start_offset + partition.log_end_offset) // 2))
    assert one.timestamp_type in found
    return found


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("4.3.0/logappend", APPENDED),
        ("4.3.0/createtime", CREATED),
        ("0.10.2.2/logappend", APPENDED),  # magic 1
        ("0.10.2.2/createtime", CREATED),
    ],
)
def test_records_of_a_broker(case: str, wanted: TimestampType) -> None:
    logs = {path.parent for path in authentic(case).rglob("*.log") if path.stat().st_size}
    logs = {path for path in logs if not path.name.startswith("__")}
    assert logs
    assert [types_in(path) for path in sorted(logs)] == [{wanted}] * len(logs)


@pytest.mark.parametrize(("name", "wanted"), [("V-06", CREATED), ("V-07", APPENDED)])
def test_one_batch(name: str, wanted: TimestampType) -> None:
    assert {record.timestamp_type for record in decode_batch(vector(name)).records} == {wanted}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
@pytest.mark.parametrize(
    ("magic", "stamp", "wanted"), [(0, None, NO_TYPE), (0, 5, NO_TYPE), (1, None, CREATED), (1, 5, APPENDED)]
)
def test_messages(
    magic: int, stamp: int | None, wanted: TimestampType, codec: CompressionCodec, tmp_path: Path
) -> None:
    entry = build_message_entry(
        [new_record(value=b"v", timestamp_ms=3)], magic=magic, codec=codec, log_append_time_ms=stamp
    )
    path = tmp_path / "old-0"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(encode_batch(entry))
    assert [record.timestamp_type for record in entry.records] == [wanted]
    assert types_in(path) == {wanted}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("outer", "inner", "wanted"), [(0, 0, NO_TYPE), (0, 1, NO_TYPE), (1, 0, NO_TYPE), (1, 1, APPENDED)]
)
@pytest.mark.req("SEG-MSG-008", "SEG-MSG-015")
def test_messages_of_another_magic_than_their_wrapper(
    outer: int, inner: int, wanted: TimestampType, tmp_path: Path
) -> None:
    """The wrapper says who set the timestamp; nobody did if it or the message is of magic 0."""
    stamped = {"attributes": SNAPPY | LOG_APPEND_TIME} | ({"timestamp_ms": 5} if outer else {})
    path = tmp_path / "mixed-0"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(wrapper(message(0, magic=inner), offset=0, magic=outer, **stamped))
    assert types_in(path) == {wanted}
