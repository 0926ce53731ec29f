"""Offsets that are missing from a log: `verify` tells how many and which, and where that is right says so."""

from __future__ import annotations

import importlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import EMPTY_SNAPSHOT, checkpoint, entry, make, numbered
from helpers.messages import message, wrapper
from helpers.support import authentic, authentic_names, bundled
from helpers.walking import each_of

from seglog_format import verify
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLEANED = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
POINTS = "recovery-point-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"
FINE, HOLE = 0, 1

DENSE = {"0.log": entry(0, 5) + entry(5, 5), "10.log": entry(10, 5), "20.log": entry(20, 5)}
"""Three segments; offsets 15 to 19 are missing."""


def verified(path: Path, capsys: pytest.CaptureFixture[str], *options: str, status: int = HOLE) -> list[dict[str, Any]]:
    """Return what ``seglog verify`` finds about offsets that are missing; it has to exit like this."""
    assert run(["verify", str(path), "--json", *options]) == status
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [one for one in found if one["missing"]]


def segments(tmp_path: Path) -> Path:
    """Segments 0, 92, 184 and 274 up to offset 299, as a broker wrote them."""
    return shutil.copytree(bundled("4.3.0/segs-fine") / "segs-fine-0", tmp_path / "segs-fine-0")


def without(directory: Path, *names: str) -> Path:
    for name in names:
        for path in directory.glob(numbered(name) if "*" not in name else name):
            path.unlink()
    return directory


def file(directory: Path, name: str) -> Path:
    return directory / numbered(name)


def missing(first: int, following: int) -> dict[str, int]:
    return {"firstOffset": first, "nextOffset": following, "offsetCount": following - first}


@pytest.mark.req("SEG-PDR-024")
def test_the_snapshot_of_an_empty_segment_is_no_sign_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**DENSE, "15.log": b"", "15.snapshot": EMPTY_SNAPSHOT}
    (found,) = verified(make(tmp_path, files), capsys)
    assert (found["requirement"], found["missing"]) == ("SEG-PDR-014", missing(15, 20))


@pytest.mark.req("SEG-PDR-014")
def test_a_segment_is_missing_with_all_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = without(segments(tmp_path), f"{92:020d}.*")
    (found,) = verified(directory, capsys)
    assert (found["severity"], found["requirement"]) == ("warning", "SEG-PDR-014")
    assert found["missing"] == missing(92, 184)
    assert run(["verify", str(directory)]) == 1
    assert "92 offsets are missing, 92 to 183" in capsys.readouterr().out


@pytest.mark.req("SEG-PDR-014")
def test_the_caller_says_that_a_log_is_compacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = without(segments(tmp_path), f"{92:020d}.*")
    (found,) = verified(directory, capsys, "--compacted", status=FINE)
    assert (found["severity"], found["missing"]) == ("note", missing(92, 184))


