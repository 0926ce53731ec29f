"""What the definition lines say of brokers, held against the directories they wrote and the run of their classes.

`since` and `brokers` claim that a rule is kept from some version on. Here the bytes of every bundled version are asked,
and what the last full run of the conformance suite heard from Kafka's own code.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib import import_module
from inspect import getsource, signature
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.support import REPOSITORY, authentic, authentic_names, bundled_cases, bundled_expected, states
from helpers.tier_cases import tier_case
from helpers.walking import each_of

from proofs.kafka.oracle import RELEASES
from seglog_format import open_log_directory, open_partition, verify
from seglog_format.cli.main import run
from seglog_format.requirements import Requirement, Severity, requirements
from seglog_format.tier.local_metadata import read_metadata_topic
from tools import witnesses
from tools.docs.verdicts import Verdict, by_requirement
from tools.requirement_trace import explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CLASSES = ("kafka-clients", "kafka-storage")
"""Testees that are Kafka's own code, each in the versions `CLASSES_VERSIONS`."""
CLASSES_VERSIONS = ("4.1.1", "4.4.0")

RULES = list(requirements().values())
SHOWN_IN = {
    **dict.fromkeys(("PDR", "LDR", "LOG", "IDX", "CKP"), "0.8.0"),
    **dict.fromkeys(("MSG", "COD"), "0.8.0"),
    "TIX": "0.10.1",
    "RCV": "0.8.1",
    "ROL": "0.8.0",
    **dict.fromkeys(("FLS", "CMP"), "0.8.1"),
    "RLM": "3.0.0",
    "TIR": "3.6.0",
    **dict.fromkeys(("BAT", "REC", "CTL", "TXN", "PSN"), "0.11.0"),
}
"""First version whose files have what an area is about; other areas are about what brokers do."""


RECORDED: Final = {
    "SEG-PSN-010": ("producer_snapshots.json", "test_forgotten_producers"),
    **dict.fromkeys(
        (f"SEG-RLM-{rule:03d}" for rule in (*range(1, 11), 24)), ("remote_histories.json", "test_remote_log_metadata")
    ),
    **dict.fromkeys(
        ("SEG-LDR-004", "SEG-FLS-013", "SEG-LOG-012", "SEG-PDR-015", "SEG-CTL-014", "SEG-CTL-015"),
        ("line_roots.json", __name__),
    ),
    **dict.fromkeys(("SEG-FLS-009", "SEG-FLS-012", "SEG-FLS-016", "SEG-CKP-014"), ("sync_orders.json", __name__)),
    "SEG-PSN-011": ("transaction_epochs.json", "test_transaction_epochs"),
    "SEG-RCV-038": ("started_logs.json", "test_recovery_apply"),
    "SEG-FLS-017": ("started_logs.json", "test_rescue"),
    "SEG-PDR-026": ("started_logs.json", "test_links"),
    **dict.fromkeys(("SEG-LDR-008", "SEG-PDR-029"), ("broker_starts.json", "test_start_problems")),
    **dict.fromkeys(
        ("SEG-LDR-002", "SEG-LDR-007", "SEG-PDR-016", "SEG-FLS-006"), ("log_directory_rules.json", __name__)
    ),
    **dict.fromkeys(
        (f"SEG-RET-0{number}" for number in range(14, 18)), ("tiered-retention.jsonl.gz", "test_tiered_retention")
    ),
}
"""Rules that no case of the suite is about: the recorded run of brokers or their classes that shows them, and the
module whose tests of the rule read it."""

ASKED: Final = {
    **dict.fromkeys(("SEG-RET-001", "SEG-RET-004", "SEG-RET-005", "SEG-RET-007"), "test_kafka_retains"),
    **dict.fromkeys(("SEG-CMP-026", "SEG-CMP-027", "SEG-CMP-028"), "test_compaction_records"),
}
"""Rules of which tests ask Kafka's classes at each run, and the module of these tests."""

