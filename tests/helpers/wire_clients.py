"""Clients of a few lines for the tests of whole clients: one that is right, and some that are not.

python wire_clients.py right|stalls|jumps|dies|skips|loses|garbles|silent|consumes

All of them consume, and all but the last produce, too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from seglog_conformance.reference import decode, sound_batches
from seglog_conformance.reference.logs import encode

from proofs.serve.client import Client

PRODUCE = 0
FEATURES = {
    "magic": [0, 1, 2],
    "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
    "crc": True,
    "control": "hidden",
    "headers": "ordered",
    "batchMeta": False,
    "bytesKeys": True,
    "partialTail": False,
    "afterError": True,
}
HELLO = {
    "ok": True,
    "protocol": 1,
    "ops": ["decode"] if sys.argv[1] == "consumes" else ["decode", "encode"],
    "implementation": {"name": "a client", "version": "1", "language": "Python"},
    "features": FEATURES,
}


def consumed(target: dict[str, str], kind: str) -> dict[str, Any]:
    """Fetch until the end, or until an error, before which a right client stays."""
    ended, offset, records = Path(target["ended"]), 0, []
    with Client(int(target["bootstrap"].rpartition(":")[2])) as client:
        while not ended.exists():
            found = decode({"data": bytes(client.fetch(target["topic"], offset).records or b"").hex()})
            batches = found["batches"]
            if kind == "dies" and batches:
                os.abort()
            records += [one for batch in batches[: 1 if kind == "jumps" else None] for one in records_of(batch, offset)]
            if not found["ok"] and kind != "stalls":
                after = skipped(client, target["topic"]) if kind == "skips" else {"records": []}
                position = {"position": str(next_offset(offset, batches, kind))} if kind == "right" else {}
                refusal = {"ok": False, "reject": found["reject"], "batches": [{"records": records}]}
                return {**refusal, "after": {**after, **position}}
            offset = next_offset(offset, batches, kind)
    return {"ok": True, "batches": [{"records": records}]}


def skipped(client: Client, topic: str) -> dict[str, Any]:
    """Fetch what stands behind the damage, too."""
    return {"records": sound_batches({"data": bytes(client.fetch(topic, 0).records or b"").hex()})[-1]["records"]}


def records_of(batch: dict[str, Any], offset: int) -> list[dict[str, Any]]:
    return [one for one in batch["records"] if not batch["isControl"] and int(one["offset"]) >= offset]


def next_offset(offset: int, batches: list[dict[str, Any]], kind: str) -> int:
    """Behind the last batch; one that stalls goes by records alone, so that a batch without any holds it up."""
    if kind == "stalls":
        return max((int(one["offset"]) + 1 for batch in batches for one in batch["records"]), default=offset)
    return int(batches[-1]["nextOffset"]) if batches else offset


def produced(target: dict[str, str], batches: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Send each batch as a producer does, who knows no base offset."""
    with Client(int(target["bootstrap"].rpartition(":")[2])) as client:
        for batch in batches if kind != "silent" else ():
            reported = {**batch, "records": batch["records"][:-1]} if kind == "loses" else batch
            error = sent(client, target["topic"], sendable(reported, kind))
            if error is not None:
                return {"ok": False, "reject": {"class": "other", "message": error}}
    return {"ok": True}


def sendable(batch: dict[str, Any], kind: str) -> bytes:
    records = batch["records"]
    last = {"lastOffset": records[-1]["offset"], "recordsCount": len(records)}
    data = bytearray.fromhex(encode({"batches": [{**batch, **last}]})["data"])
    data[:8] = bytes(8)
    data[12:16] = bytes(4)
    if kind == "garbles":
        data[-1] ^= 1
    return bytes(data)


def sent(client: Client, topic: str, data: bytes) -> str | None:
    """Return what the answer says, if it is an error."""
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=0, topic_data=topics)
    found = answer.responses[0].partition_responses[0]
    return found.error_code.name if found.error_code else None


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    if request["op"] == "hello":
        answer = HELLO
    elif request["op"] == "encode":
        answer = produced(request["place"], request["batches"], sys.argv[1])
    else:
        answer = consumed(request["place"], sys.argv[1])
    sys.stdout.write(json.dumps({"seq": request["seq"], **answer}) + "\n")
    sys.stdout.flush()