@pytest.mark.req("SEG-PDR-008")
@pytest.mark.parametrize("left", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("options", [(), ("--compacted",)])
def test_the_log_of_a_segment_is_missing(
    left: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = segments(tmp_path)
    without(directory, *(f"92{kind}" for kind in (".log", ".index", ".timeindex", ".snapshot") if kind != left))
    is_right = left == ".snapshot" and bool(options)  # brokers before 2.8 leave it behind after compaction
    (found,) = verified(directory, capsys, *options, status=FINE if is_right else HOLE)
    expected = ("note", numbered("0.log")) if is_right else ("error", numbered(f"92{left}"))
    assert (found["severity"], found["file"]) == expected
    assert found["missing"] == missing(92, 184)


@pytest.mark.req("SEG-PDR-008")
def test_the_log_of_the_first_or_the_last_segment_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = without(segments(tmp_path / "a"), "0.log")
    assert [one["missing"] for one in verified(first, capsys)] == [missing(0, 92)]
    last = without(segments(tmp_path / "b"), "274.log", "300.snapshot")
    found = verified(last, capsys)
    assert ([one["missing"] for one in found]) == ([missing(274, 300)])


def test_an_index_below_the_log_start_offset_tells_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.index": b"", "10.log": entry(10, 5)}, log_start=10)
    assert verified(directory, capsys) == []


@pytest.mark.req("SEG-PDR-024")
@pytest.mark.parametrize("options", [(), ("--compacted",)])
@pytest.mark.parametrize(("size", "first"), [(0, 92), (2000, 98), (19_890, 182)])
def test_a_segment_in_the_middle_is_cut(
    size: int, first: int, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = segments(tmp_path)
    log = file(directory, "92.log")
    log.write_bytes(log.read_bytes()[:size])
    found = verified(directory, capsys, *options)
    (cut,) = (one for one in found if one["requirement"] == "SEG-PDR-024")
    assert (cut["severity"], cut["file"]) == ("error", log.name)
    assert cut["missing"] == missing(first, 184)


@pytest.mark.req("SEG-PDR-024")
def test_a_segment_in_the_middle_ends_in_zeros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {**DENSE, "10.log": entry(10, 5) + bytes(100)})
    (found,) = verified(directory, capsys)
    assert (found["severity"], found["missing"]) == ("error", missing(15, 20))


@pytest.mark.req("SEG-PDR-014")
def test_an_empty_segment_in_the_middle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {**DENSE, "10.log": b""})
    (found,) = verified(directory, capsys)
    assert (found["severity"], found["missing"]) == ("warning", missing(10, 20))


def test_a_refused_entry_hides_no_gap_behind_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its size and magic are right, so that the end of the segment is known."""
    directory = make(tmp_path, {**DENSE, "0.log": entry(0, 5, attributes=7) + entry(5, 4)})
    assert missing(9, 10) in [one["missing"] for one in verified(directory, capsys)]


@pytest.mark.req("SEG-PDR-014", "SEG-PDR-025")
def test_an_empty_replacement_of_a_full_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    middle = segments(tmp_path / "a")
    file(middle, "92.log.swap").touch()
    found = verified(middle, capsys)
    assert missing(92, 184) in [one["missing"] for one in found]
    last = make(tmp_path, {"0.log": entry(0, 5), "0.log.swap": b""})
    (found,) = verified(last, capsys)
    assert (found["severity"], found["missing"]) == ("warning", missing(0, 5))


def test_a_whole_replacement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    split = {"0.log": entry(0, 5) + entry(5, 5), "0.log.swap": entry(0, 5), "5.log.swap": entry(5, 5)}
    assert verified(make(tmp_path, split), capsys, status=FINE) == []


@pytest.mark.req("SEG-CKP-012")
@pytest.mark.parametrize("name", [HIGH_WATERMARKS, POINTS, STARTS, CLEANED])
@pytest.mark.parametrize("given", ["partition", "log directory"])
def test_the_log_ends_below_a_checkpoint(
    name: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5)})
    path = directory if given == "partition" else directory.parent
    checkpoint(directory, name, 5)
    assert verified(path, capsys, status=FINE) == []
    checkpoint(directory, name, 9)
    (found,) = verified(path, capsys)
    assert (found["severity"], found["missing"]) == ("warning", missing(5, 9))


@pytest.mark.req("SEG-CKP-012")
def test_a_partition_is_empty_and_a_checkpoint_knows_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {}, log_start=3)
    assert verified(directory.parent, capsys, status=FINE) == []
    checkpoint(directory, HIGH_WATERMARKS, 9)
    (found,) = verified(directory.parent, capsys)
    assert (found["missing"]) == (missing(3, 9))


def test_a_checkpoint_is_read_before_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker at work has appended and moved its checkpoint on when the log was read."""
    checking = importlib.import_module("seglog_format.checks.verify")
    directory = make(tmp_path, {"0.log": entry(0, 5)})
    checkpoint(directory, HIGH_WATERMARKS, 5)
    check = checking.partition_findings

    def appending(path: Path, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - the rest is only passed on
        end = yield from check(path, *given, **options)
        checkpoint(directory, HIGH_WATERMARKS, 9)
        return end

    monkeypatch.setattr(checking, "partition_findings", appending)
    assert [one for one in verify(directory.parent) if one.missing] == []


@pytest.mark.req("SEG-PSN-008")
def test_the_log_ends_below_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = without(segments(tmp_path), f"{274:020d}.*")
    (found,) = verified(directory, capsys)
    assert (found["severity"], found["missing"]) == ("warning", missing(274, 300))


COMPACTED: Mapping[str, bytes] = {
    "between two entries": entry(0, 5) + entry(6, 4),
    "before the first entry": entry(1, 9),
    "in an entry": entry(0, 9, last_offset_delta=9),
    "between two messages": message(offset=0) + message(offset=2),
    "in a wrapper": wrapper(message(offset=0), message(offset=2), offset=2),
    "before a wrapper": wrapper(message(offset=1), message(offset=2), offset=2),
}


WHOLE = (
    b"",
    entry(0, 2),
    message(offset=0) + message(offset=1),
    wrapper(message(offset=0), message(offset=1), offset=1),
)


@pytest.mark.req("SEG-PDR-023")
@pytest.mark.parametrize("where", COMPACTED)
def test_offsets_are_missing_inside_of_segments_too(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.log": COMPACTED[where], "20.log": entry(20)})
    found = verified(directory, capsys, status=FINE)
    assert {one["severity"] for one in found} == {"note"}


@pytest.mark.req("SEG-PDR-023")
@pytest.mark.parametrize("log", WHOLE)
def test_offsets_are_missing_between_segments_only(
    log: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.log": log, "20.log": entry(20)})
    (found,) = verified(directory, capsys)
    assert (found["severity"]) == ("warning")


@pytest.mark.req("SEG-PDR-023")
@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("__consumer_offsets", FINE),
        ("__transaction_state", FINE),
        ("__share_group_state", HOLE),
        ("__remote_log_metadata", HOLE),
        ("consumer_offsets", HOLE),
    ],
)
@pytest.mark.parametrize("given", ["partition", "log directory"])
def test_topics_that_brokers_compact(
    topic: str, expected: int, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, DENSE)
    directory = directory.rename(directory.with_name(f"{topic}-7"))
    verified(directory if given == "partition" else directory.parent, capsys, status=expected)


@pytest.mark.req("SEG-PDR-023")
@pytest.mark.parametrize("given", ["partition", "log directory"])
def test_partitions_that_the_cleaner_has_cleaned(
    given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, DENSE)
    path = directory if given == "partition" else directory.parent
    (directory.parent / CLEANED).write_text("0\n1\norders 1 10\n")
    verified(path, capsys, status=HOLE)
    (directory.parent / CLEANED).write_text("0\n1\norders 0 0\n")
    verified(path, capsys, status=FINE)


def test_nothing_is_missing_before_the_first_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(make(tmp_path, {"20.log": entry(20, 5)}), capsys, status=FINE) == []


def undamaged() -> list[tuple[str, str]]:
    """Return what brokers left and cleaned up: names of cases, and the directory in them."""
    unusual = ("flip-early", "noindex")
    left = [name for name in authentic_names() if not any(part in name for part in unusual)]
    return [(name, "after" if "crash" in name else "") for name in left]


@each_of(("name", "below"), undamaged())
def test_what_brokers_left_has_no_hole(name: str, below: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A broker leaves damage below its recovery point alone; that is in none of these."""
    assert run(["verify", str(authentic(name) / below), "--severity", "error"]) == 0
    capsys.readouterr()


def recovered(path: Path, capsys: pytest.CaptureFixture[str], *options: str, status: int) -> dict[str, Any]:
    """Return what ``seglog recover`` says, which has to exit like this."""
    assert run(["recover", str(path), "--json", *options]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def lost(file: str, reason: str, first: int, following: int) -> dict[str, Any]:
    return {"file": numbered(file), "reason": reason, **missing(first, following)}


@pytest.mark.req("SEG-RCV-031")
def test_recover_tells_what_an_empty_replacement_takes_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = segments(tmp_path)
    file(directory, "92.log.swap").touch()
    found = recovered(directory, capsys, status=HOLE)
    assert found["lost"] == [lost("92.log", "is replaced by .swap files", 92, 184)]
    assert found["missing"] == []
    assert run(["recover", str(directory)]) == HOLE
    assert f"{numbered('92.log')} is replaced by .swap files: 92 offsets, 92 to 183" in capsys.readouterr().out
    assert recovered(directory, capsys, "--write", status=HOLE)["lost"] == found["lost"]
    assert recovered(directory, capsys, status=HOLE)["missing"] == [
        {"file": numbered("92.log"), "kind": "between segments", **missing(92, 184)}
    ]


@pytest.mark.req("SEG-RCV-031")
def test_recover_tells_of_a_replacement_in_a_compacted_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5) + entry(5, 5), "0.log.swap": entry(3, 2), "10.log": entry(10)})
    checkpoint(directory, CLEANED, 10)
    found = recovered(directory, capsys, status=FINE)
    assert found["lost"] == [lost("0.log", "is replaced by .swap files", 5, 10)]


@pytest.mark.req("SEG-RCV-031")
def test_recover_tells_which_offsets_are_cut_and_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = bytearray(entry(10, 5))
    damaged[-1] ^= 1
    files = {"0.log": entry(0, 10), "10.log": bytes(damaged) + entry(15, 5), "20.log": entry(20, 5) + entry(25, 5)}
    found = recovered(make(tmp_path, files), capsys, status=HOLE)
    assert found["lost"] == [lost("10.log", "is cut", 10, 20), lost("20.log", "is dropped", 20, 30)]


@pytest.mark.req("SEG-RCV-031")
def test_recover_tells_what_is_missing_below_the_recovery_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5) + entry(5, 5)[:40], "10.log": entry(10, 5)}, clean=True)
    checkpoint(directory, HIGH_WATERMARKS, 20)
    for name in ("0.index", "10.index"):
        file(directory, name).touch()
    found = recovered(directory, capsys, status=HOLE)
    assert found["missing"] == [
        {"file": numbered("0.log"), "kind": "cut segment", **missing(5, 10)},
        {"file": numbered("10.log"), "kind": "log end", **missing(15, 20)},
    ]


def test_recover_loses_nothing_of_a_whole_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = recovered(segments(tmp_path), capsys, status=FINE)
    assert (found["lost"], found["missing"]) == ([], [])


def test_recover_plans_a_partition_without_any_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n", encoding="utf-8")
    assert recovered(directory, capsys, status=FINE)["lost"] == []


@pytest.fixture
def open_transaction(tmp_path: Path) -> Path:
    """Provide a log of 15 offsets, and a snapshot that knows the producer of its last batch, as a broker left them."""
    return shutil.copytree(bundled("4.3.0/txn-open") / "txn-open-0", tmp_path / "txn-open-0")


def put_another_log(directory: Path) -> None:
    """Put the log of another partition in the place of this one's, with its indexes."""
    other = bundled("4.3.0/codec-lz4") / "codec-lz4-0"
    for kind in ("log", "index", "timeindex"):
        shutil.copy(other / f"{0:020d}.{kind}", directory)


@pytest.mark.req("SEG-PSN-009")
def test_another_log_in_the_place_of_a_segment(open_transaction: Path) -> None:
    assert list(verify(open_transaction)) == []
    put_another_log(open_transaction)
    (found,) = verify(open_transaction)
    assert (found.requirement, found.is_failure) == ("SEG-PSN-009", True)
    assert (found.location.path, found.location.field) == (f"{15:020d}.snapshot", "last_offset")
    assert found.expected == "a batch of producer 0 that ends at offset 14"


@pytest.mark.req("SEG-PSN-009")
def test_a_compacted_log_may_lack_the_batch_of_a_producer(open_transaction: Path) -> None:
    put_another_log(open_transaction)
    assert list(verify(open_transaction, compacted=True)) == []


@pytest.mark.req("SEG-PDR-023")
def test_records_lost_inside_a_segment_hide_no_lost_segment_of_a_log_that_is_not_compacted(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(entry(0, 10) + entry(20, 10))
    (directory / f"{60:020d}.log").write_bytes(entry(60, 10))

    def found(*, compacted: bool | None) -> list[tuple[str, str, bool]]:
        findings = verify(directory, compacted=compacted)
        return [
            (one.requirement, one.severity.value, one.is_failure)
            for one in findings
            if one.requirement == "SEG-PDR-014"
        ]

    assert found(compacted=None) == found(compacted=True) == [("SEG-PDR-014", "note", False)]
    assert found(compacted=False) == [("SEG-PDR-014", "warning", True)]


@pytest.mark.req("SEG-PSN-009")
def test_damage_hides_the_batch_of_a_producer(open_transaction: Path) -> None:
    log = open_transaction / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1])
    assert not [one for one in verify(open_transaction) if one.requirement == "SEG-PSN-009"]
    (open_transaction / f"{15:020d}.snapshot").write_bytes(b"")
    assert not [one for one in verify(open_transaction) if one.requirement == "SEG-PSN-009"]


# The same offsets in every command

HOLES: dict[str, tuple[dict[str, bytes], int, str]] = {
    "an empty log": ({"0.log": b""}, 6, "6 offsets, 0 to 5"),
    "the end of the log": ({"0.log": entry(0, 5)}, 12, "7 offsets, 5 to 11"),
    "an index without a log, after the last": ({"0.log": entry(0, 5), "9.index": b""}, 0, "4 offsets, 5 to 8"),
    "an index without a log, before the first": ({"0.index": b"", "9.log": entry(9, 5)}, 0, "9 offsets, 0 to 8"),
    "between segments": ({"0.log": entry(0, 5), "9.log": entry(9, 5)}, 0, "4 offsets, 5 to 8"),
}
"""Files, a checkpointed high watermark, and the offsets that are missing."""
NAMING = ("ls", "ls --long", "ls PARTITION", "verify", "recover", "cluster", "dump", "export")
BETWEEN_ONLY_IN_FULL = {"ls", "cluster"}
"""Commands that open the last segment of a partition only, as `seglog ls --help` says."""


@pytest.mark.parametrize("command", NAMING)
@pytest.mark.parametrize("name", HOLES)
def test_every_command_names_the_same_missing_offsets(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "between segments" and command in BETWEEN_ONLY_IN_FULL:
        pytest.skip("it opens the last segment only, which its help says")
    files, mark, text = HOLES[name]
    directory = make(tmp_path, files)
    checkpoint(directory, HIGH_WATERMARKS, mark)
    words = command.removesuffix(" PARTITION")
    path = directory if command == "ls PARTITION" else directory.parent
    more = ["--to", str(tmp_path / "table"), "--format", "jsonl"] if command == "export" else []
    status = run([*words.split(), str(path), *more])
    captured = capsys.readouterr()
    many, span = text.split(", ")
    said = captured.out + captured.err
    assert text in said or f"{many} are missing, {span}" in said
    assert status == HOLE


@pytest.mark.parametrize("name", [HIGH_WATERMARKS, POINTS, STARTS])
@pytest.mark.parametrize("files", [{}, {"5.log": entry(5, 2)}], ids=["no log", "a later log"])
def test_nothing_is_missing_from_a_directory_that_brokers_delete(
    files: dict[str, bytes], name: str, tmp_path: Path
) -> None:
    """They remove its files one by one, and its line in a checkpoint may be there until they are done."""
    directory = make(tmp_path, {"0.log": entry(0, 5), **files})
    file(directory, "0.log").unlink()
    checkpoint(directory, name, 9)
    deleted = directory.rename(directory.with_name(f"{directory.name}.{'0' * 32}-delete"))
    assert {command: run([command, str(deleted.parent)]) for command in ("verify", "recover", "dump", "doctor")} == {
        "verify": FINE,
        "recover": FINE,
        "dump": FINE,
        "doctor": FINE,
    }