TIERED = ("4.1.1", "4.4.0")
"""Versions of the brokers whose remote segments are in ``fixtures/tiered``."""
TIER_AREAS = ("RLM",)
"""Areas that histories of remote segments are about, in which Kafka's classes and ours are compared."""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_claimed(rule: Requirement, version: str) -> bool:
    """Tell whether the definition line says that brokers of a version keep a rule."""
    return rule.brokers.kept == "yes" and numbers(rule.since) <= numbers(version)


def versions() -> list[str]:
    return sorted({name.split("/")[0] for name in bundled_cases()}, key=numbers)


@cache
def broken(version: str) -> dict[str, list[str]]:
    """Return the rules that undamaged directories of a version break, with the findings."""
    found: dict[str, list[str]] = {}
    for name in authentic_names():
        of, _, case = name.partition("/")
        if of != version or (case.startswith("crash-") and case not in {"crash-kill", "crash-txn"}):
            continue
        for state in states(authentic(name)):
            for one in verify(state):
                if one.severity is not Severity.NOTE:
                    found.setdefault(one.requirement, []).append(f"{name}: {one}")
    return found


@each_of("version", versions())
def test_no_rule_is_claimed_for_a_version_whose_bytes_break_it(version: str) -> None:
    claimed = {rule.id for rule in RULES if is_claimed(rule, version)}
    assert {rule: found for rule, found in broken(version).items() if rule in claimed} == {}


@each_of("rule", [rule for rule in RULES if rule.brokers.basis == "bytes"], ids=lambda rule: rule.id)
def test_a_mark_by_bytes_names_a_version_that_is_bundled(rule: Requirement) -> None:
    assert rule.brokers.version in (*versions(), *TIERED)
    assert numbers(SHOWN_IN[rule.id[4:7]]) <= numbers(rule.brokers.version)


# Rules about what brokers do that a directory shows, with the bytes that keep or break them.


def lines(name: str, kind: str) -> list[dict[str, Any]]:
    found = (line for line in bundled_expected(name) if line["type"] == kind)
    return [line for line in found if not line["file"].endswith(".deleted")]


def undamaged(version: str) -> list[str]:
    return [name for name in bundled_cases() if name.startswith(f"{version}/") and "/crash-" not in name]


def batches_of(name: str, index: str, suffix: str) -> list[dict[str, Any]]:
    log = index.removesuffix(suffix) + ".log"
    return [line for line in lines(name, "batch") if line["file"] == log]


def index_names_the_end_of_its_batch(version: str) -> Iterator[bool]:
    """SEG-ROL-011: the entry at a batch names the last offset of that one batch."""
    for name in undamaged(version):
        for index in lines(name, "offsetIndex"):
            ends = {batch["position"]: batch["lastOffset"] for batch in batches_of(name, index["file"], ".index")}
            yield from (ends.get(position) == offset for offset, position in index["entries"])


def time_index_names_the_end_of_a_batch(version: str) -> Iterator[bool]:
    """SEG-APP-015: beside the largest timestamp stands the last offset of a batch that has it."""
    for name in undamaged(version):
        for index in lines(name, "timeIndex"):
            batches = batches_of(name, index["file"], ".timeindex")
            ends = {(batch["maxTimestamp"], batch["lastOffset"]) for batch in batches}
            yield from ((timestamp, offset) in ends for timestamp, offset in index["entries"] if ends)


def tombstones_have_a_horizon(version: str) -> Iterator[bool]:
    """SEG-CMP-011: of a compacted log, some batch has a delete horizon."""
    for name in undamaged(version):
        if name.endswith("/compact"):
            yield any(batch["deleteHorizonMs"] is not None for batch in lines(name, "batch"))


def files_of(name: str) -> set[str]:
    return {line["file"].rpartition("/")[2] for line in lines(name, "file")}


