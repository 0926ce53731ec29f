"""aiokafka: `aiokafka.record`, compiled or in pure Python (AIOKAFKA_NO_EXTENSIONS=1), asked as its fetcher does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from seglog_adapter import CODECS, RefusedError, SkipError, as_stored, decoded, header_pair, hexed
from seglog_adapter import serve, unhexed, why_unencodable

import aiokafka
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.util import NO_EXTENSIONS


def decode(request):
    def batches():
        records = MemoryRecords(bytes.fromhex(request["data"]))
        while records.has_next():
            batch = records.next_batch()
            if request.get("options", {}).get("crc", True) and not batch.validate_crc():
                raise RefusedError("crc", "validate_crc() is false")
            yield described(batch)

    return decoded(batches())


def described(batch):
    records = [record_of(record) for record in batch]
    return {
        "nextOffset": str(batch.next_offset),
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control_batch,
        "records": records,
    }


def record_of(record):
    return {
        "offset": str(record.offset),
        "timestamp": str(-1 if record.timestamp is None else record.timestamp),
        "key": hexed(record.key),
        "value": hexed(record.value),
        "headers": [header_pair(pair) for pair in record.headers],
    }


def encode(request):
    return {"ok": True, "data": b"".join(map(encoded, request["batches"])).hex()}


def encoded(batch):
    if reason := why_unencodable(batch):
        raise SkipError(reason)
    codec, base = CODECS.index(batch.get("codec", "none")), int(batch.get("baseOffset") or 0)
    if batch.get("magic", 2) < 2:
        return legacy(batch, codec)
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=int(batch.get("isTransactional", False)),
        producer_id=int(batch.get("producerId", -1)),
        producer_epoch=batch.get("producerEpoch", -1),
        base_sequence=batch.get("baseSequence", -1),
        batch_size=1 << 30,
    )
    for record in batch["records"]:
        headers = [(bytes.fromhex(key).decode(), unhexed(value)) for key, value in record.get("headers", [])]
        key, value = unhexed(record.get("key")), unhexed(record.get("value"))
        delta = int(record["offset"]) - base
        builder.append(delta, timestamp=int(record["timestamp"]), key=key, value=value, headers=headers)
    return as_stored(builder.build(), batch)


def legacy(batch, codec):
    builder = LegacyRecordBatchBuilder(magic=batch["magic"], compression_type=codec, batch_size=1 << 30)
    if codec and batch["records"][0]["offset"] != "0":
        raise SkipError("its encoder sets no offset on a wrapper")
    for record in batch["records"]:
        key, value = unhexed(record.get("key")), unhexed(record.get("value"))
        builder.append(int(record["offset"]), timestamp=int(record.get("timestamp", -1)), key=key, value=value)
    return bytes(builder.build())


serve(
    {
        "name": "aiokafka, pure Python" if NO_EXTENSIONS else "aiokafka",
        "version": aiokafka.__version__,
        "language": "Python" if NO_EXTENSIONS else "Cython",
        "homepage": "https://github.com/aio-libs/aiokafka",
        "issues": "https://github.com/aio-libs/aiokafka/issues",
    },
    {
        "magic": [0, 1, 2],
        "codec": list(CODECS),
        "crc": True,
        "control": "surfaced",
        "headers": "ordered",
        "batchMeta": ["nextOffset", "isTransactional", "isControl"],
        "bytesKeys": False,
        "partialTail": False,
    },
    decode=decode,
    encode=encode,
)
