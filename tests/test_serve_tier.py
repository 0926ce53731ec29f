"""Kafka clients read tiered partitions through ``seglog serve --remote``, and get what the broker delivered."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import Served, serving
from helpers.tier_cases import CASES, TierCase, tier_case
from kio.schema.errors import ErrorCode
from test_serve_clients import asked

from proofs.kafka.served import ISOLATIONS, digest_of
from seglog_format import new_record, open_tier
from seglog_format.cli.main import run
from seglog_format.cli.serve import warnings_as_findings
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import Location
from seglog_format.serve import served_partition
from seglog_format.serve.catalog import CatalogOptions
from seglog_format.storage.byte_source import MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.types import Record, RecordBatch

STOCK = ("kafka-clients", "librdkafka", "kafka-python")
"""Stock clients that are asked; the others are held to logs that are not tiered."""
PARTITIONS = [
    pytest.param(name, each, id=f"{name}-{each['topic']}-{each['partition']}")
    for name in CASES
    for each in tier_case(name).partitions()
]


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, Served]]:
    """Start a server for each case."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(serving(case.local, options=options(case))) for name, case in cases()}


def cases() -> list[tuple[str, TierCase]]:
    return [(name, tier_case(name)) for name in CASES]


def options(case: TierCase) -> CatalogOptions:
    return CatalogOptions(remote=case.opened())


def batches(data: bytes) -> Iterator[RecordBatch]:
    for frame in walk(MemoryBytes(data)):
        yield decode_frame(frame, at=Location(""))


def delivered(found: Iterator[tuple[bytes, list[Any] | None]], start: int) -> Iterator[Record]:
    """Yield what a consumer makes of answers: without control records, and without aborted transactions."""
    for data, listed in found:
        pending, aborted = sorted(listed or [], key=lambda each: each.first_offset), set()
        for batch in batches(data):
            while pending and pending[0].first_offset <= batch.last_offset:
                aborted.add(pending.pop(0).producer_id)
            if batch.header.is_control:  # type: ignore[union-attr]
                aborted.discard(batch.header.producer_id)  # type: ignore[union-attr]
            elif not (batch.header.is_transactional and batch.header.producer_id in aborted):  # type: ignore[union-attr]
                yield from (record for record in batch.records if record.offset >= start)  # type: ignore[misc]


def answers(served: Served, partition: dict[str, Any], level: int) -> Iterator[tuple[bytes, list[Any] | None]]:
    """Fetch a partition from its start to its end."""
    offset, end = partition["begin"], partition["end"]
    with served.client() as client:
        while offset < end:
            fields = {"number": partition["partition"], "isolation_level": level}
            found = client.fetch(partition["topic"], offset, **fields)
            assert found.error_code is ErrorCode.none
            assert (found.log_start_offset, found.high_watermark) == (partition["begin"], end)
            data = bytes(found.records)
            assert data, f"nothing at {offset}"
            yield data, found.aborted_transactions
            offset = list(batches(data))[-1].next_offset


@pytest.mark.parametrize("level", [0, 1], ids=ISOLATIONS)
@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_fetches_deliver_what_the_broker_delivered(
    served: dict[str, Served], name: str, partition: dict[str, Any], level: int
) -> None:
    expected = partition[ISOLATIONS[level]]
    found = digest_of(delivered(answers(served[name], partition, level), partition["begin"]))
    assert found == (expected["records"], expected["sha256"])
    assert not [text for text in served[name].findings if "not here" in text or partition["topic"] in text]


@pytest.mark.parametrize(("name", "partition"), PARTITIONS)
def test_offsets_that_clients_ask_for(served: dict[str, Served], name: str, partition: dict[str, Any]) -> None:
    """The special times: log start, end, and from 3.9 on where the local log begins."""
    with served[name].client() as client:
        asked_for = (partition["topic"], partition["partition"])
        found = {time: client.list_offset(asked_for[0], time, number=asked_for[1]).offset for time in (-1, -2, -4)}
    assert found == {-1: partition["end"], -2: partition["begin"], -4: partition["earliestLocal"]}