def segments_begin_with_a_snapshot(version: str) -> Iterator[bool]:
    """SEG-ROL-015: the newest segment has a producer snapshot of its base offset."""
    present = files_of(f"{version}/segs-fine")
    newest = max(file for file in present if file.endswith(".log"))
    yield newest.replace(".log", ".snapshot") in present


def a_clean_end_leaves_a_snapshot(version: str) -> Iterator[bool]:
    """SEG-FLS-015: there is one at the log end offset."""
    end = max(batch["nextOffset"] for batch in lines(f"{version}/plain", "batch"))
    yield f"{end:020d}.snapshot" in files_of(f"{version}/plain")


def closed_segments_have_their_largest_timestamp(version: str) -> Iterator[bool]:
    """SEG-ROL-014: it is the last entry of the time index."""
    name = f"{version}/segs-fine"
    last = {line["file"]: line["entries"][-1][0] for line in lines(name, "timeIndex") if line["entries"]}
    for log in {batch["file"] for batch in lines(name, "batch")}:
        largest = max(batch["maxTimestamp"] for batch in lines(name, "batch") if batch["file"] == log)
        yield last.get(log.replace(".log", ".timeindex")) == largest


def indexes_are_cut(version: str) -> Iterator[bool]:
    """SEG-ROL-018: no index of a closed log ends in zeros."""
    for name in undamaged(version):
        yield from (line["trailingZeroEntries"] == 0 for line in lines(name, "offsetIndex"))


def snapshots_follow_markers(version: str) -> Iterator[bool]:
    """SEG-PSN-012: epoch and timestamp of a producer whose last batch is a marker are those of the marker."""
    for name in (name for name in undamaged(version) if "/compact" not in name):
        for snapshot in lines(name, "producerSnapshot"):
            end = int(snapshot["file"].rpartition("/")[2][:20])
            for producer in snapshot["producers"]:
                known = (batch for batch in lines(name, "batch") if batch["producerId"] == producer["producerId"])
                below = [batch for batch in known if batch["lastOffset"] < end]
                if below and (last := max(below, key=lambda batch: batch["lastOffset"]))["isControl"]:
                    stored = producer["producerEpoch"], producer["lastTimestamp"]
                    yield stored == (last["producerEpoch"], last["maxTimestamp"])


MADE: Final = tuple(tomllib.loads((REPOSITORY / "fixtures" / "selection.toml").read_text(encoding="utf-8"))["lines"])
"""Versions whose cases come from one log directory, but for those of the killed broker."""
DELETED_BELOW: Final = 77


def checkpoint(version: str, file: str) -> dict[str, int]:
    """Return the offsets of a checkpoint in the root of a log directory that was closed cleanly."""
    (text,) = [line["text"] for line in lines(f"{version}/root", "text") if line["file"] == file]
    return {topic: int(offset) for topic, _, offset in (row.split() for row in text.splitlines()[2:])}


def ends_are_in(version: str, file: str) -> Iterator[bool]:
    """For each partition of a clean end, whether a checkpoint of the directory has its log end offset."""
    written = checkpoint(version, file)
    for name in undamaged(version):
        ends = [line["nextOffset"] for line in lines(name, "batch")]
        topic = name.rpartition("/")[2]
        if topic in written and ends:
            yield written[topic] == max(ends)


def recovery_points_are_written(version: str) -> Iterator[bool]:
    """SEG-FLS-005: at a clean end, the recovery point is the log end offset."""
    return ends_are_in(version, "recovery-point-offset-checkpoint")


def high_watermarks_are_written(version: str) -> Iterator[bool]:
    """SEG-FLS-014: of a partition with one replica, it is the log end offset."""
    return ends_are_in(version, "replication-offset-checkpoint")


