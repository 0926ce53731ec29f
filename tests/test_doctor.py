"""`seglog doctor` says what is wrong, with evidence, nothing of sound directories, and contradicts no command."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import zstandard
from helpers.damage import damaged_cases
from helpers.made_partitions import checkpoint, control, entry, make, transactional
from helpers.remote_records import append, started, updated
from helpers.support import FIXTURES, bundled, bundled_cases, states
from helpers.walking import each_of

from proofs.unpacking import unpack_archive
from seglog_format import LogConfig, open_partition
from seglog_format.cleaning.deletion import prepare_retention
from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE, USAGE, run
from seglog_format.codec import checkpoints
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.doctor import starts
from seglog_format.doctor.examination import Examination
from seglog_format.doctor.sizes import stamped_late
from seglog_format.doctor.statements import Kind
from seglog_format.log.directory import LogDirectory
from seglog_format.log.listing import list_log_directory
from seglog_format.log.remote_store import RemoteCopies
from seglog_format.names import OFFSET_CHECKPOINT_KINDS
from seglog_format.recovery.plan import losses_of
from seglog_format.tier.local_metadata import LocalMetadataTopic
from seglog_format.tier.segments import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable

    from helpers.damage import Case

    from seglog_format.log.listing import PartitionListing
    from seglog_format.recovery.plan import Losses, RecoveryPlan

NOW: Final = 1_800_000_000_000
"""In 2027, after every fixture was written."""
RELEASE: Final = "4.3.0"


def said(capsys: pytest.CaptureFixture[str], *words: object, status: int) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["doctor", "--json", "--now", str(NOW), *map(str, words)]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def cases_of_one_run() -> list[str]:
    """Return the cases that were one log directory; ``txn-open`` and the kinds are of other runs."""
    names = [name for name in bundled_cases() if name.startswith(f"{RELEASE}/") and not name.endswith("-kinds")]
    return [name for name in names if states(bundled(name)) == [bundled(name)] and not name.endswith("/txn-open")]


def whole(root: Path, *names: str) -> Path:
    """Put the directories of a broker together: its root files, its metadata log, and some or all partitions.

    The metadata log has some more partitions in this log directory: it gets another id, so none of them is missing.
    """
    chosen = [f"{RELEASE}/{name}" for name in ("root", "cluster-metadata", *names)] if names else cases_of_one_run()
    for name in chosen:
        shutil.copytree(bundled(name), root / "data", dirs_exist_ok=True)
    return with_another_id(root / "data")


def with_another_id(data: Path) -> Path:
    text = (data / "meta.properties").read_text(encoding="utf-8")
    (data / "meta.properties").write_text(re.sub("(?m)^directory.id=.", "directory.id=_", text), encoding="utf-8")
    return data


def test_nothing_is_said_of_a_sound_log_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = whole(tmp_path)
    assert len(list(data.iterdir())) > 20
    assert said(capsys, data, status=DONE) == []
    assert run(["doctor", "--now", str(NOW), str(data)]) == DONE
    assert capsys.readouterr().out == "nothing is wrong\n"
    for name in ("segs-0", "txn-0", "__cluster_metadata-0"):
        assert said(capsys, data / name, status=DONE) == []


def statuses(path: Path, capsys: pytest.CaptureFixture[str]) -> list[int]:
    """Return the exit statuses of the commands that doctor asks the owners of."""
    commands = [["verify"], ["recover", "--like-broker"], ["ls", "--long"], ["transactions"], ["cluster"]]
    found = [run([*words, str(path)]) for words in commands]
    capsys.readouterr()
    return [status for status in found if status != USAGE]


@each_of("name", [name for name in bundled_cases() if name.partition("/")[0] in {"0.10.2.2", "3.0.2", RELEASE}])
def test_no_other_command_is_contradicted_over_what_brokers_wrote(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for logs in states(bundled(name)):
        others = statuses(logs, capsys)
        said(capsys, logs, status=min(max(others), FINDINGS))


ONLY_DOCTOR: Final = {
    "log-009-span": "a split, which recover plans without a finding",
    "pdr-001-no-partition": "no broker starts: the name of the partition itself is wrong",
    "pdr-001-partition-too-large": "the same",
    "pdr-003-no-unique-part": "the same",
    "tix-005-no-such-timestamp": "a warning of verify: lookups by time and retention go by the index",
    "tix-006-last-entry-missing": "the same",
}


@each_of("case", damaged_cases(), ids=lambda case: case.name)
def test_no_other_command_is_contradicted_over_damage(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = case.build(tmp_path / "case" / "x-0")
    path = path.parent if path.is_file() else path
    others = statuses(path, capsys)
    found = said(capsys, path, status=FINDINGS if max(others) or case.name in ONLY_DOCTOR else DONE)
    assert bool(found) == (bool(max(others)) or case.name in ONLY_DOCTOR)
    assert all(each["what"] and each["file"] and each["requirements"] and each["hurt"] for each in found)


class Said(NamedTuple):
    """What a statement has to say: its kind, its rule, who is hurt, and words of its sentence and of the next step."""

    kind: str
    requirement: str
    hurt: str
    what: str
    next: str
    file: str


def misnamed(root: Path) -> Path:
    data = whole(root, "plain")
    (data / "lost+found").mkdir()
    return data


def without_id(root: Path) -> Path:
    data = whole(root, "plain")
    (data / "plain-0" / "partition.metadata").unlink()
    return data


def of_another_topic(root: Path) -> Path:
    data = whole(root, "plain")
    (data / "plain-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAQQ\n")
    return data


def of_another_number(root: Path) -> Path:
    # A broker of 4.4.0 renamed it to `-stray` in the proof `start-predictions`.
    data = whole(root, "plain")
    shutil.copytree(data / "plain-0", data / "plain-217")
    return data


def without_snapshot(root: Path) -> Path:
    data = whole(root, "plain")
    metadata = data / "__cluster_metadata-0"
    for path in [*metadata.glob("*.checkpoint"), *metadata.glob(f"{0:020}.*")]:
        path.unlink()
    (metadata / f"{200:020}.log").touch()
    return data


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def damaged_tail(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5) + flipped(entry(5, 5)), "10.log": entry(10, 5)})


def with_a_broken_header(root: Path) -> Path:
    return with_broken(root, slice(16, 17))


def with_broken(root: Path, part: slice) -> Path:
    """Make a log whose second entry has other bytes in a part of it, which hide where the third one begins."""
    second = bytearray(entry(5, 5))
    second[part] = b"\xaa" * len(second[part])
    return make(root, {"0.log": entry(0, 5) + bytes(second) + entry(10, 5)})


def torn(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5) + entry(5, 5)[:-9]})


def damaged_below_the_recovery_point(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5) + flipped(entry(5, 5)), "0.index": b"", "10.log": entry(10)}, clean=True)


def short(root: Path) -> Path:
    directory = make(root, {"0.log": entry(0, 5)})
    checkpoint(directory, "replication-offset-checkpoint", 9)
    return directory


def above_its_end(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5)}, log_start=9)


def with_a_wrong_index(root: Path) -> Path:
    index = (3).to_bytes(4) + (7).to_bytes(4)
    return make(root, {"0.log": entry(0, 5), "0.index": index, "0.timeindex": b""}, clean=True)


def with_an_index_past_the_end(root: Path) -> Path:
    index = (100_000).to_bytes(4) + (0).to_bytes(4)
    return make(root, {"0.log": entry(0, 5), "0.index": index, "0.timeindex": b""}, clean=True)


def of_the_wrong_partition(root: Path) -> Path:
    return make(root, {"8.log": entry(3, 2)})


def hanging(root: Path) -> Path:
    return make(root, {"0.log": transactional(0) + entry(1, 4)})


def hanging_from_below_the_log_start(root: Path) -> Path:
    return make(root, {"0.log": transactional(0) + entry(1, 4)}, log_start=3)


def forgotten(root: Path) -> Path:
    files = {"0.log": transactional(0) + entry(1, 4), "0.index": b"", "0.timeindex": b""}
    return make(root, files, clean=True)


def in_microseconds(root: Path) -> Path:
    times = {"0.log": entry(0, 5, time=1_790_000_000_000_000), "5.log": entry(5)}
    return make(root, times)


def uncleaned(root: Path) -> Path:
    logs = {f"{number * 5}.log": entry(number * 5, 5, time=1 + number * 4_000_000) for number in range(4)}
    directory = make(root, logs)
    checkpoint(directory, "cleaner-offset-checkpoint", 0)
    return directory


def replaced(root: Path) -> Path:
    return make(root, {"0.log": entry(0, 5) + entry(5, 5), "0.log.swap": entry(0, 5), "10.log": entry(10)})


def overlapping(root: Path) -> Path:
    return make(root, {"0.log": b"".join(map(entry, range(12))), "9.log": b""})


STRAY, FUTURE = (f"orders-0.{32 * 'a'}-{state}" for state in ("stray", "future"))


def set_aside(root: Path) -> Path:
    directory = make(root, {"0.log": entry(0, 5)}, clean=True)
    directory.rename(directory.with_name(STRAY))
    return directory.parent


def half_moved(root: Path) -> Path:
    directory = make(root, {"0.log": entry(0, 5)}, clean=True)
    directory.rename(directory.with_name(FUTURE))
    return directory.parent


def moving(root: Path) -> Path:
    logs = half_moved(root)
    (logs / "orders-0").mkdir()
    shutil.copy(logs / FUTURE / f"{0:020}.log", logs / "orders-0")
    return logs


def moving_without_its_beginning(root: Path) -> Path:
    logs = moving(root)
    (logs / FUTURE / f"{0:020}.log").unlink()
    (logs / FUTURE / f"{3:020}.log").write_bytes(entry(3, 2))
    return logs


def formatted(root: Path, name: str) -> Path:
    """Make a log directory with `bootstrap.checkpoint`, which only KRaft has, and an empty file."""
    path = make(root, {"0.log": entry(0, 5)}, clean=True).parent
    for each in ("bootstrap.checkpoint", name):
        (path / each).touch()
    return path


def without_properties(root: Path) -> Path:
    return formatted(root, ".lock")


def with_empty_properties(root: Path) -> Path:
    return formatted(root, "meta.properties")


SAID: Final[dict[Callable[[Path], Path], Said]] = {
    misnamed: Said("no start", "SEG-LDR-001", "a starting broker", "found lost+found", "cluster", "lost+found"),
    without_snapshot: Said(
        "no start", "SEG-PDR-029", "a starting broker", "a metadata snapshot", "cluster", "__cluster_metadata-0"
    ),
    of_the_wrong_partition: Said(
        "no start", "SEG-LOG-009", "a starting broker", "no broker starts", "salvage", f"{8:020}.log"
    ),
    without_properties: Said(
        "no start", "SEG-LDR-005", "a starting broker", "it has no meta.properties", "resurrect", "meta.properties"
    ),
    with_empty_properties: Said(
        "no start", "SEG-LDR-005", "a starting broker", "an id in KRaft, found none", "cluster", "meta.properties"
    ),
    without_id: Said("loss", "SEG-LDR-008", "a consumer", "to -stray", "cluster", "plain-0"),
    of_another_topic: Said(
        "loss", "SEG-CKP-009", "a follower", "metadata log has", "--history plain", "partition.metadata"
    ),
    of_another_number: Said(
        "loss", "SEG-CKP-009", "a follower", "has no partition 217", "--history plain", "partition.metadata"
    ),
    half_moved: Said("loss", "SEG-PDR-003", "a consumer", "may end before it", "salvage", FUTURE),
    moving_without_its_beginning: Said("loss", "SEG-PDR-003", "a consumer", "at offset 3 from then on", "ls", FUTURE),
    set_aside: Said("loss", "SEG-PDR-003", "a consumer", "no broker serves this copy", "salvage", STRAY),
    damaged_tail: Said("loss", "SEG-BAT-003", "a consumer", "lost: 5 offsets, 5 to 9", "salvage", f"{0:020}.log"),
    with_a_broken_header: Said(
        "loss", "SEG-BAT-004", "a consumer", "lost: 10 offsets, 5 to 14", "salvage", f"{0:020}.log"
    ),
    short: Said("loss", "SEG-CKP-012", "a consumer", "4 offsets are missing, 5 to 8", "ls", f"{0:020}.log"),
    above_its_end: Said("loss", "SEG-RCV-007", "a consumer", "below its log start", "salvage", f"{0:020}.log"),
    with_an_index_past_the_end: Said(
        "loss", "SEG-RCV-001", "a consumer", "5 offsets, 0 to 4, are lost", "recover", f"{0:020}.log"
    ),
    damaged_below_the_recovery_point: Said("damage", "SEG-BAT-003", "a follower", "crc", "verify", f"{0:020}.log"),
    with_a_wrong_index: Said("damage", "SEG-IDX-003", "whatever reads", "entry of the log", "verify", f"{0:020}.index"),
    replaced: Said("loss", "SEG-RCV-021", "a follower", "lost: 5 offsets, 5 to 9", "salvage", f"{0:020}.log"),
    overlapping: Said("loss", "SEG-PDR-013", "a consumer", "3 offsets, 9 to 11 cannot be", "salvage", f"{0:020}.log"),
    hanging: Said("readers", "SEG-LKP-012", "committed records", "cannot be seen here", "transactions", "orders-0"),
    hanging_from_below_the_log_start: Said(
        "readers", "SEG-LKP-012", "committed records", "open from offset 0 on", "transactions", "orders-0"
    ),
    forgotten: Said("readers", "SEG-PSN-010", "committed records", "forgets producer 7", "transactions", "orders-0"),
    uncleaned: Said("space", "SEG-CMP-005", "the cleaner", "up to offset 10 were due an hour", "retain", "orders-0"),
    in_microseconds: Said("space", "SEG-RET-003", "retention", "microseconds", "retain", f"{0:020}.log"),
    torn: Said("change", "SEG-RCV-033", "a starting broker", "no whole entry is among", "recover", f"{0:020}.log"),
    moving: Said("change", "SEG-PDR-003", "a starting broker", "goes on with a move", "ls", FUTURE),
}
"""By the function that makes the directory; the order is that of the ranks."""


@each_of("part", [slice(8, 12), slice(16, 17), slice(8, 21), slice(0, 61), slice(None)], ids=str)
def test_what_damaged_headers_hide_is_lost_with_them(
    part: slice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_broken(tmp_path, part)
    said_first = said(capsys, path, status=FINDINGS)[0]
    assert said_first["kind"] == "loss"
    assert "lost: 10 offsets, 5 to 14" in said_first["what"]
    assert run(["recover", str(path)]) == FINDINGS
    assert "is cut: 10 offsets, 5 to 14" in capsys.readouterr().out


def test_a_partition_that_is_gone_from_its_log_directory_is_a_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers begin it empty; a copy in another log directory of the node, or under way to one, is none of that."""
    witness = json.loads((FIXTURES / "witnesses" / "broker_starts.json").read_text(encoding="utf-8"))["brokers"]
    for found in witness.values():
        assert found["nothing changed"]["records"] > 0
        assert found["partition missing"]["starts"]
        assert found["partition missing"]["records"] == 0
    data, other, name = whole(tmp_path), tmp_path / "other", "codec-gzip-0"
    other.mkdir()
    shutil.copy(data / "meta.properties", other)
    shutil.copy(bundled(f"{RELEASE}/root") / "meta.properties", data)

    def is_missing(*paths: Path) -> bool:
        """Return whether the partition is among those that are missing; some others always are."""
        (one,) = [each for each in said(capsys, *paths, status=FINDINGS) if "begins them empty: " in each["what"]]
        assert (one["kind"], one["file"]) == ("loss", str(data))
        assert run(shlex.split(one["next"])[1:]) == DONE
        return name in one["what"]

    assert not is_missing(data)
    moved = (data / name).rename(other / name)
    assert is_missing(data)
    assert not is_missing(data, other)
    stem = name[:-2]
    moved = moved.rename(data / f"{stem}-0.{32 * 'a'}-future")
    assert not is_missing(data)
    moved.rename(data / f"{stem}-0.{32 * 'a'}-delete")
    assert is_missing(data)


