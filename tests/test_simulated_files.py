"""The disk in memory: what a power cut may leave, and how operations fail."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

import pytest

from proofs.power.disk import SECTOR_SIZE
from proofs.power.fault import Fault
from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNS = 200


def disk(root: Path, seed: int = 0) -> SimulatedFiles:
    return SimulatedFiles(root, random.Random(seed))  # noqa: S311 - chance that repeats


def synced(files: SimulatedFiles, path: Path, data: bytes = b"") -> None:
    handle = files.create(path)
    handle.write(data)
    handle.fsync()
    files.fsync_directory(path.parent)


def survivals(root: Path, act: Callable[[SimulatedFiles], None]) -> set[tuple[tuple[str, bytes], ...]]:
    """Return the directories that power cuts leave, under many seeds, after the same operations."""
    found = set()
    for seed in range(RUNS):
        files = disk(root, seed)
        act(files)
        files.lose_power()
        found.add(tuple((name, files.read(root / name)) for name in files.names(root)))
    return found


def test_what_is_synced_survives(tmp_path: Path) -> None:
    assert survivals(tmp_path, lambda files: synced(files, tmp_path / "a", b"data")) == {(("a", b"data"),)}


def test_a_name_without_a_synced_directory_may_be_gone(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        handle = files.create(tmp_path / "a")
        handle.write(b"x")
        handle.fsync()

    assert survivals(tmp_path, act) == {(), (("a", b"x"),)}


def test_a_name_may_survive_without_its_bytes(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        files.create(tmp_path / "a").write(b"xyz")
        files.fsync_directory(tmp_path)

    found = {dict(each)["a"] for each in survivals(tmp_path, act)}
    assert found == {b"", b"x", b"xy", b"xyz", bytes(3)}  # length without bytes is zeros


def test_a_write_is_torn_anywhere_or_by_sectors(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        synced(files, tmp_path / "a")
        files.open_append(tmp_path / "a").write(b"x" * 3 * SECTOR_SIZE)

    found = {dict(each)["a"] for each in survivals(tmp_path, act)}
    whole = b"x" * SECTOR_SIZE
    assert {b"", whole, whole * 2, whole * 3} <= found
    assert any(len(data) % SECTOR_SIZE for data in found)
    assert bytes(SECTOR_SIZE) + whole in found  # the second sector, not the first


def test_files_are_reordered(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        for name in "ab":
            synced(files, tmp_path / name)
        for name in "ab":
            files.open_append(tmp_path / name).write(name.encode())

    found = {tuple(data for _, data in each) for each in survivals(tmp_path, act)}
    assert {(b"a", b"b"), (b"a", b""), (b"", b"b"), (b"", b"")} <= found


def test_renames_and_removals_may_not_have_happened(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        for name in "abc":
            synced(files, tmp_path / name, name.encode())
        files.rename(tmp_path / "a", tmp_path / "b")
        files.remove(tmp_path / "c")

    old, new, c = ("a", b"a"), ("b", b"a"), ("c", b"c")
    assert survivals(tmp_path, act) == {(old, ("b", b"b"), c), (new, c), (new,), (old, ("b", b"b"))}


def test_a_truncation_may_not_have_happened(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        synced(files, tmp_path / "a", b"data")
        files.open_append(tmp_path / "a").truncate(1)

    assert survivals(tmp_path, act) == {(("a", b"data"),), (("a", b"d"),)}

    def act_and_sync(files: SimulatedFiles) -> None:
        act(files)
        files.open_append(tmp_path / "a").fsync()

    assert survivals(tmp_path, act_and_sync) == {(("a", b"d"),)}


def test_after_a_failed_sync_asking_again_does_not_help(tmp_path: Path) -> None:
    def act(files: SimulatedFiles) -> None:
        synced(files, tmp_path / "a")
        files.faults.append(Fault("fsync"))
        handle = files.open_append(tmp_path / "a")
        handle.write(b"xy")
        with pytest.raises(OSError, match="Input/output"):
            handle.fsync()
        handle.fsync()
        assert files.read(tmp_path / "a") == b"xy"  # what programs read hides it

    assert {(("a", b""),), (("a", b"x"),), (("a", b"xy"),)} <= survivals(tmp_path, act)


def test_the_power_goes_in_an_operation(tmp_path: Path) -> None:
    files = disk(tmp_path)
    files.cut_at = 2
    handle = files.create(tmp_path / "a")
    for _ in range(2):
        with pytest.raises(PowerCut):
            handle.write(b"x")
    handle.close()
    assert files.step_count == 2
    files.lose_power()
    synced(files, tmp_path / "b")


def test_the_same_seed_leaves_the_same(tmp_path: Path) -> None:
    left = []
    for _ in range(2):
        files = disk(tmp_path, 7)
        synced(files, tmp_path / "a")
        files.open_append(tmp_path / "a").write(bytes(range(256)) * 8)
        files.lose_power()
        left.append(files.read(tmp_path / "a"))
    assert left[0] == left[1]


def test_a_full_disk_takes_a_part(tmp_path: Path) -> None:
    files = disk(tmp_path)
    handle = files.create(tmp_path / "a")
    files.capacity = 10
    handle.write(b"1234567")
    with pytest.raises(OSError, match="No space") as caught:
        handle.write(b"89abcd")
    assert caught.value.errno == errno.ENOSPC
    assert files.read(tmp_path / "a") == b"123456789a"
    handle.write_at(0, b"over")  # there is room for that
    files.capacity = None
    handle.write(b"more")
    assert files.read(tmp_path / "a") == b"over56789amore"


def test_operations_fail_as_told(tmp_path: Path) -> None:
    files = disk(tmp_path)
    files.faults += [Fault("write", errno.EIO, ".log", after=1, keep=2), Fault("rename", errno.EIO)]
    other, log = files.create(tmp_path / "a"), files.create(tmp_path / "a.log")
    other.write(b"abc")
    log.write(b"abc")
    with pytest.raises(OSError, match="Input/output"):
        log.write(b"def")
    log.write(b"g")
    assert files.read(tmp_path / "a.log") == b"abcdeg"
    with pytest.raises(OSError, match="Input/output"):
        files.rename(tmp_path / "a", tmp_path / "b")
    assert files.names(tmp_path) == ["a", "a.log"]
    files.rename(tmp_path / "a", tmp_path / "b")
    assert files.names(tmp_path) == ["a.log", "b"]


def test_the_names_of_a_read_only_directory_stay(tmp_path: Path) -> None:
    files = disk(tmp_path)
    files.create(tmp_path / "a").write(b"x")
    files.read_only.add(tmp_path)
    for act in (
        lambda: files.create(tmp_path / "b"),
        lambda: files.rename(tmp_path / "a", tmp_path / "b"),
        lambda: files.remove(tmp_path / "a"),
        lambda: files.make_directory(tmp_path / "b"),
    ):
        with pytest.raises(PermissionError):
            act()
    files.open_append(tmp_path / "a").write(b"y")
    assert files.read(tmp_path / "a") == b"xy"


def test_what_is_not_there_is_said_as_by_a_file_system(tmp_path: Path) -> None:
    files = disk(tmp_path)
    files.make_directory(tmp_path / "d" / "e")
    files.make_directory(tmp_path / "d")
    handle = files.create(tmp_path / "f", 3)
    assert (handle.size, files.size(tmp_path / "f"), files.exists(tmp_path / "d" / "x")) == (3, 3, False)
    files.set_modified_ms(tmp_path / "f", 5)
    assert files.modified_ms(tmp_path / "f") == 5
    handle.close()
    with pytest.raises(OSError, match="is closed"):
        handle.write(b"")
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "x")
    with pytest.raises(IsADirectoryError):
        files.read(tmp_path / "d")
    with pytest.raises(IsADirectoryError):
        files.create(tmp_path / "d")
    with pytest.raises(NotADirectoryError):
        files.names(tmp_path / "f")
    with pytest.raises(OSError, match="not empty"):
        files.remove_directory(tmp_path / "d")
    files.remove_directory(tmp_path / "d" / "e")
    files.create(tmp_path / "f")
    assert files.read(tmp_path / "f") == b""
    files.rename(tmp_path / "f", tmp_path / "d" / "g")
    assert (files.names(tmp_path), files.names(tmp_path / "d")) == (["d"], ["g"])


def test_a_mirror_shows_the_disk_to_other_programs(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "old").write_bytes(b"old")
    files = disk(tmp_path)
    files.load(tmp_path)
    mirror = MirroredFiles(files)
    handle = mirror.create(tmp_path / "a")
    handle.write(b"new")
    handle.truncate(2)
    handle.fsync()
    handle.close()
    mirror.rename(tmp_path / "a", tmp_path / "b")
    mirror.make_directory(tmp_path / "e")
    mirror.remove_directory(tmp_path / "e")
    mirror.remove(tmp_path / "d" / "old")
    assert mirror.names(tmp_path) == ["b", "d"]
    assert (mirror.read(tmp_path / "b"), files.read(tmp_path / "b")) == (b"ne", b"ne")
    mirror.fsync_directory(tmp_path)
    files.lose_power()
    files.store(tmp_path / "left")
    assert (tmp_path / "left" / "b").read_bytes() == b"ne"