def the_log_start_offset_is_written(version: str) -> Iterator[bool]:
    """SEG-FLS-013: DeleteRecords moved that of one topic into a segment."""
    if f"{version}/delrec" in undamaged(version):
        yield checkpoint(version, "log-start-offset-checkpoint")["delrec"] == DELETED_BELOW


def the_cleaner_offset_is_written(version: str) -> Iterator[bool]:
    """SEG-CMP-023: all but the active segment of the compacted topic was read."""
    bases = [int(name[:20]) for name in files_of(f"{version}/compact") if name.endswith(".log")]
    yield checkpoint(version, "cleaner-offset-checkpoint")["compact"] == max(bases)


def no_clean_shutdown_after_a_kill(version: str) -> Iterator[bool]:
    """SEG-FLS-007: the file is there after the clean end alone."""
    for name in bundled_cases():
        if name.startswith(f"{version}/crash-"):
            found = {line["file"] for line in lines(name, "file")}
            yield "before/.kafka_cleanshutdown" not in found
            yield "after/.kafka_cleanshutdown" in found


CLOSED: Final = {
    "SEG-FLS-005": recovery_points_are_written,
    "SEG-FLS-007": no_clean_shutdown_after_a_kill,
    "SEG-FLS-013": the_log_start_offset_is_written,
    "SEG-FLS-014": high_watermarks_are_written,
    "SEG-CMP-023": the_cleaner_offset_is_written,
}
"""Rules that the lines' directories show (`fixtures/make/lines.py`); other collections have their cases apart."""


@pytest.mark.parametrize("rule", CLOSED)
def test_closed_directories_of_the_lines_keep_the_rule(rule: str) -> None:
    mark = requirements()[rule].brokers
    shown = {version: list(CLOSED[rule](version)) for version in MADE if is_claimed(requirements()[rule], version)}
    assert mark.basis == "bytes"
    assert shown[mark.version]
    assert all(all(seen) for seen in shown.values())


BEHAVIOURS: Final = {
    "SEG-ROL-011": index_names_the_end_of_its_batch,
    "SEG-APP-015": time_index_names_the_end_of_a_batch,
    "SEG-CMP-011": tombstones_have_a_horizon,
    "SEG-ROL-015": segments_begin_with_a_snapshot,
    "SEG-FLS-015": a_clean_end_leaves_a_snapshot,
    "SEG-ROL-014": closed_segments_have_their_largest_timestamp,
    "SEG-ROL-018": indexes_are_cut,
    "SEG-PSN-012": snapshots_follow_markers,
}


@pytest.mark.parametrize("version", versions())
@each_of("rule", BEHAVIOURS)
def test_no_behaviour_is_claimed_for_a_version_whose_bytes_show_another(rule: str, version: str) -> None:
    if is_claimed(requirements()[rule], version):
        seen = list(BEHAVIOURS[rule](version))
        assert seen
        assert all(seen)


@pytest.mark.parametrize("rule", [rule for rule in BEHAVIOURS if requirements()[rule].brokers.departs])
def test_a_departure_by_bytes_is_in_the_bytes(rule: str) -> None:
    assert not all(BEHAVIOURS[rule](requirements()[rule].brokers.version))


@pytest.mark.parametrize("rule", [rule for rule in BEHAVIOURS if not requirements()[rule].brokers.departs])
def test_an_older_version_shows_that_since_is_not_too_late(rule: str) -> None:
    """The newest collection before `since` breaks the rule; a claim for it would fail above."""
    since = numbers(requirements()[rule].since)
    before = [version for version in versions() if numbers(version) < since and version not in MADE]
    assert not all(BEHAVIOURS[rule](before[-1]))


def few_snapshots_are_kept(version: str) -> Iterator[bool]:
    """Chapter 70: up to 2.0 at most those at the last two base offsets and at the log end offset; later ones stay."""
    for name in undamaged(version):
        bases = sorted(int(file[:20]) for file in files_of(name) if file.endswith(".log"))
        snapshots = {int(file[:20]) for file in files_of(name) if file.endswith(".snapshot")}
        ends = [max(line["nextOffset"] for line in lines(name, "batch"))] if lines(name, "batch") else []
        few = snapshots <= {*bases[-2:], *ends}
        if len(bases) > FEW_SEGMENTS:
            yield few == (numbers(version) < (2, 1))


