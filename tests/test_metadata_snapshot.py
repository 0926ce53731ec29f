"""Metadata snapshots: a header first and a footer last, and a node that was formatted and has not started yet."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.support import FIXTURES, bundled, bundled_cases

from seglog_format import verify
from seglog_format.codec.framing import walk

if TYPE_CHECKING:
    from pathlib import Path

FORMATTED = sorted((FIXTURES / "formatted" / "files").iterdir())
WRITTEN = [
    *sorted((FIXTURES / "formatted").rglob("*.checkpoint")),
    *(path for name in bundled_cases() if "metadata" in name for path in sorted(bundled(name).rglob("*.checkpoint"))),
    *(path for name in bundled_cases() if "/root" in name for path in sorted(bundled(name).rglob("*.checkpoint"))),
]


def entries(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[frame.position : frame.end] for frame in walk(data)]


def found(path: Path) -> set[str]:
    return {one.requirement for one in verify(path)}


def copied(source: Path, directory: Path, parts: list[bytes]) -> Path:
    """Write the snapshot with other entries; their offsets may have gaps then, which is no matter."""
    path = directory / source.name
    path.write_bytes(b"".join(parts))
    return path


@pytest.mark.req("SEG-CTL-014", "SEG-CTL-015")
def test_snapshots_that_kafka_wrote_have_both() -> None:
    assert len(WRITTEN) > 4
    assert {path.name: found(path) for path in WRITTEN if found(path)} == {}


@pytest.mark.req("SEG-CTL-014")
@pytest.mark.parametrize("source", FORMATTED, ids=lambda path: path.name)
def test_a_snapshot_without_its_header(source: Path, tmp_path: Path) -> None:
    (snapshot,) = source.rglob("*.checkpoint")
    _, *rest = entries(snapshot)
    assert found(copied(snapshot, tmp_path, rest)) == {"SEG-CTL-014"}


@pytest.mark.req("SEG-CTL-015")
@pytest.mark.parametrize("source", FORMATTED, ids=lambda path: path.name)
def test_a_snapshot_without_its_footer(source: Path, tmp_path: Path) -> None:
    (snapshot,) = source.rglob("*.checkpoint")
    *rest, _ = entries(snapshot)
    assert found(copied(snapshot, tmp_path, rest)) == {"SEG-CTL-015"}


@pytest.mark.req("SEG-CTL-014", "SEG-CTL-015")
def test_a_snapshot_without_both_or_without_anything(tmp_path: Path) -> None:
    for keep in (slice(1, -1), slice(0, 0)):
        directory = tmp_path / "__cluster_metadata-0"
        shutil.copytree(FORMATTED[0] / directory.name, directory)
        (snapshot,) = directory.glob("*.checkpoint")
        copied(snapshot, directory, entries(snapshot)[keep])
        assert found(directory) == {"SEG-CTL-014", "SEG-CTL-015"}
        shutil.rmtree(directory)


@pytest.mark.req("SEG-PDR-016")
@pytest.mark.parametrize("directory", FORMATTED, ids=lambda path: path.name)
def test_a_formatted_node_that_has_not_started_is_no_finding(directory: Path, tmp_path: Path) -> None:
    assert list(verify(directory)) == []
    shutil.copytree(directory, tmp_path / "copy")
    for snapshot in (tmp_path / "copy").rglob("*.checkpoint"):
        snapshot.unlink()
    assert found(tmp_path / "copy") == {"SEG-PDR-016"}
