"""What people asked in public threads is answered by one command each: the table of the how-to is run."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from helpers.made_partitions import control, entry, make, transactional
from helpers.remote_records import append, started, updated
from helpers.support import FIXTURES, REPOSITORY, bundled
from helpers.walking import each_of

from proofs.unpacking import unpack_archive
from seglog_format import PartitionWriter, new_record, open_partition
from seglog_format.cli.main import DONE, FINDINGS, run
from seglog_format.names import FileKind, segment_file_name
from seglog_format.tier.local_metadata import LocalMetadataTopic
from seglog_format.tier.segments import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from seglog_format.tier.segments import RemoteSegment

PAGE: Final = REPOSITORY / "docs/how-to/find-what-is-wrong.md"
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text("utf-8").partition("## Questions that were asked in public")[2].splitlines()
    if line.startswith("| ") and "| question |" not in line
]


def tiered(root: Path) -> Path:
    unpack_archive(FIXTURES / "tiered" / "lts-4.4.0" / "files.tar.gz", root)
    return root / "local"


def last_copied(local: Path) -> RemoteSegment:
    with open_partition(local / "orders-0") as partition:
        known = LocalMetadataTopic().of(partition.listing) or {}
    found = [each for of_one in known.values() for each in of_one.segments.values() if each.end_offset == 1035]
    return next(each for each in found if each.id.partition.topic == "orders")


def with_another_partition(root: Path) -> Path:
    local = tiered(root)
    shutil.copytree(local / "codecs-0", local / "codecs-7")
    return local


def deleted_in_the_store(root: Path) -> Path:
    local = tiered(root)
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        append(local, updated(last_copied(local).id, state))
    return local


def rolled(root: Path) -> Path:
    """Roll the active segment of ``orders-0``, as a broker before 2.8 did: without a producer snapshot."""
    local = tiered(root)
    (local / "orders-0" / segment_file_name(1098, FileKind.LOG)).touch()
    (local / "orders-0" / segment_file_name(1098, FileKind.PRODUCER_SNAPSHOT)).unlink(missing_ok=True)
    return local


def begun(root: Path) -> Path:
    local = rolled(root)
    copied = last_copied(local)
    one = copied.id._replace(segment_id="AAAAAAAAAAAAAAAAAAAAQQ")
    append(local, started(replace(copied, id=one, start_offset=1036, end_offset=1097)))
    return local


def in_microseconds(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5, time=1_790_000_000_000_000), "5.log": entry(5)}).parent


def hanging(root: Path) -> Path:
    for case in ("cluster-metadata", "transaction-state", "txn-open"):
        shutil.copytree(bundled(f"4.3.0/{case}"), root / "data", dirs_exist_ok=True)
    return root / "data"


def known(root: Path) -> Path:
    for case in ("transaction-state", "txn-open"):
        shutil.copytree(bundled(f"3.0.2/{case}"), root / "data", dirs_exist_ok=True)
    return root / "data"


def left_open(root: Path) -> Path:
    return make(root, {"0.log": transactional(0) + entry(1, 4)}).parent


def aborted(root: Path) -> Path:
    return make(root, {"0.log": transactional(0) + control(1, 0) + entry(2)}).parent


def paid(root: Path) -> Path:
    with PartitionWriter(root / "logs" / "orders-0") as writer:
        writer.append([new_record(key=b"order-4711", value=b"paid"), new_record(key=b"order-4712", value=b"open")])
    return root / "logs"


INPUTS: Final[dict[str, Callable[[Path], Path]]] = {
    "Aiven #481": with_another_partition,
    "Aiven #699": deleted_in_the_store,
    "Aiven #707": rolled,
    "Aiven #820": begun,
    "redpanda #9820": in_microseconds,
    "KIP-664": hanging,
    "KAFKA-9144": hanging,
    "klog": left_open,
    "strimzi.github.io #362": left_open,
    "AutoMQ #509": known,
    "KAFKA-7298": left_open,
    "KAFKA-19690": aborted,
    "kafkactl #187": paid,
}
"""The function that makes the input, by the thread; the others are about the directories of a broker of 4.4.0."""


@each_of("row", ROWS, ids=lambda row: row[0])
def test_a_question_is_answered_by_one_command(
    row: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thread, question, command, answer = row
    assert question.endswith("?")
    local = INPUTS.get(thread.partition(",")[0], tiered)(tmp_path)
    paths = {"DIR": str(local), "STORE": str(tmp_path / "tier" / "kafka-tiered-storage")}
    split = (each.partition("/") for each in shlex.split(command.strip("`")))
    program, *words = (paths.get(head, head) + slash + rest for head, slash, rest in split)
    assert program == "seglog"
    assert run(words) in {DONE, FINDINGS}
    assert answer in " ".join(capsys.readouterr().out.split())


QUESTIONS: Final = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in PAGE.read_text("utf-8").partition("## Which command answers what")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and "| command" not in line
]
KNOWN_OFFSET: Final = "2"
"""In the place of the offset of the table, which the directory does not have."""


@each_of("row", QUESTIONS, ids=lambda row: row[0])
def test_each_question_of_an_operator_has_a_command(
    row: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bundled("4.3.0/root"), tmp_path / "data")
    for case in ("cluster-metadata", "consumer-offsets", "plain"):
        shutil.copytree(bundled(f"4.3.0/{case}"), tmp_path / "data", dirs_exist_ok=True)
    data, other = tmp_path / "data", tmp_path / "other" / "plain-0"
    shutil.copytree(data / "plain-0", other)
    is_of_logs = " OTHER" in row[1] and "DIR" in row[1]
    paths = {"DIR": data, "PARTITION": data / "plain-0", "OTHER": other.parent if is_of_logs else other}
    named = {name: str(path) for name, path in paths.items()} | {"NEW": str(tmp_path / "new"), "4711": KNOWN_OFFSET}
    _, *words = shlex.split(row[1].strip("`"))
    split = (each.partition("/") for each in words)
    assert run([named.get(head, head) + slash + rest for head, slash, rest in split]) in {DONE, FINDINGS}
    assert capsys.readouterr().out or "find" in words


def test_all_threads_are_there() -> None:
    assert (len(ROWS), INPUTS.keys() - {row[0].partition(",")[0] for row in ROWS}) == (19, set())
    assert len(QUESTIONS) == 24
