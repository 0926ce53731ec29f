"""An adapter in Python: change `implementation`, `features` and `decode`; leave the rest."""

import json
import os
import sys

out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what the library prints must not get between the answers
os.dup2(2, 1)

import your_library  # noqa: E402


def hello(_request):
    return {
        "ok": True,
        "protocol": 1,
        "implementation": {"name": "your-library", "version": your_library.__version__, "language": "Python"},
        "ops": ["decode"],
        "features": {
            "magic": [2],  # of 0, 1, 2: what it can read
            "codec": ["none", "gzip"],  # of none, gzip, snappy, lz4, zstd
            "crc": True,  # it checks the checksum, or can be told to
            "control": "hidden",  # surfaced: control records are handed out
            "headers": "ordered",  # unordered: as a map; none: not told
            "batchMeta": ["baseOffset", "isControl"],  # fields of batches that it tells; true: all; false: none
            "bytesKeys": True,  # keys of headers are bytes, not text
            "partialTail": False,  # it tells where the last whole batch ends
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
    except Exception as error:  # whatever it raises, it has refused
        return {"ok": False, "reject": {"class": "other", "message": repr(error)}, "batches": batches}
    return {"ok": True, "batches": batches}


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    answer = {"hello": hello, "decode": decode}[request["op"]](request)
    print(json.dumps({"seq": request["seq"], **answer}), file=out, flush=True)
