"""Compare how we and Kafka's classes and tools read directories that brokers wrote and directories that we make."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.kafka.agreement import compared, numbered, read
from proofs.kafka.appends import compare_directories
from proofs.kafka.dumped import dumped
from proofs.kafka.oracle import Oracle, scratch_directory
from proofs.kafka.result import Result
from proofs.unpacking import unpack_archive
from seglog_format import open_partition, verify
from seglog_format.errors import FormatError
from seglog_format.generation.generate import generate
from seglog_format.generation.recipe import random_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format import LogConfig
    from seglog_format.types import Partition

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
DUMPED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES: Final = (".index", ".timeindex")
COMPLAINT: Final = re.compile(
    r"mismatches|not found|out of order|shallow|isvalid: false|invalid bytes|Exception|Missing|corrupt|not a valid",
    re.IGNORECASE,
)
TIME_MISMATCH: Final = re.compile(r"Index timestamp: (-?\d+), log timestamp: (-?\d+)")
"""Report of an index entry by the tool, which reads records: an emptied batch keeps its timestamp without any."""
GAP: Final = re.compile(r"\s*(\d+) is followed by (\d+)")
PASSED: Final = re.compile(r"passed sanity check|is empty")
LARGE: Final = re.compile(r'title="large.toml"\n(.*?)```', re.DOTALL)
"""The recipe of the page about `seglog generate`."""
ENTRIES: Final = 100
"""Entries of the offset index in a part of a large log: about 1.5 MB."""
SETTINGS: Final = ("segment_bytes", "index_interval_bytes", "segment_index_bytes", "segment_ms", "preallocate")


# Directories that brokers wrote


def check_fixtures(oracle: Oracle, every: int = 1) -> Result:
    """Read bundled directories with Kafka's classes and with ours, and compare every field.

    Args:
        oracle: an oracle of any release; all read the older formats.
        every: use every Nth directory.
    """
    result = Result("bundled directories of brokers 0.8.2 to 4.3: our lines against those of Kafka's classes")
    for case in sorted(path.parent for path in FIXTURES.glob("kafka-*/*/case.toml"))[::every]:
        with scratch_directory() as root:
            unpack_archive(case / "files.tar.gz", Path(root))
            compare_lines(result, oracle, f"{case.parent.name}/{case.name}", Path(root))
        result.checked += 1
    return result


def compare_lines(result: Result, oracle: Oracle, name: str, directory: Path) -> None:
    """Compare the contents of all files of a directory, field by field."""
    theirs = numbered(oracle.must("read", directory=str(directory))["lines"])
    ours = numbered(read(directory, ("--bytes", "base64")))
    for key in theirs.keys() - ours.keys():
        result.fail(name, f"Kafka's classes read {key}, ours do not")
    for key in ours.keys() - theirs.keys():
        if key[0] in {"batch", "record"}:
            result.fail(name, f"we read {key}, Kafka's classes do not")
    for key in theirs.keys() & ours.keys():
        for text in compared(theirs[key], ours[key]):
            result.fail(name, text)
        result.counts[f"{key[0]} lines"] += 1


# Directories that we make


def check_generated(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Make a log directory for each seed, and give each of its partitions to Kafka.

    The dump tool must find nothing, the loader must recover it without changing a byte, and reads and lookups must have
    the results of our own.

    Args:
        oracles: one per release to compare; first the newest, whose recovery writes the same indexes.
        seeds: seeds of the recipes.
    """
    result = Result("generated directories: dumped, recovered, read and searched by Kafka")
    for seed in seeds:
        with scratch_directory() as root:
            made = generate(random_recipe(seed), Path(root) / "log", seed)
            for partition in made.partitions:
                name = f"generated {seed}, {partition.path.name}"
                for oracle in oracles:
                    dump(result, oracle, f"{name}, Kafka {oracle.version}", partition.path)
                    recover(
                        result, oracle, f"{name}, Kafka {oracle.version}", partition.path, partition.plan.topic.config
                    )
                compare_lines(result, oracles[0], name, partition.path)
                look_up(result, oracles[0], name, partition.path)
                result.counts["partitions"] += 1
        result.checked += 1
    return result


def check_large(oracle: Oracle, seeds: range) -> Result:
    """Make 1 GB with transactions, have Kafka load it as after a crash, and compare a part of its log for each seed.

    Args:
        oracle: of a release whose recovery writes the same indexes.
        seeds: the first is that of the directory.
    """
    result = Result("1 GB with transactions: clean, loaded by Kafka as after a crash, and read by it in parts")
    (recipe,) = LARGE.findall((FIXTURES.parent / "docs/how-to/generate.md").read_text(encoding="utf-8"))
    with scratch_directory() as root:
        began = time.process_time()
        (made,) = generate(recipe, Path(root) / "log", seeds.start).partitions
        result.counts["processor time, ms"] = round(1000 * (time.process_time() - began))
        result.equal("verify", "findings", [], list(verify(made.path)))
        recover(result, oracle, "as a whole", made.path, made.plan.topic.config)
        with open_partition(made.path) as partition:
            (segment,) = partition.segments
            data, index = segment.paths.log.read_bytes(), segment.offset_index
            positions = [entry.position for entry in index.entries] if index else []
            for number in range(len(seeds)):
                first = number * (len(positions) - ENTRIES - 1) // len(seeds)
                part = data[positions[first] : positions[first + ENTRIES]]
                directory = Path(root) / f"{number}" / made.path.name
                directory.mkdir(parents=True)
                (directory / f"{int.from_bytes(part[:8]):020d}.log").write_bytes(part)
                compare_lines(result, oracle, f"part {number}", directory)
                result.checked += 1
            result.counts["bytes"] = len(data)
    return result


