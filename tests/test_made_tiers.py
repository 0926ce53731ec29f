"""Tiered partitions of many settings: what comes of disk and store is the log that there would be without tiering."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_tiers import NAME, MadeTier, made_tier

from proofs.kafka.served import ISOLATIONS, digest_of
from seglog_format import open_partition, open_tier
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEEDS = range(24)


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeTier]:
    root = tmp_path_factory.mktemp(f"tier-{request.param}")
    yield made_tier(root, request.param)
    shutil.rmtree(root)


pytestmark = pytest.mark.parametrize("made", SEEDS, indirect=True)


def keys_of(made: MadeTier) -> list[str]:
    return [argument for id_, path in made.keys.items() for argument in ("--key", f"{id_}={path}")]


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_disk_and_store_are_one_log(made: MadeTier) -> None:
    remote = open_tier(made.store, keys=made.keys)
    with open_partition(made.partition, remote=remote) as log, open_partition(made.whole / NAME) as whole:
        start = log.log_start_offset
        assert log.log_end_offset == whole.log_end_offset
        for isolation in ISOLATIONS:
            expected = digest_of(whole.records(start, isolation=isolation))
            assert digest_of(log.records(isolation=isolation)) == expected
            found = log.scan(("offset",), isolation=isolation).read_all()["offset"].to_pylist()
            assert found == [record.offset for record in whole.records(start, isolation=isolation)]
        for record in list(whole.records(start))[::17]:
            assert next(log.records(record.offset)) == record
            assert log.offset_for_timestamp(record.timestamp_ms) == whole.offset_for_timestamp(record.timestamp_ms)


def test_segments_come_back_byte_for_byte(made: MadeTier, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for id_, log in made.finished.items():
        target = tmp_path / id_
        assert run(["tier", "fetch", "--segment", id_, *keys_of(made), str(made.store), str(target)]) == 0
        for path in (target / NAME).glob(f"{log.stem}.*"):
            if path.suffix != ".snapshot":
                assert path.read_bytes() == log.with_suffix(path.suffix).read_bytes()
        assert (target / NAME / log.name).is_file()
    capsys.readouterr()


def test_verify_and_audit_find_what_was_left_and_nothing_else(
    made: MadeTier, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["verify", "--json", "--remote", str(made.store), *keys_of(made), str(made.partition)])
    assert [each for each in lines_of(capsys) if each["severity"] != "note"] == []
    run(["tier", "audit", "--content", "--json", "--logs", str(made.local), *keys_of(made), str(made.store)])
    found = {each["requirement"] for each in lines_of(capsys) if each["severity"] != "note"}
    assert found <= {"SEG-RLM-014", "SEG-RLM-017", "SEG-RLM-019", "SEG-RLM-020", "SEG-RLM-021"}
    assert "SEG-RLM-017" in found
