"""Objects of remote stores: their names, manifests, chunks and envelopes (chapter 47)."""

from __future__ import annotations

import base64
import json
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_objects import SEGMENT_ID, TOPIC_ID, AivenSegment, packed_sizes, private_key, zstd
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.errors import (
    CorruptIndexError,
    CorruptRecordError,
    Location,
    RefusedError,
    UnsupportedVersionError,
    UsageError,
)
from seglog_format.names import FileKind, ObjectKind, ObjectName, parse_cached_index, parse_object_name
from seglog_format.tier.layout import variable_of, whole_file
from seglog_format.tier.layouts import AivenLayout, LocalTierLayout, Manifest, read_manifest
from seglog_format.tier.remote_store import open_tier
from seglog_format.tier.segments import RemotePartitionId, RemoteSegmentId

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.tier import Tier

LOG = b"".join(bytes([number * 7 % 251, number % 256]) for number in range(1300)) + bytes(2000) + b"tail"
INDEXES = {
    "offset": b"o" * 24,
    "timestamp": b"t" * 36,
    "producerSnapshot": b"p" * 50,
    "leaderEpoch": b"0\n1\n0 0\n",
    "transaction": b"a" * 34,
}
KINDS = {
    "offset": FileKind.OFFSET_INDEX,
    "timestamp": FileKind.TIME_INDEX,
    "producerSnapshot": FileKind.PRODUCER_SNAPSHOT,
    "leaderEpoch": FileKind.LEADER_EPOCH_CHECKPOINT,
    "transaction": FileKind.TRANSACTION_INDEX,
}
WRAPPINGS = [
    pytest.param(compressed, key, id=f"{'zstd' if compressed else 'plain'}-{'aes' if key else 'clear'}")
    for compressed in (False, True)
    for key in (None, "key1")
]
SEGMENT = RemoteSegmentId(RemotePartitionId("orders", TOPIC_ID, 0), SEGMENT_ID)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key1.pem"
    path.write_bytes(private_key("key1"))
    return path


def opened(root: Path, key_file: Path | None = None) -> Tier:
    return open_tier(root, keys=None if key_file is None else {"key1": key_file}).tier


def the_segment(tier: Tier) -> RemoteSegmentId:
    ((segment, *_), *_) = tier.segments.values()
    return segment


def log_of(root: Path, key_file: Path | None = None) -> bytes:
    tier = opened(root, key_file)
    return whole_file(tier.open(the_segment(tier)).open(FileKind.LOG))


# -- names -----------------------------------------------------------------------------------------------------------

IDS = st.text("abcXYZ019_-", min_size=22, max_size=22)
TOPICS = st.text("abcXYZ019_.-", min_size=1, max_size=30)


@pytest.mark.req("SEG-TIR-001", "SEG-TIR-002")
@pytest.mark.parametrize("layout", [LocalTierLayout(), AivenLayout()], ids=lambda layout: layout.name)
@given(
    topic=TOPICS,
    topic_id=IDS,
    partition=st.integers(0, 2**31 - 1),
    segment_id=IDS,
    start=st.integers(0, 2**63 - 1),
)
def test_a_path_is_taken_apart_as_it_was_put_together(
    layout: LocalTierLayout | AivenLayout, topic: str, topic_id: str, partition: int, segment_id: str, start: int
) -> None:
    segment = RemoteSegmentId(RemotePartitionId(topic, topic_id, partition), segment_id)
    stored = layout.parse(layout.path_of(segment, start, ObjectKind.LOG, "some/prefix/"))
    assert stored is not None
    assert (stored.id, stored.start_offset, stored.kind) == (segment, start, ObjectKind.LOG)


@pytest.mark.req("SEG-TIR-001")
def test_a_local_tier_names_objects_below_a_directory_for_each_partition() -> None:
    path = LocalTierLayout().path_of(SEGMENT, 73, ObjectKind.LEADER_EPOCHS)
    assert path == f"orders-0-{TOPIC_ID}/00000000000000000073-{SEGMENT_ID}.leader_epoch_checkpoint"
    stored = LocalTierLayout().parse(f"deeper/{path}")
    assert stored is not None
    assert stored.id == SEGMENT


