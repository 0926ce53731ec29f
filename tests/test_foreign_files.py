"""Files of other formats, and packed ones, are called by their names; no command ends with 0."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import TYPE_CHECKING

import pytest
from helpers.support import vector

from seglog_format.cli.exit_status import FINDINGS, UNREADABLE, USAGE
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

LOG = vector("V-06")
NAMED = "0" * 20
FOREIGN = {
    f"{NAMED}.kafka": (bytes(10), "Kafka 0.7"),
    f"{NAMED}.log.gz": (gzip.compress(LOG), "compressed with gzip"),
    f"{NAMED}.log.bz2": (bz2.compress(LOG), "compressed with bzip2"),
    f"{NAMED}.log.xz": (lzma.compress(LOG), "compressed with xz"),
    f"{NAMED}.log.zst": (bytes.fromhex("28b52ffd") + bytes(20), "compressed with zstd"),
    f"{NAMED}.log.lz4": (bytes.fromhex("04224d18") + bytes(20), "compressed with lz4"),
    "segments.tgz": (gzip.compress(LOG), "compressed with gzip"),
}
UNDER_ANOTHER_NAME = {
    f"{NAMED}.log": (gzip.compress(LOG), "compressed with gzip"),
    "0-1-v1.log": (b"\1" * 200, "Redpanda"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, text = FOREIGN[name]
    path = tmp_path / "orders-0" / name
    path.parent.mkdir()
    path.write_bytes(data)
    for command in ("dump", "inspect", "ls", "verify", "recover"):
        status = {"dump": UNREADABLE, "inspect": FINDINGS}.get(command, USAGE)
        assert run([command, str(path)]) == status, command
        assert text in capsys.readouterr().err, command
    for command in ("ls", "verify", "recover"):
        assert run([command, str(path.parent)]) == USAGE
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dump", "inspect", "ls", "verify"])
@pytest.mark.parametrize("name", UNDER_ANOTHER_NAME)
def test_a_foreign_file_has_the_name_of_a_log(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, text = UNDER_ANOTHER_NAME[name]
    (tmp_path / name).write_bytes(data)
    assert run([command, str(tmp_path / name)]) == 1
    assert text in capsys.readouterr().err


def test_the_checkpoint_of_a_streams_task_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".checkpoint"
    path.write_text("0\n1\napp-store-changelog 0 1234\n")
    assert run(["dump", str(path)]) == 0
    assert "app-store-changelog 0 1234" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["seg.bin", f"{NAMED}.log.bak", f"{NAMED}.log.1"])
def test_dump_reads_a_log_under_another_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(LOG)
    assert run(["dump", str(path)]) == 0
    assert f"end: 1 batch, 3 records, {len(LOG)} of {len(LOG)} bytes" in capsys.readouterr().out
    path.write_bytes(LOG + b"\xff" * 50)
    assert run(["dump", str(path)]) == FINDINGS
    capsys.readouterr()
    path.write_bytes(LOG[:-1] + bytes([LOG[-1] ^ 1]))
    assert run(["dump", str(path)]) == UNREADABLE
    assert "no known kind" in capsys.readouterr().err
