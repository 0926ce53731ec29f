"""Fetching of segments from a remote store into a partition directory, as the files that they were before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.codec.checkpoints import encode_offset_checkpoint, encode_partition_metadata
from seglog_format.errors import UsageError, write_errors
from seglog_format.model import GREATEST_OFFSET
from seglog_format.names import NUMBERED_KINDS, FileKind, partition_directory_name, segment_file_name
from seglog_format.record_model import CheckpointedOffset
from seglog_format.storage.copying import pieces_of
from seglog_format.storage.new_directory import all_or_nothing
from seglog_format.tier.joining import newest_epochs
from seglog_format.tier.object_facts import remote_segments_of
from seglog_format.tier.segments import Lineage
from seglog_format.tier.stored_segment import whole_file
from seglog_format.tier.tier import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.layout import OpenedSegment
    from seglog_format.tier.records import RemoteSegment, RemoteSegmentId
    from seglog_format.tier.tier import Tier


class Choice(NamedTuple):
    """The segments of a store to fetch.

    Attributes:
        wanted: the segments that are part of the log of their partition, in order.
        superseded: the finished segments that are not part of it.
    """

    wanted: tuple[RemoteSegment, ...]
    superseded: tuple[RemoteSegment, ...]


def segments_to_fetch(tier: Tier, ids: Iterable[RemoteSegmentId]) -> Choice:
    """Choose the segments that belong to the logs of partitions, by the leader epochs of their newest segments.

    Args:
        tier: the remote store.
        ids: of finished segments.

    Raises:
        FormatError: an object does not follow its layout.
        UsageError: the store does not answer.
    """
    partitions = {tier.open(id_).facts.id.partition: key_of(id_) for id_ in ids}
    wanted: list[RemoteSegment] = []
    superseded: list[RemoteSegment] = []
    for (topic, topic_id, number), _ in sorted(partitions.items()):
        remote = remote_segments_of(tier, topic, topic_id, number)
        if remote is not None:
            parts = Lineage(newest_epochs(remote, tier), GREATEST_OFFSET).served(remote, 0)
            counted = {part.segment.id for part in parts}
            ordered = sorted(remote.segments.values(), key=lambda each: each.start_offset)
            wanted += [each for each in ordered if each.id in counted]
            superseded += [each for each in ordered if each.id not in counted]
    return Choice(tuple(wanted), tuple(superseded))


def fetch_segments(tier: Tier, segments: Iterable[RemoteSegment], target: Path) -> None:
    """Write segments into a new log directory: all of them, or none after a failure.

    Args:
        tier: the remote store.
        segments: finished segments; those of one partition in the order of their offsets.
        target: a new or empty directory; a directory for each partition is created in it.

    Raises:
        FormatError: an object does not follow its layout, or cannot be decrypted.
        UsageError: the target is not empty, two segments begin with the same offset, a decryption key is missing, or
            the store does not answer.
        WriteError: writing failed.
    """
    starts: dict[tuple[str, int], int] = {}
    with all_or_nothing(target) as staging:
        for segment in segments:
            opened = tier.open(segment.id)
            topic, _, partition = opened.facts.id.partition
            starts.setdefault((topic, partition), segment.start_offset)
            directory = staging / partition_directory_name(topic, partition)
            if (directory / segment_file_name(segment.start_offset, FileKind.LOG)).exists():
                msg = f"segments of {topic}-{partition} overlap at {segment.start_offset}: choose one by its id"
                raise UsageError(msg)
            with write_errors("writing"):
                directory.mkdir(exist_ok=True)
            _write_segment(directory, segment, opened)
        with write_errors("writing"):
            checkpoint = encode_offset_checkpoint(CheckpointedOffset(*key, start) for key, start in starts.items())
            (staging / FileKind.LOG_START_OFFSET_CHECKPOINT.value).write_bytes(checkpoint)


def _write_segment(directory: Path, segment: RemoteSegment, opened: OpenedSegment) -> None:
    for kind in NUMBERED_KINDS:
        if kind in opened.kinds:
            is_snapshot = kind is FileKind.PRODUCER_SNAPSHOT  # it holds the state at the end of the segment
            offset = segment.end_offset + 1 if is_snapshot else segment.start_offset
            _write(directory / segment_file_name(offset, kind), opened.open(kind))
    with write_errors("writing"):
        metadata = encode_partition_metadata(segment.id.partition.topic_id)
        (directory / FileKind.PARTITION_METADATA.value).write_bytes(metadata)
        if FileKind.LEADER_EPOCH_CHECKPOINT in opened.kinds:  # that of the last segment has the whole history
            epochs = whole_file(opened.open(FileKind.LEADER_EPOCH_CHECKPOINT))
            (directory / FileKind.LEADER_EPOCH_CHECKPOINT.value).write_bytes(epochs)


def _write(path: Path, source: SourceFile) -> None:
    with write_errors("writing"), path.open("xb") as file:
        file.writelines(pieces_of(source))