@pytest.mark.req("SEG-TIR-002")
def test_aivens_prefix_stands_before_the_topic_as_it_is() -> None:
    path = AivenLayout().path_of(SEGMENT, 73, ObjectKind.MANIFEST, "a/log_")
    assert path == f"a/log_orders-{TOPIC_ID}/0/00000000000000000073-{SEGMENT_ID}.rsm-manifest"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "orders-0/00000000000000000000.log",
        f"orders-{TOPIC_ID}/x/00000000000000000000-{SEGMENT_ID}.log",
        f"orders-{TOPIC_ID}/0/0-{SEGMENT_ID}.log",
        f"orders-{TOPIC_ID}/0/99999999999999999999-{SEGMENT_ID}.log",
        f"orders-{TOPIC_ID}/99999999999/00000000000000000000-{SEGMENT_ID}.log",
        f"orders-2147483648-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log",
        f"orders-0-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.zip",
    ],
)
def test_other_paths_are_no_objects(path: str) -> None:
    assert LocalTierLayout().parse(path) is None
    assert AivenLayout().parse(path) is None


def test_names_of_objects_and_of_cached_indexes() -> None:
    name = ObjectName(158, SEGMENT_ID, ObjectKind.OFFSET_INDEX)
    assert parse_object_name(str(name)) == name
    assert parse_cached_index(f"158_{SEGMENT_ID}.index.deleted") == name
    assert parse_cached_index(str(name)) is None
    assert parse_object_name(f"158_{SEGMENT_ID}.index") is None


# -- manifests -------------------------------------------------------------------------------------------------------


def manifest(**changes: object) -> bytes:
    values = AivenSegment(LOG, INDEXES).manifest(
        [1000] * 4 + [604], {name: len(each) for name, each in INDEXES.items()}
    )
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = values
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
    return json.dumps(values).encode()


def read(data: bytes) -> Manifest:
    return read_manifest(data, Location("m"))


@pytest.mark.req("SEG-TIR-003")
def test_a_manifest_tells_sizes_places_and_what_it_notes_of_the_segment() -> None:
    found = read(manifest(unknown={"more": 1}))
    assert found.chunks.stored_size == found.chunks.size == len(LOG)
    assert found.indexes[FileKind.TIME_INDEX] == (found.indexes[FileKind.TIME_INDEX].__class__)(24, 36)
    assert found.indexes_size == sum(map(len, INDEXES.values()))
    assert not found.is_compressed
    assert found.encryption is None
    assert found.segment is not None
    assert found.segment.id == SEGMENT
    assert (found.segment.start_offset, found.segment.end_offset, found.segment.epochs) == (0, 9, ((0, 0),))


@pytest.mark.req("SEG-TIR-003")
@each_of(
    ("path", "value", "field"),
    [
        ("version", 1, "version"),
        ("chunkIndex", [], "chunkIndex"),
        ("segmentIndexes", None, "segmentIndexes"),
        ("segmentIndexes__offset", None, "segmentIndexes.offset"),
        ("segmentIndexes__timestamp", {"position": 25, "size": 36}, "segmentIndexes.timestamp.position"),
        ("segmentIndexes__offset", {"position": 0, "size": -1}, "segmentIndexes.offset.size"),
        ("segmentIndexes__offset", {"position": 0, "size": True}, "segmentIndexes.offset.size"),
        ("compression", "yes", "compression"),
        ("remoteLogSegmentMetadata__startOffset", -1, "remoteLogSegmentMetadata.startOffset"),
        ("remoteLogSegmentMetadata__endOffset", "9", "remoteLogSegmentMetadata.endOffset"),
        ("remoteLogSegmentMetadata__segmentLeaderEpochs", {"x": 0}, "remoteLogSegmentMetadata.segmentLeaderEpochs.x"),
        ("encryption", {"dataKey": 1, "aad": ""}, "encryption.dataKey"),
        ("encryption", {"dataKey": "a:b", "aad": ""}, "encryption.dataKey"),
    ],
)
def test_a_wrong_field_of_a_manifest_is_named(path: str, value: object, field: str) -> None:
    with pytest.raises(CorruptIndexError) as caught:
        read(manifest(**{path: value}))
    assert caught.value.location.field == field
    assert caught.value.requirements == ("SEG-TIR-003",)