def quorum_leaders_name_the_end_of_a_batch(version: str) -> Iterator[bool]:
    """Chapter 41: the time index of a metadata log does so under every version."""
    name = f"{version}/cluster-metadata"
    ends = {(batch["maxTimestamp"], batch["lastOffset"]) for batch in lines(name, "batch")}
    yield from (tuple(entry) in ends for index in lines(name, "timeIndex") for entry in index["entries"])


def metadata_logs_are_closed(version: str) -> Iterator[bool]:
    """Chapter 70: up to 4.3 their time index has its last entry after a clean stop, and no zeros; later neither."""
    name = f"{version}/cluster-metadata"
    newest = max(batch["maxTimestamp"] for batch in lines(name, "batch") if batch["file"].endswith(".log"))
    for index in lines(name, "timeIndex"):
        whole = index["entries"][-1][0] == newest and not index["trailingZeroEntries"]
        half = index["entries"][-1][0] == newest or not index["trailingZeroEntries"]
        yield whole if numbers(version) < (4, 4) else not half


def index_of_text_is_cut(version: str) -> Iterator[bool]:
    """Chapter 40: a start and a clean stop keep the whole entries of what is no index, below the recovery point."""
    name = f"{version}/crash-noindex"
    found = (line for line in lines(name, "file") if line["file"].endswith("128.index"))
    yield {line["file"].partition("/")[0]: line["bytes"] for line in found} == {"before": 78, "after": 72}


FEW_SEGMENTS: Final = 3
STATED: Final = (
    *((few_snapshots_are_kept, version) for version in ("0.11.0.3", "1.1.1", "2.0.1", "2.8.2", "4.4.0")),
    *((quorum_leaders_name_the_end_of_a_batch, version) for version in ("3.4.1", "3.9.1", "4.4.0")),
    *((metadata_logs_are_closed, version) for version in ("3.4.1", "3.9.1", "4.0.1", "4.3.0", "4.4.0")),
    (index_of_text_is_cut, "4.3.0"),
)
"""Sentences of "What brokers do" that no rule states, with the versions whose directories show them."""


@each_of(("shows", "version"), STATED)
def test_what_brokers_do_is_in_their_directories(shows: Callable[[str], Iterator[bool]], version: str) -> None:
    seen = list(shows(version))
    assert seen
    assert all(seen)


def kafkas_verdicts(rule: Requirement, version: str) -> list[Verdict]:
    labels = {f"{name} {version}" for name in CLASSES}
    return [one for one in by_requirement().get(rule.id, []) if one.testee in labels]


def marks_of_tests(module: str, argument: str = "") -> set[str]:
    """Return the requirement ids in the marks of a module's tests, or of those alone that have an argument."""
    functions = [each for each in vars(import_module(module)).values() if hasattr(each, "pytestmark")]
    marks = [
        mark for each in functions if not argument or argument in signature(each).parameters for mark in each.pytestmark
    ]
    rows = [row for mark in marks if mark.name == "parametrize" for row in mark.args[1] if hasattr(row, "marks")]
    marks += [mark for row in rows for mark in row.marks]
    return {rule for mark in marks if mark.name == "req" for rule in mark.args}


def assert_recorded(rule: str, version: str) -> None:
    """Hold that a recorded run has answers of a version, and that a test of the rule reads it."""
    witness, module = RECORDED[rule]
    releases = witnesses.header_of(REPOSITORY / witnesses.RECORDED / witness)["releases"]
    assert line_of(version) in map(line_of, releases)
    assert rule in marks_of_tests(module)
    assert witness in getsource(import_module(module))


