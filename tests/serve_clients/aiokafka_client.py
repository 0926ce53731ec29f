"""Carries out tasks with aiokafka: told as JSON on standard input, answered as JSON on standard output."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import UnsupportedCodecError


def row(message: object) -> list:
    key, value = (None if part is None else part.hex() for part in (message.key, message.value))
    headers = [[name, None if each is None else each.hex()] for name, each in message.headers]
    return [message.offset, -1 if message.timestamp is None else message.timestamp, key, value, headers]


def consumer(port: int, *topics: str, **options: object) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=f"127.0.0.1:{port}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )


async def read(connected: AIOKafkaConsumer, last: int) -> list:
    """Up to an offset: the position does not pass over what ends a transaction."""
    found = []
    while (found[-1][0] if found else -1) < last:
        for messages in (await connected.getmany(timeout_ms=200)).values():
            found += map(row, messages)
    return found


async def records(port: int, task: dict) -> list:
    connected = consumer(port, isolation_level=task["isolation"])
    await connected.start()
    partition = TopicPartition(task["topic"], 0)
    connected.assign([partition])
    await connected.seek_to_beginning(partition)
    try:
        return await read(connected, task["last"])
    finally:
        await connected.stop()


async def lookups(port: int, task: dict) -> list:
    connected = consumer(port)
    await connected.start()
    partition = TopicPartition(task["topic"], 0)
    found = [(await connected.offsets_for_times({partition: each}))[partition] for each in task["timestamps"]]
    await connected.stop()
    return [None if each is None else [each.timestamp, each.offset] for each in found]


async def group(port: int, task: dict) -> list:
    """Read a few records in a group and commit; what comes after that to the next member."""
    found = []
    for end in task["ends"]:
        connected = consumer(port, task["topic"], group_id=task["group"], max_poll_records=1)
        await connected.start()
        found.append([each[0] for each in await read(connected, end - 1)])
        await connected.commit()
        await connected.stop()
    return found


async def produce(port: int, task: dict) -> list:
    """Write records; what comes back are their offsets."""
    idempotent = task["idempotent"]
    connected = AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", acks="all", enable_idempotence=idempotent)
    await connected.start()
    values = [f"{task['prefix']}-{number}".encode() for number in range(task["count"])]
    sent = [await connected.send(task["topic"], value) for value in values]
    found = [(await each).offset for each in sent]
    await connected.stop()
    return found


async def outcome(port: int, task: dict) -> object:
    """Return what a task gives, or what the client cannot do."""
    try:
        return await TASKS[task["kind"]](port, task)
    except UnsupportedCodecError as error:
        return str(error)


async def main() -> None:
    request = json.load(sys.stdin)
    free = asyncio.Semaphore(8)

    async def one(task: dict) -> object:
        async with free:
            return await outcome(request["port"], task)

    json.dump(await asyncio.gather(*map(one, request["tasks"])), sys.stdout)


TASKS = {"records": records, "lookups": lookups, "group": group, "produce": produce}
asyncio.run(main())
