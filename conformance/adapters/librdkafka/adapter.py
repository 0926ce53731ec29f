"""librdkafka through confluent-kafka: a stock consumer that reads an assigned partition to its end, and a producer."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from seglog_adapter import RefusedError, SkipError, header_pair, hexed, serve
from wire_consumer import CONSUMER_FEATURES, POLL_SECONDS, answered, checks_crc
from wire_producer import IDEMPOTENT, LINGER_MS, MAX_REQUEST_SIZE, TRANSACTIONAL, WAIT_SECONDS, produced

import confluent_kafka

MAX_AT_ONCE = 1000
NEWER = {"allow.auto.create.topics", "batch.size", "isolation.level"}
"""Settings that releases of 2019 lack, and that can be left out for them."""
FLUSHES_AT_ONCE = int(confluent_kafka.libversion()[0].split(".")[0]) > 1
"""Whether a flush ends the linger, which releases before 2.0 wait for."""
UNKNOWN = re.compile(r'No such configuration property: "(.+?)"')


def decode(request):
    target = request["place"]
    consumer = made(
        confluent_kafka.Consumer,
        {
            "bootstrap.servers": target["bootstrap"],
            "group.id": "g",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": checks_crc(request),
            "isolation.level": "read_uncommitted",
            "fetch.error.backoff.ms": 0,
            "fetch.wait.max.ms": 50,
            "allow.auto.create.topics": False,
            "log_level": 0,
        },
    )
    try:
        partition = confluent_kafka.TopicPartition(target["topic"], 0, 0)
        consumer.assign([partition])
        return answered(request, Polling(consumer), lambda: position_of(consumer, partition))
    finally:
        consumer.close()


def made(kind, settings):
    """Return a client with these settings, except those that its release lacks."""
    while True:
        try:
            return kind(settings)
        except confluent_kafka.KafkaException as error:
            unknown = UNKNOWN.search(str(error))
            if unknown is None or unknown[1] not in NEWER:
                raise
            settings = {name: value for name, value in settings.items() if name != unknown[1]}


def position_of(consumer, partition):
    """Return the position of a consumer; before its first record, the offset at which it was set to begin."""
    return max(consumer.position([partition])[0].offset, partition.offset)


class Polling:
    """Polls for records; an error is raised by the call after the records before it."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.error = None

    def __call__(self):
        records = []
        while self.error is None and len(records) < MAX_AT_ONCE:
            message = self.consumer.poll(0 if records else POLL_SECONDS)
            if message is None:
                return records
            if message.error() is None:
                records.append(record_of(message))
            elif message.error().code() not in TRANSIENT:
                self.error = message.error()
        if self.error is not None and not records:
            error, self.error = self.error, None
            raise RefusedError(class_of(error), f"{error.name()}: {error.str()}")
        return records


TRANSIENT = {confluent_kafka.KafkaError._TRANSPORT, confluent_kafka.KafkaError._ALL_BROKERS_DOWN}


def class_of(error):
    return "crc" if "CRC" in error.str() else "compression" if "ompress" in error.str() else "other"


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


def encode(request):
    target = request["place"]
    kind = target.get("producer")

    def send(codec, messages):
        failed = []
        producer = made(
            confluent_kafka.Producer,
            {
                "bootstrap.servers": target["bootstrap"],
                "acks": "all",
                **guarantees(kind, target["topic"]),
                "compression.type": codec or "none",
                "linger.ms": 1000 * WAIT_SECONDS if FLUSHES_AT_ONCE else LINGER_MS,
                "batch.num.messages": MAX_REQUEST_SIZE // 1000,
                "batch.size": MAX_REQUEST_SIZE,
                "message.max.bytes": MAX_REQUEST_SIZE,
                "message.timeout.ms": 2000 * WAIT_SECONDS,
                "allow.auto.create.topics": False,
                "log_level": 0,
            },
        )
        if kind == TRANSACTIONAL:
            producer.init_transactions(WAIT_SECONDS)
            producer.begin_transaction()
        for each in messages:
            producer.produce(
                target["topic"],
                each.value,
                each.key,
                partition=0,
                timestamp=each.timestamp,
                headers=each.headers,
                on_delivery=lambda error, _message: failed.append(error) if error is not None else None,
            )
        left = producer.flush(WAIT_SECONDS)
        if failed:
            raise RefusedError(class_of(failed[0]), f"{failed[0].name()}: {failed[0].str()}")
        if left:
            raise RefusedError("other", f"{left} records were not acknowledged")
        if kind == TRANSACTIONAL:
            producer.commit_transaction(WAIT_SECONDS)

    return produced(request, send)


def guarantees(kind, topic):
    if kind == TRANSACTIONAL:
        return {"enable.idempotence": True, "transactional.id": topic}
    return {"enable.idempotence": True} if kind == IDEMPOTENT else {"enable.idempotence": False, "retries": 0}


serve(
    {
        "name": "librdkafka",
        "version": confluent_kafka.libversion()[0],
        "language": "C",
        "homepage": "https://github.com/confluentinc/librdkafka",
        "issues": "https://github.com/confluentinc/librdkafka/issues",
    },
    # The library refuses by a code, which has no type; this is the one error that its binding raises for a code.
    {**CONSUMER_FEATURES, "errors": ["cimpl.KafkaException"]},
    decode=decode,
    encode=encode,
)
