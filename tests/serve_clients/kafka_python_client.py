"""Carries out tasks with kafka-python: told as JSON on standard input, answered as JSON on standard output."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError


def row(message: object) -> list:
    key, value = (None if part is None else part.hex() for part in (message.key, message.value))
    headers = [[name, None if each is None else each.hex()] for name, each in message.headers]
    return [message.offset, -1 if message.timestamp is None else message.timestamp, key, value, headers]


def consumer(port: int, **options: object) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=f"127.0.0.1:{port}", auto_offset_reset="earliest", enable_auto_commit=False, **options
    )


def read(connected: KafkaConsumer, partition: TopicPartition, end: int) -> list:
    found = []
    while connected.position(partition) < end:
        for messages in connected.poll(timeout_ms=200).values():
            found += map(row, messages)
    return found


def records(port: int, task: dict) -> list:
    connected = consumer(port, isolation_level=task["isolation"])
    partition = TopicPartition(task["topic"], 0)
    connected.assign([partition])
    connected.seek_to_beginning(partition)
    found = read(connected, partition, task["end"])
    connected.close()
    return found


def lookups(port: int, task: dict) -> list:
    connected = consumer(port)
    partition = TopicPartition(task["topic"], 0)
    found = [connected.offsets_for_times({partition: each})[partition] for each in task["timestamps"]]
    connected.close()
    return [None if each is None else [each.timestamp, each.offset] for each in found]


def group(port: int, task: dict) -> list:
    """Read a few records in a group and commit; what comes after that to the next member."""
    found = []
    for end in task["ends"]:
        connected = consumer(port, group_id=task["group"], max_poll_records=1)
        connected.subscribe([task["topic"]])
        part = []
        while not part or part[-1] < end - 1:
            part += [each.offset for messages in connected.poll(timeout_ms=200).values() for each in messages]
        connected.commit()
        connected.close()
        found.append(part)
    return found


def produce(port: int, task: dict) -> list:
    """Write records; what comes back are their offsets."""
    idempotent = task["idempotent"]
    connected = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", acks="all", enable_idempotence=idempotent)
    sent = [connected.send(task["topic"], f"{task['prefix']}-{number}".encode()) for number in range(task["count"])]
    found = [each.get(60).offset for each in sent]
    connected.close()
    return found


def transactions(port: int, _: dict) -> list:
    """Begin as a transactional producer does; what comes back is the error, and the seconds that it took."""
    connected = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", transactional_id="t")
    started = time.monotonic()
    try:
        connected.init_transactions()
    except KafkaError as error:
        return [type(error).__name__, time.monotonic() - started]
    finally:
        connected.close(timeout=1)
    return ["none", time.monotonic() - started]


TASKS = {"records": records, "lookups": lookups, "group": group, "produce": produce, "transactions": transactions}
request = json.load(sys.stdin)
with ThreadPoolExecutor(8) as pool:
    json.dump(list(pool.map(lambda task: TASKS[task["kind"]](request["port"], task), request["tasks"])), sys.stdout)