def histories(version: str) -> int:
    """Return how many histories of remote segments the classes of a version read as we do."""
    part = json.loads((REPOSITORY / "reports" / "kafka-reads.json").read_bytes())["parts"]["tier"]
    return 0 if part["disagreements"] else part["counts"].get(f"Kafka {version}: histories", 0)


def is_by_run(rule: Requirement) -> bool:
    return rule.brokers.basis == "run" and rule.brokers.version in CLASSES_VERSIONS


@each_of("rule", [rule for rule in RULES if is_by_run(rule)], ids=lambda rule: rule.id)
def test_a_rule_that_a_run_has_shown_fails_no_case(rule: Requirement) -> None:
    if rule.id[4:7] in TIER_AREAS:
        assert histories(rule.brokers.version)
        return
    if rule.id in ASKED:
        assert rule.id in marks_of_tests(ASKED[rule.id], argument="oracles")
        assert rule.brokers.version in RELEASES.values()
        return
    if rule.id in RECORDED:
        assert_recorded(rule.id, rule.brokers.version)
        return
    verdicts = kafkas_verdicts(rule, rule.brokers.version)
    assert verdicts or rule.brokers.departs
    assert rule.brokers.departs or all(one.is_kept for one in verdicts)


def test_one_mark_by_a_run_names_a_release_that_is_not_held_to_it() -> None:
    """The dump tool of 3.9.1 printed control sequences as they are; no run of it is recorded."""
    unheld = {rule.id for rule in RULES if rule.brokers.basis == "run" and not is_by_run(rule)}
    assert unheld == {"SEG-PDR-027"}


# Since when: the classes and the bytes of the line itself.

SINCE = [rule for rule in RULES if rule.since_basis in {"run", "bytes"}]
SOURCE_ALONE_AT_MOST = 29
SINCE_BY_SOURCE_AT_MOST = 24
"""Of the rules that begin with 0.11 or later; nobody runs what is older."""


def line_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version that its corrections share."""
    return numbers(version)[: 3 if version.startswith("0.") else 2]


def asked_rules(version: str) -> dict[str, str]:
    """Return the passed and failed cases of each rule by the classes of a version's line."""
    content = (REPOSITORY / "fixtures" / "witnesses" / "rules_by_release.json").read_bytes()
    rules: dict[str, dict[str, str]] = json.loads(content)["rules"]
    return next((found for release, found in rules.items() if line_of(release) == line_of(version)), {})


def of_the_line(rule: Requirement) -> list[Verdict]:
    """Return the verdicts of Kafka's code from the line that a rule begins with."""
    named = ((one.testee.rpartition(" "), one) for one in by_requirement().get(rule.id, []))
    return [one for (name, _, version), one in named if name in CLASSES and line_of(version) == line_of(rule.since)]


def unshown(rule: Requirement) -> str:
    """Return what is missing where `since` rests on a run: most cases pass, and the text tells why others do not."""
    if rule.id in RECORDED:
        assert_recorded(rule.id, rule.since)
        return ""
    if rule.id[4:7] in TIER_AREAS:
        return "" if histories(rule.since) else f"no history was replayed by {rule.since}"
    passed, failed = map(int, asked_rules(rule.since).get(rule.id, "0/0").split("/"))
    if not asked_rules(rule.since):
        passed += sum(one.passed for one in of_the_line(rule))
        failed += sum(one.asked - one.passed for one in of_the_line(rule))
    line = ".".join(map(str, line_of(rule.since)))
    if not passed or (passed <= failed and not rule.brokers.departs):
        return f"{passed} cases passed, {failed} failed"
    is_named = rule.brokers.departs or f" {line}" in explanation(rule)
    return f"{failed} cases failed, and the text says nothing of {line}" if failed and not is_named else ""


