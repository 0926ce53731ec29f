"""Every truncation and every flipped bit of what wraps a segment: the same files, or an error that says where.

The objects are small and in memory, so each damage is tried, and not a sample of them (chapter 47).
"""

from __future__ import annotations

import base64
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_objects import AivenSegment, packed_sizes, private_key, zstd

from seglog_format.errors import CorruptIndexError, FormatError, Location, RefusedError, UsageError
from seglog_format.names import FileKind
from seglog_format.tier.chunked_bytes import ChunkCache, JsonFields, read_chunk_index
from seglog_format.tier.layout import KeyRing, whole_file
from seglog_format.tier.layouts import AivenLayout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.tier.chunked_bytes import ChunkIndex
    from seglog_format.tier.layout import OpenedSegment

LOG = bytes(range(200)) * 4
INDEXES = {"offset": b"o" * 24, "timestamp": b"t" * 12, "producerSnapshot": b"p" * 9, "leaderEpoch": b"0\n1\n0 0\n"}
MAX_MEMORY = 16 * 2**20
UNWRAPPED_IN = 101
"""One of so many flips inside the wrapped data key is tried: each costs an operation of RSA."""
WRAPPINGS = [
    pytest.param(compressed, key, id=f"{'zstd' if compressed else 'plain'}-{'aes' if key else 'clear'}")
    for compressed in (False, True)
    for key in (None, "key1")
]


class Objects:
    """The objects of one segment, in memory; an `ObjectReader`."""

    def __init__(self, segment: AivenSegment) -> None:
        directory = f"{segment.topic}-{segment.topic_id}/{segment.partition}"
        stem = f"{directory}/{segment.start_offset:020d}-{segment.segment_id}"
        self.data = {f"{stem}{suffix}": data for suffix, data in segment.objects().items()}
        self.manifest, self.log = f"{stem}.rsm-manifest", f"{stem}.log"

    def name_of(self, path: str) -> str:
        return f"store/{path}"

    def size(self, path: str) -> int:
        return len(self.data[path])

    def read(self, path: str, start: int, size: int) -> bytes:
        return self.data[path][start : start + size]

    def opened(self, keys: KeyRing) -> OpenedSegment:
        stored = [found for path in self.data if (found := AivenLayout().parse(path)) is not None]
        return AivenLayout().open({each.kind: each for each in stored}, self, keys, ChunkCache())

    def names(self) -> set[str]:
        return set(map(self.name_of, self.data))


def made(key: str | None, *, compressed: bool) -> Objects:
    return Objects(AivenSegment(LOG, INDEXES, chunk_size=200, compressed=compressed, key_id=key))


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    path = tmp_path / "key1.pem"
    path.write_bytes(private_key("key1"))
    return KeyRing({"key1": path})


def damages(whole: bytes) -> Iterator[tuple[int, bytes]]:
    """Each truncation, then each flipped bit: where it is, and what is left."""
    for size in range(len(whole)):
        yield size, whole[:size]
    for position, value in enumerate(whole):
        for bit in range(8):
            yield position, whole[:position] + bytes([value ^ 1 << bit]) + whole[position + 1 :]


@contextmanager
def bounded_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def files_of(opened: OpenedSegment) -> dict[FileKind, bytes]:
    return {kind: whole_file(opened.open(kind)) for kind in opened.kinds}


def complaint(objects: Objects, keys: KeyRing, wanted: dict[FileKind, bytes]) -> str | None:
    """Return what is wrong with the answer to damage; None where it says where that is, or where nothing changes."""
    try:
        found = files_of(objects.opened(keys))
    except FormatError as error:
        is_whole = error.expected == "a JSON object in UTF-8" or error.requirements[0] == "SEG-TIR-006"
        says_where = error.location.path in objects.names() and (error.location.field or is_whole)
        return None if says_where and error.requirements[0].startswith("SEG-TIR-") else str(error)
    except UsageError as error:
        return None if "no private key" in str(error) else str(error)
    return None if found == wanted else "other files, without a word"


@pytest.mark.req("SEG-TIR-003", "SEG-TIR-004", "SEG-TIR-005", "SEG-TIR-006")
@pytest.mark.parametrize(("compressed", "key"), WRAPPINGS)
def test_damage_of_a_manifest_is_told_or_changes_nothing(key: str | None, keys: KeyRing, *, compressed: bool) -> None:
    objects = made(key, compressed=compressed)
    wanted, whole = files_of(objects.opened(keys)), objects.data[objects.manifest]
    start = whole.find(b"dataKey")
    wrapped = range(start, whole.find(b"}", start)) if key else range(0)
    complaints = []
    with bounded_memory():
        for number, (position, data) in enumerate(damages(whole)):
            if position in wrapped and number % UNWRAPPED_IN:
                continue
            objects.data[objects.manifest] = data
            if (found := complaint(objects, keys, wanted)) is not None:
                complaints.append((position, data[max(position - 20, 0) : position + 10], found))
    assert not complaints


@pytest.mark.req("SEG-TIR-005")
def test_damage_of_a_chunk_index_is_told_or_gives_an_object_of_another_size() -> None:
    sizes = [90, 70, 300, 81]
    fields: dict[str, Any] = {"type": "variable", "originalChunkSize": 200, "originalFileSize": len(LOG)}
    with bounded_memory():
        for _, data in damages(packed_sizes(sizes)):
            fields["transformedChunks"] = base64.b64encode(zstd(data)).decode()
            found = chunks_or_error(fields)
            if isinstance(found, FormatError):
                assert (found.location.path, found.location.field) == ("m", "chunkIndex.transformedChunks")
            else:
                assert found.count == len(sizes)
                assert found.stored_size != sum(sizes)


def chunks_or_error(fields: dict[str, Any]) -> ChunkIndex | FormatError:
    try:
        return read_chunk_index(JsonFields(fields, Location("m", field="chunkIndex"), "SEG-TIR-004"))
    except (CorruptIndexError, RefusedError) as error:
        return error


@pytest.mark.req("SEG-TIR-008")
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "zstd"])
def test_damage_of_an_encrypted_object_is_told(keys: KeyRing, *, compressed: bool) -> None:
    objects = made("key1", compressed=compressed)
    opened, whole = objects.opened(keys), objects.data
    for path in (path for path in whole if path != objects.manifest):
        kinds = [kind for kind in opened.kinds if opened.name_of(kind) == objects.name_of(path)]
        for _, data in damages(whole[path]):
            objects.data = {**whole, path: data}
            errors = list(filter(None, (error_of(opened, kind) for kind in kinds)))
            assert errors
            assert {(error.location.path, error.requirements[0]) for error in errors} <= {
                (objects.name_of(path), "SEG-TIR-006"),
                (objects.name_of(path), "SEG-TIR-008"),
            }
            assert all(error.location.field for error in errors if error.requirements[0] == "SEG-TIR-008")


def error_of(opened: OpenedSegment, kind: FileKind) -> FormatError | None:
    try:
        whole_file(opened.open(kind))
    except FormatError as error:
        return error
    return None


@pytest.mark.req("SEG-TIR-007")
def test_damage_of_a_compressed_object_is_told_or_gives_a_log_of_the_same_size(keys: KeyRing) -> None:
    objects = made(None, compressed=True)
    opened, whole = objects.opened(keys), objects.data[objects.log]
    with bounded_memory():
        for _, data in damages(whole):
            objects.data[objects.log] = data
            error = error_of(opened, FileKind.LOG)
            assert error is not None or len(data) == len(whole)
            assert error is None or error.location.path == objects.name_of(objects.log)
