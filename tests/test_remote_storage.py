"""Logs behind an address: the blocks that reading fetches, what is kept of them, and a partition read from there."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import authentic, bundled
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.errors import CorruptRecordError, RefusedError, UsageError
from seglog_format.log.listing import checkpointed_offset, list_partition
from seglog_format.log.partition import Partition, open_partition
from seglog_format.log.path_kind import PathKind, directory_kind
from seglog_format.names import FileKind
from seglog_format.storage import remote_storage
from seglog_format.storage.byte_source import MAX_LOG_SIZE, SourceFile, open_bytes
from seglog_format.storage.object_store import Store, StoredFile, shown_address
from seglog_format.storage.remote_storage import BlockCache, RemoteBytes, RemoteStorage, download

if TYPE_CHECKING:
    from collections.abc import Iterator


BLOCK = 64
MAX_BLOCKS = 3
ADDRESS = "mem://bucket/logs"


class KnownStore:
    """A store of files in memory, which notes what is read of them."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.address = ADDRESS
        self.files = files
        self.reads: list[tuple[str, int, int]] = []

    def listed(self) -> list[StoredFile]:
        return [StoredFile(path, len(data)) for path, data in sorted(self.files.items())]

    def read(self, path: str, start: int, size: int) -> bytes:
        self.reads.append((path, start, size))
        return self.files[path][start : start + size]


@pytest.fixture(scope="module", autouse=True)
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_storage, "BLOCK_SIZE", BLOCK)
        patch.setattr(remote_storage, "MAX_REQUEST_BLOCKS", MAX_BLOCKS)
        patch.setattr(remote_storage, "READ_AHEAD_SIZE", 4 * MAX_BLOCKS * BLOCK)
        patch.setattr(remote_storage, "MAX_WINDOW_SIZE", 8 * BLOCK)
        yield


def numbered(size: int) -> bytes:
    return bytes(number * 7 % 255 + 1 for number in range(size))


def opened(data: bytes, max_size: int = 2**20) -> tuple[RemoteBytes, list[tuple[int, int]]]:
    """Return a file, and what is fetched of it."""
    reads: list[tuple[int, int]] = []

    def read(start: int, size: int) -> bytes:
        reads.append((start, size))
        return data[start : start + size]

    return RemoteBytes("mem://a/file", len(data), read, BlockCache(max_size)), reads


def kept_size(source: RemoteBytes) -> int:
    return sum(len(window.data) for window in source._cache._by_use.values())


# -- blocks ----------------------------------------------------------------------------------------------------------

LOOKS = st.lists(
    st.tuples(st.sampled_from(["view", "window", "expect"]), st.integers(0, 6000), st.integers(0, 1500)), max_size=20
)


@given(size=st.integers(0, 5000), looks=LOOKS, max_size=st.sampled_from([0, 500, 2**20]))
def test_every_look_gives_the_bytes_of_the_file(size: int, looks: list[tuple[str, int, int]], max_size: int) -> None:
    data = numbered(size)
    source, reads = opened(data, max_size)
    for how, start, count in looks:
        if how == "expect":
            source.expect(start, start + count)
        elif how == "view":
            assert source.view(start, start + count) == data[start : start + count]
        elif start < size:
            first, found = source.window(start, count)
            assert first <= start < first + len(found)
            assert first + len(found) >= min(start + count, size)
            assert found == data[first : first + len(found)]
        assert kept_size(source) <= max_size
    assert all(start % BLOCK == 0 and 0 < count <= MAX_BLOCKS * BLOCK for start, count in reads)
    if max_size >= size:
        assert sum(count for _, count in reads) <= size, "each block is fetched once"
    assert source.view(0, size) == data


def test_only_the_blocks_in_view_are_fetched() -> None:
    source, reads = opened(numbered(1000))
    assert source.view(3 * BLOCK + 1, 3 * BLOCK + 9) == numbered(1000)[3 * BLOCK + 1 : 3 * BLOCK + 9]
    assert reads == [(3 * BLOCK, BLOCK)]
    source.view(2 * BLOCK, 5 * BLOCK)
    assert sorted(reads[1:]) == [(2 * BLOCK, BLOCK), (4 * BLOCK, BLOCK)]
    source.view(990, 2000)
    assert reads[3:] == [(15 * BLOCK, 1000 - 15 * BLOCK)]


