"""The speed of appends: `PartitionWriter` against Kafka's own classes, with the same batches in the same run.

Batches are made before, as producers send them, and are written to files in memory; nothing is flushed. Kafka's
``LogSegment.append`` only writes bytes and index entries, without the work of a leader before that. Kafka's
``UnifiedLog.appendAsLeader`` and our ``append`` include that work.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import Peer, Times, at_offset, java_version, measure
from seglog_conformance.toolchains import complaints

from proofs.kafka import oracle as kafka_oracle
from proofs.report_facts import BENCHMARKED, run_conditions, write_report
from seglog_format import LogConfig, PartitionWriter, build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RELEASE: Final = "4.1"
TIME_MS: Final = 1_700_000_000_000
DISTINCT: Final = 32
"""Number of different batches; they are repeated at increasing offsets."""

SETTINGS: Final = {"segment.bytes": str(1 << 30), "message.timestamp.after.max.ms": str(2**63 - 1)}
JAVA_OPTIONS: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
APPENDS: Final = kafka_oracle.LOGS._replace(main="seglog.oracle.Appends")
LEADER: Final = "PartitionWriter.append"
FOLLOWER: Final = "PartitionWriter.append_as_follower"
SEGMENT: Final = "Kafka LogSegment.append"
BROKER: Final = "Kafka UnifiedLog.appendAsLeader"


@dataclass(frozen=True, slots=True)
class Case:
    """The batches to append.

    Attributes:
        value_size: bytes of each record's value.
        record_count: records of a batch.
        batch_count: batches of a round, one append each.
    """

    value_size: int
    record_count: int
    batch_count: int

    def batches(self, seed: int) -> list[bytes]:
        """Return the batches of a round, as producers send them."""
        dice = random.Random(f"{seed} {self.value_size}")  # noqa: S311 - chance that repeats
        made = [self._batch(dice) for _ in range(DISTINCT)]
        return [made[number % DISTINCT] for number in range(self.batch_count)]

    def _batch(self, dice: random.Random) -> bytes:
        records = [
            new_record(key=dice.randbytes(8), value=dice.randbytes(self.value_size), timestamp_ms=TIME_MS + number)
            for number in range(self.record_count)
        ]
        return encode_batch(build_batch(records))


CASES: Final = (Case(100, 100, 3000), Case(1000, 16, 3000))
SHARE_OF_LEADER: Final = 40
"""The reference gets one batch in this many: it checks every record, and is slow."""


class Appending:
    """The same appends through each peer.

    Args:
        case: the batches to append.
        seed: seed of their bytes.
        scratch: a directory for the files of a round.
        kafka: Kafka's classes, if they are available.
    """

    def __init__(self, case: Case, seed: int, scratch: Path, kafka: kafka_oracle.Oracle | None) -> None:
        self.case = case
        self.scratch = scratch
        self.kafka = kafka
        self.sent = case.batches(seed)
        self.placed = [at_offset(data, n * case.record_count) for n, data in enumerate(self.sent)]
        (scratch / "sent").write_bytes(b"".join(self.sent))
        (scratch / "placed").write_bytes(b"".join(self.placed))

    @property
    def batch_size(self) -> int:
        """Return the size of a batch; sizes hardly differ."""
        return sum(map(len, self.sent)) // len(self.sent)

    def peers(self) -> Iterator[Peer]:
        """Yield our peers, and Kafka's if there is Java."""
        few = self.sent[::SHARE_OF_LEADER]
        yield Peer(LEADER, lambda: self._ours(few, lambda writer: writer.append))
        yield Peer(FOLLOWER, lambda: self._ours(self.placed, lambda writer: writer.append_as_follower))
        if self.kafka is not None:
            yield Peer(SEGMENT, lambda: self._kafka("segment", "placed"))
            yield Peer(BROKER, lambda: self._kafka("leader", "sent"))

    def _directory(self) -> Path:
        directory = self.scratch / "logs"
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "t-0").mkdir(parents=True)
        return directory / "t-0"

    def _ours(self, batches: Sequence[bytes], method: Callable[[PartitionWriter], Callable[[bytes], object]]) -> float:
        with PartitionWriter(self._directory(), LogConfig.from_properties(SETTINGS)) as writer:
            append = method(writer)
            start = time.perf_counter()
            for data in batches:
                append(data)
            return (time.perf_counter() - start) / len(batches)

    def _kafka(self, peer: str, file: str) -> float:
        assert self.kafka is not None
        answer = self.kafka.must(
            peer, peer=peer, file=str(self.scratch / file), directory=str(self._directory()), config=SETTINGS
        )
        seconds: float = answer["nanoseconds"] / 1e9 / answer["appends"]
        return seconds