@each_of("rule", [rule for rule in SINCE if rule.since_basis == "run"], ids=lambda rule: rule.id)
def test_since_by_a_run_is_what_the_classes_of_that_line_keep(rule: Requirement) -> None:
    assert not unshown(rule)


@each_of(
    ("rule", "since", "missing"),
    [
        ("SEG-CMP-031", "2.3.0", "0 cases passed, 0 failed"),
        ("SEG-RCV-007", "0.11.0", "0 cases passed, 5 failed"),
        ("SEG-APP-015", "3.8.0", "0 cases passed, 0 failed"),
        ("SEG-TXN-009", "0.10.0", "0 cases passed, 0 failed"),
    ],
)
def test_a_false_mark_is_found(rule: str, since: str, missing: str) -> None:
    """No case is about a rule, its classes do otherwise, or nobody has run a release of the line."""
    assert unshown(replace(requirements()[rule], since=since, since_basis="run")) == missing


def aborted_transactions(version: str) -> Iterator[bool]:
    """Chapter 42: some transaction index has several entries."""
    yield any(len(line["aborted"]) > 1 for name in undamaged(version) for line in lines(name, "transactionIndex"))


def producers_in_snapshots(version: str) -> Iterator[bool]:
    """Chapter 50: some snapshot has several producers."""
    yield any(len(line["producers"]) > 1 for name in undamaged(version) for line in lines(name, "producerSnapshot"))


def leader_epochs(version: str) -> Iterator[bool]:
    """Chapter 51: some leader epoch checkpoint has an entry."""
    texts = (line for name in undamaged(version) for line in lines(name, "text"))
    yield any(line["text"].splitlines()[2:] for line in texts if line["file"].endswith("/leader-epoch-checkpoint"))


CONTENT: Final = {"TXN": aborted_transactions, "PSN": producers_in_snapshots, "CKP": leader_epochs}
"""What the directories of a line have to contain where `verify` shall find no fault in it, by area."""


BY_TIERS: Final = {*(f"SEG-RLM-{rule:03d}" for rule in range(13, 24)), "SEG-TIR-001", "SEG-PDR-028"}
"""Rules that a disk and its store show together, where segments were copied, and some of them deleted."""


