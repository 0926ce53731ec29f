"""Carries out tasks with librdkafka: told as JSON on standard input, answered as JSON on standard output."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)


def row(message: Message) -> list:
    key, value = (None if part is None else part.hex() for part in (message.key(), message.value()))
    headers = [[name, None if each is None else each.hex()] for name, each in message.headers() or ()]
    kind, timestamp_ms = message.timestamp()
    return [message.offset(), 0 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms, key, value, headers]


def consumer(port: int, **options: object) -> Consumer:
    settings = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
    return Consumer(settings | options)


def read(connected: Consumer, count: int | None = None) -> list:
    """So many records, or all."""
    found = []
    while count is None or len(found) < count:
        message = connected.poll(1)
        if message is None:
            continue
        if message.error() is None:
            found.append(row(message))
        elif message.error().code() == KafkaError._PARTITION_EOF:
            break
        else:
            raise KafkaException(message.error())
    return found


def records(port: int, task: dict) -> list:
    connected = consumer(port, **{"isolation.level": task["isolation"]})
    connected.assign([TopicPartition(task["topic"], 0, OFFSET_BEGINNING)])
    found = read(connected)
    connected.close()
    return found


def lookups(port: int, task: dict) -> list:
    connected = consumer(port)
    asked = [TopicPartition(task["topic"], 0, each) for each in task["timestamps"]]
    found = [connected.offsets_for_times([each], timeout=10)[0].offset for each in asked]
    connected.close()
    return [None if each < 0 else [None, each] for each in found]


def group(port: int, task: dict) -> list:
    """Read a few records in a group and commit; what comes after that to the next member."""
    found, start = [], 0
    for end in task["ends"]:
        connected = consumer(port, **{"group.id": task["group"]})
        connected.subscribe([task["topic"]])
        found.append([each[0] for each in read(connected, end - start)])
        connected.commit(offsets=[TopicPartition(task["topic"], 0, end)], asynchronous=False)
        connected.close()
        start = end
    return found


def produce(port: int, task: dict) -> list:
    """Write records; what comes back are their offsets."""
    found = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        found.append(message.offset())

    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all", "enable.idempotence": task["idempotent"]}
    connected = Producer(settings)
    for number in range(task["count"]):
        connected.produce(task["topic"], f"{task['prefix']}-{number}".encode(), on_delivery=delivered)
    connected.flush(60)
    return found


def steady(port: int, task: dict) -> dict:
    """Write record after record for some seconds, whatever becomes of the server; what comes back was acknowledged."""
    acknowledged, failed = [], []

    def delivered(number: int, error: KafkaError | None) -> None:
        (acknowledged if error is None else failed).append(number)

    connected = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 0,  # without end: who gives up sends again under a new epoch
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
        }
    )
    deadline, number = time.monotonic() + task["seconds"], 0
    while time.monotonic() < deadline:
        value = f"{task['prefix']}-{number}".encode()
        connected.produce(task["topic"], value, on_delivery=lambda error, _, one=number: delivered(one, error))
        number += 1
        connected.poll(task["pause"])
    left = connected.flush(500)
    return {"acknowledged": acknowledged, "failed": failed, "sent": number, "left": left}


def transactions(port: int, _: dict) -> list:
    """Begin as a transactional producer does; what comes back is the error, and the seconds that it took."""
    connected = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "t", "log_level": 2})
    started = time.monotonic()
    try:
        connected.init_transactions(25)
    except KafkaException as error:
        return [error.args[0].name(), time.monotonic() - started]
    return ["none", time.monotonic() - started]


TASKS = {
    "records": records,
    "lookups": lookups,
    "group": group,
    "produce": produce,
    "steady": steady,
    "transactions": transactions,
}
request = json.load(sys.stdin)
with ThreadPoolExecutor(8) as pool:
    json.dump(list(pool.map(lambda task: TASKS[task["kind"]](request["port"], task), request["tasks"])), sys.stdout)
