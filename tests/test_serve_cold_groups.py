"""Consumer groups go on where a broker left them: `__consumer_offsets` of Kafka 4.4.0, and a stock client."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.serving import serving
from helpers.support import bundled

from seglog_format import PartitionWriter, new_record
from seglog_format.cli.main import run
from seglog_format.serve.kept_offsets import committed_offsets_in

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "upgraded"
POSITIONS = {("plain", 0): 132, ("plain", 1): 130, ("plain", 2): 128}
"""What the broker said of this group when it had stopped."""
AT_END = 140


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Make a log directory with what groups committed, and the topic that they read."""
    directory = tmp_path / "backup"
    shutil.copytree(
        next(bundled("4.4.0/consumer-offsets").glob("__consumer_offsets-*")), directory / "__consumer_offsets-0"
    )
    for _, number in POSITIONS:
        with PartitionWriter(directory / f"plain-{number}") as writer:
            writer.append([new_record(value=b"%d" % offset) for offset in range(AT_END)])
    return directory


def read_on(port: int) -> dict[int, list[int]]:
    """Return the offsets by partition that librdkafka reads as a member of the group, up to the ends, and commit."""
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = pytest.importorskip("confluent_kafka").Consumer(settings)
    consumer.subscribe(["plain"])
    found: dict[int, list[int]] = {}
    try:
        for _ in range(120):
            for message in consumer.consume(500, 0.5):
                found.setdefault(message.partition(), []).append(message.offset())
            if len(found) == len(POSITIONS) and all(offsets[-1] == AT_END - 1 for offsets in found.values()):
                break
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


def test_a_stock_client_goes_on_where_its_group_was(backup: Path, tmp_path: Path) -> None:
    committed, state = committed_offsets_in([backup], pytest.fail), tmp_path / "state"
    state.mkdir()
    with serving(backup, state=state, committed_offsets=committed) as served:
        found = read_on(served.port)
    assert found == {number: list(range(offset, AT_END)) for (_, number), offset in POSITIONS.items()}
    with serving(backup, state=state, committed_offsets=committed) as served:
        kept = served.server._coordinate().kept.of(GROUP)  # what this group would get
    assert {key: at.offset for key, at in kept.items()} == dict.fromkeys(POSITIONS, AT_END)


def test_committed_offsets_that_do_not_fit_are_reported(backup: Path) -> None:
    reported: list[str] = []
    committed = committed_offsets_in([backup], pytest.fail)
    with serving(backup, committed_offsets=committed, limits={"groups": 2}, reported=reported) as served:
        served.server._coordinate()
    assert any("no room for" in each for each in reported)


def test_the_command_says_how_many_groups_start(backup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = ["serve", "--port", "0", "--state", "none", "--end-after", "0.1"]
    assert run([*ended, "--groups", str(backup), str(backup / "plain-0")]) == 0
    assert "7 groups start where brokers left them" in capsys.readouterr().err
    shutil.rmtree(backup / "__consumer_offsets-0")
    assert run([*ended, "--groups", str(backup), str(backup / "plain-0")]) == 2
    assert "no partition of __consumer_offsets" in capsys.readouterr().err


def test_damage_of_the_topic_is_reported(backup: Path) -> None:
    log = next((backup / "__consumer_offsets-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    messages: list[str] = []
    committed_offsets_in([backup], messages.append)
    assert len(messages) == 1
    assert str(log) in messages[0]
