"""kafka-python: a `KafkaConsumer` that is assigned a partition and polls it to its end."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from record_builders import record_of
from seglog_adapter import decoded, serve
from wire_consumer import CONSUMER_FEATURES, MOST_SIZE, POLL_SECONDS, checks_crc, consumed

import kafka


def decode(request):
    place = request["place"]
    partition = kafka.TopicPartition(place["topic"], 0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=place["bootstrap"],
        auto_offset_reset="none",
        enable_auto_commit=False,
        check_crcs=checks_crc(request),
        fetch_max_wait_ms=50,
        fetch_max_bytes=MOST_SIZE,
        max_partition_fetch_bytes=MOST_SIZE,
    )
    try:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        return decoded(consumed(request, lambda: polled(consumer, partition)))
    finally:
        consumer.close()


def polled(consumer, partition):
    found = consumer.poll(timeout_ms=int(1000 * POLL_SECONDS))
    return [record_of(record) for record in found.get(partition, ())]


serve(
    {
        "name": "kafka-python, KafkaConsumer",
        "version": kafka.__version__,
        "language": "Python",
        "homepage": "https://github.com/dpkp/kafka-python",
        "issues": "https://github.com/dpkp/kafka-python/issues",
    },
    CONSUMER_FEATURES,
    decode=decode,
)
