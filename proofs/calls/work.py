"""The watched work: one operation of the public interface after the other, each reported when it has returned.

``python -m proofs.calls.work DIRECTORY [FAULT]``; a fault is the name of one in `plants.toml`.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.calls.rules import REPORTED
from proofs.power.plants import planted, plants
from seglog_format import LogConfig, LogWriter, compact, new_record, retain, truncate
from seglog_format.cli.main import run as run_command

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS: Final = [new_record(key=b"key", value=b"value", timestamp_ms=1000)]
SMALL: Final = LogConfig(segment_bytes=300, index_interval_bytes=0)
RECIPE: Final = """
[[topic]]
name = "made"
partitions = 2
[topic.settings]
"segment.bytes" = 2000
[[topic.step]]
records = 50
"""


class Work:
    """Operations below an empty directory, and a file beside it with the acknowledgements."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "logs"
        self._reported = os.open(top.with_name(REPORTED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write_event(self, what: str, path: Path) -> None:
        """Report an acknowledgement."""
        os.write(self._reported, f"{what} {path}\n".encode())

    def write(self) -> None:
        """Append, flush, roll, checkpoint, retain and close, twice: the second time trusts the files of the first."""
        for _ in range(2):
            with LogWriter(self.root, SMALL) as logs:
                writers = [logs.open("t", number, topic_id="AAAAAAAAAAEAAAAAAAAAAg") for number in range(2)]
                for _ in range(8):
                    for writer in writers:
                        writer.append(RECORDS)
                    writers[0].append(RECORDS, acks="flushed")
                    self.write_event("flushed", self.root / "t-0")
                logs.checkpoint()
                writers[1].roll()
                writers[1].flush()
                self.write_event("flushed", self.root / "t-1")
            self.write_event("done", self.root)

    def go_on(self) -> None:
        """Continue where a process has died that did not wait for the disk."""
        root = self.top / "died"
        dead = LogWriter(root, SMALL)
        dead.open("t", 0).append(RECORDS)
        dead._root.close()  # noqa: SLF001 - a process that ends releases its lock, and nothing else
        with LogWriter(root) as logs:
            writer = logs.open("t", 0)
            assert writer.recovery_point == 1
            self.write_event("opened", root / "t-0")
            writer.append(RECORDS, acks="flushed")
            self.write_event("flushed", root / "t-0")
        self.write_event("done", root)

    def change(self) -> None:
        """Change closed logs: truncate, remove segments, compact, recover."""
        truncate(self.root / "t-0", 10).apply()
        self.write_event("done", self.root)
        retain(self.root / "t-1", LogConfig(retention_bytes=300), now_ms=2000).apply()
        self.write_event("done", self.root)
        compact(self.root / "t-0", LogConfig(cleanup_policy=frozenset({"compact"})), now_ms=10**13).apply()
        self.write_event("done", self.root)
        self._lose_indexes()
        self._run("recover", "--write", str(self.root))
        self.write_event("done", self.root)

    def _lose_indexes(self) -> None:
        """Delete indexes and sync, as an operator might, so there is something to recover."""
        (self.root / ".kafka_cleanshutdown").unlink()
        sync_directory(self.root)
        for path in self.root.glob("t-*"):
            for index in path.glob("*.index"):
                index.unlink()
            sync_directory(path)

    def make(self) -> None:
        """Make directories: from a damaged one, and from a recipe."""
        self._run("salvage", str(self.root), "-o", str(self.top / "saved" / "here"))
        self.write_event("done", self.top / "saved")
        recipe = self.top.with_name("recipe.toml")
        recipe.write_text(RECIPE, encoding="utf-8")
        self._run("generate", str(recipe), "-o", str(self.top / "generated" / "here"))
        self.write_event("done", self.top / "generated")

    def serve(self) -> None:
        """Accept records from a client over the network; the sync comes before the answer."""
        from proofs.calls.produce import produce  # noqa: PLC0415 - needs what not everybody has installed

        root = self.top / "served"
        with LogWriter(root) as logs:
            logs.open("t", 0)
        produce(root, "t", lambda: self.write_event("serves", root / "t-0"), lambda: self.write_event("serves", Path()))
        self.write_event("done", root)

    def commit(self) -> None:
        """Commit the rows that tasks of Spark have staged; this does not need Spark itself."""
        from proofs.calls.stage import commit  # noqa: PLC0415 - the same

        commit(self.top / "spark")
        self.write_event("done", self.top / "spark")

    def _run(self, *arguments: str) -> None:
        status = run_command(list(arguments))
        if status > 1:
            msg = f"seglog {' '.join(arguments)}: {status}"
            raise RuntimeError(msg)


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to the disk."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def main() -> None:
    """Do all operations, with a fault or without."""
    top, *names = sys.argv[1:]
    fault = next((planted(plant) for plant in plants() if plant.name in names), nullcontext())
    work = Work(Path(top))
    operations: list[Callable[[], None]] = [work.write, work.go_on, work.change, work.make]
    if not names:
        operations += [work.serve, work.commit]
    with fault:
        for operation in operations:
            operation()


if __name__ == "__main__":
    main()