def test_an_expected_range_is_fetched_in_large_requests_and_nothing_else() -> None:
    size = 40 * BLOCK
    source, reads = opened(numbered(size))
    source.expect(2 * BLOCK + 5, 31 * BLOCK - 5)
    position = 2 * BLOCK + 5
    while position < 31 * BLOCK - 5:
        position += len(source.view(position, min(position + 50, 31 * BLOCK - 5)))
    assert sum(count for _, count in reads) == 29 * BLOCK
    assert len(reads) == 10
    source.expect(0, None)
    source.view(0, 1)
    assert reads[10:] == [(0, 2 * BLOCK)]


def test_an_end_that_is_expected_to_be_that_of_the_file() -> None:
    source, reads = opened(numbered(5 * BLOCK + 7))
    source.expect(0, None)
    source.view(0, 1)
    assert sorted(reads) == [(0, 3 * BLOCK), (3 * BLOCK, 2 * BLOCK + 7)]


def test_windows_that_follow_each_other_grow() -> None:
    size = 64 * BLOCK
    source, reads = opened(numbered(size))
    position, sizes = 0, []
    while position < size:
        before = len(reads)
        start, data = source.window(position, 1)
        position = start + len(data)
        sizes.append(sum(count for _, count in reads[before:]) // BLOCK)
    assert [each for each in sizes if each][:4] == [2, 4, 8, 8]
    assert max(sizes) == 8
    assert sum(sizes) == 64


def test_blocks_that_were_not_used_for_longest_go_first() -> None:
    source, reads = opened(numbered(20 * BLOCK), 2 * BLOCK)
    for block in (0, 1, 0, 2):
        source.view(block * BLOCK, (block + 1) * BLOCK)
    reads.clear()
    source.view(0, BLOCK)
    assert reads == []
    source.view(BLOCK, 2 * BLOCK)
    assert reads == [(BLOCK, BLOCK)]


def test_what_was_handed_out_outlives_the_cache_and_the_file() -> None:
    data = numbered(20 * BLOCK)
    source, _ = opened(data, 0)
    found = source.view(BLOCK, 2 * BLOCK)
    source.view(5 * BLOCK, 9 * BLOCK)
    source.close()
    assert found == data[BLOCK : 2 * BLOCK]
    assert source.view(0, 1) == data[:1], "it opens again when it is needed"


def test_several_threads_read_one_file() -> None:
    data = numbered(200 * BLOCK)
    source, reads = opened(data)

    def read(number: int) -> bool:
        starts = range(number, len(data) - 100, 97)
        return all(source.view(start, start + 100) == data[start : start + 100] for start in starts)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))
    assert sum(count for _, count in reads) <= len(data)


def test_an_error_of_the_store_is_raised_and_the_next_look_asks_again() -> None:
    data, fails = numbered(10 * BLOCK), [True]

    def read(start: int, size: int) -> bytes:
        if fails:
            fails.pop()
            msg = "gone"
            raise UsageError(msg)
        return data[start : start + size]

    source = RemoteBytes("mem://a/file", len(data), read)
    with pytest.raises(UsageError, match="gone"):
        source.window(0, 10)
    assert source.view(0, len(data)) == data


@pytest.mark.parametrize("max_size", [0, 2**20])
def test_a_local_file_gives_the_same(tmp_path: Path, max_size: int) -> None:
    """Whoever reads logs is told what will be read, and may be asked to forget; local files need neither."""
    path = tmp_path / "file"
    path.write_bytes(numbered(1000))
    remote, _ = opened(numbered(1000), max_size)
    with open_bytes(path, mapped=True) as mapped, open_bytes(path) as windows, remote:
        sources: tuple[SourceFile, ...] = (mapped, windows, remote)
        for source in sources:
            source.expect(10, None)
            assert source.view(10, 2000) == numbered(1000)[10:]
            source.release_before(1000)
            source.forget()
            assert source.window(999).data[-1:] == numbered(1000)[-1:]
            assert source.view(7, 7) == b""


