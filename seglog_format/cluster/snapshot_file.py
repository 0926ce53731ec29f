"""Writing of an image as a metadata snapshot that a broker starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.control_batch import build_control_batch, control_record
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.metadata_records import encode_metadata_record
from seglog_format.model import ControlRecordType
from seglog_format.names import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_format.cluster.image import Fields, ImageRecord
    from seglog_format.record_model import Record

RECORDS_IN_A_BATCH: Final = 1000

VERSIONS: Final = {"PARTITION_RECORD": 1}
"""Versions of records other than 0: those with directory ids, which every broker from 3.7 on reads."""


class SnapshotName(NamedTuple):
    """The two numbers in the name of a snapshot.

    Attributes:
        end_offset: the first offset of the metadata log that the snapshot does not include.
        epoch: leader epoch of the last record that it includes.
    """

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


def snapshot_batches(
    records: Iterable[ImageRecord], *, epoch: int, timestamp_ms: int, voters: Sequence[Fields] = ()
) -> Iterator[bytes]:
    """Yield the batches of a snapshot: header, records, footer.

    Args:
        records: of the image, in Kafka's order.
        epoch: leader epoch of the batches.
        timestamp_ms: of the last record that the snapshot includes.
        voters: of a dynamic quorum; empty for a static quorum, whose voters are in the configuration.

    Raises:
        UsageError: while iterating: a record cannot be stored, such as a text of more than 32,767 bytes.
    """
    head = [_control(ControlRecordType.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": timestamp_ms}, timestamp_ms)]
    if voters:
        head.append(_control(ControlRecordType.KRAFT_VERSION, {"kRaftVersion": 1}, timestamp_ms))
        head.append(_control(ControlRecordType.KRAFT_VOTERS, {"voters": list(voters)}, timestamp_ms))
    yield bytes(encode_batch(build_control_batch(head, partition_leader_epoch=epoch)))
    offset = len(head)
    for values in _groups(records):
        plain = [new_record(value=value, timestamp_ms=timestamp_ms) for value in values]
        yield bytes(encode_batch(build_batch(plain, base_offset=offset, partition_leader_epoch=epoch)))
        offset += len(plain)
    foot = [_control(ControlRecordType.SNAPSHOT_FOOTER, {}, timestamp_ms)]
    yield bytes(encode_batch(build_control_batch(foot, base_offset=offset, partition_leader_epoch=epoch)))


def _control(kind: ControlRecordType, fields: Fields, timestamp_ms: int) -> Record:
    return control_record(kind, {"version": 0, **fields}, timestamp_ms=timestamp_ms)


def _groups(records: Iterable[ImageRecord]) -> Iterator[list[bytes]]:
    values: list[bytes] = []
    for kind, fields in records:
        values.append(encode_metadata_record(METADATA_TOPIC, kind, VERSIONS.get(kind, 0), fields))
        if len(values) == RECORDS_IN_A_BATCH:
            yield values
            values = []
    if values:
        yield values