@each_of("made", SAID, ids=lambda made: made.__name__)
def test_each_kind_of_statement(
    made: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, wanted = made(tmp_path), SAID[made]
    found = said(capsys, path, status=FINDINGS)
    assert [each["rank"] for each in found] == sorted(each["rank"] for each in found)
    one = next(each for each in found if each["kind"] == wanted.kind and wanted.requirement in each["requirements"])
    assert wanted.what in one["what"]
    assert any(wanted.hurt in each for each in one["hurt"])
    assert one["next"].startswith("seglog ")
    assert f" {wanted.next} " in f"{one['next']} "
    assert one["file"].rpartition("/")[2] == wanted.file
    assert run(["doctor", "--now", str(NOW), str(path)]) == FINDINGS
    text = " ".join(capsys.readouterr().out.split())
    assert " ".join(one["what"].split()) in text
    assert one["next"] in text
    monkeypatch.chdir(path)
    assert [each["what"] for each in said(capsys, ".", status=FINDINGS)] == [each["what"] for each in found]


SPARES: Final[dict[str, Callable[[bytes], bytes]]] = {
    ".log.bak": bytes,
    ".log~": bytes,
    ".log.1": bytes,
    ".log (copy)": bytes,
    ".LOG": bytes,
    ".log.part": bytes,
    ".log.deleted": bytes,
    ".log.cleaned": bytes,
    ".log.gz": gzip.compress,
    ".log.zst": zstandard.compress,
    "'s copy of a log": bytes,
}
"""What is behind the offset in the name of a file that was a log, and what was done to its bytes."""


@each_of("ending", SPARES)
def test_a_log_under_another_name_is_brought_back_by_the_next_step(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = {".log.gz": "gzip", ".log.zst": "zstd"}.get(ending)
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    logs = {first: entry(first, 5) for first in (0, 5, 10, 15)}
    for number, moved in enumerate(((10,), (5, 10), (5, 10, 15))):
        directory = make(tmp_path / f"a b{number}", {f"{first}.log": log for first, log in logs.items()}, clean=True)
        checkpoint(directory, "replication-offset-checkpoint", 20)
        for first in moved:
            log = directory / f"{first:020}.log"
            log.with_name(f"{first:020}{ending}").write_bytes(SPARES[ending](log.read_bytes()))
            log.unlink()
        (directory / "notes.txt").write_bytes(b"no log")
        (directory / f"{2:020}{ending}").write_bytes(SPARES[ending](b""))  # of no log
        (one,) = (each for each in said(capsys, directory, status=FINDINGS) if each["kind"] == "loss")
        assert f"{moved[0]:020}{ending} holds a log of these offsets" in one["what"]
        subprocess.run(one["next"], shell=True, check=True)  # noqa: S602 - as a user would
        assert said(capsys, directory, status=DONE) == []
        assert {first: (directory / f"{first:020}.log").read_bytes() for first in logs} == logs
        assert all((directory / f"{first:020}{ending}").is_file() for first in moved)
        assert not (directory / f"{2:020}.log").exists()


def out_of_order(root: Path) -> Path:
    files = {"0.log": entry(0, 5) + entry(5, 5) + entry(3, 2), "0.index": b"", "0.timeindex": b""}
    return make(root, files, clean=True)


@each_of("made", [with_an_index_past_the_end, out_of_order], ids=lambda made: made.__name__)
def test_the_next_step_lets_a_broker_reach_the_end_of_a_log(
    made: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path)
    (one,) = (each for each in said(capsys, path, status=FINDINGS) if "SEG-RCV-001" in each["requirements"])
    assert run(["recover", "--json", str(path)]) == FINDINGS
    (lost,) = json.loads(capsys.readouterr().out)["lost"]
    assert {name: lost[name] for name in one["offsets"]} == one["offsets"]
    assert run(shlex.split(one["next"])[1:]) in {DONE, FINDINGS}
    assert said(capsys, path, status=DONE) == []


def in_need_of_a_split(root: Path) -> Path:
    """Make a log whose end a broker finds after it has split it."""
    return make(root, {"0.log": entry(0, 5) + entry(2**31 + 5, 5)})


@each_of("is_growing", [False, True])
def test_no_offset_counts_as_unreached_that_a_broker_reaches(
    *, is_growing: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path, {"0.log": entry(0, 5)}) if is_growing else in_need_of_a_split(tmp_path)

    def after_an_append(path: Path, plan: RecoveryPlan) -> Losses:
        (path / f"{0:020}.log").write_bytes(entry(0, 5) + entry(5, 5))
        return losses_of(path, plan)

    if is_growing:
        monkeypatch.setattr(starts, "losses_of", after_an_append)
    found = said(capsys, path, status=DONE if is_growing else FINDINGS)
    assert [each["kind"] for each in found] == ([] if is_growing else ["change"])


def test_every_next_step_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, made in enumerate(SAID):
        for one in said(capsys, made(tmp_path / str(number)), status=FINDINGS):
            words = shlex.split(one["next"].replace("NEW", str(tmp_path / f"new-{number}")))
            assert run(words[1:]) != USAGE, one["next"]
            shutil.rmtree(tmp_path / f"new-{number}", ignore_errors=True)


RETAINED: Final = [
    name for name in bundled_cases() if name.split("/")[1] in {"segs-fine", "mixed-segs", "rolltime", "delrec"}
]


def test_of_a_log_directory_is_said_what_is_said_of_its_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loss of one partition has the offsets of the other one's in it."""
    for name in ("cut-0", "removed-0"):
        shutil.copytree(bundled(f"{RELEASE}/segs") / "segs-0", tmp_path / name)
        (tmp_path / name / "partition.metadata").unlink()
    log = tmp_path / "cut-0" / f"{48:020}.log"
    log.write_bytes(flipped(log.read_bytes()))
    log = tmp_path / "removed-0" / f"{264:020}.log"
    log.write_bytes(log.read_bytes()[:-700])
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\ncut 0 0\nremoved 0 450\n")
    whole, *parts = (
        {(each["kind"], each["what"], each["file"]) for each in said(capsys, path, status=FINDINGS)}
        for path in (tmp_path, tmp_path / "cut-0", tmp_path / "removed-0")
    )
    assert whole == parts[0] | parts[1]
    assert all(parts)


@each_of("case", RETAINED)
@pytest.mark.req("SEG-RET-003")
def test_retention_by_time_removes_no_segment_that_is_said_to_stay(case: str) -> None:
    """At, before and after the first and last timestamp and one between, without a limit and with one of an hour."""
    directory = LogDirectory(list_log_directory(states(bundled(case))[0]))
    for entry_ in directory.partitions.values():
        with directory.open(entry_) as partition:
            stamps = {each.base_offset: each.largest_timestamp_ms for each in partition.segments}
            if min(stamps.values()) < 0:
                continue  # without timestamps, the time of the file counts, which is that of this copy
            some = sorted(stamps.values())[:: max(1, len(stamps) // 2)]
            for now_ms in {stamp + near for stamp in some for near in (-1, 0, 1, 3_600_001)}:
                late = {int(Path(each.where.path).stem) for each in stamped_late(entry_, partition, now_ms)}
                assert late == {base_offset for base_offset, stamp in stamps.items() if stamp > now_ms}
                for limit_ms in (0, 3_600_000):
                    config = LogConfig(retention_ms=limit_ms, retention_bytes=-1)
                    gone = prepare_retention(entry_.path, config, now_ms=now_ms, directory=directory).plan.removed
                    due = takewhile(lambda each: now_ms - stamps[each] > limit_ms, stamps)  # noqa: B023 - used here
                    assert [each.base_offset for each in gone] == list(due)
                    assert all(each.base_offset < min(late) for each in gone if late)


def test_what_brokers_of_a_release_do_not_accept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = whole(tmp_path, "plain")
    assert said(capsys, data, "--version", "4.4", status=DONE) == []
    found = said(capsys, data, "--version", "3.9", status=FINDINGS)
    assert "the level of metadata.version is 30, and it accepts 21 at most" in found[0]["what"]
    assert {each["kind"] for each in found} == {"no start"}
    assert "resurrect --kafka 3.9 --downgrade" in found[0]["next"]
    early = tmp_path / "early"
    for name in ("cluster-metadata", "root"):
        shutil.copytree(bundled(f"3.9.1/{name}"), early, dirs_exist_ok=True)
    assert said(capsys, with_another_id(early), "--version", "3.9", status=DONE) == []
    found = said(capsys, early, "--version", "4.4", status=FINDINGS)
    assert "topic delrec has segment.bytes=6000, the least is 1048576" in found[0]["what"]


def test_directories_of_one_broker_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = whole(tmp_path / "a", "plain", "segs")
    second = tmp_path / "b"
    shutil.copytree(first / "plain-0", second / "plain-0")
    properties = (first / "meta.properties").read_text(encoding="utf-8")
    found = said(capsys, first, second, status=FINDINGS)
    assert {("no start", "SEG-LDR-002"), ("no start", "SEG-LDR-005")} == {
        (each["kind"], each["requirements"][0]) for each in found
    }
    assert [each["file"].rpartition("/")[2] for each in found] == ["meta.properties", "plain-0"]
    shutil.copytree(first / "segs-0", second / "segs-0")
    (_, several) = said(capsys, first, second, status=FINDINGS)
    assert "2 partitions in two log directories: plain-0 and 1 more are also in" in several["what"]
    shutil.rmtree(second / "segs-0")
    (second / "meta.properties").write_text(properties, encoding="utf-8")
    shutil.rmtree(second / "plain-0")
    (twice,) = said(capsys, first, second, status=FINDINGS)
    assert (twice["kind"], twice["field"]) == ("no start", "directory.id")
    properties = "".join(line for line in properties.splitlines(keepends=True) if "directory.id" not in line)
    (second / "meta.properties").write_text(properties, encoding="utf-8")
    assert said(capsys, first, second, status=DONE) == []
    lines = [line if "cluster.id" not in line else "cluster.id=other" for line in properties.splitlines()]
    (second / "meta.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (one,) = said(capsys, first, second, status=FINDINGS)
    assert (one["kind"], "of several clusters" in one["what"]) == ("no start", True)


def test_what_one_replica_lost_is_merged_from_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next step names every replica that was given, first the one that is damaged; it is typed."""
    first = damaged_tail(tmp_path / "a")
    second = make(tmp_path / "b", {"0.log": entry(0, 5) + entry(5, 5), "10.log": entry(10, 5)})
    found = said(capsys, first, second, status=FINDINGS)
    assert {each["next"] for each in found} == {f"seglog salvage {first} {second} -o NEW"}
    assert run(["salvage", str(first), str(second), "-o", str(tmp_path / "new")]) == DONE
    assert run(["verify", str(tmp_path / "new")]) == DONE


def test_the_coordinators_topic_beside_a_partition_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("3.0.2/transaction-state", "3.0.2/txn-open"):
        shutil.copytree(bundled(name), tmp_path / "data", dirs_exist_ok=True)
    for path in (tmp_path / "data", tmp_path / "data" / "txn-open-0"):
        found = said(capsys, path, status=FINDINGS)
        assert ["will end it" in each["what"] for each in found] == [True, True]
        assert "transactional id txn-open-oa" in found[0]["what"]


def test_a_transaction_that_ended_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": transactional(0) + control(1, 1)})
    assert said(capsys, directory, status=DONE) == []


def test_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": entry(0)})
    assert said(capsys, directory / f"{0:020}.log", status=USAGE) == []
    assert said(capsys, tmp_path / "none", status=USAGE) == []


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5), "5.log": entry(5, 5)})
    (directory / f"{10:020}.log").mkdir()
    said(capsys, directory, status=UNREADABLE)
    said(capsys, directory.parent, status=UNREADABLE)


def without_files(path: Path) -> None:
    (path / "inner" / "inner").mkdir(parents=True)


def linked_to_nothing_of_kafka(path: Path) -> None:
    without_files(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def linked_to_its_log_directory(path: Path) -> None:
    path.symlink_to(path.parent)


@each_of(
    "made", [without_files, linked_to_nothing_of_kafka, linked_to_its_log_directory], ids=lambda made: made.__name__
)
def test_a_directory_that_is_no_partition_hides_no_other(
    made: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = damaged_tail(tmp_path)
    made(directory.with_name("backup-2024"))
    found = said(capsys, directory.parent, status=UNREADABLE)
    assert "lost: 5 offsets" in " ".join(each["what"] for each in found)
    assert run(["recover", str(directory.parent)]) == UNREADABLE
    assert "is cut: 5 offsets, 5 to 9" in capsys.readouterr().out


def test_the_reason_why_it_is_none_has_no_part_of_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = damaged_tail(tmp_path / "disk: 1; old")
    without_files(directory.with_name("backup-2024"))
    assert run(["recover", str(directory.parent)]) == UNREADABLE
    assert "found neither a log directory nor a partition directory" in capsys.readouterr().err


@each_of("name", [f"{0:020}.log", f"{0:020}.index", "leader-epoch-checkpoint", "partition.metadata"])
def test_the_next_step_about_what_is_no_file_can_be_typed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, made in enumerate((os.mkdir, os.mkfifo)):
        directory = make(tmp_path / str(number), {"5.log": entry(5)})
        made(directory / name)
        for path in (directory, directory.parent):
            found = said(capsys, path, status=UNREADABLE)
            steps = [shlex.split(each["next"]) for each in found if "SEG-PDR-030" in each["requirements"]]
            assert steps
            assert all(run(words[1:]) != USAGE and name in capsys.readouterr().out for words in steps)


@each_of("name", ["meta.properties", *(kind.value for kind in OFFSET_CHECKPOINT_KINDS)])
def test_a_root_file_that_is_no_file_was_not_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, made in enumerate((os.mkfifo, lambda path: path.symlink_to("nowhere"))):
        data = whole(tmp_path / str(number), "plain")
        (data / name).unlink(missing_ok=True)
        made(data / name)
        for command in ("verify", "ls", "recover", "cluster"):
            assert run([command, str(data)]) == UNREADABLE
            written = capsys.readouterr()
            assert name in written.err
            assert command == "verify" or "plain" in written.out, "it goes on"
        (one,) = said(capsys, data, status=UNREADABLE)
        assert (one["file"], one["requirements"]) == (str(data / name), ["SEG-PDR-030"])
        assert run(shlex.split(one["next"])[1:]) == UNREADABLE


@each_of("command", ["doctor", "recover", "verify"])
def test_checkpoints_are_not_decoded_again_for_every_partition(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, lines = tmp_path / "logs", ""
    for number in range(20):
        (logs / f"{command}-{number}").mkdir(parents=True)
        (logs / f"{command}-{number}" / f"{0:020}.log").write_bytes(entry(0, 5))
        lines += f"{command} {number} 5\n"
    (logs / "replication-offset-checkpoint").write_text(f"0\n20\n{lines}", encoding="utf-8")
    decoded, parse = [], checkpoints._parse
    monkeypatch.setattr(checkpoints, "_parse", lambda *words: decoded.append(words) or parse(*words))
    assert run([command, "--json", str(logs)]) == DONE
    assert 0 < len(decoded) < 10


def test_why_a_segment_is_not_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack_archive(FIXTURES / "tiered" / "lts-4.4.0" / "files.tar.gz", tmp_path)
    local = tmp_path / "local"
    assert said(capsys, local, status=DONE) == []
    assert said(capsys, "--remote", tmp_path / "tier" / "kafka-tiered-storage", local, status=DONE) == []
    with open_partition(local / "orders-0") as partition:
        known = LocalMetadataTopic().of(partition.listing)
    assert known is not None
    found = [each for of_one in known.values() for each in of_one.segments.values() if each.end_offset == 1035]
    (copied,) = (each for each in found if each.id.partition.topic == "orders")
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        append(local, updated(copied.id, state))
    (one,) = said(capsys, local, status=FINDINGS)
    assert (one["kind"], one["offset"], one["hurt"]) == ("tier", 1013, ["the uploader", "retention"])
    assert "offsets 1013 to 1035" in one["what"]
    assert "has had offsets up to 1035, and does not have these" in one["what"]
    append(local, started(replace(copied, id=copied.id._replace(segment_id="AAAAAAAAAAAAAAAAAAAAQQ"))))
    (one,) = said(capsys, local / "orders-0", status=FINDINGS)
    assert one["requirements"] == ["SEG-RET-014", "SEG-RLM-014"]
    assert "has begun to copy it, and has not ended" in one["what"]


class NothingCopied(LocalMetadataTopic):
    """A store that has nothing of any partition."""

    def copies(self, listing: PartitionListing, log_end_offset: int) -> RemoteCopies:  # noqa: ARG002 - the interface
        return RemoteCopies("the store", -1, ())


def test_a_transaction_holds_back_copying(tmp_path: Path) -> None:
    path = make(tmp_path, {"0.log": entry(0), "1.log": transactional(1), "2.log": entry(2)})
    for offset in (1, 2):
        (path / f"{offset:020}.snapshot").write_bytes(encode_producer_snapshot([]))
    store = NothingCopied()
    examination = Examination([path], now_ms=NOW, remote=store, limit=2**20, guard=lambda _: nullcontext())
    (one,) = (each for each in examination.statements() if each.kind is Kind.TIER)
    assert (one.offset, one.requirements) == (1, ("SEG-RET-014", "SEG-LKP-012"))
    assert "the last stable offset, 1, and a transaction is open" in one.what


def test_sizes_are_those_of_the_batches_and_records(capsys: pytest.CaptureFixture[str]) -> None:
    logs = bundled(f"{RELEASE}/idem")
    assert run(["dump", "--json", str(logs / "idem-0")]) == DONE
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    batches = [line for line in lines if line["type"] == "batch"]
    (sizes,) = said(capsys, "--sizes", logs, status=DONE)
    assert sizes["batches"] == len(batches)
    assert sizes["records"] == sum(each["recordsCount"] for each in batches)
    assert sizes["batchesOfOneRecord"] == sum(each["recordsCount"] == 1 for each in batches) > 0
    assert sizes["bytes"] == sum(path.stat().st_size for path in (logs / "idem-0").glob("*.log"))
    for name, key in (("codecs", "codec"), ("producers", "producerId")):
        assert {each: found["batches"] for each, found in sizes[name].items()} == {
            str(each): sum(str(batch[key]) == str(each) for batch in batches) for each in {b[key] for b in batches}
        }
    largest = max(len(line.get("value") or "") for line in lines if line["type"] == "record")
    assert sizes["largestRecordBytes"] > largest / 2
    assert run(["doctor", "--sizes", str(logs)]) == DONE
    assert capsys.readouterr().out.startswith("nothing is wrong\n")


def test_sizes_of_damaged_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5) + flipped(entry(5, 5)) + entry(10), "11.log": b"\xff" * 99})
    *_, sizes = said(capsys, "--sizes", directory, status=FINDINGS)
    assert (sizes["batches"], sizes["records"], sizes["batchesOfOneRecord"], sizes["unreadBatches"]) == (3, 6, 1, 2)


def test_a_bootstrap_checkpoint_with_which_no_broker_starts_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    witness = json.loads((FIXTURES / "witnesses" / "bootstrap_checkpoints.json").read_bytes())
    for name, data in witness["files"].items():
        root = tmp_path / name
        (root / "__cluster_metadata-0").mkdir(parents=True)
        if data is not None:
            (root / "bootstrap.checkpoint").write_bytes(bytes.fromhex(data))
        found = said(capsys, root, status=DONE if data is None else FINDINGS)
        found = [each for each in found if "starts: bootstrap" in each["what"]]
        starts_it = {answers[name]["starts"] for answers in witness["answers"].values()}
        assert starts_it == {not found}, name
    assert witness["answers"]["4.4.0"]["missing"]["starts"]


def test_aborted_records_that_no_index_lists_are_said_where_no_start_lists_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = transactional(0) + control(1, 0)
    directory = make(tmp_path, {"0.log": log, "0.index": b"", "2.log": entry(2, 2), "2.index": b""}, clean=True)
    (one,) = (each for each in said(capsys, directory.parent, status=FINDINGS) if "aborted" in each["what"])
    assert "serve 1 aborted records, the first of producer 7 at offset 0" in one["what"]
    assert run(shlex.split(one["next"])[1:]) == DONE
    assert (directory / f"{0:020}.txnindex").stat().st_size
    assert not [each for each in said(capsys, directory.parent, status=DONE) if "aborted" in each["what"]]
    (directory / f"{0:020}.txnindex").unlink()
    (directory / f"{0:020}.index").unlink()  # a start scans the segment, and writes both again
    assert not [each for each in said(capsys, directory.parent, status=DONE) if "aborted" in each["what"]]


def test_a_copy_on_another_node_is_no_move_of_this_partition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = moving(tmp_path)
    (tmp_path / "other").mkdir()
    (logs / FUTURE).rename(tmp_path / "other" / FUTURE)
    roots = logs, tmp_path / "other"
    assert "goes on with a move" in said(capsys, *roots, status=FINDINGS)[-1]["what"]
    for number, root in enumerate(roots):
        (root / "meta.properties").write_text(f"version=0\nbroker.id={number}\ncluster.id=A\n")
    assert not [each for each in said(capsys, *roots, status=DONE) if "a move" in each["what"]]