@pytest.mark.req("SEG-TIR-003")
def test_another_version_of_a_manifest_is_no_damage() -> None:
    with pytest.raises(UnsupportedVersionError):
        read(manifest(version="2"))


@pytest.mark.req("SEG-TIR-003")
@pytest.mark.parametrize("data", [b"", b"[]", b"\xff{}", b"{", b"[" * 100_000, b'{"version":' + b"9" * 5000 + b"}"])
def test_what_is_no_json_object_is_no_manifest(data: bytes) -> None:
    with pytest.raises(CorruptIndexError):
        read(data)


@pytest.mark.req("SEG-TIR-004")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "fractal"),
        ("originalChunkSize", 0),
        ("originalFileSize", 0),
        ("originalFileSize", 2**31),
        ("transformedChunkSize", 0),
        ("finalTransformedChunkSize", None),
    ],
)
def test_a_wrong_field_of_a_chunk_index_is_named(name: str, value: object) -> None:
    with pytest.raises(CorruptIndexError) as caught:
        read(manifest(**{f"chunkIndex__{name}": value}))
    assert caught.value.location.field == f"chunkIndex.{name}"
    assert caught.value.requirements == ("SEG-TIR-004",)


def variable(packed: bytes, *, size: int = 2500) -> bytes:
    return manifest(
        chunkIndex={
            "type": "variable",
            "originalChunkSize": 1000,
            "originalFileSize": size,
            "transformedChunks": base64.b64encode(packed).decode(),
        }
    )


@pytest.mark.req("SEG-TIR-005")
@given(sizes=st.lists(st.integers(1, 2**28), min_size=1, max_size=50))
def test_sizes_of_chunks_are_read_back(sizes: list[int]) -> None:
    chunks = read(variable(zstd(packed_sizes(sizes)), size=1000 * len(sizes))).chunks
    assert [chunks.chunk(number).stored_size for number in range(chunks.count)] == sizes
    assert chunks.chunk(len(sizes) - 1).stored_start == sum(sizes[:-1])
    assert chunks.stored_size == sum(sizes)


@pytest.mark.req("SEG-TIR-005")
@pytest.mark.parametrize(
    "packed",
    [
        b"no zstd",
        zstd(b""),
        zstd(packed_sizes([1, 2])),
        zstd(packed_sizes([1, 2, 3, 4])),
        zstd(packed_sizes([1, 2, 3])[:-1]),
        zstd(packed_sizes([1, 2, 3]) + b"\0"),
        zstd(packed_sizes([0, 2, 3])),
        zstd((3).to_bytes(4) + bytes(4) + b"\x05" + bytes(14)),
        zstd((2**31 - 1).to_bytes(4) + bytes(4) + b"\x01" + bytes(8)),
        zstd(b"\xff" * 4),
    ],
)
def test_a_wrong_list_of_sizes_is_refused(packed: bytes) -> None:
    with pytest.raises(CorruptIndexError) as caught:
        read(variable(packed))
    assert caught.value.location.field == "chunkIndex.transformedChunks"


@pytest.mark.req("SEG-TIR-005")
def test_a_list_of_sizes_that_decompresses_to_too_much_is_refused() -> None:
    with pytest.raises(RefusedError):
        read(variable(zstd(bytes(11 * 2**20))))
    with pytest.raises(RefusedError):
        read(
            manifest(
                chunkIndex__type="variable", chunkIndex__originalChunkSize=1, chunkIndex__originalFileSize=2**31 - 1
            )
        )


# -- envelopes -------------------------------------------------------------------------------------------------------


