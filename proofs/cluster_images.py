"""Compare the image of a cluster with Kafka's own after every record of real and generated metadata logs."""

from __future__ import annotations

import json
import random
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofs.harness import Outcome
from proofs.kafka.metadata_histories import METADATA_TOPIC, encoded, made_history
from proofs.kafka.oracle import CLUSTERS, REPOSITORY, Oracle
from proofs.unpacking import unpack_archive
from seglog_format import open_partition
from seglog_format.codec.coordinator_records import decode_metadata_record
from seglog_format.types import MetadataLog, MetadataRecord, MetadataState

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from proofs.kafka.metadata_histories import Fields
    from seglog_format.types import MetadataImage

RELEASE: Final = "4.4"
TRANSACTIONS: Final = frozenset({"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD"})
NOT_COMPARED: Final = frozenset({"ZK_MIGRATION_STATE_RECORD"})
"""Record types that Kafka 4 no longer has."""

SETS: Final = {"logDirs": str, "endPoints": json.dumps, "features": json.dumps, "entity": json.dumps}
"""Fields without an order of their own, and the order to compare them in."""


class Step(NamedTuple):
    """A record of a history, and the image after it."""

    where: str
    value: bytes
    snapshot: frozenset[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the number of comparisons."""
    parser.add_argument("--histories", type=int, default=60, help="made-up histories")
    parser.add_argument("--length", type=int, default=300, help="records of each")
    parser.add_argument("--more", type=Path, metavar="DIR", help="take each __cluster_metadata-0 below it, too")


def prove(options: argparse.Namespace) -> Outcome:
    """Compare all histories."""
    failures: list[str] = []
    counts = {"real": 0, "made": 0}
    with Oracle(RELEASE, project=CLUSTERS) as kafka, tempfile.TemporaryDirectory() as scratch:
        for steps in real_histories([*bundled(Path(scratch)), *_below(options.more)]):
            failures += differences(kafka, steps)
            counts["real"] += len(steps)
        for number in range(options.histories):
            steps = made_steps(options.seed + number, options.length)
            failures += differences(kafka, steps)
            counts["made"] += len(steps)
    facts = {"realOffsets": counts["real"], "madeOffsets": counts["made"]}
    return Outcome(facts, failures, {"kafka": CLUSTERS.releases[RELEASE]})


def bundled(scratch: Path) -> Iterator[Path]:
    """Unpack the metadata logs of the bundled broker directories."""
    for archive in sorted((REPOSITORY / "fixtures").glob("kafka-*/cluster-metadata*/files.tar.gz")):
        target = scratch / archive.parent.parent.name / archive.parent.name
        unpack_archive(archive, target)
        yield target / f"{METADATA_TOPIC}-0"


def _below(directory: Path | None) -> list[Path]:
    return [] if directory is None else sorted(directory.rglob(f"{METADATA_TOPIC}-0"))


def real_histories(directories: Iterable[Path]) -> Iterator[list[Step]]:
    """Yield the steps of each metadata log that reaches back to offset 0."""
    for directory in directories:
        log = MetadataLog(directory)
        if log.log_start_offset == 0:
            yield list(_real_steps(log))


def _real_steps(log: MetadataLog) -> Iterator[Step]:
    with open_partition(log.path) as partition:
        values = {record.offset: record.value for record in partition.records()}
    records = (record for record in log.records() if not record.is_control and record.type not in TRANSACTIONS)
    return _steps(log.path.parent.name, records, lambda record: values[record.offset] or b"")


def made_steps(seed: int, length: int) -> list[Step]:
    """Return the steps of a generated history."""
    state = MetadataState()
    made = made_history(random.Random(seed), state.image, length)
    records = (
        MetadataRecord(number, 0, 0, kind, fields, is_control=False) for number, (kind, fields) in enumerate(made)
    )
    return list(_steps(f"history {seed}", records, lambda record: encoded(record.type, record.fields), state))


def _steps(
    name: str,
    records: Iterable[MetadataRecord],
    value_of: Callable[[MetadataRecord], bytes],
    state: MetadataState | None = None,
) -> Iterator[Step]:
    state = state or MetadataState()
    for record in records:
        state.replay([record])
        if state.problems:
            raise ValueError(state.problems[0])
        yield Step(f"{name}, record {record.offset}: {record.type}", value_of(record), snapshot_of(state.image))


def _decoded(value: bytes) -> tuple[str, Fields]:
    decoded: dict[str, Any] = decode_metadata_record(METADATA_TOPIC, value)
    return decoded["type"], decoded["data"]


def snapshot_of(image: MetadataImage) -> frozenset[str]:
    """Return the records of a snapshot of the image, each in canonical form."""
    return frozenset(_form(kind, fields) for kind, fields in image.records() if kind not in NOT_COMPARED)


def _form(kind: str, fields: Fields) -> str:
    """Return a record in canonical form: without fields that have their default, and with sets in order."""
    kept = {name: value for name, value in fields.items() if value not in (None, [], False)}
    if not kept.get("leaderRecoveryState"):
        kept.pop("leaderRecoveryState", None)
    for name, order in SETS.items():
        if name in kept:
            kept[name] = sorted(kept[name], key=order)
    return f"{kind} {json.dumps(kept, sort_keys=True)}"


@lru_cache(maxsize=4096)
def _form_of(record: str) -> str:
    """Return a record of Kafka's, given in hex, in canonical form; most records repeat in each snapshot."""
    return _form(*_decoded(bytes.fromhex(record)))


def differences(kafka: Oracle, steps: list[Step]) -> list[str]:
    """Return the first step of a history whose image differs from that of Kafka's classes."""
    answer = kafka.must("image", records=[step.value.hex() for step in steps])
    for step, records in zip(steps, answer["images"], strict=True):
        theirs = frozenset(map(_form_of, records))
        theirs = frozenset(each for each in theirs if each.split(" ", 1)[0] not in NOT_COMPARED)
        if theirs != step.snapshot:
            ours, missing = sorted(step.snapshot - theirs)[:1], sorted(theirs - step.snapshot)[:1]
            return [f"{step.where}: ours {ours}, Kafka's {missing}"]
    return []