def dump(result: Result, oracle: Oracle, name: str, directory: Path) -> None:
    """Run Kafka's dump tool on every file: it may report only offsets that are left out."""
    files = sorted(str(path) for path in directory.iterdir() if path.suffix in DUMPED)
    indexes = [path for path in files if path.endswith(INDEXES)]
    output = _output(oracle, "--deep-iteration", "--files", ",".join(files))
    output += _output(oracle, "--verify-index-only", "--files", ",".join(indexes)) if indexes else ""
    complaints = [line for line in output.splitlines() if COMPLAINT.search(line)]
    for line in complaints[:1]:
        result.fail(name, f"dump: {line}")
    mismatches = {(int(index), int(log)) for index, log in TIME_MISMATCH.findall(output)}
    emptied = {(time, -1) for time in emptied_timestamps(directory)}
    result.equal(name, "timestamps that the dump does not find", set(), mismatches - emptied)
    result.counts["index entries of emptied batches"] += len(mismatches)
    reported = {(int(before), int(after)) for before, after in GAP.findall(output)}
    result.equal(name, "gaps that the dump reports", gaps_in(directory), reported)
    if indexes:
        passed = PASSED.findall(_output(oracle, "--index-sanity-check", "--files", ",".join(indexes)))
        result.equal(name, "indexes that pass the sanity check", len(indexes), len(passed))
    result.counts["files dumped"] += len(files)


def _output(oracle: Oracle, *arguments: str) -> str:
    return str(oracle.must("dump", arguments=list(arguments))["output"])


def emptied_timestamps(directory: Path) -> set[int]:
    """Return the timestamps of batches whose records were all removed."""
    lines = dumped(directory, "--bytes", "hex")
    return {line["maxTimestamp"] for line in lines if line["type"] == "batch" and line["recordsCount"] == 0}


def gaps_in(directory: Path) -> set[tuple[int, int]]:
    """Return the gaps between consecutive offsets of one segment."""
    found = set()
    last: dict[str, int] = {}
    for line in dumped(directory, "--bytes", "hex"):
        if line["type"] == "record":
            before = last.get(line["file"])
            if before is not None and line["offset"] != before + 1:
                found.add((before, line["offset"]))
            last[line["file"]] = line["offset"]
    return found


def recover(result: Result, oracle: Oracle, name: str, directory: Path, config: LogConfig) -> None:
    """Have Kafka load a copy as after a crash, scan every segment and rebuild every index: no byte may change."""
    with scratch_directory() as root:
        copy = Path(root) / directory.name
        shutil.copytree(directory, copy)
        answer = oracle.must("load", directory=str(copy), config=settings_of(config), isClean=False)
        compare_directories(result, name, directory, copy)
    with open_partition(directory) as partition:
        result.equal(name, "log end offset", partition.log_end_offset, answer["logEndOffset"])


def settings_of(config: LogConfig) -> dict[str, str]:
    """Return the topic settings that Kafka's loader needs."""
    return {field.replace("_", "."): str(getattr(config, field)).lower() for field in SETTINGS}


def look_up(result: Result, oracle: Oracle, name: str, directory: Path) -> None:
    """Compare positions of offsets, and offsets of timestamps, found by the indexes."""
    with scratch_directory() as root, open_partition(directory) as partition:
        copy = Path(root) / directory.name
        shutil.copytree(directory, copy)
        timestamps = _timestamps(directory)
        first: dict[int, tuple[int, int] | None] = dict.fromkeys(timestamps)
        for segment in partition.segments:
            offsets = list(range(segment.base_offset, segment.next_offset + 2))
            answer = oracle.must(
                "lookup", directory=str(copy), baseOffset=segment.base_offset, offsets=offsets, timestamps=timestamps
            )
            positions = [
                None if segment_position is None else segment_position[1] for segment_position in answer["positions"]
            ]
            ours = [segment.position_of(offset, trust_index=True) for offset in offsets]
            result.equal(name, f"positions in segment {segment.base_offset}", ours, positions)
            for timestamp, found in zip(timestamps, answer["found"], strict=True):
                first[timestamp] = first[timestamp] or (tuple(found) if found else None)
            result.counts["offsets looked up"] += len(offsets)
        for timestamp, expected in first.items():
            result.equal(name, f"timestamp {timestamp}", _found(partition, timestamp), expected)
            result.counts["timestamps looked up"] += 1


def _timestamps(directory: Path) -> list[int]:
    """Return the timestamps of the records and some between them; negative ones have special meanings."""
    seen = {line["timestamp"] for line in dumped(directory, "--bytes", "hex") if line["type"] == "record"}
    return sorted({time + step for time in seen for step in (-1, 0, 1) if time + step >= 0})


def _found(partition: Partition, timestamp_ms: int) -> tuple[int, int] | str | None:
    try:
        found = partition.offset_for_timestamp(timestamp_ms)
    except FormatError as error:
        return str(error)
    return None if found is None else (found.timestamp_ms, found.offset)
