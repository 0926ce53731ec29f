"""Consumers of a few lines for the tests of whole clients: one that is right, and some that are not.

python wire_clients.py right|stalls|jumps|dies
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from seglog_conformance.reference import decode
from serve_client import Client

FEATURES = {
    "magic": [0, 1, 2],
    "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
    "crc": True,
    "control": "hidden",
    "headers": "ordered",
    "batchMeta": False,
    "bytesKeys": True,
    "partialTail": False,
}
HELLO = {
    "ok": True,
    "protocol": 1,
    "ops": ["decode"],
    "implementation": {"name": "a client", "version": "1", "language": "Python"},
    "features": FEATURES,
}


def consumed(place: dict[str, str], kind: str) -> dict[str, Any]:
    """Fetch until the end."""
    ended, offset, records = Path(place["ended"]), 0, []
    with Client(int(place["bootstrap"].rpartition(":")[2])) as client:
        while not ended.exists():
            found = decode({"data": bytes(client.fetch(place["topic"], offset).records or b"").hex()})
            batches = found["batches"]
            if kind == "dies" and batches:
                os.abort()
            records += [one for batch in batches[: 1 if kind == "jumps" else None] for one in records_of(batch, offset)]
            if not found["ok"] and kind != "stalls":
                return {"ok": False, "reject": found["reject"], "batches": [{"records": records}]}
            offset = next_offset(offset, batches, kind)
    return {"ok": True, "batches": [{"records": records}]}


def records_of(batch: dict[str, Any], offset: int) -> list[dict[str, Any]]:
    return [one for one in batch["records"] if not batch["isControl"] and int(one["offset"]) >= offset]


def next_offset(offset: int, batches: list[dict[str, Any]], kind: str) -> int:
    """Behind the last batch; one that stalls goes by records alone, so that a batch without any holds it up."""
    if kind == "stalls":
        return max((int(one["offset"]) + 1 for batch in batches for one in batch["records"]), default=offset)
    return int(batches[-1]["nextOffset"]) if batches else offset


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    answer = HELLO if request["op"] == "hello" else consumed(request["place"], sys.argv[1])
    sys.stdout.write(json.dumps({"seq": request["seq"], **answer}) + "\n")
    sys.stdout.flush()
