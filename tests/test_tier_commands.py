"""`seglog tier ls` and `fetch`, and commands that read a partition with its remote segments."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_cases import CASES, TierCase, tier_case

from seglog_format import open_partition, verify
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.requirements import Severity
from seglog_format.tier import remote_store

if TYPE_CHECKING:
    from pathlib import Path

STORED = {".log": "log", ".index": "offset", ".timeindex": "timestamp", ".txnindex": "transaction"}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> TierCase:
    return tier_case(request.param)


def keys_of(case: TierCase) -> list[str]:
    return [argument for id_, path in case.keys.items() for argument in ("--key", f"{id_}={path}")]


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def finished(case: TierCase) -> dict[str, dict[str, Any]]:
    segments = case.expected["segments"]
    return {each["segmentId"]: each for each in segments if each["state"] == "COPY_SEGMENT_FINISHED"}


def test_ls_lists_every_segment_with_its_state(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    run(["tier", "ls", "--json", str(case.store), "--logs", str(case.local)])
    found = {line["segmentId"]: line for line in lines_of(capsys)}
    for id_, expected in finished(case).items():
        line = found[id_]
        assert (line["topic"], line["partition"]) == (expected["topic"], expected["partition"])
        assert (line["startOffset"], line["endOffset"]) == (expected["startOffset"], expected["endOffset"])
        assert line["state"] == "COPY_SEGMENT_FINISHED"
        epochs = {str(each["epoch"]): each["startOffset"] for each in line["leaderEpochs"]}
        assert epochs == expected["segmentLeaderEpochs"]
        assert line["bytes"] == expected["segmentSizeInBytes"]
        assert line["storedBytes"] == sum(each["bytes"] for each in line["objects"])


def test_ls_needs_no_key_and_no_metadata_topic(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["tier", "ls", str(case.store), "--topic", "orders"])
    out = capsys.readouterr().out
    assert status == 0
    assert "orders-0" in out
    assert "codecs-0" not in out


def test_ls_tells_of_a_damaged_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = min(tier_case("aiven-plain").store.rglob("*.rsm-manifest"))
    (tmp_path / path.relative_to(path.parents[1]).parent).mkdir(parents=True)
    copy = tmp_path / path.parents[1].name / path.parent.name / path.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes()[:-1])
    assert run(["tier", "ls", str(tmp_path)]) == 1
    found = capsys.readouterr()
    assert "unreadable" in found.out
    assert str(copy) in found.err


def test_fetch_writes_the_files_as_they_were(
    case: TierCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "logs"
    status = run(["tier", "fetch", "--json", str(case.store), str(target), *keys_of(case)])
    written = {line["segmentId"]: line for line in lines_of(capsys)}
    expected = finished(case)
    superseded = {id_ for id_, each in expected.items() if each["overlappedBy"]} - written.keys()
    assert status == (1 if superseded else 0)
    assert written.keys() | superseded == expected.keys()
    for id_ in written:
        each = expected[id_]
        directory = target / f"{each['topic']}-{each['partition']}"
        sums = {"log": each["sha256"]} | (each["indexes"] or {})
        for suffix, name in STORED.items():
            path = directory / f"{each['startOffset']:020d}{suffix}"
            if name in sums:
                assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name]
        snapshot = directory / f"{each['endOffset'] + 1:020d}.snapshot"
        if "producerSnapshot" in sums:
            assert hashlib.sha256(snapshot.read_bytes()).hexdigest() == sums["producerSnapshot"]
    assert [each for each in verify(target) if each.severity is not Severity.NOTE] == []


def test_what_was_fetched_can_be_read(tmp_path: Path) -> None:
    case = tier_case("aiven-both")
    assert run(["tier", "fetch", str(case.store), str(tmp_path / "logs"), "--topic", "orders", *keys_of(case)]) == 0
    with open_partition(tmp_path / "logs" / "orders-0") as log:
        offsets = [record.offset for record in log.records()]
    assert offsets == sorted(set(offsets))
    assert offsets[0] == 61  # the marker of a transaction comes before it


def test_a_superseded_segment_is_fetched_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("lts-4.4.0")
    by_start: dict[tuple[object, ...], list[str]] = {}
    for id_, each in finished(case).items():
        by_start.setdefault((each["topic"], each["partition"], each["startOffset"]), []).append(id_)
    (twice,) = (ids for ids in by_start.values() if len(ids) == 2)
    for number, id_ in enumerate(twice):
        target = tmp_path / str(number)
        assert run(["tier", "fetch", "--json", str(case.store), str(target), "--segment", id_]) == 0
        assert [line["segmentId"] for line in lines_of(capsys)] == [id_]
        log = target / "diverged-0" / "00000000000000000260.log"
        assert hashlib.sha256(log.read_bytes()).hexdigest() == finished(case)[id_]["sha256"]


def test_nothing_is_written_without_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("aiven-aes")
    target = tmp_path / "logs"
    assert run(["tier", "fetch", str(case.store), str(target)]) == 2
    assert "SEGLOG_TIER_KEY_KEY1" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize("command", ["ls", "dump"])
def test_reading_without_the_key_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("aiven-both")
    assert run([command, "--remote", str(case.store), str(case.local / "orders-0")]) == 2
    assert "no private key key1: name its file by --key key1=FILE, or" in capsys.readouterr().err


def test_nothing_is_written_over(tmp_path: Path) -> None:
    case = tier_case("aiven-plain")
    (tmp_path / "kept").write_bytes(b"x")
    assert run(["tier", "fetch", str(case.store), str(tmp_path)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_ls_and_dump_read_the_remote_segments_too(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--json", "--remote", str(case.store), *keys_of(case), str(case.local / "orders-0")]
    (orders,) = (each for each in case.partitions() if each["topic"] == "orders")
    assert run(["ls", *options]) == 0
    segments = lines_of(capsys)
    assert all(each["state"] == "ok" for each in segments)
    assert segments[0]["baseOffset"] <= orders["begin"]
    assert [each["nextOffset"] for each in segments[:-1]] == [each["baseOffset"] for each in segments[1:]]
    assert run(["dump", *options]) == 0
    lines = lines_of(capsys)
    offsets = [line["offset"] for line in lines if line["type"] == "record"]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == orders["end"] - 1
    served = {offset for first, last in orders["read_uncommitted"]["offsets"] for offset in range(first, last + 1)}
    assert served <= set(offsets)


# -- settings of a store ---------------------------------------------------------------------------------------------


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect what commands open stores with; no store answers."""
    found: list[dict[str, Any]] = []

    def opened(address: str, **options: object) -> None:
        found.append({"address": address, **options})
        raise UsageError(address)

    monkeypatch.setattr(remote_store, "open_tier", opened)
    return found


