"""A whole adapter of an encoder: change `HELLO` and `encoded` to call your library. To run it, name it in adapter.toml."""

import json
import struct
import sys

import google_crc32c

FEATURES = {"magic": [2], "codec": ["none"], "headers": "ordered", "batchMeta": True, "bytesKeys": True}
HELLO = {"implementation": {"name": "mine", "version": "1", "language": "Python"}, "ops": ["encode"]}
CANNOT = ("isTransactional", "isControl")


def varint(number):
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(text):
    return varint(-1) if text is None else varint(len(text) // 2) + bytes.fromhex(text)


def record(one, batch):
    headers = one.get("headers") or []
    body = b"\0" + varint(int(one["timestamp"]) - int(batch["baseTimestamp"]))
    body += varint(int(one["offset"]) - int(batch["baseOffset"])) + field(one["key"]) + field(one["value"])
    body += varint(len(headers)) + b"".join(field(key) + field(value) for key, value in headers)
    return varint(len(body)) + body


def encoded(batch):
    records = b"".join(record(one, batch) for one in batch["records"])
    base, count = int(batch["baseOffset"]), len(batch["records"])
    attributes = 8 if batch["timestampType"] == "LogAppendTime" else 0
    tail = struct.pack(">hiqqqhii", attributes, int(batch["lastOffset"]) - base, int(batch["baseTimestamp"]),
                       int(batch["maxTimestamp"]), -1, -1, -1, count) + records
    leader_epoch = batch["partitionLeaderEpoch"]
    return struct.pack(">qiibI", base, 9 + len(tail), leader_epoch, 2, google_crc32c.value(tail)) + tail


def answer(request):
    if request["op"] == "hello":
        return {"ok": True, "protocol": 1, "features": FEATURES, **HELLO}
    for batch in request["batches"]:
        if batch["magic"] != 2 or batch["codec"] != "none" or int(batch["producerId"]) >= 0 or not batch["records"]:
            return {"skip": {"reason": "it writes no such batches"}}
        if any(batch.get(name) for name in CANNOT) or batch.get("deleteHorizonMs") is not None:
            return {"skip": {"reason": "it writes no such batches"}}
    try:
        return {"ok": True, "data": b"".join(map(encoded, request["batches"])).hex()}
    except Exception as error:
        return {"ok": False, "reject": {"class": "other", "message": repr(error)}}


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    print(json.dumps({"seq": request["seq"], **answer(request)}), flush=True)
