"""`seglog transactions` lists what is open in partitions, and calls hanging what no transactional id has open there."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import control, entry, transactional
from helpers.support import bundled

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE, USAGE, run

if TYPE_CHECKING:
    from pathlib import Path

STATE = "__transaction_state-*"


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """Copy what a broker of 3.0.2 wrote: two transactions are open in ``txn-open-0``, and its coordinator has both."""
    for case in ("transaction-state", "txn-open"):
        shutil.copytree(bundled(f"3.0.2/{case}"), tmp_path / "data", dirs_exist_ok=True)
    return tmp_path / "data"


def listed(capsys: pytest.CaptureFixture[str], *words: object, status: int) -> list[dict[str, Any]]:
    assert run(["transactions", "--json", *map(str, words)]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_the_coordinator_has(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = listed(capsys, broker, status=FINDINGS)
    assert (first["transactionalId"], second["transactionalId"]) == ("txn-open-oa", "txn-open-ob")
    assert [each["isHanging"] for each in (first, second)] == [False, False]
    assert [each["isBlocking"] for each in (first, second)] == [True, False]
    assert first["firstOffset"] == first["lastStableOffset"] < second["firstOffset"] < first["logEndOffset"]


def test_options(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = listed(capsys, broker, "--transactional-id", "txn-open-ob", status=FINDINGS)
    assert listed(capsys, broker, "--producer", one["producerId"], status=FINDINGS) == [one]
    assert listed(capsys, broker, "--producer", 999, status=DONE) == []


def test_without_the_coordinators_topic_nothing_is_called_hanging(
    broker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in broker.glob(STATE):
        shutil.rmtree(path)
    assert {each["isHanging"] for each in listed(capsys, broker, status=FINDINGS)} == {None}


def test_a_transaction_that_its_coordinator_has_open_elsewhere_hangs(
    broker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = listed(capsys, broker, status=FINDINGS)[0]
    stuck = broker / "payments-0"
    stuck.mkdir()
    data = entry(0) + transactional(1, known["producerId"]) + transactional(2, 12345)
    (stuck / f"{0:020}.log").write_bytes(data)
    found = {each["producerId"]: each for each in listed(capsys, broker, status=FINDINGS) if "payments" in each["path"]}
    hanging, other = found[known["producerId"]], found[12345]
    assert (hanging["isHanging"], hanging["transactionalId"]) == (True, known["transactionalId"])
    assert (other["isHanging"], other["transactionalId"]) == (None, None), (
        "its coordinator's partition may be elsewhere"
    )
    assert run(["transactions", str(broker)]) == FINDINGS
    text = capsys.readouterr().out
    assert "payments-0: producer" in text
    assert "open from offset 1, 1970-01-01T00:00:01.000Z; 2 offsets wait\n  hanging" in text


def test_a_metadata_log_decides_for_unknown_producers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "data"
    for case in ("cluster-metadata", "transaction-state", "txn-open"):
        shutil.copytree(bundled(f"4.3.0/{case}"), root, dirs_exist_ok=True)
    (one,) = listed(capsys, root, status=FINDINGS)
    assert (one["isHanging"], one["transactionalId"]) == (True, None)


def test_damage_is_no_answer(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (broker / "payments-0").mkdir()
    damaged = bytearray(transactional(0, 5) + transactional(1, 6))
    damaged[-3] ^= 1
    (broker / "payments-0" / f"{0:020}.log").write_bytes(damaged)
    assert "payments-0" in {each["path"].rpartition("/")[2] for each in listed(capsys, broker, status=UNREADABLE)}
    for path in broker.glob(STATE):
        for log in path.glob("*.log"):
            log.write_bytes(b"\xff" * 100 + log.read_bytes())
    found = listed(capsys, broker, status=UNREADABLE)
    assert {each["isHanging"] for each in found} == {None}


def test_what_was_open_at_an_offset(broker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (broker / "payments-0").mkdir()
    data = transactional(0) + transactional(1, 8) + entry(2) + control(3, 1) + transactional(4) + control(5, 0)
    (broker / "payments-0" / f"{0:020}.log").write_bytes(data)

    def at(offset: int, *words: object, status: int = FINDINGS) -> list[tuple[Any, ...]]:
        found = listed(capsys, broker, "--at", f"payments-0:{offset}", *words, status=status)
        return [(one["producerId"], one["firstOffset"], one["endOffset"], one["outcome"]) for one in found]

    assert at(0) == [(7, 0, 3, "COMMIT")]
    assert at(2) == at(3) == [(7, 0, 3, "COMMIT"), (8, 1, None, None)]
    assert at(4, "--producer", 7) == at(5, "--producer", 7) == [(7, 4, 5, "ABORT")]
    assert at(6, "--producer", 7, status=DONE) == []
    assert run(["transactions", "--at", "payments-0:2", str(broker)]) == FINDINGS
    assert "COMMIT at offset 3" in capsys.readouterr().out
    assert run(["transactions", "--at", "payments-0:9", "--producer", "7", str(broker)]) == DONE
    assert capsys.readouterr().out == "no transaction was open there\n"
    assert run(["transactions", "--at", "2", str(broker)]) == USAGE
    capsys.readouterr()
    first = listed(capsys, broker, "--at", "txn-open-0:5", status=FINDINGS)[0]
    assert (first["transactionalId"], first["outcome"]) == ("txn-open-oa", None)
