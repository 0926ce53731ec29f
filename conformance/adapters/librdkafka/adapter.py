"""librdkafka through confluent-kafka: a stock consumer that fetches the bytes of a case from a broker of ours."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from seglog_adapter import CODECS, RefusedError, SkipError, header_pair, hexed, serve

import confluent_kafka
from server import TOPIC, Broker

QUIET_SECONDS = 0.05
LIMIT_SECONDS = 2.5


def consume(request):
    """Everything a consumer hands out, its first error, and the offsets it fetched."""
    broker = Broker(bytes.fromhex(request["data"]))
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "g",
            "enable.auto.commit": False,
            "check.crcs": request.get("options", {}).get("crc", True),
            "fetch.error.backoff.ms": 0,
            "fetch.wait.max.ms": 10,
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, int(request.get("baseOffset", 0)))])
        return (*drained(consumer, broker), broker.offsets)
    finally:
        consumer.close()
        broker.close()


def drained(consumer, broker):
    records, deadline = [], time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(QUIET_SECONDS)
        if message is None:
            if broker.fetched_again.is_set():
                return records, None
        elif message.error() is None:
            records.append(record_of(message))
        elif message.error().code() not in TRANSIENT:
            return records, message.error()
    return records, None


TRANSIENT = {confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN}


def record_of(message):
    try:
        return described(message)
    except (SystemError, UnicodeError) as error:
        raise SkipError("the Python binding hands out header keys as text only") from error


def described(message):
    kind, timestamp = message.timestamp()
    return {
        "offset": str(message.offset()),
        "timestamp": str(-1 if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else timestamp),
        "headers": [header_pair(pair) for pair in message.headers() or []],
        "key": hexed(message.key()),
        "value": hexed(message.value()),
    }


def decode(request):
    records, error, _ = consume(request)
    answer = {"batches": [{"records": records}]}
    if error is None:
        return {"ok": True, **answer}
    kind = "crc" if "CRC" in error.str() else "compression" if "ompress" in error.str() else "other"
    return {"ok": False, "reject": {"class": kind, "message": error.str(), "error": error.name()}, **answer}


def position(request):
    _, error, offsets = consume(request)
    if error is not None:
        raise RefusedError("other", error.str())
    return {"ok": True, "positions": [str(offset) for offset in offsets[:2]]}


serve(
    {
        "name": "librdkafka",
        "version": confluent_kafka.libversion()[0],
        "language": "C",
        "homepage": "https://github.com/confluentinc/librdkafka",
        "issues": "https://github.com/confluentinc/librdkafka/issues",
    },
    {
        "magic": [0, 1, 2],
        "codec": list(CODECS),
        "crc": True,
        "control": "hidden",
        "headers": "ordered",
        "batchMeta": False,
        "bytesKeys": False,
        "partialTail": False,
    },
    decode=decode,
    position=position,
)