def test_since_by_bytes_of_a_tier_is_in_that_tier(capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("lts-3.6.2")
    remotes = read_metadata_topic(open_log_directory(case.local)).partitions
    assert [whose.topic for whose, remote in remotes.items() if remote.deleted] == ["orders", "retained"]
    for remote in remotes.values():  # SEG-RLM-013
        kept = min(segment.start_offset for segment in remote.segments.values())
        assert all(segment.start_offset < kept for segment in remote.deleted.values())
    assert run(["tier", "audit", "--json", "--content", "--logs", str(case.local), str(case.store)]) == 0
    assert capsys.readouterr().out == ""
    assert run(["verify", "--json", str(case.local)]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(one["requirement"], one["severity"]) for one in found} == {("SEG-PDR-028", "note")}
    claimed = {rule.id for rule in SINCE if rule.since_basis == "bytes" and rule.since == "3.6.0"}
    assert claimed == BY_TIERS


SINCE_BYTES: Final = [rule for rule in SINCE if rule.since_basis == "bytes" and rule.id not in BY_TIERS]


@each_of("rule", SINCE_BYTES, ids=lambda rule: rule.id)
def test_since_by_bytes_is_in_the_bytes_of_that_line(rule: Requirement) -> None:
    """They keep a behaviour; or they have what the rule is about, and `verify` finds nothing against it."""
    shows = BEHAVIOURS.get(rule.id) or CONTENT[rule.id[4:7]]
    (version,) = (version for version in versions() if line_of(version) == line_of(rule.since))
    seen = list(shows(version))
    assert seen
    assert all(seen)
    assert rule.id not in broken(version)


def test_few_rules_since_0_11_rest_on_the_source_alone() -> None:
    claimed = [rule for rule in RULES if rule.since and numbers(rule.since) >= (0, 11)]
    by_source = {rule.id for rule in claimed if rule.since_basis == "source"}
    assert len(by_source) <= SINCE_BY_SOURCE_AT_MOST
    assert witnesses.read().since_by_source.keys() == by_source


def test_few_marks_on_brokers_rest_on_the_source_alone() -> None:
    assert sum(rule.brokers.basis == "source" for rule in RULES) <= SOURCE_ALONE_AT_MOST


@pytest.mark.req("SEG-LDR-002", "SEG-LDR-007", "SEG-PDR-016", "SEG-FLS-006")
def test_a_partition_in_two_log_directories_is_refused_and_a_kill_leaves_no_clean_shutdown_file() -> None:
    said = json.loads((REPOSITORY / "fixtures" / "witnesses" / "log_directory_rules.json").read_bytes())["answers"]
    for each in said.values():
        assert each["lockedWhileRunning"]
        assert each["cleanShutdownFileAfterStop"]
        assert not each["cleanShutdownFileWhileRunning"]
        assert not each["cleanShutdownFileAfterKill"]
        assert each["logOfTheEmptyDirectory"] == ["00000000000000000000.log"]
        assert "Duplicate log directories" in each["twoLogDirectories"]


@pytest.mark.req("SEG-LDR-004", "SEG-FLS-013", "SEG-LOG-012", "SEG-PDR-015", "SEG-CTL-014", "SEG-CTL-015")
def test_the_small_files_of_a_line_are_as_the_rules_that_begin_with_it_say(tmp_path: Path) -> None:
    left = json.loads((REPOSITORY / "fixtures" / "witnesses" / "line_roots.json").read_bytes())["answers"]
    ends = {release: found["small"][".kafka_cleanshutdown"] for release, found in left.items()}
    assert not ends["3.6.2"]
    assert json.loads(ends["3.7.2"]).keys() == {"version", "brokerEpoch"}
    assert left["0.11.0.3"]["small"]["log-start-offset-checkpoint"] == "0\n1\nled 0 7\n"
    log = tmp_path / "led-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(bytes.fromhex(left["0.11.0.3"]["log"]))
    with open_partition(log.parent) as partition:
        epochs = [batch.header.partition_leader_epoch for batch in partition.batches()]
    assert epochs == sorted(epochs)
    assert {*epochs} == {0, 1}
    ((name, content),) = left["3.0.2"]["snapshots"].items()
    (log.parent / name).write_bytes(bytes.fromhex(content))
    assert re.fullmatch(r"\d{20}-\d{10}\.checkpoint", name)
    assert list(verify(log.parent / name)) == []


@pytest.mark.req("SEG-FLS-002", "SEG-FLS-006", "SEG-FLS-009", "SEG-FLS-012", "SEG-FLS-016")
@pytest.mark.req("SEG-CKP-014", "SEG-CMP-022")
def test_the_table_of_orders_says_which_recorded_brokers_sync_what_comes_first() -> None:
    witness = json.loads((REPOSITORY / "fixtures" / "witnesses" / "sync_orders.json").read_bytes())
    text = (REPOSITORY / "spec" / "71-flush-and-recovery.md").read_text("utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| ") and "SEG-" in row and row.count("|") == 5]
    for order, counts in witness["orders"].items():
        kept = [release for release in counts if "broken" not in counts[release]]
        said = "kept" if kept == witness["releases"] else f"kept by {', '.join(kept)}" if kept else "not kept"
        rule, _, names = order.partition(": ")
        (row,) = (row for row in rows if rule in row and (".deleted" in names) == (".deleted" in row))
        assert row.split(" | ")[-1].removesuffix(" |").startswith(said)
        mark = requirements()[rule].brokers
        if RECORDED.get(rule, ("",))[0] == "sync_orders.json":
            assert (mark.version in kept) == (mark.kept == "yes")
