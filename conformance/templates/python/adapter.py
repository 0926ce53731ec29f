"""An adapter in Python: change `implementation`, `ops`, `features`, `decode` and `lookup`; leave the rest."""

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
        "ops": ["decode", "lookup"],  # leave out the operations that it lacks
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


def text(data):
    return None if data is None else bytes(data).hex()


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
        return {"ok": False, "reject": {"class": "other", "message": repr(error)}, "batches": batches}
    return {"ok": True, "batches": batches}


def lookup(request):
    if "offset" not in request:
        return {"skip": {"reason": "it finds offsets only"}}
    with tempfile.TemporaryDirectory() as directory:
        for name, content in request["files"].items():
            Path(directory, name).write_bytes(bytes.fromhex(content))
        found = your_library.find(directory, int(request["offset"]))  # the batch that holds the offset
    return {"ok": True, "found": found and {"position": found.position, "baseOffset": str(found.base_offset)}}


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    answer = {"hello": hello, "decode": decode, "lookup": lookup}[request["op"]](request)
    print(json.dumps({"seq": request["seq"], **answer}), file=out, flush=True)
