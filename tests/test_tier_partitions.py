"""A partition whose segments are partly in a remote store: told where the store is not given, whole where it is."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_cases import CASES, TierCase, tier_case

from proofs.kafka.served import digest_of
from seglog_format import open_partition, verify
from seglog_format.cli.main import run
from seglog_format.errors import (
    FormatError,
    MissingOffsetsWarning,
    OffsetOutOfRangeError,
    UsageError,
)
from seglog_format.names import FileKind
from seglog_format.requirements import Severity
from seglog_format.tier.layout import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.types import Gap

KINDS = {
    "offset": FileKind.OFFSET_INDEX,
    "timestamp": FileKind.TIME_INDEX,
    "producerSnapshot": FileKind.PRODUCER_SNAPSHOT,
    "transaction": FileKind.TRANSACTION_INDEX,
}
PARTITIONS = [
    pytest.param(name, each, id=f"{name}-{each['topic']}-{each['partition']}")
    for name in CASES
    for each in tier_case(name).partitions()
]
ORDERS = "orders-0"
GUESSED = "objects and leader epochs decide which segments count"


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> TierCase:
    return tier_case(request.param)


# -- the whole partition ---------------------------------------------------------------------------------------------


def test_every_finished_segment_comes_back_byte_for_byte(case: TierCase) -> None:
    tier = case.opened().tier
    ids = {id_.segment_id: id_ for of_partition in tier.segments.values() for id_ in of_partition}
    checked = 0
    for segment in case.expected["segments"]:
        if segment["state"] != "COPY_SEGMENT_FINISHED" or segment["sha256"] is None:
            continue
        opened = tier.open(ids[segment["segmentId"]])
        assert opened.facts.id.partition == (segment["topic"], segment["topicId"], segment["partition"])
        sums = {kind: hashlib.sha256(whole_file(opened.open(kind))).hexdigest() for kind in opened.kinds}
        assert sums[FileKind.LOG] == segment["sha256"]
        for name, expected in (segment["indexes"] or {}).items():
            assert sums[KINDS[name]] == expected
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_every_record_is_delivered_once_and_in_order(name: str, partition: dict[str, Any], isolation: str) -> None:
    case, expected = tier_case(name), partition[isolation]
    with warnings.catch_warnings(), open_partition(case.path(partition), remote=case.opened()) as log:
        warnings.simplefilter("error")
        assert log.log_start_offset == partition["begin"]
        assert log.log_end_offset == partition["end"]
        assert digest_of(log.records(isolation=isolation)) == (expected["records"], expected["sha256"])


@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_objects_and_leader_epochs_tell_the_same_without_the_metadata_topic(
    name: str, partition: dict[str, Any], tmp_path: Path
) -> None:
    case = tier_case(name)
    path = case.path(partition)
    shutil.copytree(path, tmp_path / path.name)
    is_tiered = partition["topic"] != "plain"
    with pytest.warns(UserWarning, match=GUESSED) if is_tiered else nullcontext():
        log = open_partition(tmp_path / path.name, remote=case.opened())
    with log:
        found = digest_of(log.records(partition["begin"]))
    expected = partition["read_uncommitted"]
    assert found == (expected["records"], expected["sha256"])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_a_scan_gives_the_same(name: str, partition: dict[str, Any], threads: int) -> None:
    case = tier_case(name)
    with open_partition(case.path(partition), remote=case.opened()) as log:
        found = log.scan(("offset", "value"), isolation="read_committed", threads=threads).read_all()
        records = [(record.offset, record.value) for record in log.records(isolation="read_committed")]
    assert list(zip(found["offset"].to_pylist(), found["value"].to_pylist(), strict=True)) == records


def test_a_lookup_fetches_a_slice_of_the_indexes_and_the_chunks_of_its_batch(case: TierCase) -> None:
    remote = case.opened()
    with open_partition(case.local / ORDERS, remote=remote) as log:
        listed = remote.traffic
        for offset in (150, 400, 700):
            before = remote.traffic
            record = next(log.records(offset))
            assert record.offset >= offset
            spent = remote.traffic.size - before.size
            assert remote.traffic.requests - before.requests <= 5
            segment = log.segment_for(offset)
            assert spent < segment.size + 1000 or case.name == "lts-4.4.0"
        assert remote.traffic.requests > listed.requests


def test_a_partition_is_read_from_the_log_start_offset_in_the_middle_of_a_remote_segment(case: TierCase) -> None:
    with open_partition(case.local / ORDERS, remote=case.opened()) as log:
        assert log.log_start_offset == 73
        assert log.segments[0].base_offset < 73
        assert next(log.records()).offset == 73
        assert log.tiered_offsets is None
        with pytest.raises(OffsetOutOfRangeError):
            next(log.records(72))


def test_errors_name_the_object(tmp_path: Path) -> None:
    case = tier_case("aiven-both")
    remote = case.opened()
    with open_partition(case.local / ORDERS, remote=remote) as log:
        names = {segment.path for segment in log.segments[:3]}
    assert all(name.startswith(str(case.store)) and name.endswith(".log") for name in names)
    copy = tmp_path / "not-a-partition-name"
    copy.mkdir()
    (copy / "00000000000000000000.log").write_bytes(b"")
    with pytest.raises(UsageError, match="not that of a partition"):
        open_partition(copy, remote=remote)


def test_a_missing_object_is_an_error_where_reading_comes_to_it() -> None:
    case = tier_case("aiven-plain")
    remote = case.opened()
    with open_partition(case.local / ORDERS, remote=remote) as log:
        second = log.segments[1]
        remote.tier.files.files.pop(second.path.removeprefix(f"{case.store}/"))
        read: list[int] = []
        with pytest.raises(UsageError, match="no such object"):
            read.extend(record.offset for record in log.records())
    assert not read or read[-1] < second.base_offset


OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        (f"reorders-{OTHER_ID}", None),
        (f"orders-{OTHER_ID}", "2 topics of the remote store fit this name: orders"),
    ],
    ids=["a name that ends alike", "another life"],
)
def test_without_a_topic_id_segments_of_two_topics_are_not_mixed(tmp_path: Path, other: str, fits: str | None) -> None:
    case = tier_case("aiven-plain")
    shutil.copytree(case.store, tmp_path / "tier")
    shutil.copytree(case.local / ORDERS, tmp_path / ORDERS)
    (tmp_path / ORDERS / "partition.metadata").unlink()
    (topic,) = (path.parent for path in (tmp_path / "tier").rglob("orders-*/0"))
    shutil.copytree(topic, topic.with_name(other))
    copy = TierCase(case.name, tmp_path, case.expected, case.keys)
    if fits is not None:
        with pytest.raises(UsageError, match=fits):
            open_partition(tmp_path / ORDERS, remote=copy.opened())
        return
    with pytest.warns(UserWarning, match=GUESSED), open_partition(tmp_path / ORDERS, remote=copy.opened()) as log:
        assert topic.name in log.segments[0].path


# -- without the store -----------------------------------------------------------------------------------------------


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_ls_tells_what_is_not_here(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ls", "--json", str(case.local)]) == 0
    found = {line["directory"]: line["notHere"] for line in lines_of(capsys)}
    for partition in case.partitions():
        missing = found[f"{partition['topic']}-{partition['partition']}"]
        begin, local = partition["begin"], partition["earliestLocal"]
        expected = {"firstOffset": begin, "nextOffset": local, "offsetCount": local - begin, "where": "tiered"}
        assert missing == (expected if begin < local else None)
    assert run(["ls", str(case.local)]) == 0
    assert " not here: tiered" in capsys.readouterr().out


def test_ls_of_one_partition_tells_it_too(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ls", str(case.local / ORDERS)]) == 0
    assert capsys.readouterr().out.startswith("73 to ")
    assert run(["ls", "--json", str(case.local / ORDERS)]) == 0
    assert lines_of(capsys)[0]["type"] == "notHere"


def test_dump_tells_it_on_standard_error(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    run(["dump", "--no-records", str(case.local / ORDERS)])
    assert "73 to " in capsys.readouterr().err


@pytest.fixture
def alone(case: TierCase, tmp_path: Path) -> Path:
    """Copy a partition directory with its checkpoint, and no metadata topic beside it."""
    (tmp_path / "alone").mkdir()
    shutil.copy(case.local / FileKind.LOG_START_OFFSET_CHECKPOINT.value, tmp_path / "alone")
    return shutil.copytree(case.local / ORDERS, tmp_path / "alone" / ORDERS)


@pytest.mark.req("SEG-PDR-028")
def test_verify_warns_of_it(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = (finding for finding in verify(alone) if finding.requirement == "SEG-PDR-028")
    assert (found.severity, found.missing) == (Severity.WARNING, None)  # not here, and not known to be lost
    assert run(["verify", str(alone)]) == 0
    assert "begins at 73, the log start offset" in capsys.readouterr().out


@pytest.mark.req("SEG-PDR-028")
@pytest.mark.parametrize("has_metadata", [True, False], ids=["metadata topic", "objects alone"])
def test_a_partition_is_healthy_with_its_store(
    case: TierCase, alone: Path, *, has_metadata: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [argument for id_, path in case.keys.items() for argument in ("--key", f"{id_}={path}")]
    path = case.local / ORDERS if has_metadata else alone
    assert run(["verify", "--json", str(path), "--remote", str(case.store), *keys]) == 0
    (found,) = (line for line in lines_of(capsys) if line["requirement"] == "SEG-PDR-028")
    assert (found["severity"], found["missing"]["firstOffset"]) == ("note", 73)
    assert str(case.store) in found["found"]


@pytest.mark.req("SEG-PDR-028")
def test_the_metadata_topic_beside_it_tells_where_offsets_are(
    case: TierCase, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (case.local / ORDERS, case.local):
        assert run(["verify", str(path)]) == 0
        assert "of a remote store, by __remote_log_metadata" in capsys.readouterr().out


@pytest.mark.req("SEG-PDR-028")
@pytest.mark.parametrize("has_metadata", [True, False], ids=["metadata topic", "objects alone"])
def test_offsets_whose_objects_are_gone_are_missing(
    case: TierCase, alone: Path, tmp_path: Path, *, has_metadata: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    store = shutil.copytree(case.store, tmp_path / "store")
    (orders,) = (each for each in case.expected["partitions"] if each["topic"] == "orders")
    local = min(int(path.stem) for path in alone.glob("*.log"))
    gone, *_ = (
        each
        for each in case.expected["segments"]
        if each["topic"] == "orders" and orders["begin"] < each["startOffset"] and each["endOffset"] < local
    )
    for path in store.rglob(f"*-{gone['segmentId']}.*"):
        path.unlink()
    path = case.local / ORDERS if has_metadata else alone
    assert run(["verify", "--json", str(path), "--remote", str(store)]) == 1
    (found,) = (line for line in lines_of(capsys) if line["requirement"] == "SEG-PDR-028")
    assert (found["severity"], found["missing"]["firstOffset"]) == ("warning", gone["startOffset"])
    assert found["missing"]["nextOffset"] == gone["endOffset"] + 1


def test_a_join_by_objects_alone_says_so(case: TierCase, alone: Path) -> None:
    with pytest.warns(UserWarning, match="no record of __remote_log_metadata"):
        open_partition(alone, remote=case.opened()).close()


def damaged_newest_epochs(name: str, root: Path) -> tuple[TierCase, Path]:
    """Copy a case without leader epochs on the disk, and damage those of the newest segment of `orders`."""
    case = tier_case(name)
    shutil.copytree(case.store, root / "tier")
    shutil.copytree(case.local / ORDERS, root / ORDERS)
    (root / ORDERS / "leader-epoch-checkpoint").unlink()
    suffix = ".leader_epoch_checkpoint" if name == "lts-4.4.0" else ".indexes"
    path = max((path for path in root.rglob(f"*{suffix}") if "orders" in str(path.parent)), key=lambda each: each.name)
    data = path.read_bytes()
    path.write_bytes(b"damaged" if suffix != ".indexes" else bytes(len(data)))
    return TierCase(name, root, case.expected, case.keys), path


@pytest.mark.parametrize("name", ["lts-4.4.0", "aiven-both"])
def test_damaged_leader_epochs_of_the_newest_segment_are_an_error(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, path = damaged_newest_epochs(name, tmp_path)
    with pytest.raises(FormatError) as caught:
        open_partition(tmp_path / ORDERS, remote=case.opened())
    assert caught.value.location.path == str(path)
    keys = [argument for id_, key in case.keys.items() for argument in ("--key", f"{id_}={key}")]
    fetch = ["tier", "fetch", *keys, "--topic", "orders", str(case.store)]
    assert run([*fetch, str(tmp_path / "fetched")]) == 3
    assert str(path) in capsys.readouterr().err
    first = min(path.parent.glob("*.log")).name.removesuffix(".log").partition("-")[2]
    assert run([*fetch, "--segment", first, str(tmp_path / "first")]) == 0


@pytest.mark.parametrize("command", [["ls"], ["dump", "--no-records"], ["lookup", "--offset", "900"]], ids=" ".join)
def test_commands_say_so_on_standard_error(
    case: TierCase, alone: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [argument for id_, path in case.keys.items() for argument in ("--key", f"{id_}={path}")]
    assert run([*command, "--remote", str(case.store), *keys, str(alone)]) == 0
    assert "seglog: " + str(alone) + ": no record of __remote_log_metadata" in capsys.readouterr().err


@pytest.mark.req("SEG-PDR-028")
def test_a_reader_is_told(case: TierCase) -> None:
    gaps: list[Gap] = []
    with open_partition(case.local / ORDERS) as log:
        assert log.tiered_offsets is not None
        next(log.records(on_gap=gaps.append))
        first = log.segments[0].base_offset
        assert [gap.missing for gap in gaps] == [(73, first)] == [log.tiered_offsets]
        with pytest.warns(MissingOffsetsWarning, match=f"73 to {first - 1} not here: tiered"):
            next(log.records())
        with pytest.warns(MissingOffsetsWarning, match="not here: tiered"):
            log.offset_for_timestamp(0)
        with pytest.raises(OffsetOutOfRangeError, match="are not here: tiered"):
            next(log.records(100))


@pytest.mark.parametrize("command", ["ls", "dump", "verify"])
def test_a_folder_of_objects_is_no_log(case: TierCase, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {case.store, *(path.parent for path in case.store.rglob("*.log"))}
    for folder in folders:
        assert run([command, str(folder)]) == 2
        assert "objects of a remote store" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["ls"], ["dump"], ["dump", "--from", "3"], ["verify"]], ids=" ".join)
@pytest.mark.parametrize("name", ["aiven-aes", "aiven-both"])
def test_an_encrypted_object_is_no_empty_log(name: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = min(tier_case(name).store.rglob("*.log"))
    command, *rest = options
    assert run([command, str(path), *rest]) == 1
    assert "nothing could be read" in capsys.readouterr().err


def test_an_object_has_the_base_offset_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for path in tier_case("lts-4.4.0").store.rglob("*.index"):
        base = int(path.name[:20])
        assert run(["dump", "--json", str(path)]) == 0
        entries = [line["entries"] for line in lines_of(capsys) if line["type"] == "offsetIndex"]
        assert all(offset >= base for offset, _ in entries[0])
        assert run(["verify", str(path.with_suffix(".log"))]) == 0
        capsys.readouterr()


def test_a_last_segment_of_which_nothing_can_be_read_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / "00000000000000000007.log").write_bytes(min(tier_case("aiven-aes").store.rglob("*.log")).read_bytes())
    with open_partition(directory) as log, pytest.warns(MissingOffsetsWarning, match="nothing readable"):
        assert list(log.records()) == []
