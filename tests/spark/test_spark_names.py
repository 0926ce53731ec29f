"""Topics and manifests that would lead elsewhere, and segments that are there already: nothing changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.hostile_names import TOPICS, below
from helpers.spark_partitions import partition
from helpers.walking import each_of

from seglog_format.errors import UsageError
from seglog_format.spark import finish_commits
from seglog_format.spark.source_parts import WriteOptions, parse_write_options
from seglog_format.spark.staging import Staged, Stager, commit

if TYPE_CHECKING:
    from pathlib import Path

LOG = f"{0:020}.log"


def stage(root: Path, topic: str, number: int = 0) -> tuple[Staged, ...]:
    stager = Stager(root / "_seglog_staging" / "j" / "task_0", WriteOptions(root))
    columns = {"topic": [topic], "partition": pa.array([number], pa.int32()), "value": [b"EVIL"]}
    stager.add(pa.RecordBatch.from_pydict(columns))
    return stager.finish()


def write(root: Path, topic: str, number: int = 0) -> None:
    commit(root, "j", stage(root, topic, number), keeps_offsets=False, interval_bytes=4096)


@pytest.mark.req("SEG-PDR-002")
@each_of("topic", TOPICS[:-1])
def test_a_row_of_such_a_topic_changes_nothing(topic: str, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    partition(root / "orders-0", 3)
    before = below(tmp_path)
    with pytest.raises(UsageError, match="SEG-PDR-002"):
        write(root, topic)
    with pytest.raises(UsageError, match="SEG-PDR-002"):
        parse_write_options({"path": str(root), "topic": topic})
    assert below(tmp_path) == before


@pytest.mark.parametrize("number", [-1, -(2**31)])
def test_a_row_of_a_negative_partition_changes_nothing(number: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="partition -"):
        write(tmp_path, "orders", number)
    assert below(tmp_path) == {}


@pytest.mark.req("SEG-PDR-002")
@each_of("topic", TOPICS)
def test_a_staged_file_of_such_a_topic_is_not_committed(topic: str, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    partition(root / "orders-0", 3)
    (fine,) = stage(root, "orders")
    before = below(tmp_path)
    with pytest.raises(UsageError, match="SEG-PDR-002"):
        commit(root, "j", [Staged(topic, 0, fine.path, 0, 0)], keeps_offsets=False, interval_bytes=4096)
    assert below(tmp_path) == before


@pytest.mark.parametrize(
    "changed",
    [
        {"directory": "../../evil-0"},
        {"directory": "x/orders-0"},
        {"directory": "/evil/evil-0"},
        {"directory": "größe-0"},
        {"file": "../../precious"},
        {"file": "/evil/nothing"},
        {"file": "_seglog_staging/j/../../../precious"},
        {"file": "_seglog_staging/other/x"},
        {"base": -1},
        {"base": 2**63},
        {"base": "../0"},
    ],
    ids=str,
)
def test_a_manifest_does_not_lead_elsewhere(changed: dict[str, object], tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    partition(root / "orders-0", 3)
    (tmp_path / "precious").write_bytes(b"precious")
    (fine,) = stage(root, "orders")
    segment = {"directory": "orders-0", "file": fine.path.removeprefix(f"{root}/"), "base": 9, "keeps": False}
    manifest = {"job": "j", "interval": 4096, "segments": [{**segment, **changed}]}
    (root / "_seglog_commit.j.json").write_text(json.dumps(manifest), encoding="utf-8")
    before = below(tmp_path)
    with pytest.raises(UsageError, match=r"_seglog_commit\.j\.json"):
        finish_commits(root)
    assert below(tmp_path) == before


@pytest.mark.parametrize("job", ["../..", "..", "", "a/b", "k"])
def test_a_manifest_removes_nothing_elsewhere(job: str, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    partition(root / "orders-0", 3)
    (tmp_path / "precious").write_bytes(b"precious")
    (root / "_seglog_staging").mkdir()
    manifest = {"job": job, "interval": 4096, "segments": []}
    (root / "_seglog_commit.j.json").write_text(json.dumps(manifest), encoding="utf-8")
    before = below(tmp_path)
    with pytest.raises(UsageError, match=r"_seglog_commit\.j\.json"):
        finish_commits(root)
    assert below(tmp_path) == before


def test_a_staged_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (fine,) = stage(tmp_path / "other", "orders")
    (root / "_seglog_staging" / "j").mkdir(parents=True)
    (root / "_seglog_staging" / "j" / "x").symlink_to(fine.path)
    staged = Staged("orders", 0, str(root / "_seglog_staging" / "j" / "x"), 0, 0)
    before = below(tmp_path / "other")
    with pytest.raises(UsageError, match="a link that leads out"):
        commit(root, "j", [staged], keeps_offsets=False, interval_bytes=4096)
    assert below(tmp_path / "other") == before


@pytest.mark.parametrize("content", [b"damaged beyond recognition", None])
def test_a_segment_that_is_there_is_not_replaced(content: bytes | None, tmp_path: Path) -> None:
    """The log of a directory that needs recovery ends before its first byte."""
    log = tmp_path / "orders-0" / LOG
    log.parent.mkdir()
    if content is None:
        log.symlink_to(tmp_path / "nowhere")
    else:
        log.write_bytes(content)
    before = below(log.parent)
    with pytest.raises(UsageError, match="is there already"):
        write(tmp_path, "orders")
    assert below(log.parent) == before
    assert not list(tmp_path.glob("_seglog_commit*"))


def test_a_log_without_a_byte_gives_way(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / LOG).touch()
    write(tmp_path, "orders")
    assert (tmp_path / "orders-0" / LOG).stat().st_size
    assert not list(tmp_path.glob("_seglog_*"))


def test_a_file_that_has_both_names_is_finished(tmp_path: Path) -> None:
    """As a crash leaves it where a file system cannot rename without replacing."""
    (fine,) = stage(tmp_path, "orders")
    log = tmp_path / "orders-0" / LOG
    log.parent.mkdir()
    log.hardlink_to(fine.path)
    file = fine.path.removeprefix(f"{tmp_path}/")
    segment = {"directory": "orders-0", "file": file, "base": 0, "keeps": False}
    manifest = {"job": "j", "interval": 4096, "segments": [segment]}
    (tmp_path / "_seglog_commit.j.json").write_text(json.dumps(manifest), encoding="utf-8")
    before = log.read_bytes()
    assert finish_commits(tmp_path) == 1
    assert log.read_bytes() == before
    assert not list(tmp_path.glob("_seglog_*"))