# -- files -----------------------------------------------------------------------------------------------------------


def storage_of(files: dict[str, bytes]) -> tuple[RemoteStorage, KnownStore]:
    store = KnownStore(files)
    return RemoteStorage(store, store.listed()), store  # type: ignore[arg-type]


def uploaded(directory: Path) -> dict[str, bytes]:
    """Return the files of a log directory or partition directory, below its name."""
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {path.relative_to(directory.parent).as_posix(): path.read_bytes() for path in paths}


def test_a_listing_is_a_tree() -> None:
    storage, store = storage_of({"a/b/x": b"1", "a/y": b"22", "z": b""})
    root = storage.root
    assert storage.entries(root) == (["z"], ["a"], ())
    assert storage.entries(root / "a") == (["y"], ["b"], ())
    assert storage.entries(root / "a" / "b") == (["x"], [], ())
    assert storage.status(root / "a" / "y") == (2, None)
    assert not storage.is_link(root / "a")
    assert [storage.name_of(root / path) for path in ("", "a", "a/b/x")] == [
        ADDRESS,
        f"{ADDRESS}/a",
        f"{ADDRESS}/a/b/x",
    ]
    assert store.reads == []


@pytest.mark.parametrize("path", ["a/x", "b", "../x", "/etc/passwd"])
def test_what_is_not_there_is_not_looked_for_on_this_machine(path: str) -> None:
    storage, store = storage_of({"a/y": b""})
    for look in (storage.open, storage.status, storage.entries):
        with pytest.raises(UsageError, match="no such"):
            look(storage.root / path)
    assert store.reads == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "orders-0/../../x", "/etc/passwd", ""])
def test_names_lead_nowhere_else(name: str) -> None:
    with pytest.raises(UsageError, match="is not the path of a file below it"):
        storage_of({name: b""})


def test_a_log_that_is_too_large_is_refused_before_anything_is_fetched() -> None:
    store = KnownStore({})
    files = [StoredFile("orders-0/00000000000000000000.log", MAX_LOG_SIZE + 1)]
    storage = RemoteStorage(store, files)  # type: ignore[arg-type]
    with (
        Partition(list_partition(storage.root / "orders-0", storage)) as partition,
        pytest.raises(RefusedError, match=rf"^{ADDRESS}/orders-0/0+\.log:0: .*SEG-LOG-010"),
    ):
        next(partition.batches())
    assert store.reads == []


# -- partitions ------------------------------------------------------------------------------------------------------