@pytest.fixture(scope="module", params=STOCK)
def stock(request: pytest.FixtureRequest, served: dict[str, Served]) -> dict[tuple[str, str, str], Any]:
    """Return what a stock client reads of each topic's first partition, by case, topic and isolation level."""
    found = {}
    for name, case in cases():
        firsts = [each for each in case.partitions() if each["partition"] == 0]
        tasks = {
            (name, each["topic"], level): {
                "kind": "records",
                "topic": each["topic"],
                "isolation": level,
                "end": each["end"],
                "last": each[level]["last"],
            }
            for each in firsts
            for level in ISOLATIONS
            if each[level]["records"]
        }
        found |= asked(request.param, served[name].port, tasks)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("level", ISOLATIONS)
@pytest.mark.parametrize(("name", "partition"), [each for each in PARTITIONS if each.values[1]["partition"] == 0])
def test_a_stock_consumer_reads_the_tier(
    stock: dict[tuple[str, str, str], Any], name: str, partition: dict[str, Any], level: str
) -> None:
    expected = partition[level]
    rows = stock.get((name, partition["topic"], level), [])
    assert digest_of(map(as_record, rows)) == (expected["records"], expected["sha256"])


def as_record(row: list[Any]) -> Record:
    """Make a record of what a client tells as JSON."""
    offset, timestamp_ms, key, value, headers = row
    texts = [(name.encode(), None if each is None else bytes.fromhex(each)) for name, each in headers]
    parts = [None if part is None else bytes.fromhex(part) for part in (key, value)]
    return replace(new_record(key=parts[0], value=parts[1], headers=texts, timestamp_ms=timestamp_ms), offset=offset)


def test_an_answer_holds_a_bounded_part_of_a_tiered_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetched bytes are held in memory until they are sent, and what lies behind them is not fetched for them."""
    monkeypatch.setattr(served_partition, "MAX_TIERED_SIZE", 8000)
    case = tier_case("aiven-both")
    wide = next(each for each in case.partitions() if each["topic"] == "wide")
    remote = case.opened()
    with serving(case.local, options=CatalogOptions(remote=remote)) as served, served.client() as client:
        answer = client.fetch("wide", wide["begin"])
        assert 0 < len(answer.records) <= 8000
        assert answer.high_watermark == wide["end"]
        assert remote.traffic.size < 200_000 < sum(remote.tier.files.sizes.values())


def test_damage_in_the_store_ends_a_fetch_with_an_error(tmp_path: Path) -> None:
    case = tier_case("aiven-both")
    store = shutil.copytree(case.store, tmp_path / "store")
    for log in store.rglob("*.log"):
        log.write_bytes(log.read_bytes()[:-1] + b"\0")
    remote = open_tier(store, keys=case.keys)
    with serving(case.local, options=CatalogOptions(remote=remote)) as served, served.client() as client:
        orders = next(each for each in case.partitions() if each["topic"] == "orders")
        answer = client.fetch("orders", orders["begin"])
        assert answer.error_code in {ErrorCode.corrupt_message, ErrorCode.kafka_storage_error} or answer.records
        last = orders["earliestLocal"] - 1
        assert client.fetch("orders", last).error_code is ErrorCode.corrupt_message
    assert any(str(store) in text and "SEG-TIR-008" in text for text in served.findings)


def test_the_command_serves_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("lts-4.4.0")
    command = ["serve", "--port", "0", "--end-after", "0", "--state", "none", "--remote", str(case.store)]
    assert run([*command, str(case.local)]) == 0
    assert "listening on" in capsys.readouterr().err
    assert run([*command, "--writable", str(case.local)]) == 2
    assert "tiered partitions are served to readers only" in capsys.readouterr().err


def test_a_guess_is_told_as_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("lts-4.4.0")
    shutil.copytree(case.local / "orders-0", tmp_path / "orders-0")
    with warnings_as_findings(print), serving(tmp_path, options=options(case)) as served, served.client() as client:
        assert client.fetch("orders", 800).records
    assert "no record of __remote_log_metadata was found" in capsys.readouterr().out
