"""Wireshark's dissector reads the Fetch responses of seglog serve; its fields are compared with ours."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import complaints

from proofs.dissecting.conversation import BATCH_MAGIC, FETCH_VERSION, fetch_all, write_capture
from proofs.dissecting.entry import differences
from proofs.dissecting.known import is_late, reason
from proofs.dissecting.ours import our_entries
from proofs.dissecting.shown import dissector_version, shown_answers
from proofs.harness import ROOT, Outcome
from proofs.unpacking import unpack_archive

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from proofs.dissecting.entry import Entry

PROGRAMS: Final = ("text2pcap", "tshark")
FIXTURES: Final = ROOT / "fixtures"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--every", type=int, default=1, help="compare every Nth partition")


def prove(options: argparse.Namespace) -> Outcome:
    """Run the proof.

    Raises:
        SystemExit: Wireshark's programs are missing.
    """
    if lacking := complaints(PROGRAMS):
        sys.exit(f"this proof needs {'; '.join(lacking)}")
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="dissector-") as scratch:
        for name, partition in [*bundled_partitions(Path(scratch))][:: options.every]:
            compare_partition(name, partition, Path(scratch) / "capture.pcap", verdict)
    facts = {
        "fetchVersion": FETCH_VERSION,
        "counts": ordered(verdict.counts),
        "known": ordered(verdict.known),
        "damagedLogs": verdict.damaged,
    }
    return Outcome(facts, verdict.failures, {"wireshark": dissector_version()})


def bundled_partitions(scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the partition directories of all bundled cases with a name for each, unpacking archives."""
    for archive in sorted(FIXTURES.glob("kafka-*/*/files.tar.gz")):
        name = str(archive.parent.relative_to(FIXTURES))
        unpack_archive(archive, scratch / name)
        yield from _partitions(name, scratch / name)
    for directory in sorted(FIXTURES.glob("handbook/*/files")):
        yield from _partitions(directory.parent.name, directory)


def _partitions(name: str, root: Path) -> Iterator[tuple[str, Path]]:
    for directory in sorted({log.parent for log in root.rglob("*.log")}):
        yield f"{name}/{directory.relative_to(root)}", directory


def compare_partition(name: str, partition: Path, capture: Path, verdict: Verdict) -> None:
    """Fetch a partition, and compare our reading of the answers with the dissector's."""
    conversation = fetch_all(partition)
    write_capture(conversation.said, capture)
    verdict.counts["partitions"] += 1
    verdict.damaged += [name] * conversation.is_damaged
    shown = list(shown_answers(capture))
    if len(shown) != len(conversation.answers):
        verdict.failures.append(f"{name}: {len(conversation.answers)} answers, {len(shown)} dissected")
    for number, (data, theirs) in enumerate(zip(conversation.answers, shown, strict=False)):
        compare(f"{name}, answer {number}", our_entries(data), theirs, verdict)


def compare(name: str, ours: Sequence[Entry], theirs: Sequence[Entry], verdict: Verdict) -> None:
    """Compare the entries of one answer."""
    verdict.counts["answers"] += 1
    if len(theirs) > len(ours) == 1 and is_late(theirs[0]):
        verdict.known["entries_behind_such_attributes"] += 1
    elif len(ours) != len(theirs):
        verdict.failures.append(f"{name}: {len(ours)} entries, {len(theirs)} dissected")
    for mine, other in zip(ours, theirs, strict=False):
        verdict.add(mine, other)
        for each in differences(mine, other):
            if (why := reason(each)) is not None:
                verdict.known[why] += 1
            else:
                verdict.failures.append(f"{name}, offset {mine.fields['offset']}, {each}")


@dataclass(slots=True)
class Verdict:
    """The number of comparisons, and the differences.

    Attributes:
        counts: numbers of things compared.
        known: numbers of explained differences, by explanation.
        failures: a line for each other difference.
        damaged: partitions whose log is compared only up to its damage.
    """

    counts: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def add(self, ours: Entry, theirs: Entry) -> None:
        """Count an entry that is compared, with its records or messages."""
        magic = ours.fields["magic"]
        self.counts[f"entries of magic {magic}, codec {ours.fields['codec']}"] += 1
        if magic == BATCH_MAGIC:
            self.counts["records compared"] += min(len(ours.items), len(theirs.items))
        else:
            part = "up to the attributes" if is_late(theirs) else "whole"
            self.counts[f"messages of magic {magic} compared {part}"] += 1


def ordered(counts: Counter[str]) -> dict[str, int]:
    """Return counts by name."""
    return dict(sorted(counts.items()))
