"""Audits of remote stores: nothing on what brokers left, and each fault that is planted there."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers import remote_records
from helpers.support import REPOSITORY
from helpers.tier_cases import CASES, TierCase, tier_case

from seglog_format import open_log_directory, open_tier
from seglog_format.cli.main import run
from seglog_format.model import EpochStart
from seglog_format.tier.local_metadata import read_metadata_topic
from seglog_format.tier.segments import RemoteSegmentId, SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.tier.segments import RemoteSegment

FINE, FINDINGS = 0, 1
WHOLE = ("lts-4.4.0", "aiven-both")
"""Cases with the objects of all topics; the others have those of some, so that whole segments are missing."""
NEW_ID = "planted00000000000000A"
DELETING, DELETED = SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED
DANGLING = {("SEG-RLM-014", "G9FIjA92QH6dnGTUMjrOlA")}
"""What the broker of a case left that was killed while it copied."""


@dataclass(frozen=True)
class Broken:
    """A copy of a case, to be damaged."""

    case: TierCase
    local: Path
    store: Path

    def segment(self, topic: str, start: int) -> RemoteSegment:
        """Return the finished segment of the lineage that begins at an offset."""
        partitions = read_metadata_topic(open_log_directory(self.local)).partitions
        found = [
            each
            for whose, remote in partitions.items()
            if whose.topic == topic and whose.partition == 0
            for each in remote.segments.values()
            if each.start_offset == start and each.state is SegmentState.COPY_SEGMENT_FINISHED
        ]
        return found[-1]

    def object_of(self, segment: RemoteSegment, suffix: str) -> Path:
        (found,) = self.store.rglob(f"{segment.start_offset:020}-{segment.id.segment_id}{suffix}")
        return found

    def objects_of(self, segment: RemoteSegment) -> list[Path]:
        return sorted(self.store.rglob(f"*-{segment.id.segment_id}.*"))

    def findings(
        self, capsys: pytest.CaptureFixture[str], *options: str, command: str = "audit"
    ) -> list[dict[str, Any]]:
        keys = [f"--key={name}={file}" for name, file in self.case.keys.items()]
        logs = ["--logs", str(self.local)]
        status = run(["tier", command, "--json", *logs, *keys, *options, str(self.store)])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        grave = [each for each in found if each["severity"] != "note"]
        assert status == (FINDINGS if grave else FINE)
        return [each for each in grave if (each["requirement"], each["file"][-22:]) not in DANGLING]

    def rules(self, capsys: pytest.CaptureFixture[str], *options: str, command: str = "audit") -> set[str]:
        return {each["requirement"] for each in self.findings(capsys, *options, command=command)}


@pytest.fixture
def broken(tmp_path: Path) -> Callable[[str], Broken]:
    def copied(name: str) -> Broken:
        case = tier_case(name)
        shutil.copytree(case.local, tmp_path / "local")
        shutil.copytree(case.store, tmp_path / "tier")
        return Broken(case, tmp_path / "local", tmp_path / "tier")

    return copied


def named(segment: RemoteSegment, **fields: Any) -> RemoteSegment:  # noqa: ANN401 - any field of a segment
    """Return a segment under a new id."""
    return replace(segment, id=RemoteSegmentId(segment.id.partition, NEW_ID), **fields)


def copy_objects(at: Broken, segment: RemoteSegment, start: int | None = None) -> None:
    """Copy the objects of a segment under a new id."""
    offset = segment.start_offset if start is None else start
    for path in at.objects_of(segment):
        shutil.copy(path, path.with_name(f"{offset:020}-{NEW_ID}{path.suffix}"))


# What brokers left


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_wrong_with_what_brokers_left(
    name: str, broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    found = broken(name).findings(capsys, "--content")
    assert [each for each in found if name in WHOLE or ", segment " not in each["file"]] == []


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_wrong_with_the_segments_that_brokers_stored(
    name: str, broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    found = broken(name).findings(capsys, command="verify")
    assert [each for each in found if "G9FIjA92QH6dnGTUMjrOlA" not in each["file"]] == []


@pytest.mark.req("SEG-RLM-019", "SEG-RLM-014")
def test_what_an_unclean_election_made_void_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("lts-4.4.0")
    assert run(["tier", "audit", "--logs", str(case.local), str(case.store)]) == FINDINGS
    out = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in out[:-1]] == ["warning", "note", "note", "note"]
    assert out[0].endswith(
        "expected a segment that was finished or deleted, found COPY_SEGMENT_STARTED, objects .log [SEG-RLM-014]"
    )
    assert "found offsets 260 to 327 of 2 from 260 [SEG-RLM-019]" in out[1]
    assert out[-1].startswith("1 warning, 3 notes (51 segments of 7 partitions, 6 with a local log; 206 objects; 1 ")


def test_the_how_to_shows_what_an_audit_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "audit-my-bucket.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tier_case("lts-4.4.0").root)
    run(["tier", "audit", "--logs", "local", "tier"])
    assert f'```text title="seglog tier audit --logs local tier"\n{capsys.readouterr().out}```\n' in page


# Faults


@pytest.mark.req("SEG-RLM-017")
def test_an_orphan(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    copy_objects(at, at.segment("orders", 182))
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["severity"]) == ("SEG-RLM-017", "warning")
    assert found["file"].endswith(f"/00000000000000000182-{NEW_ID}")
    assert found["found"] == "objects .indexes .log .rsm-manifest"


@pytest.mark.req("SEG-RLM-015")
@pytest.mark.parametrize("suffix", [".log", ".rsm-manifest", ".indexes"])
def test_a_missing_object(suffix: str, broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    segment = at.segment("orders", 182)
    at.object_of(segment, suffix).unlink()
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["found"]) == ("SEG-RLM-015", f"no object {suffix}")
    lost = {"firstOffset": 182, "nextOffset": segment.end_offset + 1}
    assert (found["missing"] is None) == (suffix == ".indexes")
    assert found["missing"] is None or found["missing"].items() >= lost.items()


@pytest.mark.req("SEG-RLM-023")
def test_a_stale_index(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("lts-4.4.0")
    segment = at.segment("orders", 182)
    shutil.copy(at.object_of(at.segment("orders", 304), ".index"), at.object_of(segment, ".index"))
    assert at.findings(capsys) == []
    for found in (at.findings(capsys, "--content"), at.findings(capsys, command="verify")):
        wrong = [each for each in found if "G9FIjA92QH6dnGTUMjrOlA" not in each["file"]]
        assert {each["requirement"][:7] for each in wrong} == {"SEG-IDX"}
        assert {each["file"] for each in wrong} == {str(at.object_of(segment, ".index"))}


@pytest.mark.req("SEG-RLM-020")
def test_an_overlap(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("lts-4.4.0")
    segment = at.segment("orders", 182)
    copy_objects(at, segment, 181)
    again = named(segment, start_offset=181, epochs=(EpochStart(0, 181),))
    finished = remote_records.updated(again.id, SegmentState.COPY_SEGMENT_FINISHED)
    remote_records.append(at.local, remote_records.started(again), finished)
    found = at.findings(capsys)
    assert "SEG-RLM-020" in {each["requirement"] for each in found}
    overlaps = [each["found"] for each in found if each["requirement"] == "SEG-RLM-020"]
    assert overlaps == ["181", "182"]


@pytest.mark.req("SEG-RLM-022")
def test_a_wrong_size(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("lts-4.4.0")
    log = at.object_of(at.segment("orders", 182), ".log")
    log.write_bytes(log.read_bytes()[:-1])
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["field"]) == ("SEG-RLM-022", "segmentSizeInBytes")
    assert found["found"] == str(log.stat().st_size)


def test_an_object_that_is_shorter_than_its_manifest_says(
    broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken("aiven-both")
    log = at.object_of(at.segment("orders", 182), ".log")
    log.write_bytes(log.read_bytes()[:-1])
    assert [each["requirement"] for each in at.findings(capsys, "--content")] == ["SEG-TIR-006"]


@pytest.mark.parametrize(("name", "rule"), [("aiven-both", "SEG-TIR-008"), ("lts-4.4.0", "SEG-BAT-003")])
def test_a_flipped_bit(
    name: str, rule: str, broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken(name)
    log = at.object_of(at.segment("orders", 182), ".log")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 4
    log.write_bytes(data)
    assert at.findings(capsys) == []
    assert rule in at.rules(capsys, "--content")
    assert rule in at.rules(capsys, command="verify")


def test_a_wrong_key_and_none(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    wrong = Broken(replace(at.case, keys={"key1": _other_key(at)}), at.local, at.store)
    found = wrong.findings(capsys, "--content")
    assert {each["requirement"] for each in found} == {"SEG-TIR-009"}
    assert {each["severity"] for each in found} == {"error", "warning"}  # the wrong one, and none


def _other_key(at: Broken) -> Path:
    from Crypto.PublicKey import RSA

    path = at.local.parent / "other.pem"
    path.write_bytes(RSA.generate(2048).export_key(pkcs=8))
    return path


@pytest.mark.req("SEG-RLM-014")
def test_a_copy_that_never_finished(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    remote_records.append(at.local, remote_records.started(named(at.segment("orders", 182))))
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["found"]) == ("SEG-RLM-014", "COPY_SEGMENT_STARTED, no objects")


@pytest.mark.req("SEG-RLM-004")
def test_a_segment_that_was_deleted_twice(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    name = RemoteSegmentId(at.segment("orders", 182).id.partition, NEW_ID)
    begun = remote_records.started(named(at.segment("orders", 182)))
    changes = [remote_records.updated(name, state) for state in (DELETING, DELETED, DELETED)]
    remote_records.append(at.local, begun, *changes)
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["severity"]) == ("SEG-RLM-004", "error")
    assert found["found"] == "DELETE_SEGMENT_FINISHED after no such segment"


@pytest.mark.req("SEG-RLM-021")
def test_a_segment_below_the_log_start(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    file = at.local / "log-start-offset-checkpoint"
    file.write_text(file.read_text().replace("orders 0 73\n", "orders 0 200\n"))
    found = at.findings(capsys)
    assert {each["requirement"] for each in found} == {"SEG-RLM-021"}
    assert all("below the log start offset 200" in each["expected"] for each in found)
    assert [each["found"].split()[1] for each in found] == ["60", "159"]


@pytest.mark.req("SEG-RLM-019", "SEG-RLM-018")
def test_an_epoch_that_is_not_in_the_lineage(
    broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken("aiven-both")
    file = at.local / "orders-0" / "leader-epoch-checkpoint"
    text = file.read_text()
    assert "\n2 549\n" in text
    file.write_text(text.replace("\n2 549\n", "\n1 549\n"))
    found = at.findings(capsys)
    assert {each["requirement"] for each in found} == {"SEG-RLM-018", "SEG-RLM-019"}
    gap = next(each for each in found if each["requirement"] == "SEG-RLM-018")
    assert gap["missing"]["firstOffset"] == 549


@pytest.mark.req("SEG-RLM-018")
def test_offsets_that_nothing_answers_for(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    segment = at.segment("orders", 182)
    for path in at.objects_of(segment):
        path.unlink()
    remote_records.append(at.local, *(remote_records.updated(segment.id, state) for state in (DELETING, DELETED)))
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["severity"]) == ("SEG-RLM-018", "error")
    assert found["missing"].items() >= {"firstOffset": 182, "nextOffset": segment.end_offset + 1}.items()


@pytest.mark.req("SEG-RLM-016")
@pytest.mark.parametrize("states", [(DELETING,), (DELETING, DELETED)])
def test_a_deletion_that_left_objects(
    states: tuple[SegmentState, ...], broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken("aiven-both")
    copy_objects(at, at.segment("orders", 182))
    again = named(at.segment("orders", 182))
    changes = [remote_records.updated(again.id, state) for state in states]
    remote_records.append(at.local, remote_records.started(again), *changes)
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["found"]) == (
        "SEG-RLM-016",
        f"{states[-1].name}, objects .indexes .log .rsm-manifest",
    )


@pytest.mark.req("SEG-RLM-021", "SEG-RLM-013")
def test_what_is_past_retention(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("lts-4.4.0")
    newest = at.segment("wide", 0).max_timestamp_ms
    early = at.findings(capsys, "--retention-ms", "1000", f"--now-ms={newest + 1000 - 10**9}")
    late = at.findings(capsys, "--retention-ms", "1000", f"--now-ms={newest + 1001}")
    assert not [each for each in early if each["file"].startswith("wide-0/")]
    assert [each["requirement"] for each in late if each["file"].startswith("wide-0/")] == ["SEG-RLM-021"]
    assert at.rules(capsys, "--retention-bytes", "1000") == {"SEG-RLM-021"}


@pytest.mark.req("SEG-RLM-023")
def test_a_segment_that_ends_elsewhere(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("lts-4.4.0")
    segment = at.segment("orders", 182)
    longer = named(segment, end_offset=segment.end_offset + 7)
    copy_objects(at, segment)
    finished = remote_records.updated(longer.id, SegmentState.COPY_SEGMENT_FINISHED)
    remote_records.append(at.local, remote_records.started(longer), finished)
    found = [each for each in at.findings(capsys, "--content") if each["requirement"] == "SEG-RLM-023"]
    assert [(each["expected"], each["found"]) for each in found] == [
        (f"a log up to offset {longer.end_offset}", str(segment.end_offset))
    ]


@pytest.mark.req("SEG-RLM-001")
def test_records_that_cannot_be_read_are_named(
    broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken("lts-4.4.0")
    remote_records.append(at.local, b"\x01\x00\x00\x07ord")
    (found,) = at.findings(capsys)
    assert (found["requirement"], found["file"]) == ("SEG-RLM-001", str(at.local / "__remote_log_metadata-0"))
    assert found["field"] == "offset 121: value"


# What is asked wrongly


def test_an_audit_needs_the_metadata_topic(
    broken: Callable[[str], Broken], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = broken("lts-4.4.0")
    shutil.rmtree(remote_records.metadata_partition(at.local))
    assert run(["tier", "audit", "--logs", str(at.local), str(at.store)]) == 2
    assert "no partition of __remote_log_metadata" in capsys.readouterr().err
    assert run(["tier", "audit", "--logs", str(at.local), "--key", "key1", str(at.store)]) == 2
    assert "a key is named as ID=FILE" in capsys.readouterr().err
    assert tmp_path.is_dir()


def test_nothing_is_written(broken: Callable[[str], Broken], capsys: pytest.CaptureFixture[str]) -> None:
    at = broken("aiven-both")
    before = {path: path.read_bytes() for path in at.local.parent.rglob("*") if path.is_file()}
    assert at.findings(capsys, "--content") == []
    assert {path: path.read_bytes() for path in at.local.parent.rglob("*") if path.is_file()} == before


# -- from Python -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WHOLE)
def test_what_open_tier_returns_checks_the_store(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case(name)
    tier, logs = open_tier(case.store, keys=case.keys), open_log_directory(case.local)
    keys = [argument for id_, path in case.keys.items() for argument in ("--key", f"{id_}={path}")]
    for command, found in (("audit", tier.audit(logs)), ("verify", tier.verify(logs))):
        run(["tier", command, "--json", str(case.store), "--logs", str(case.local), *keys])
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        expected = [(line["requirement"], line["file"]) for line in printed]
        assert [(each.requirement, each.location.path) for each in found] == expected
