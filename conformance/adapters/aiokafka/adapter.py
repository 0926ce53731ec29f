"""aiokafka: `aiokafka.record`, compiled or in pure Python (AIOKAFKA_NO_EXTENSIONS=1), used as its fetcher does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from record_builders import AIOKAFKA_ERRORS, Encoder, record_of
from seglog_adapter import CODECS, RefusedError, decoded, serve

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
        "errors": AIOKAFKA_ERRORS,
    },
    decode=decode,
    encode=Encoder(DefaultRecordBatchBuilder, LegacyRecordBatchBuilder),
)
