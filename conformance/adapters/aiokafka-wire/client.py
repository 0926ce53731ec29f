"""aiokafka: an `AIOKafkaConsumer` that polls an assigned partition to its end, and an `AIOKafkaProducer`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from record_builders import AIOKAFKA_ERRORS, record_of
from seglog_adapter import serve
from wire_consumer import CONSUMER_FEATURES, MAX_SIZE, POLL_SECONDS, answered, checks_crc
from wire_producer import IDEMPOTENT, LINGER_MS, MAX_REQUEST_SIZE, TRANSACTIONAL, WAIT_SECONDS, produced

import aiokafka


def decode(request):
    with asyncio.Runner() as runner:
        consumer, partition = runner.run(started(request))
        try:
            return answered(
                request,
                lambda: runner.run(polled(consumer, partition)),
                lambda: runner.run(consumer.position(partition)),
            )
        finally:
            runner.run(consumer.stop())


async def started(request):
    target = request["place"]
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=target["bootstrap"],
        auto_offset_reset="none",
        enable_auto_commit=False,
        check_crcs=checks_crc(request),
        fetch_max_wait_ms=50,
        fetch_max_bytes=MAX_SIZE,
        max_partition_fetch_bytes=MAX_SIZE,
    )
    await consumer.start()
    partition = aiokafka.TopicPartition(target["topic"], 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    return consumer, partition


async def polled(consumer, partition):
    found = await consumer.getmany(partition, timeout_ms=int(1000 * POLL_SECONDS))
    return [record_of(record) for record in found.get(partition, ())]


def encode(request):
    return produced(request, lambda codec, messages: asyncio.run(sent(request["place"], codec, messages)))


async def sent(target, codec, messages):
    kind = target.get("producer")
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=target["bootstrap"],
        acks="all",
        enable_idempotence=kind in (IDEMPOTENT, TRANSACTIONAL),
        transactional_id=target["topic"] if kind == TRANSACTIONAL else None,
        compression_type=codec,
        max_batch_size=MAX_REQUEST_SIZE,
        max_request_size=MAX_REQUEST_SIZE,
        linger_ms=LINGER_MS,
        request_timeout_ms=1000 * WAIT_SECONDS,
    )
    await producer.start()
    try:
        if kind == TRANSACTIONAL:
            await producer.begin_transaction()
        futures = [
            await producer.send(target["topic"], each.value, each.key, 0, each.timestamp, each.headers)
            for each in messages
        ]
        await asyncio.gather(*futures)
        if kind == TRANSACTIONAL:
            await producer.commit_transaction()
    finally:
        await producer.stop()


serve(
    {
        "name": "aiokafka, AIOKafkaConsumer and AIOKafkaProducer",
        "version": aiokafka.__version__,
        "language": "Cython",
        "homepage": "https://github.com/aio-libs/aiokafka",
        "issues": "https://github.com/aio-libs/aiokafka/issues",
    },
    {**CONSUMER_FEATURES, "errors": AIOKAFKA_ERRORS},
    decode=decode,
    encode=encode,
)