def answers(partition: Partition) -> list[Any]:
    """Everything that a partition can be asked."""
    listed = list(partition.records())
    times = [record.timestamp_ms for record in listed[:: max(len(listed) // 5, 1)]]
    return [
        listed,
        list(partition.records(isolation="read_committed")),
        partition.read(listed[len(listed) // 2].offset).records,
        (partition.log_start_offset, partition.log_end_offset, partition.last_stable_offset),
        partition.aborted_transactions(),
        [partition.offset_for_timestamp(time_ms) for time_ms in times if time_ms >= 0],
        [segment.size for segment in partition.segments],
        [segment.transaction_index is None for segment in partition.segments],
    ]


@pytest.mark.parametrize("trust_indexes", [False, True])
@pytest.mark.parametrize("name", ["4.3.0/txn", "4.3.0/compact-txn"])
def test_a_remote_partition_answers_as_the_local_one(name: str, trust_indexes: bool) -> None:  # noqa: FBT001
    bundled_path = bundled(name)
    (directory,) = [
        path for path in [bundled_path, *bundled_path.iterdir()] if path.is_dir() and any(path.glob("*.log"))
    ]
    storage, store = storage_of(uploaded(directory))
    listing = list_partition(storage.root / directory.name, storage)
    with Partition(listing, trust_indexes=trust_indexes) as there, open_partition(directory) as local:
        assert answers(there) == answers(local)
    assert store.reads
    assert not Path(ADDRESS).exists()


def test_messages_of_old_formats() -> None:
    (directory,) = {path.parent for path in authentic("0.8.2.2/codec-snappy").rglob("*.log")}
    storage, _ = storage_of(uploaded(directory))
    with Partition(list_partition(storage.root / directory.name, storage)) as there, open_partition(directory) as local:
        assert list(there.records()) == list(local.records())


def test_damage_names_the_address() -> None:
    (directory,) = {path.parent for path in authentic("0.8.2.2/codec-snappy").rglob("*.log")}
    files = uploaded(directory)
    (name,) = [name for name in files if name.endswith(".log")]
    files[name] = files[name][:30] + b"\xff" + files[name][31:]
    storage, _ = storage_of(files)
    with (
        Partition(list_partition(storage.root / directory.name, storage)) as there,
        pytest.raises(CorruptRecordError, match=f"^{ADDRESS}/{name}:"),
    ):
        list(there.batches())


def test_checkpoints_above_a_remote_partition_are_read() -> None:
    checkpoint = b"0\n1\norders 0 7\n"
    storage, _ = storage_of({"log-start-offset-checkpoint": checkpoint, "orders-0/00000000000000000000.log": b""})
    listing = list_partition(storage.root / "orders-0", storage)
    assert checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT) == 7
    assert checkpointed_offset(listing, FileKind.REPLICATION_OFFSET_CHECKPOINT) is None


def test_what_a_remote_directory_is() -> None:
    storage, _ = storage_of({"logs/orders-0/00000000000000000000.log": b"", "other/x": b""})
    root = storage.root
    assert directory_kind(root / "logs", storage) is PathKind.LOG_DIRECTORY
    assert directory_kind(root / "logs" / "orders-0", storage) is PathKind.PARTITION
    with pytest.raises(UsageError, match=f"^{ADDRESS}: neither .* did you mean {ADDRESS}/logs"):
        directory_kind(root, storage)


# -- keys in an address -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["s3://AKEY:SEC/RET@bucket/x", "s3://AKEY:SEC%2FRET@bucket/x?bogus=1", "s3://AKEY:SEC RET@@", "nope://AKEY:SEC@b"],
)
@pytest.mark.parametrize("settings", [{}, {"access_key": "AKEY", "secret_key": "SEC/RET", "bogus": "1"}])
def test_messages_hold_no_keys(address: str, settings: dict[str, str]) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(UsageError) as caught:
        Store(address, settings)
    assert "AKEY" not in str(caught.value)
    assert "SEC" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://AKEY:SECRET@bucket/tier", "s3://bucket/tier"),
        ("s3://bucket/tier@home", "s3://bucket/tier@home"),
        ("s3://AKEY:SE/CRET@bucket/tier", "s3://bucket/tier"),
        ("s3a://AKEY:12/34@bucket", "s3a://bucket"),
        ("hdfs://host:8020/logs@home", "hdfs://host:8020/logs@home"),
        ("folder/a@b", "folder/a@b"),
        ("folder/a@b:c", "folder/a@b:c"),
    ],
)
def test_an_address_is_shown_without_keys(address: str, shown: str) -> None:
    assert shown_address(address) == shown


# -- copies ----------------------------------------------------------------------------------------------------------


def test_a_directory_is_downloaded(tmp_path: Path) -> None:
    files = {"orders-0/a": numbered(5000), "orders-0/b": b"", "orders-0/c/d": b"left out"}
    storage, _ = storage_of(files)
    download(storage, storage.root / "orders-0", tmp_path / "copy")
    found = {path.relative_to(tmp_path).as_posix(): path.is_dir() for path in (tmp_path / "copy").rglob("*")}
    assert found == {"copy/a": False, "copy/b": False, "copy/c": True}
    assert (tmp_path / "copy" / "a").read_bytes() == numbered(5000)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    storage, _ = storage_of({"orders-0/a": b"seglog"})
    monkeypatch.setattr(remote_storage, "write_file_of", full)
    with pytest.raises(UsageError, match=f"{ADDRESS}/orders-0/a: cannot be copied .*No space"):
        download(storage, storage.root / "orders-0", tmp_path / "copy")
