"""kafka-python: a `KafkaConsumer` that polls an assigned partition to its end, and a `KafkaProducer`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from record_builders import KAFKA_PYTHON_ERRORS, record_of
from seglog_adapter import SkipError, serve
from wire_consumer import CONSUMER_FEATURES, MAX_SIZE, POLL_SECONDS, answered, checks_crc
from wire_producer import IDEMPOTENT, LINGER_MS, MAX_REQUEST_SIZE, TRANSACTIONAL, WAIT_SECONDS, produced

import kafka


def decode(request):
    target = request["place"]
    partition = kafka.TopicPartition(target["topic"], 0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=target["bootstrap"],
        auto_offset_reset="none",
        enable_auto_commit=False,
        check_crcs=checks_crc(request),
        fetch_max_wait_ms=50,
        fetch_max_bytes=MAX_SIZE,
        max_partition_fetch_bytes=MAX_SIZE,
    )
    try:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        return answered(request, lambda: polled(consumer, partition), lambda: consumer.position(partition))
    finally:
        consumer.close()


def polled(consumer, partition):
    found = consumer.poll(timeout_ms=int(1000 * POLL_SECONDS))
    return [record_of(record) for record in found.get(partition, ())]


def encode(request):
    target = request["place"]
    kind = target.get("producer")

    def send(codec, messages):
        producer = kafka.KafkaProducer(
            bootstrap_servers=target["bootstrap"],
            acks="all",
            **guarantees(kind, target["topic"]),
            compression_type=codec,
            batch_size=MAX_REQUEST_SIZE,
            max_request_size=MAX_REQUEST_SIZE,
            linger_ms=LINGER_MS,
            request_timeout_ms=1000 * WAIT_SECONDS,
            max_block_ms=1000 * WAIT_SECONDS,
        )
        try:
            if kind == TRANSACTIONAL:
                producer.init_transactions()
                producer.begin_transaction()
            sent = [
                producer.send(target["topic"], each.value, each.key, each.headers, 0, each.timestamp)
                for each in messages
            ]
            for future in sent:
                future.get(WAIT_SECONDS)
            if kind == TRANSACTIONAL:
                producer.commit_transaction()
        finally:
            with suppress(kafka.errors.KafkaTimeoutError):  # it would hide why a record was refused
                producer.close(0)

    return produced(request, send)


def guarantees(kind, topic):
    if "enable_idempotence" not in kafka.KafkaProducer.DEFAULT_CONFIG:
        if kind in (IDEMPOTENT, TRANSACTIONAL):
            raise SkipError("its producer is not idempotent before 2.2")
        return {"retries": 0, "buffer_memory": 2 * MAX_REQUEST_SIZE}  # the buffer is of one batch at least
    if kind in (IDEMPOTENT, TRANSACTIONAL):
        return {"enable_idempotence": True, "transactional_id": topic if kind == TRANSACTIONAL else None}
    return {"enable_idempotence": False, "retries": 0}


serve(
    {
        "name": "kafka-python, KafkaConsumer and KafkaProducer",
        "version": kafka.__version__,
        "language": "Python",
        "homepage": "https://github.com/dpkp/kafka-python",
        "issues": "https://github.com/dpkp/kafka-python/issues",
    },
    {**CONSUMER_FEATURES, "errors": KAFKA_PYTHON_ERRORS},
    decode=decode,
    encode=encode,
)