@pytest.mark.req("SEG-TIR-006", "SEG-TIR-007", "SEG-TIR-008", "SEG-TIR-009")
@pytest.mark.parametrize(("compressed", "key"), WRAPPINGS)
def test_every_file_comes_back_as_it_was(tmp_path: Path, key_file: Path, key: str | None, *, compressed: bool) -> None:
    AivenSegment(LOG, INDEXES, compressed=compressed, key_id=key).write(tmp_path / "tier", "a/log_")
    tier = opened(tmp_path / "tier", key_file)
    found = tier.open(the_segment(tier))
    assert whole_file(found.open(FileKind.LOG)) == LOG
    assert {name: whole_file(found.open(kind)) for name, kind in KINDS.items()} == INDEXES
    assert [found.size(kind) for kind in KINDS.values()] == list(map(len, INDEXES.values()))
    assert found.size(FileKind.LOG) == len(LOG)
    assert found.facts.id == SEGMENT


@pytest.mark.parametrize(("compressed", "key"), WRAPPINGS)
def test_a_range_fetches_the_chunks_that_hold_it(
    tmp_path: Path, key_file: Path, key: str | None, *, compressed: bool
) -> None:
    AivenSegment(LOG, INDEXES, compressed=compressed, key_id=key).write(tmp_path / "tier")
    tier = opened(tmp_path / "tier", key_file)
    log = tier.open(the_segment(tier)).open(FileKind.LOG)
    before = tier.traffic.requests
    assert log.view(1990, 2010) == LOG[1990:2010]
    assert log.view(1000, 3000) == LOG[1000:3000]
    assert tier.traffic.requests - before == 2
    with pytest.raises(UsageError):
        tier.files.read(next(iter(tier.files.files)), 0, 2**40)


@pytest.mark.parametrize("leave", [lambda log: log.view(3000, 3001), lambda log: log.forget()], ids=["view", "forget"])
def test_an_open_log_keeps_no_chunk_that_it_has_left(tmp_path: Path, leave: Callable[[SourceFile], object]) -> None:
    AivenSegment(LOG, INDEXES).write(tmp_path)
    tier = open_tier(tmp_path, cache_size=0).tier
    log, other = (tier.open(the_segment(tier)).open(FileKind.LOG) for _ in range(2))
    first = weakref.ref(log.window(0).data)
    other.view(2000, 2001)  # the cache keeps this chunk alone
    assert first() is not None
    leave(log)
    assert first() is None
    assert log.view(0, 10) == LOG[:10]


@pytest.mark.req("SEG-TIR-006")
@pytest.mark.parametrize(("compressed", "key"), WRAPPINGS)
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b""])
def test_an_object_of_another_size_is_refused(
    tmp_path: Path, key_file: Path, key: str | None, change: Callable[[bytes], bytes], *, compressed: bool
) -> None:
    written = AivenSegment(LOG, INDEXES, compressed=compressed, key_id=key).write(tmp_path / "tier")
    for suffix in (".log", ".indexes"):
        written[suffix].write_bytes(change(written[suffix].read_bytes()))
    tier = opened(tmp_path / "tier", key_file)
    found = tier.open(the_segment(tier))
    for kind in (FileKind.LOG, FileKind.OFFSET_INDEX):
        with pytest.raises(CorruptIndexError) as caught:
            found.open(kind)
        assert caught.value.requirements == ("SEG-TIR-006",)
        assert caught.value.location.path.startswith(str(tmp_path))


@pytest.mark.req("SEG-TIR-006")
def test_an_upload_without_a_manifest_is_unfinished(tmp_path: Path) -> None:
    AivenSegment(LOG, INDEXES).write(tmp_path)[".rsm-manifest"].unlink()
    with pytest.raises(CorruptIndexError, match="unfinished upload"):
        log_of(tmp_path)


