"""Producers write through the server: what is acknowledged is there, once, in order, and nothing without --writable."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import Served, serving
from kio.schema.errors import ErrorCode
from test_serve_clients import asked, command

import seglog_format as seglog
from proofs.serve import serve_kills
from proofs.serve.attacks import crafted
from proofs.serve.client import METADATA, PRODUCE, Client
from seglog_format.cli.serve import empty_root
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import SeglogError, UsageError
from seglog_format.serve import catalog
from seglog_format.serve.api_produce import RejectedError
from seglog_format.serve.catalog import CatalogOptions, NewTopics
from seglog_format.serve.writing import Writers
from seglog_format.state.config import LogConfig
from seglog_format.writing.log_writer import LogWriter
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INIT_PRODUCER_ID = 22
NOW_MS = time.time_ns() // 1_000_000
"""A server that starts again forgets producers of a day ago."""
BOMB = crafted(bytes(1 << 20), 40)
"""A batch that decompresses to 40 MB, more than a server takes."""
PRODUCERS = (
    "librdkafka",
    "kafka-clients",
    "franz-go",
    "sarama",
    "kafka-go",
    "kafkajs",
    "kafka-python",
    "aiokafka",
    "rust-rdkafka",
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    serve_kills.make_log(tmp_path / "logs", partitions=2)
    return tmp_path / "logs"


@pytest.fixture
def served(directory: Path) -> Iterator[Served]:
    with serving(directory, writers=Writers()) as running:
        yield running


def batch(*values: bytes, **fields: int) -> bytes:
    return encode_batch(build_batch([new_record(value=value, timestamp_ms=NOW_MS) for value in values], **fields))


def send(
    client: Client, data: bytes, *, acks: int = -1, version: int = 9, number: int = 0, topic: str = "orders"
) -> None:
    topics = [{"name": topic, "partition_data": [{"index": number, "records": data}]}]
    client.send(PRODUCE, version, transactional_id=None, acks=acks, timeout=0, topic_data=topics)


def produce(client: Client, data: bytes, **options: Any) -> Any:  # noqa: ANN401 - a message
    send(client, data, **options)
    return client.receive(PRODUCE, options.get("version", 9)).responses[0].partition_responses[0]


def stored(directory: Path, number: int = 0, *, topic: str = "orders") -> list[bytes]:
    with seglog.open_partition(directory / f"{topic}-{number}") as partition:
        return [record.value or b"" for record in partition.records()]


@pytest.mark.parametrize("version", range(3, 13))
def test_what_is_acknowledged_is_there_and_read_at_once(served: Served, directory: Path, version: int) -> None:
    with served.client() as client:
        answer = produce(client, batch(b"a", b"b"), version=version)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)
        assert produce(client, batch(b"c"), version=version).base_offset == 2
        assert client.list_offset("orders", -1).offset == 3
        assert len(client.fetch("orders", 0).records) > 0
        assert stored(directory) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_producers_are_answered_as_they_ask(served: Served, directory: Path, acks: int) -> None:
    with served.client() as client:
        if acks:
            assert produce(client, batch(b"a"), acks=acks).error_code is ErrorCode.none
        else:
            send(client, batch(b"a"), acks=0)
        assert client.list_offset("orders", -2).offset == 0  # the next answer is that of the next request
        assert stored(directory) == [b"a"]


def test_a_consumer_that_waits_gets_what_a_producer_sends(served: Served) -> None:
    with served.client() as consumer, served.client() as producer:
        found: list[Any] = []
        waiting = threading.Thread(target=lambda: found.append(consumer.fetch("orders", 0, max_wait=9000).records))
        waiting.start()
        assert produce(producer, batch(b"a")).error_code is ErrorCode.none
        waiting.join(5)
        assert found
        assert found[0]


REFUSED = {
    "nothing": (b"", ErrorCode.invalid_record),
    "garbage": (b"x" * 100, ErrorCode.invalid_record),
    "a wrong checksum": (batch(b"abc")[:-3] + b"xyz", ErrorCode.corrupt_message),
    "two batches": (batch(b"a") * 2, ErrorCode.invalid_record),
    "a batch and a half": (batch(b"a") + batch(b"b")[:30], ErrorCode.invalid_record),
    "an older format": (batch(b"abc")[:16] + b"\1" + batch(b"abc")[17:], ErrorCode.unsupported_for_message_format),
    "a transaction": (
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)[:22]
        + b"\x10"
        + batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)[23:],
        ErrorCode.invalid_txn_state,
    ),
    "too much": (batch(os.urandom(1 << 21)), ErrorCode.message_too_large),
    "a batch from the middle": (b"\0" * 7 + b"\5" + batch(b"a")[8:], ErrorCode.invalid_record),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_not_be_appended_is_refused(directory: Path, name: str) -> None:
    data, code = REFUSED[name]
    with serving(directory, writers=Writers(), max_request_size=1 << 24) as served, served.client() as client:
        assert produce(client, data).error_code is code
        send(client, data, acks=0)
        assert client.receive_frame() is None
    assert stored(directory) == []


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Run no garbage collection, so that objects in a cycle stay."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def errors_in_memory() -> list[BaseException]:
    return [each for each in gc.get_objects() if isinstance(each, SeglogError | RejectedError)]


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("name", [*REFUSED, "a bomb"])
def test_no_error_is_kept_of_what_was_refused(directory: Path, name: str) -> None:
    """The frames of an error hold what was decompressed: such errors in cycles take memory until they are collected."""
    data = BOMB if name == "a bomb" else REFUSED[name][0]
    of_other_tests = errors_in_memory()

    def kept_errors() -> list[BaseException]:
        return [error for error in errors_in_memory() if all(error is not other for other in of_other_tests)]

    with serving(directory, writers=Writers(), max_request_size=1 << 24) as served, served.client() as client:
        assert produce(client, data).error_code is not ErrorCode.none
        deadline = time.monotonic() + 5
        while kept_errors() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not kept_errors()


def test_unknown_places_and_acks_are_refused(served: Served) -> None:
    with served.client() as client:
        unknown = ErrorCode.unknown_topic_or_partition
        assert produce(client, batch(b"a"), topic="../orders").error_code is unknown
        assert produce(client, batch(b"a"), number=7).error_code is unknown
        assert produce(client, batch(b"a"), acks=2).error_code is ErrorCode.invalid_required_acks


def test_sequences_are_checked_and_repetitions_recognised(served: Served, directory: Path) -> None:
    def numbered(sequence: int, epoch: int = 0) -> bytes:
        return batch(b"%d" % sequence, producer_id=5, producer_epoch=epoch, base_sequence=sequence)

    with served.client() as client:
        for sequence in range(8):
            assert produce(client, numbered(sequence)).base_offset == sequence
        assert produce(client, numbered(6)).base_offset == 6
        assert produce(client, numbered(1)).error_code is ErrorCode.duplicate_sequence_number
        assert produce(client, numbered(9)).error_code is ErrorCode.out_of_order_sequence_number
        assert produce(client, numbered(0, epoch=1)).base_offset == 8
        assert produce(client, numbered(8)).error_code is ErrorCode.invalid_producer_epoch
        assert produce(client, numbered(4, epoch=2)).error_code is ErrorCode.out_of_order_sequence_number
    assert stored(directory) == [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"0"]


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_new_each_time(served: Served, version: int) -> None:
    fields = {"transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    with served.client() as client:
        answers = [client.ask(INIT_PRODUCER_ID, version, transactional_id=None, **fields) for _ in range(20)]
        assert {each.error_code for each in answers} == {ErrorCode.none}
        assert len({each.producer_id for each in answers}) == 20
        refused = client.ask(INIT_PRODUCER_ID, version, transactional_id="t", **fields)
        assert refused.error_code is ErrorCode.transactional_id_authorization_failed


def test_nobody_reads_what_is_not_safe_yet(directory: Path) -> None:
    writers = Writers()
    with serving(directory, writers=writers) as served, served.client() as client:
        assert produce(client, batch(b"a")).error_code is ErrorCode.none
        writer = writers.find("orders", 0)
        assert writer is not None
        writer.append(batch(b"b"))  # written, and not flushed
        assert client.list_offset("orders", -1).offset == 1
        assert client.fetch("orders", 1).records == b""
        writer.flush()
        assert client.list_offset("orders", -1).offset == 2


def test_many_connections_write_to_one_partition(served: Served, directory: Path) -> None:
    def write(name: int) -> None:
        with served.client() as client:
            for number in range(20):
                assert produce(client, batch(b"%d-%d" % (name, number))).error_code is ErrorCode.none

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = stored(directory)
    assert sorted(values) == sorted(b"%d-%d" % (name, number) for name in range(8) for number in range(20))
    for name in range(8):
        own = [int(value.split(b"-")[1]) for value in values if value.startswith(b"%d-" % name)]
        assert own == list(range(20))


def test_a_directory_is_recovered_before_it_is_written_to(directory: Path) -> None:
    with PartitionWriter(directory / "orders-0", LogConfig(retention_ms=-1)) as writer:
        writer.append(batch(b"a"))
    (directory / ".kafka_cleanshutdown").unlink()
    log = directory / "orders-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(b"torn")[:40])
    with serving(directory, writers=Writers()) as served, served.client() as client:
        assert produce(client, batch(b"b")).base_offset == 1
        assert served.findings == []
    assert stored(directory) == [b"a", b"b"]
    assert (directory / ".kafka_cleanshutdown").is_file()


def test_somebody_elses_directory_is_not_written_to(directory: Path) -> None:
    with (
        PartitionWriter(directory / "orders-0"),
        pytest.raises(UsageError, match="in use"),
        serving(directory, writers=Writers()),
    ):
        pass


@pytest.fixture
def new_root(tmp_path: Path) -> Iterator[tuple[Path, Served]]:
    root = tmp_path / "new"
    root.mkdir()
    writers = Writers()
    options = CatalogOptions(new_topics=NewTopics(root, writers.create))
    with serving(root, writers=writers, options=options) as running:
        yield root, running


def names_in(client: Client, name: str | None, **fields: object) -> list[tuple[str, ErrorCode]]:
    topics = None if name is None else [{"name": name, "topic_id": None}]
    answer = client.ask(METADATA, 12, topics=topics, **{"allow_auto_topic_creation": True, **fields})
    return [(topic.name, topic.error_code) for topic in answer.topics]


def test_an_empty_directory_gets_a_topic_when_a_client_asks_for_it(new_root: tuple[Path, Served]) -> None:
    root, served = new_root
    with served.client() as client:
        assert names_in(client, None) == []
        assert names_in(client, "orders", allow_auto_topic_creation=False)[0][1] == ErrorCode.unknown_topic_or_partition
        assert not any(root.iterdir())
        assert names_in(client, "orders") == [("orders", ErrorCode.none)]
        assert names_in(client, "events") == [("events", ErrorCode.none)]
        for topic in ("orders", "events"):
            assert produce(client, batch(b"one", b"two"), topic=topic).error_code == ErrorCode.none
        assert names_in(client, None) == [("orders", ErrorCode.none), ("events", ErrorCode.none)]
    assert {path.name for path in root.iterdir() if path.is_dir()} == {"orders-0", "events-0"}
    assert stored(root, 0, topic="events") == [b"one", b"two"]


@pytest.mark.parametrize(("name", "is_root"), [("logs", True), ("orders-0", False)])
def test_an_empty_directory_with_the_name_of_a_partition_is_one(tmp_path: Path, name: str, *, is_root: bool) -> None:
    path = tmp_path / name
    path.mkdir()
    assert empty_root((path,), writable=True) == (path if is_root else None)


@pytest.mark.parametrize("name", ["../escaped", "a/b", ".", "", "x" * 250])
def test_no_topic_is_created_under_an_invalid_name(new_root: tuple[Path, Served], name: str) -> None:
    root, served = new_root
    with served.client() as client:
        assert names_in(client, name)[0][1] == ErrorCode.unknown_topic_or_partition
    assert served.findings == []
    assert [path for path in root.parent.rglob("*") if path != root] == []


def test_clients_create_a_bounded_number_of_topics(
    new_root: tuple[Path, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "MAX_NEW_TOPICS", 2)
    with new_root[1].client() as client:
        errors = [names_in(client, name)[0][1] for name in "abc"]
    assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.unknown_topic_or_partition]


def test_no_topic_is_created_in_a_directory_that_has_some(served: Served, directory: Path) -> None:
    before = sorted(directory.iterdir())
    with served.client() as client:
        assert names_in(client, "other")[0][1] == ErrorCode.unknown_topic_or_partition
    assert sorted(directory.iterdir()) == before


@pytest.mark.parametrize("name", PRODUCERS)
def test_stock_producers_write_what_the_reference_reads(served: Served, directory: Path, name: str) -> None:
    wanted = {
        kind: {"kind": "produce", "topic": "orders", "prefix": kind, "count": 250, "idempotent": kind == "sure"}
        for kind in ("sure", "plain")
    }
    command(name)
    answers = asked(name, served.port, wanted)
    assert not [each for each in answers.values() if isinstance(each, str)], answers
    values = [value.decode() for number in (0, 1) for value in stored(directory, number)]
    for kind in wanted:
        assert sorted(int(value.split("-")[1]) for value in values if value.startswith(kind)) == list(range(250))


@pytest.mark.parametrize("name", ["librdkafka", "kafka-python"])
def test_a_transactional_producer_gets_a_final_answer_at_once(served: Served, name: str) -> None:
    error, seconds = asked(name, served.port, {"begin": {"kind": "transactions"}})["begin"]
    assert "authorization" in error.lower()
    assert seconds < 20  # before its own time is over


@pytest.mark.parametrize("seed", [4])
def test_a_server_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path: Path, seed: int) -> None:
    serve_kills.make_log(tmp_path / "logs")
    program = command("librdkafka")
    server = serve_kills.Killed(tmp_path / "logs")
    producing = serve_kills.Producing(program, server.port, ["a", "b", "c"], 6)
    serve_kills.kill_while(server, seed=seed, between=(0.3, 1.5), seconds=5)
    answers = producing.answers()
    assert server.stop() == 0
    found = serve_kills.check(tmp_path / "logs", answers)
    assert found["acknowledged"] > 30
    assert {name: found.get(name, 0) for name in serve_kills.FAULTS} == dict.fromkeys(serve_kills.FAULTS, 0)
    assert server.kills >= 1  # a busy machine starts it slowly


def test_what_a_client_does_after_it_gave_up_is_told_apart(directory: Path) -> None:
    def sent(number: int, sequence: int, epoch: int = 0) -> bytes:
        return batch(b"a-%d" % number, producer_id=5, producer_epoch=epoch, base_sequence=sequence)

    with LogWriter(directory) as root:
        writer = root.open("orders", 0)
        for data in (sent(0, 0), sent(1, 1), sent(1, 0, epoch=1), sent(3, 1, epoch=1)):
            writer.append(data)
    answers = {"a": {"acknowledged": [0, 1, 3], "failed": [2], "left": 0}}
    found = serve_kills.check(directory, answers)
    assert found == {
        "acknowledged": 3,
        "given_up": 1,
        "new_epochs": 1,
        "stored": 4,
        "lost": 0,
        "twice": 1,
        "out_of_order": 1,
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_producer_that_sends_again_in_order_is_never_out_of_order(directory: Path, seed: int) -> None:
    """Its connections end at any moment, with up to five batches under way; so does the server, now and then."""
    dice = random.Random(seed)  # noqa: S311 - reproducible
    batches = [batch(b"%d" % each, producer_id=seed, producer_epoch=0, base_sequence=each) for each in range(200)]
    offsets: list[int | None] = []
    while len(offsets) < len(batches):
        with serving(directory, writers=Writers()) as served:
            for _ in range(8):
                offsets += sent_in_a_row(served, batches[len(offsets) :], dice)
    assert offsets == [None if offset is None else index for index, offset in enumerate(offsets)]
    assert stored(directory) == [b"%d" % each for each in range(200)]


def sent_in_a_row(served: Served, batches: list[bytes], dice: random.Random) -> list[int | None]:
    """Offsets of what was acknowledged before the connection ended; None where it was too long ago to know."""
    known = (ErrorCode.none, ErrorCode.duplicate_sequence_number)
    found: list[int | None] = []
    under_way = 0
    with served.client() as client:
        while dice.random() > 0.05:
            for data in batches[len(found) + under_way : len(found) + 5]:
                send(client, data)
                under_way += 1
            if not under_way:
                break
            answer = received(client, under_way)
            under_way -= 1
            assert answer.error_code in known
            found.append(None if answer.base_offset < 0 else answer.base_offset)
    return found


def received(client: Client, under_way: int) -> Any:  # noqa: ANN401 - a message
    """Return the answer to the first of several requests that are under way."""
    return client.receive(PRODUCE, 9, before_last=under_way - 1).responses[0].partition_responses[0]


def test_nothing_is_written_without_being_asked_for(directory: Path) -> None:
    before = {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in directory.rglob("*")}
    with serving(directory) as served, served.client() as client:
        assert produce(client, batch(b"a")).error_code is ErrorCode.topic_authorization_failed
        answer = client.ask(INIT_PRODUCER_ID, 0, transactional_id=None, transaction_timeout=1000)
        assert answer.error_code is ErrorCode.cluster_authorization_failed
    assert {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in directory.rglob("*")} == before


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounting needs Linux and its root")
def test_a_read_only_mount_is_served(directory: Path) -> None:
    script = (
        f"mount --bind {directory} {directory} && mount -o remount,ro,bind {directory} && ! touch {directory}/x && "
        f"exec {sys.executable} -m seglog_format.cli serve --port 0 --end-after 0.5 {directory}"
    )
    result = subprocess.run(
        ["/usr/bin/unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare" in result.stderr or "mount:" in result.stderr:
        pytest.skip("this sandbox lets nobody mount")
    assert result.returncode == 0, result.stderr
    assert "listening on" in result.stderr
