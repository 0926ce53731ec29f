"""An adapter in Python: change `hello`, the functions below it, and `OPERATIONS`; leave the rest."""

import json
import os
import sys
import tempfile
from pathlib import Path

out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # keeps output of the library apart from the answers
os.dup2(2, 1)

import your_library  # noqa: E402


def hello(_request):
    return {
        "ok": True,
        "protocol": 1,
        "implementation": {"name": "your-library", "version": your_library.__version__, "language": "Python"},
        "ops": list(OPERATIONS),
        "features": {
            "magic": [2],  # of 0, 1, 2: those it can read
            "codec": ["none", "gzip"],  # of none, gzip, snappy, lz4, zstd
            "crc": True,  # it checks checksums, by itself or by an option
            "control": "hidden",  # surfaced: it returns control records
            "headers": "ordered",  # unordered: as a map; none: not reported
            "batchMeta": ["baseOffset", "isControl"],  # fields of batches that it reports; true: all; false: none
            "bytesKeys": True,  # header keys are bytes, not text
            "partialTail": False,  # it reports where the last whole batch ends
            "indexEntry": False,  # it reports the index entry that a lookup started from
        },
    }


class SkipError(Exception):
    """The library cannot be asked for this."""


def text(data):
    return None if data is None else bytes(data).hex()


def content(field):
    return None if field is None else bytes.fromhex(field)


def refused(error):
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return {"ok": False, "reject": {"class": "other", "message": repr(error), "error": name}}


def decode(request):
    batches = []
    try:
        for batch in your_library.batches(bytes.fromhex(request["data"])):
            records = []
            batches.append({"baseOffset": str(batch.base_offset), "isControl": batch.is_control, "records": records})
            for record in batch:
                records.append(
                    {
                        "offset": str(record.offset),  # absolute
                        "timestamp": str(record.timestamp),  # milliseconds, -1 for none
                        "key": text(record.key),
                        "value": text(record.value),
                        "headers": [[text(key), text(value)] for key, value in record.headers],
                    }
                )
    except Exception as error:  # any exception is a refusal
        return {**refused(error), "batches": batches}
    return {"ok": True, "batches": batches}


def encode(request):
    pieces = []
    for batch in request["batches"]:  # with the fields that `decode` reports; all of them are in the protocol
        is_usual = batch["magic"] == 2 and batch["timestampType"] == "CreateTime" and not batch["isControl"]
        is_ours = int(batch["producerId"]) < 0 and batch["deleteHorizonMs"] is None
        counts = int(batch["lastOffset"]) - int(batch["baseOffset"]) == len(batch["records"]) - 1 >= 0
        if not is_usual or not is_ours or not counts or batch["codec"] != "none":
            raise SkipError("it writes no such batches")
        records = [
            (
                int(one["offset"]),
                int(one["timestamp"]),
                content(one["key"]),
                content(one["value"]),
                [(content(key), content(value)) for key, value in one.get("headers") or ()],
            )
            for one in batch["records"]
        ]
        pieces.append(your_library.encode(batch, records))
    return {"ok": True, "data": b"".join(pieces).hex()}


def index(request):
    log, base_offset = bytes.fromhex(request["data"]), int(request.get("baseOffset", 0))
    files = your_library.indexes(log, base_offset, int(request["indexIntervalBytes"]))
    return {"ok": True, "files": {ending: bytes(found).hex() for ending, found in files.items()}}  # ".index", ...


def lookup(request):
    if "offset" not in request:
        raise SkipError("it finds offsets only")
    with tempfile.TemporaryDirectory() as directory:
        for name, found in request["files"].items():
            Path(directory, name).write_bytes(bytes.fromhex(found))
        found = your_library.find(directory, int(request["offset"]))  # the batch that holds the offset
    return {"ok": True, "found": found and {"position": found.position, "baseOffset": str(found.base_offset)}}


# What the library has: add "encode": encode and "index": index, and take away what it lacks. No others are asked.
OPERATIONS = {"decode": decode, "lookup": lookup}


def answer(request):
    try:
        return {"hello": hello, **OPERATIONS}[request["op"]](request)
    except SkipError as reason:
        return {"skip": {"reason": str(reason)}}
    except Exception as error:  # any exception is a refusal
        return refused(error)


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    print(json.dumps({"seq": request["seq"], **answer(request)}), file=out, flush=True)