@pytest.mark.req("SEG-TIR-007")
def test_a_chunk_of_another_size_is_refused(tmp_path: Path) -> None:
    class Longer(AivenSegment):
        def chunks(self) -> list[bytes]:
            return [zstd(LOG), zstd(LOG[:10])]

        def chunk_index(self, sizes: list[int]) -> dict[str, Any]:
            return super().chunk_index(sizes) | {"originalFileSize": 1500}

    Longer(LOG, INDEXES, compressed=True).write(tmp_path)
    tier = opened(tmp_path)
    log = tier.open(the_segment(tier)).open(FileKind.LOG)
    for position, found in ((0, "more"), (1400, "10")):
        with pytest.raises(CorruptRecordError, match=found) as caught:
            log.view(position, position + 1)
        assert caught.value.requirements == ("SEG-TIR-007",)
        assert caught.value.location.field == f"chunk {position // 1000}"


@pytest.mark.req("SEG-TIR-008")
def test_every_flipped_byte_of_an_encrypted_chunk_is_found(tmp_path: Path, key_file: Path) -> None:
    path = AivenSegment(LOG, INDEXES, key_id="key1").write(tmp_path / "tier")[".log"]
    whole = path.read_bytes()
    for position in range(0, 1028, 13):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(CorruptRecordError) as caught:
            log_of(tmp_path / "tier", key_file)
        assert caught.value.requirements == ("SEG-TIR-008",)
        assert (caught.value.location.path, caught.value.location.field) == (str(path), "chunk 0")


@pytest.mark.req("SEG-TIR-008")
def test_a_piece_shorter_than_its_envelope_is_refused(tmp_path: Path, key_file: Path) -> None:
    class Short(AivenSegment):
        def encrypted(self, data: bytes) -> bytes:
            return data[:20]

    Short(LOG, INDEXES, key_id="key1").write(tmp_path / "tier")
    with pytest.raises(CorruptRecordError) as caught:
        log_of(tmp_path / "tier", key_file)
    assert caught.value.requirements == ("SEG-TIR-008",)


@pytest.mark.req("SEG-TIR-009")
def test_a_key_of_another_pair_unwraps_nothing(tmp_path: Path) -> None:
    AivenSegment(LOG, INDEXES, key_id="key1").write(tmp_path / "tier")
    (tmp_path / "other.pem").write_bytes(private_key("another"))
    with pytest.raises(CorruptIndexError) as caught:
        log_of(tmp_path / "tier", tmp_path / "other.pem")
    assert caught.value.requirements == ("SEG-TIR-009",)
    assert caught.value.location.field == "encryption.dataKey"


@pytest.mark.req("SEG-TIR-009")
@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_data_key_of_another_size_is_refused(tmp_path: Path, key_file: Path, size: int) -> None:
    path = AivenSegment(LOG, INDEXES, key_id="key1").write(tmp_path / "tier")[".rsm-manifest"]
    other = AivenSegment(LOG, INDEXES, key_id="key1")
    other.data_key = bytes(size)
    values = json.loads(path.read_text())
    values["encryption"] = other.manifest([1028] * 4 + [632], {})["encryption"]
    path.write_text(json.dumps(values))
    with pytest.raises(CorruptIndexError, match="a data key of 32 bytes"):
        log_of(tmp_path / "tier", key_file)


def test_a_key_that_is_not_at_hand_is_named(tmp_path: Path) -> None:
    AivenSegment(LOG, INDEXES, key_id="key1").write(tmp_path)
    with pytest.raises(UsageError, match="SEGLOG_TIER_KEY_KEY1"):
        log_of(tmp_path)


def test_a_key_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    AivenSegment(LOG, INDEXES, key_id="key-1").write(tmp_path)
    monkeypatch.setenv(variable_of("key-1"), private_key("key-1").decode())
    assert log_of(tmp_path) == LOG


@pytest.mark.parametrize(
    "content", [b"", b"-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n", b"\0" * 99]
)
def test_a_file_that_is_no_key_is_refused_without_its_content(tmp_path: Path, content: bytes) -> None:
    AivenSegment(LOG, INDEXES, key_id="key1").write(tmp_path / "tier")
    (tmp_path / "key.pem").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        log_of(tmp_path / "tier", tmp_path / "key.pem")
    assert "secret" not in str(caught.value)
