"""Logs that another process writes while they are read: nothing is found but an incomplete tail."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.walking import each_of

from seglog_format import (
    ControlRecordType,
    LogConfig,
    Origin,
    PartitionWriter,
    build_batch,
    build_end_marker,
    encode_batch,
    new_record,
    verify,
)
from seglog_format.cli.main import run
from seglog_format.engine import Engine
from seglog_format.storage import file_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TAILS: Final = {"SEG-LOG-002", "SEG-LOG-004", "SEG-IDX-007", "SEG-TIX-007", "SEG-PDR-012"}
"""What the end of a log that is being written may be: an entry that is not whole, slots of zeros, no index as yet."""
PRODUCER: Final = {"producer_id": 7, "producer_epoch": 0}
MARKER: Final = encode_batch(
    build_end_marker(
        ControlRecordType.ABORT,
        **PRODUCER,
        coordinator_epoch=0,
        timestamp_ms=1,
        base_offset=0,
        partition_leader_epoch=0,
    )
)
CHECKPOINTS: Final = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
CONFIGS: Final = {
    "one segment": LogConfig(index_interval_bytes=100, segment_index_bytes=4096),
    "many segments": LogConfig(index_interval_bytes=100, segment_bytes=1500, segment_index_bytes=200),
}
MOST_STEPS: Final = 60
"""Number of times that something is written between the reads of one command, at most."""


class Broker:
    """Writes a log and its checkpoints in the order of a broker: the log, its indexes, then the high watermark."""

    def __init__(self, directory: Path, config: LogConfig, *, is_transactional: bool = False) -> None:
        self.writer = PartitionWriter(directory, config)
        self.steps = self._sequence = self._left = 0
        self._is_transactional = is_transactional
        self._is_writing = False
        for _ in range(12):
            self.write()

    def write(self) -> None:
        """Append a batch, the seventh with a new leader epoch, the third with the end of its transaction."""
        self.steps += 1
        if self.steps % 7 == 1:
            self.writer.become_leader(self.steps)
        records = [new_record(value=b"x" * 50, timestamp_ms=self.steps)] * 3
        batch = build_batch(records, **PRODUCER, base_sequence=self._sequence, is_transactional=self._is_transactional)
        self.writer.append(encode_batch(batch))
        self._sequence += 3
        if self._is_transactional and self.steps % 3 == 0:
            self.writer.append(MARKER, origin=Origin.COORDINATOR)
        for name in CHECKPOINTS:
            written = self.writer.path.parent / f"{name}.tmp"
            written.write_text(f"0\n1\nt 0 {self.writer.log_end_offset}\n")
            written.replace(written.with_suffix(""))

    @contextmanager
    def writing_before_each_read(self) -> Iterator[None]:
        """Write before a file is opened, before bytes are read, and before a directory is listed."""
        self._left = MOST_STEPS
        with pytest.MonkeyPatch.context() as patched:
            for owner, name in ((os, "open"), (os, "scandir"), (file_reader, "_read_at")):
                patched.setattr(owner, name, self._before(getattr(owner, name)))
            yield
        assert self._left < MOST_STEPS - 2

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the function has them
            if not self._is_writing and self._left:  # a writer opens files too
                self._is_writing, self._left = True, self._left - 1
                self.write()
                self._is_writing = False
            return function(*args, **options)

        return called


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.AUTO])
@each_of(("config", "is_transactional"), [(config, each) for config in CONFIGS for each in (False, True)])
def test_verify_finds_only_tails_whatever_is_written_between_two_reads(
    config: str,
    is_transactional: bool,  # noqa: FBT001 - an input
    engine: Engine,
    tmp_path: Path,
) -> None:
    broker = Broker(tmp_path / "logs" / "t-0", CONFIGS[config], is_transactional=is_transactional)
    for path in (tmp_path / "logs", broker.writer.path, *sorted(broker.writer.path.glob("*.*index"))[-3:]):
        with broker.writing_before_each_read():
            found = [str(each) for each in verify(path, engine=engine) if each.requirement not in TAILS]
        assert found == [], path.name
    broker.writer.close()
    assert list(verify(tmp_path / "logs", engine=engine)) == []


@each_of(
    ("command", "config"), [(c, config) for c in ("verify", "ls", "dump", "recover", "doctor") for config in CONFIGS]
)
def test_no_command_finds_a_loss_whatever_is_written_between_two_reads(
    command: str, config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = Broker(tmp_path / "logs" / "t-0", CONFIGS[config])
    for path in (tmp_path / "logs", broker.writer.path):
        with broker.writing_before_each_read():
            status = run([command, str(path)])
        printed = capsys.readouterr()
        assert (status, printed.err) == (0, ""), printed.out[-500:] + printed.err
    broker.writer.close()


WRITER: Final = """
import sys, threading
from seglog_format import LogConfig, PartitionWriter, new_record
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
with PartitionWriter(sys.argv[1], LogConfig(index_interval_bytes=200)) as writer:
    print("open", flush=True)
    while not ended.is_set():
        writer.append([new_record(value=b"x")] * 5)
"""


def test_verify_beside_a_process_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        found = [str(each) for _ in range(4) for each in verify(path) if each.requirement not in TAILS]
        writer.communicate()
    assert (found, writer.returncode) == ([], 0)
