"""Every example of the chapters: what they call valid is read, what they call invalid is refused or reported."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import cramjam
from helpers.spec_examples import Example, examples, parsed
from helpers.support import FIXTURES, REPOSITORY
from helpers.walking import each_of

from seglog_format.checks import verify
from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
)
from seglog_format.codec.compression import decompress
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.codec.plain import decode_records
from seglog_format.errors import FormatError, Location
from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
from seglog_format.model import RecordBatchHeader
from seglog_format.names import parse_file_name, parse_partition_directory
from seglog_format.requirements import Severity, requirements
from seglog_format.tier.layouts import layout_named, read_manifest
from seglog_format.tier.segments import remote_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FENCE = re.compile(r"^```(?:hex\b|text (?:valid|invalid)\b).*$", re.MULTILINE)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SEVERITIES = list(Severity)
"""Gravest first."""

AT = Location("example")

FILE_NAMES: Mapping[str, str] = {
    "batch": "topic-0/{base:020}.log",
    "offset-index": "topic-0/{base:020}.index",
    "time-index": "topic-0/{base:020}.timeindex",
    "transaction-index": "topic-0/{base:020}.txnindex",
    "producer-snapshot": "topic-0/{base:020}.snapshot",
    "checkpoint-epochs": "topic-0/leader-epoch-checkpoint",
    "partition-metadata": "topic-0/partition.metadata",
    "checkpoint-offsets": "recovery-point-offset-checkpoint",
}

AREAS: Mapping[str, str] = {
    "offset-index": "SEG-IDX-",
    "time-index": "SEG-TIX-",
    "transaction-index": "SEG-TXN-",
    "producer-snapshot": "SEG-PSN-",
}


def decode_log(example: Example) -> None:
    for frame in walk(example.data, path="example"):
        decode_frame(frame, at=Location("example", frame.position))


def decode_records_part(example: Example) -> None:
    count = int(example.options.get("count", "1"))
    header = RecordBatchHeader(0, 0, 0, 2, 0, 0, max(count - 1, 0), 0, 0, -1, -1, -1, count)
    decode_records(example.data, header, AT)


def decompress_stream(example: Example) -> None:
    codec = CODECS.get(example.options["codec"], 5)
    decompress(codec, example.data, magic=int(example.options.get("magic", "2")), at=AT)


def decode_remote_event(example: Example) -> None:
    record = decode_application_record("__remote_log_metadata", None, example.data)
    assert record is not None
    assert remote_event(record) is not None


def decode_object_name(example: Example) -> None:
    assert layout_named(example.options["layout"]).parse(text_of(example)) is not None


def decode_manifest(example: Example) -> None:
    read_manifest(example.data, AT)


def decode_chunk_sizes(example: Example) -> None:
    """Decode the sizes as a manifest has them."""
    packed = base64.b64encode(cramjam.zstd.compress(example.data)).decode()
    sizes = {"originalChunkSize": int(example.options["chunk"]), "originalFileSize": int(example.options["size"])}
    chunk_index = {"type": "variable", "transformedChunks": packed, **sizes}
    indexes = {name: {"position": 0, "size": 0} for name in ("offset", "timestamp", "producerSnapshot", "leaderEpoch")}
    fields = {"version": "1", "chunkIndex": chunk_index, "segmentIndexes": indexes, "compression": True}
    read_manifest(json.dumps(fields).encode(), AT)


def text_of(example: Example) -> str:
    return example.data.decode("utf-8", "surrogateescape")


DECODERS: Mapping[str, Callable[[Example], Any]] = {
    "batch": decode_log,
    "records": decode_records_part,
    "compressed": decompress_stream,
    "offset-index": lambda example: list(OffsetIndex.from_bytes(example.data, example.base_offset).entries),
    "time-index": lambda example: list(TimeIndex.from_bytes(example.data, example.base_offset).entries),
    "transaction-index": lambda example: TransactionIndex.from_bytes(example.data, example.base_offset),
    "producer-snapshot": lambda example: ProducerSnapshot.from_bytes(example.data),
    "checkpoint-offsets": lambda example: decode_offset_checkpoint(example.data, AT),
    "checkpoint-epochs": lambda example: decode_leader_epoch_checkpoint(example.data, AT),
    "partition-metadata": lambda example: decode_partition_metadata(example.data, AT),
    "remote-log-metadata": decode_remote_event,
    "object-name": decode_object_name,
    "manifest": decode_manifest,
    "chunk-sizes": decode_chunk_sizes,
    "listing": lambda _: None,
    "name": lambda example: parse_file_name(text_of(example)),
    "directory-name": lambda example: parse_partition_directory(text_of(example)),
}


def refusal(example: Example) -> str | None:
    """Return the requirement that a decoder names when it refuses the bytes; None where it takes them."""
    try:
        DECODERS[example.kind](example)
    except FormatError as error:
        return error.requirements[0]
    return None


def reports(example: Example, root: Path) -> list[str]:
    """Return the requirements that verifying a directory around the bytes reports, as grave as the example or graver.

    An index that is shown without its log is held only against the rules of its own chapter; one that is right not
    even against those, since some of them speak of the log.
    """
    if example.breaks is None and is_without_log(example):
        return []
    limit = SEVERITIES.index(example.severity)
    grave = [each.requirement for each in verify(laid_out(example, root)) if SEVERITIES.index(each.severity) <= limit]
    return [each for each in grave if not is_without_log(example) or each.startswith(AREAS[example.kind])]


def is_without_log(example: Example) -> bool:
    return example.kind in AREAS and "log" not in example.options


def laid_out(example: Example, root: Path) -> Path:
    """Return a partition directory, or a log directory where the bytes are a root file or a directory's name."""
    if example.kind == "listing":
        return listed(text_of(example), root)
    if example.kind == "directory-name":
        (root / text_of(example)).mkdir()
        (root / "recovery-point-offset-checkpoint").write_text("0\n0\n", encoding="utf-8")
        return root
    partition = root / "topic-0"
    partition.mkdir()
    name = text_of(example) if example.kind == "name" else FILE_NAMES[example.kind].format(base=example.base_offset)
    target = partition / name if example.kind == "name" else root / name
    if example.kind in AREAS:
        log = named(example.chapter, example.options["log"]).data if "log" in example.options else b""
        (partition / f"{example.base_offset:020}.log").write_bytes(log)
    if "next" in example.options:
        (partition / f"{int(example.options['next']):020}.log").touch()
    target.write_bytes(content_of(name) if example.kind == "name" else example.data)
    return target.parent