def result(appending: Appending, times: Sequence[Times]) -> dict[str, Any]:
    """Return the figures of a case, and the ratio of our speed to that of each of Kafka's peers."""
    case, known = appending.case, {each.name: each for each in times}
    return {
        "valueBytes": case.value_size,
        "recordsPerBatch": case.record_count,
        "batchBytes": appending.batch_size,
        "peers": {name: _speed(appending, each) for name, each in known.items()},
        "ratios": {
            f"{ours} / {theirs}": round(known[theirs].median / known[ours].median, 4)
            for ours, theirs in product((LEADER, FOLLOWER), (SEGMENT, BROKER))
            if theirs in known
        },
    }


def _speed(appending: Appending, times: Times) -> dict[str, Any]:
    return {
        "megabytesPerSecond": round(appending.batch_size / times.median / 1e6, 2),
        "appendsPerSecond": round(1 / times.median),
        "microsecondsPerAppend": [round(each * 1e6, 1) for each in times.seconds],
    }


def text(found: dict[str, Any]) -> Iterator[str]:
    """Yield the result of a case as lines of text."""
    size, count = found["batchBytes"], found["recordsPerBatch"]
    yield f"records of {found['valueBytes']} bytes, {count} to a batch of {size:,} bytes"
    for name, speed in found["peers"].items():
        yield f"  {name:36}{speed['megabytesPerSecond']:10,.1f} MB/s{speed['appendsPerSecond']:12,} appends/s"
    for name, ratio in found["ratios"].items():
        yield f"  {name}: {ratio:.4f}"


def report(seed: int, rounds: int, kafka: kafka_oracle.Oracle | None) -> dict[str, Any]:
    """Measure every case."""
    cases = []
    for case in CASES:
        with kafka_oracle.scratch_directory() as name:
            appending = Appending(case, seed, Path(name), kafka)
            cases.append(result(appending, measure(list(appending.peers()), rounds)))
        print("\n".join(text(cases[-1])), flush=True)
    return {"rounds": rounds, "cases": cases}


def main() -> int:
    """Measure and print; write a report only if Kafka's classes were measured."""
    parser = argparse.ArgumentParser(description="speed of appends, against Kafka's own classes")
    parser.add_argument("--seed", type=int, default=1, help="seed of the appended bytes")
    parser.add_argument("--rounds", type=int, default=7, help="rounds for each peer")
    parser.add_argument("--report", type=Path, help="write the figures here, as JSON")
    given = parser.parse_args()
    if unusable := complaints(kafka_oracle.TOOL_CHAIN):
        print(f"Kafka needs {'; '.join(unusable)}; Kafka's side is left out, and no report is written\n")
        report(given.seed, given.rounds, None)
        return 0
    command = f"make bench NAME=append ARGS='--seed {given.seed} --rounds {given.rounds}'"
    with kafka_oracle.Oracle(RELEASE, project=APPENDS, options=JAVA_OPTIONS) as kafka:
        versions = {"kafka": kafka.version, "java": java_version()}
        conditions = run_conditions(command, seed=given.seed, versions=versions, measures=BENCHMARKED)
        write_report(given.report, conditions, report(given.seed, given.rounds, kafka))
    return 0


if __name__ == "__main__":
    sys.exit(main())
