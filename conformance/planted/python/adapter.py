"""An adapter for the decoder in this directory."""

import json
import os
import sys

out = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

from codec import Corrupt  # noqa: E402
from decoder import DEFAULT_LIMIT, decode  # noqa: E402
from indexes import build, find_offset, find_timestamp  # noqa: E402

TEXTS = {
    "offset",
    "timestamp",
    "baseOffset",
    "lastOffset",
    "nextOffset",
    "maxTimestamp",
    "deleteHorizonMs",
    "producerId",
}
BATCH_META = """position sizeInBytes magic baseOffset lastOffset nextOffset crc codec timestampType maxTimestamp
deleteHorizonMs recordsCount producerId producerEpoch baseSequence lastSequence isTransactional isControl
partitionLeaderEpoch isValid""".split()


def hello(_request):
    return {
        "ok": True,
        "protocol": 1,
        "implementation": {"name": "planted-python", "version": "1", "language": "Python"},
        "ops": ["decode", "index", "lookup"],
        "features": {
            "magic": [0, 1, 2],
            "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
            "crc": True,
            "control": "surfaced",
            "headers": "ordered",
            "batchMeta": BATCH_META,
            "bytesKeys": True,
            "partialTail": True,
            "indexEntry": False,
            "specialTimestamps": True,
            "limit": True,
            "strictFrames": True,
        },
    }


def plain(value, name=None):
    """Return a value in the format of the protocol: 64-bit numbers as text, bytes in hexadecimal."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: plain(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return str(value) if name in TEXTS and value is not None else value


def on_decode(request, batches):
    options = request.get("options", {})
    consumed, tail = decode(
        bytes.fromhex(request["data"]), batches, options.get("crc", True), options.get("limit", DEFAULT_LIMIT)
    )
    return {"batches": batches, "consumed": consumed, "tail": tail}


def on_index(request, _batches):
    files = build(
        bytes.fromhex(request["data"]), int(request.get("baseOffset", 0)), request.get("indexIntervalBytes", 4096)
    )
    return {"files": files}


def on_lookup(request, _batches):
    files = {name: bytes.fromhex(data) for name, data in request["files"].items()}
    if "offset" in request:
        return {"found": find_offset(files, int(request["offset"]))}
    if "timestamp" in request:
        return {"found": find_timestamp(files, int(request["timestamp"]))}
    return {"skip": {"reason": "offsets and timestamps only"}}


def answer(request):
    if request["op"] == "hello":
        return hello(request)
    batches = []
    try:
        result = {"decode": on_decode, "index": on_index, "lookup": on_lookup}[request["op"]](request, batches)
        return plain(result if "skip" in result else {"ok": True, **result})
    except Corrupt as error:
        refused = {"ok": False, "reject": {"class": "other", "message": str(error)}}
        return plain(refused | ({"batches": batches} if request["op"] == "decode" else {}))


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    print(json.dumps({"seq": request["seq"], **answer(request)}), file=out, flush=True)
