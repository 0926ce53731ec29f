"""Every command that reads logs, run while files change, and what its output holds that the log never did."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.dataset as ds
from pyarrow import ArrowInvalid

from proofs.children import watched
from proofs.shrinking.changing import CHANGED, value_of
from seglog_format import open_partition

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Row = tuple[str, int, int, bytes]

STATUSES: Final = frozenset(range(5))
"""The documented exit statuses."""
EXPORTS: Final = ("parquet", "iceberg", "arrow", "csv", "jsonl")


class Files(NamedTuple):
    """What the words of a command stand for.

    Attributes:
        root: the log directory.
        truth: the directory that does not change.
        partition: a partition of the log directory.
        log, index, timeindex, txnindex, snapshot: a file of the partition.
        out: a new path.
    """

    root: Path
    truth: Path
    partition: Path
    log: Path
    index: Path
    timeindex: Path
    txnindex: Path
    snapshot: Path
    out: Path


class Command(NamedTuple):
    """A command.

    Attributes:
        words: with names of `Files` in braces.
        rows: yields what its output, or what it has written, says of records.
    """

    words: str
    rows: Callable[[str, Files], Iterator[Row]] | None = None


def _key(path: Path) -> tuple[str, int]:
    topic, _, number = path.name.rpartition("-")
    return topic, int(number)


def _dumped(output: str, files: Files) -> Iterator[Row]:
    for line in map(json.loads, output.splitlines()):
        if line["type"] == "record" and "control" not in line:
            yield (*_key(files.partition), line["offset"], line["value"].encode())


def _compared(output: str, files: Files) -> Iterator[Row]:
    """Yield records of one side that are not those of the other."""
    for line in map(json.loads, output.splitlines()):
        if line.get("type") == "difference" and line.get("second") and line.get("first"):
            yield (*_key(files.partition), line["offset"], repr(line).encode())


def _copied(_: str, files: Files) -> Iterator[Row]:
    for directory in sorted({log.parent for log in files.out.rglob("*.log")}):
        if directory.name.startswith("shaken-"):
            with open_partition(directory) as partition:
                records = partition.records(on_gap=lambda _: None)
                yield from ((*_key(directory), record.offset, record.value or b"") for record in records)


def _exported(_: str, files: Files) -> Iterator[Row]:
    kinds = {".parquet": "parquet", ".arrow": "ipc", ".csv": "csv"}
    for path in sorted(files.out.rglob("*.*")):
        found = re.search(r"topic=(\w+)/partition=(\d+)", str(path))
        if path.suffix == ".jsonl" and found:
            lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            rows = [(line["offset"], line["value"]) for line in lines]
        elif path.suffix in kinds and found:
            try:
                table = ds.dataset(path, format=kinds[path.suffix]).to_table(columns=["offset", "value"])
            except ArrowInvalid:  # not complete: the export has ended early, and the table does not name it
                continue
            rows = list(zip(*table.to_pydict().values(), strict=True))
        else:
            continue
        for offset, value in rows:
            yield found[1], int(found[2]), offset, value if isinstance(value, bytes) else value.encode()


COMMANDS: Final = {
    "ls": Command("ls --long {root}"),
    "ls of a partition": Command("ls --json {partition}"),
    "dump": Command("dump --json {partition}", _dumped),
    "dump of everything": Command("dump {root}"),
    "dump, a range": Command("dump --json --from 1000 --to 4000 {partition}", _dumped),
    "dump, headers": Command("dump --no-records {partition}"),
    "find": Command("find --json item {partition}", _dumped),
    "verify": Command("verify {root}"),
    "inspect": Command("inspect --offset 1500 {log}"),
    "inspect of an index": Command("inspect {index}"),
    "inspect of a time index": Command("inspect {timeindex}"),
    "inspect of a transaction index": Command("inspect {txnindex}"),
    "inspect of a snapshot": Command("inspect {snapshot}"),
    "lookup of an offset": Command("lookup --offset 3500 {partition}"),
    "lookup of a time": Command("lookup --timestamp 1700000003500 {partition}"),
    "diff": Command("diff --json --count 0 {truth}/{name} {partition}", _compared),
    "transactions": Command("transactions {root}"),
    "cluster": Command("cluster {root}"),
    "resurrect": Command("resurrect {root} -o {out} --unknown-topics", _copied),
    "recover": Command("recover {root}"),
    "recover, like a broker": Command("recover --like-broker {root}"),
    "retain": Command("retain {root} --config retention.ms=-1 --config retention.bytes=600000"),
    "retain, compacted": Command("retain {root} --config cleanup.policy=compact"),
    "salvage": Command("salvage {partition} -o {out}/{name}", _copied),
    "index": Command("index {root}"),
    "index, rebuilt": Command("index --rebuild -o {out} {root}"),
    **{
        f"export to {form}": Command(f"export {{root}} --topic shaken --to {{out}} --format {form}", _exported)
        for form in EXPORTS
    },
    "export of committed records": Command("export {root} --topic shaken --committed --to {out}", _exported),
    "spark verify": Command("spark verify {root}"),
}
"""Every command that reads logs of others, by what it is called in the report."""

LEFT_OUT: Final = {
    "explorer": "reads one file into memory by the reader of inspect, and then shows it in a browser",
    "tier": "reads stores, not log directories; stored segments are read by ranges in any case",
    "serve": "runs as long as files change, see `proofs.shrinking.clients`",
    "generate": "reads no log, or a sample of one for --like",
    "anonymise": "copies every file whole; its own tests damage what it reads",
    "convert": "reads lines",
    "conform": "reads cases of its own",
    "fixtures": "reads the package's own files",
    "completion": "reads no file",
    "warm": "reads no file",
    "explain": "reads no file",
    "schema": "reads no file",
}
"""Commands that are not among `COMMANDS`, and why."""


def chosen_files(root: Path, truth: Path, out: Path, dice: random.Random) -> Files:
    """Choose a partition and its files."""
    partition = root / dice.choice(CHANGED)
    names = {kind: sorted((truth / partition.name).glob(f"*.{kind}")) for kind in Files._fields[3:8]}
    chosen = {kind: partition / dice.choice(paths).name for kind, paths in names.items()}
    return Files(root=root, truth=truth, partition=partition, out=out, **chosen)


def words_of(command: Command, files: Files) -> list[str]:
    """Return the words of a command."""
    return [word.format(**files._asdict(), name=files.partition.name) for word in command.words.split()]


def wrong_rows(command: Command, output: str, files: Files) -> list[str]:
    """Return records of the output that the log never held."""
    rows = [] if command.rows is None else command.rows(output, files)
    return [repr(row)[:200] for row in rows if row[3] != value_of(*row[:3])][:5]


def problems_of(name: str, files: Files) -> tuple[int, list[str]]:
    """Run a command; return its exit status, and what must not happen."""
    command = COMMANDS[name]
    ended = watched(["-m", "seglog_format.cli", *words_of(command, files)])
    found = [f"{name}: status {ended.status}: {ended.errors[-500:]}"] if ended.status not in STATUSES else []
    found += [f"{name}: {ended.errors[-1500:]}"] if "Traceback" in ended.errors else []
    return ended.status, [*found, *(f"{name}: wrong: {row}" for row in wrong_rows(command, ended.output, files))]
