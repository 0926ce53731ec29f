"""kio: `kio.records.readers.read_batch`, made from the template for Python."""

import json
import os
import sys

out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # keeps output of the library apart from the answers
os.dup2(2, 1)

from importlib.metadata import version  # noqa: E402

from kio.records.readers import read_batch  # noqa: E402


def hello(_request):
    return {
        "ok": True,
        "protocol": 1,
        "implementation": {"name": "kio", "version": version("kio"), "language": "Python"},
        "ops": ["decode"],
        "features": {
            "magic": [2],  # of 0, 1, 2: those it can read
            "codec": ["none"],  # of none, gzip, snappy, lz4, zstd
            "crc": True,  # it checks checksums, by itself or by an option
            "control": "surfaced",  # surfaced: it returns control records
            "headers": "ordered",  # unordered: as a map; none: not reported
            "batchMeta": ["baseOffset", "crc", "producerId"],  # reported fields of batches; true: all; false: none
            "bytesKeys": True,  # header keys are bytes, not text
            "partialTail": False,  # it reports where the last whole batch ends
            # By ValueError it refuses another magic, a wrong checksum and wrong lengths; a time that datetime cannot
            # hold is the same error by accident, and no name tells them apart.
            "errors": ["kio.serial.errors.*", "builtins.ValueError"],
        },
    }


def text(data):
    return None if data is None else bytes(data).hex()


def decode(request):
    data, position, batches = bytes.fromhex(request["data"]), 0, []
    try:
        while position < len(data):
            batch, size = read_batch(data, position)
            position += size
            batches.append(
                {
                    "baseOffset": str(batch.base_offset),
                    "crc": batch.crc,
                    "producerId": str(batch.producer_id),
                    "records": [record_of(record) for record in batch.records],
                }
            )
    except Exception as error:  # any exception is a refusal
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        reject = {"class": "other", "message": repr(error), "error": name}
        return {"ok": False, "reject": reject, "batches": batches}
    return {"ok": True, "batches": batches}


def record_of(record):
    return {
        "offset": str(record.offset),
        "timestamp": str(round(record.timestamp.timestamp() * 1000)),
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[text(header.key), text(header.value)] for header in record.headers],
    }


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    answer = {"hello": hello, "decode": decode}[request["op"]](request)
    print(json.dumps({"seq": request["seq"], **answer}), file=out, flush=True)
