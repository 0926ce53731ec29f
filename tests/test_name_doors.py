"""Wherever a name comes from, it never becomes a path that leads elsewhere, and nothing is replaced."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record
from helpers.hostile_names import TOPICS, below
from helpers.serving import serving
from helpers.walking import each_of
from kio.schema.errors import ErrorCode

from proofs.serve.client import METADATA, PRODUCE
from seglog_format import LogWriter, PartitionWriter, new_record, open_partition
from seglog_format.cli.main import run
from seglog_format.errors import UsageError, WriteError
from seglog_format.serve.writing import Writers
from seglog_format.state.config import LogConfig
from seglog_format.storage import files as renaming
from seglog_format.storage.files import LOCAL_FILES, replace_file

if TYPE_CHECKING:
    from pathlib import Path


def plain_batch(base: int, values: list[bytes]) -> bytes:
    section = b"".join(record(0, delta, b"k", value) for delta, value in enumerate(values))
    return batch(section, len(values), base_offset=base, last_offset_delta=len(values) - 1)


LOG = f"{0:020}.log"
NEXT_LOG = f"{1:020}.log"


@pytest.mark.req("SEG-PDR-002")
@each_of("topic", TOPICS)
def test_a_log_writer_opens_no_directory_elsewhere(topic: str, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "deep" / "root") as writer:
        before = below(tmp_path)
        with pytest.raises(UsageError, match="SEG-PDR-002"):
            writer.open(topic, 0)
        assert below(tmp_path) == before


@pytest.mark.req("SEG-PDR-001")
@pytest.mark.parametrize("partition", [-1, 2**31, 10**30, 0.5, "0/../../evil"])
def test_a_log_writer_opens_no_partition_that_cannot_be(partition: int, tmp_path: Path) -> None:
    with LogWriter(tmp_path / "root") as writer:
        before = below(tmp_path)
        with pytest.raises(UsageError):
            writer.open("orders", partition)
        assert below(tmp_path) == before


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-002", "SEG-PDR-003", "SEG-PDR-017")
@pytest.mark.parametrize(
    "name",
    ["order book-0", "größe-0", "..-0", "orders", "orders-007", f"orders-0.{'a' * 32}-delete", "x" * 250 + "-0"],
)
def test_a_partition_writer_makes_no_directory_that_a_broker_would_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        PartitionWriter(tmp_path / "root" / name)
    assert below(tmp_path) == {}


@each_of("topic", TOPICS)
def test_a_recipe_makes_no_topic_elsewhere(topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.toml"
    text = json.dumps(topic).replace("\\udc80", "\\u00ff")  # TOML has no lone surrogates
    recipe.write_text(f"[[topic]]\nname = {text}\n[[topic.step]]\nrecords = 1\n", encoding="utf-8")
    before = below(tmp_path)
    assert run(["generate", str(recipe), "-o", str(tmp_path / "made")]) == 2
    assert "is no name of a topic" in capsys.readouterr().err
    assert below(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["../evil.log", "/evil.log", "a/../../evil", "..", ".", "", "a\0b", "a\\b", "c:d", "x" * 256]
)
def test_lines_make_no_file_elsewhere(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "deep" / "lines.jsonl"
    lines.parent.mkdir()
    lines.write_text(json.dumps({"type": "text", "file": name, "text": "evil"}), encoding="utf-8")
    before = below(tmp_path)
    assert run(["convert", str(lines), "-o", str(tmp_path / "deep" / "made")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert below(tmp_path) == before


@each_of("topic", TOPICS[:-1])
def test_a_server_makes_no_topic(topic: str, tmp_path: Path) -> None:
    with PartitionWriter(tmp_path / "deep" / "data" / "orders-0") as writer:
        writer.append([new_record(value=b"one")])
    with serving(tmp_path / "deep" / "data", writers=Writers()) as served, served.client() as client:
        before = below(tmp_path)
        produced = [{"name": topic, "partition_data": [{"index": 0, "records": plain_batch(0, [b"evil"])}]}]
        answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=1000, topic_data=produced)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.unknown_topic_or_partition
        asked = client.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=True)
        assert asked.topics[0].error_code in {ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception}
        assert below(tmp_path) == before


def test_salvage_stays_below_its_output(tmp_path: Path) -> None:
    for name in ("orders-0", "..-0", "a b-1"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / LOG).write_bytes(plain_batch(0, [b"v"]))
    assert run(["salvage", str(tmp_path / "data"), "-o", str(tmp_path / "out" / "deep")]) in {0, 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]
    assert sorted(path.name for path in (tmp_path / "out" / "deep").iterdir()) == ["..-0", "a b-1", "orders-0"]


@pytest.mark.req("SEG-ROL-009")
def test_a_new_segment_does_not_replace_records(tmp_path: Path) -> None:
    foreign = plain_batch(1, [b"of another process"])
    path = tmp_path / "orders-0"
    with PartitionWriter(path, LogConfig(retention_ms=-1)) as writer:
        writer.append([new_record(value=b"one")])
        (path / NEXT_LOG).write_bytes(foreign)
        with pytest.raises(WriteError, match="SEG-ROL-009"):
            writer.roll()
    assert (path / NEXT_LOG).read_bytes() == foreign
    with open_partition(path) as partition:
        assert [record.value for record in partition.records()] == [b"one", b"of another process"]


@pytest.mark.parametrize("way", ["at once", "by links", "without links"])
def test_publishing_replaces_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if way != "at once":
        monkeypatch.setattr(renaming, "_renameat2", lambda: None)
    if way == "without links":
        monkeypatch.setattr(os, "link", without)
    new, taken, dangling, free = (tmp_path / name for name in ("new", "taken", "dangling", "free"))
    new.write_bytes(b"new")
    taken.write_bytes(b"old")
    dangling.symlink_to(tmp_path / "nowhere")
    for target in (taken, dangling):
        with pytest.raises(FileExistsError):
            LOCAL_FILES.publish(new, target)
    assert (new.read_bytes(), taken.read_bytes(), dangling.is_symlink()) == (b"new", b"old", True)
    LOCAL_FILES.publish(new, free)
    assert (new.exists(), free.read_bytes()) == (False, b"new")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.write_bytes(b"precious")
    inside.mkdir()
    for name in ("a", "a.tmp"):
        (inside / name).symlink_to(outside)
    (inside / "dangling").symlink_to(tmp_path / "nowhere")
    for act in (
        lambda: LOCAL_FILES.create(inside / "a"),
        lambda: LOCAL_FILES.open_append(inside / "a"),
        lambda: LOCAL_FILES.create(inside / "dangling"),
        lambda: LOCAL_FILES.create_new(inside / "dangling"),
        lambda: replace_file(LOCAL_FILES, inside / "a", b"new"),
    ):
        with pytest.raises(OSError, match=r"symbolic link|exists"):
            act()
    assert (outside.read_bytes(), (tmp_path / "nowhere").exists()) == (b"precious", False)
