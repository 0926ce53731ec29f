"""What the public functions say of arguments that they cannot take."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.made_partitions import entry, make

from seglog_format import build_batch, build_message_entry, encode_batch, new_record, open_partition, walk
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.types import Partition

ONE: Any = new_record(value=b"1")
BATCH: Any = build_batch([ONE])


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return open_partition(make(tmp_path, {"0.log": b"".join(map(entry, range(5)))}))


@pytest.mark.parametrize(
    ("argument", "value", "found"),
    [
        ("key", "x", "key: expected bytes or None, found str 'x'"),
        ("value", 5, "value: expected bytes or None, found int 5"),
        ("timestamp_ms", 2**63, "timestamp_ms: expected an integer of 64 bits, found 9223372036854775808"),
        ("timestamp_ms", -(2**63) - 1, "timestamp_ms: expected an integer of 64 bits, found -9223372036854775809"),
        ("timestamp_ms", 1.5, "timestamp_ms: expected an integer, found float 1.5"),
        ("timestamp_ms", None, "timestamp_ms: expected an integer, found None"),
        ("headers", 5, "headers: expected Sequence, found int 5"),
        ("headers", ["ab"], "header: expected tuple, found str 'ab'"),
        ("headers", [("a", b"b")], "header key: expected bytes, found str 'a'"),
        ("headers", [(b"a", "b")], "header value: expected bytes or None, found str 'b'"),
    ],
)
def test_a_record_is_refused(argument: str, value: object, found: str) -> None:
    options: dict[str, Any] = {argument: value}
    with pytest.raises(UsageError) as caught:
        new_record(**options)
    assert str(caught.value) == found


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("base_offset", "x"),
        ("base_offset", 2**63),
        ("producer_id", 2**63),
        ("producer_epoch", 2**15),
        ("base_sequence", 2**31),
        ("partition_leader_epoch", 2**31),
        ("log_append_time_ms", 2**63),
        ("codec", 9),
        ("codec", "gzip"),
    ],
)
def test_a_batch_is_refused(argument: str, value: object) -> None:
    options: dict[str, Any] = {argument: value}
    with pytest.raises(UsageError, match=f"^{argument}: expected "):
        build_batch([ONE], **options)


@pytest.mark.parametrize("records", [None, 5, [b"1"], iter([ONE])])
@pytest.mark.parametrize("build", [build_batch, lambda records: build_message_entry(records, magic=1)])
def test_records_are_a_sequence_of_records(build: Callable[[Any], object], records: object) -> None:
    with pytest.raises(UsageError, match=r"^records?: expected "):
        build(records)


@pytest.mark.parametrize(
    "batch",
    [
        None,
        b"",
        replace(BATCH, header=replace(BATCH.header, producer_epoch=2**15)),
        replace(BATCH, records=(replace(BATCH.records[0], value="x"),)),
        replace(BATCH, header=replace(BATCH.header, base_timestamp_ms=2**63)),
    ],
)
def test_what_cannot_be_encoded_is_refused(batch: Any) -> None:  # noqa: ANN401 - on purpose
    with pytest.raises(UsageError, match=r"^batch: "):
        encode_batch(batch)


@pytest.mark.parametrize("data", [None, "x", 5, []])
def test_only_bytes_are_walked(data: Any) -> None:  # noqa: ANN401 - on purpose
    with pytest.raises(UsageError, match=r"^data: expected bytes, found "):
        list(walk(data))


@pytest.mark.parametrize("offset", [math.nan, 1.0, "1", b"1", True])
@pytest.mark.parametrize(
    "read",
    [
        lambda log, offset: log.records(offset),
        lambda log, offset: log.records(to_offset=offset),
        lambda log, offset: log.scan(from_offset=offset),
        lambda log, offset: log.scan(to_offset=offset),
        lambda log, offset: log.read(offset),
    ],
)
def test_an_offset_is_an_integer(
    read: Callable[[Partition, object], object], offset: object, partition: Partition
) -> None:
    with pytest.raises(UsageError, match="offset: expected an offset, found "):
        read(partition, offset)


def test_integers_of_other_libraries_are_offsets(partition: Partition) -> None:
    assert [record.offset for record in partition.records(np.int64(3))] == [3, 4]  # type: ignore[arg-type]
    assert new_record(timestamp_ms=np.int64(7)).timestamp_ms == 7  # type: ignore[arg-type]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("read", ["records", "batches"])
def test_reading_on_after_a_partition_is_closed(read: str, mapped: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = make(tmp_path, {"0.log": b"".join(map(entry, range(5)))})
    with open_partition(path, mapped=mapped) as log:
        found = iter(getattr(log, read)())
        next(found)
    with pytest.raises(UsageError, match="closed while it is read"):
        list(found)