@pytest.mark.parametrize("command", [["tier", "ls"], ["tier", "verify"], ["ls", "--remote"], ["dump", "--remote"]])
def test_settings_come_from_a_file_and_the_environment(
    command: list[str], given: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGLOG_STORE_REGION", "eu-1")
    monkeypatch.setenv("SEGLOG_STORE_SECRET_KEY", "of the environment")
    (tmp_path / "settings").write_text("# of a test\n\naccess_key = a=b\nsecret_key=of the file\n")
    (tmp_path / "t-0").mkdir()
    paths = [] if command[0] == "tier" else [str(tmp_path / "t-0")]
    assert run([*command, "s3://bucket", "--settings", str(tmp_path / "settings"), *paths]) == 2
    (options,) = given
    assert options["address"] == "s3://bucket"
    assert options["settings"] == {"region": "eu-1", "access_key": "a=b", "secret_key": "of the file"}


def test_a_line_that_is_no_setting_is_told_without_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings").write_text("region=eu-1\nhidden\n")
    assert run(["tier", "ls", "s3://bucket", "--settings", str(tmp_path / "settings")]) == 2
    message = capsys.readouterr().err
    assert "settings:2: a setting is written as NAME=VALUE" in message
    assert "hidden" not in message


# -- one record, and a copy ------------------------------------------------------------------------------------------


def test_lookup_finds_what_a_reader_does(case: TierCase, capsys: pytest.CaptureFixture[str]) -> None:
    (orders,) = (each for each in case.partitions() if each["topic"] == "orders")
    with open_partition(case.path(orders), remote=case.opened()) as log:
        records = list(log.records())
    for record in (records[0], records[len(records) // 3], records[-1]):
        options = ["--json", "--explain", "--remote", str(case.store), *keys_of(case), str(case.path(orders))]
        assert run(["lookup", *options, str(record.offset)]) == 0
        found = lines_of(capsys)[-1]
        assert (found["offset"], found["record"]["offset"]) == (record.offset, record.offset)
        assert found["record"]["timestamp"] == record.timestamp_ms
        assert found["fetched"]["bytes"] < stored_size(case, orders)
        assert run(["lookup", *options, "--timestamp", str(records[0].timestamp_ms)]) == 0
        assert lines_of(capsys)[-1]["offset"] == records[0].offset
    assert run(["lookup", *options, str(orders["begin"] - 1)]) == 1
    assert not lines_of(capsys)[-1]["found"]


def stored_size(case: TierCase, partition: dict[str, Any]) -> int:
    """Bytes of all objects of a partition."""
    tier = case.opened().tier
    return sum(
        tier.files.sizes[each.path]
        for of_partition in tier.segments.values()
        for id_, objects in of_partition.items()
        if id_.partition.topic.endswith(partition["topic"]) and id_.partition.partition == partition["partition"]
        for each in objects.values()
    )


def test_lookup_in_one_file_takes_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("aiven-plain")
    log = min((case.local / "orders-0").glob("*.log"))
    assert run(["lookup", "--remote", str(case.store), str(log), "0"]) == 2
    assert "belong to its partition directory" in capsys.readouterr().err


def test_lines_of_a_tiered_partition_become_plain_files(
    case: TierCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--json", "--bytes", "base64", "--remote", str(case.store), *keys_of(case)]
    assert run(["dump", *options, str(case.local / "orders-0")]) == 0
    (tmp_path / "lines").write_text(capsys.readouterr().out)
    copy = tmp_path / "orders-0"
    assert run(["convert", "--bytes", "base64", str(tmp_path / "lines"), "-o", str(copy)]) == 0
    with open_partition(case.local / "orders-0", remote=case.opened()) as log, open_partition(copy) as copied:
        assert list(copied.records(log.log_start_offset)) == list(log.records())