def listed(text: str, root: Path) -> Path:
    """Return a log directory with the files of a listing: a path in each line, behind it the text of the file."""
    for line in text.splitlines():
        name, _, content = line.partition("  ")
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content.strip().replace("\\n", "\n"), encoding="utf-8")
    return root


def content_of(name: str) -> bytes:
    """Return what a file of that name may hold without breaking a rule: nothing, but for metadata snapshots."""
    (snapshot, *_) = sorted((FIXTURES / "formatted").rglob("*.checkpoint"))
    return snapshot.read_bytes() if name.endswith(".checkpoint") else b""


def named(chapter: str, name: str) -> Example:
    (found,) = (block for block in examples() if (block.chapter, block.options.get("name")) == (chapter, name))
    return found


CANNOT_STAND_IN_A_DIRECTORY = {
    *("records", "compressed"),
    *("remote-log-metadata", "object-name", "manifest", "chunk-sizes"),
}


@each_of("example", examples(), ids=str)
def test_example(example: Example, tmp_path: Path) -> None:
    refused = refusal(example)
    reported = [] if example.kind in CANNOT_STAND_IN_A_DIRECTORY else reports(example, tmp_path)
    if example.breaks is None:
        assert (refused, reported) == (None, [])
        return
    assert refused in {None, example.breaks}
    assert example.breaks in (refused, *(reported if is_without_log(example) else reported[:1]))


def test_every_fence_is_understood() -> None:
    for path in sorted((REPOSITORY / "spec").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found = parsed(path.stem, text)
        assert len(found) == len(FENCE.findall(text)), path
        assert {block.kind for block in found} <= set(DECODERS), path
        assert all(block.breaks is None or block.breaks in requirements() for block in found), path


def test_a_wrong_verdict_would_be_noticed(tmp_path: Path) -> None:
    example = parsed("99", "```hex invalid SEG-BAT-002 kind=batch\n000000000000000a 00000030 ; 48\nffffffff\n```\n")[0]
    assert example.data == bytes.fromhex("000000000000000a00000030ffffffff")
    assert (example.breaks, example.kind, example.line) == ("SEG-BAT-002", "batch", 1)
    assert refusal(example) is None
    assert "SEG-BAT-002" not in reports(example, tmp_path)
