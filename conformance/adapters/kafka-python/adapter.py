"""kafka-python: `kafka.record`, used as its fetcher does, with the check of CRCs."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "_shared" / "python"))

from record_builders import KAFKA_PYTHON_ERRORS, Encoder, record_of
from seglog_adapter import CODECS, TIMESTAMP_TYPES, RefusedError, decoded, serve

import kafka
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

NO_PRODUCER = {
    "recordsCount": None,
    "producerId": "-1",
    "producerEpoch": -1,
    "baseSequence": -1,
    "isTransactional": False,
    "isControl": False,
    "partitionLeaderEpoch": -1,
}
"""Producer fields, which messages of magic 0 and 1 lack."""


def decode(request):
    data = bytes.fromhex(request["data"])
    end = {}

    def batches():
        records = MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            if request.get("options", {}).get("crc", True) and not batch.validate_crc():
                raise RefusedError("crc", "validate_crc() is false")
            yield described(batch)
        end["consumed"] = records.valid_bytes()
        end["tail"] = {"at": end["consumed"]} if end["consumed"] < len(data) else None

    return decoded(batches(), lambda: end)


def described(batch):
    """Return a batch without properties that releases before 2.1 lack; reading replaces the compressed bytes."""
    magic, size = magic_of(batch), len(batch._buffer)
    records = [checked_record(batch, record) for record in batch]
    return {
        "magic": magic,
        "sizeInBytes": size,
        "codec": codec_name(batch.compression_type),
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "records": records,
        **(header(batch) if magic > 1 else legacy_header(batch, records)),
    }


def magic_of(batch):
    return getattr(batch, "_magic", 2)


def codec_name(codec):
    return CODECS[codec] if codec < len(CODECS) else str(codec)


def header(batch):
    base, _, epoch, _, _, _, last, _, latest, producer, producer_epoch, sequence, count = batch._header_data
    return {
        "baseOffset": str(base),
        "lastOffset": str(base + last),
        "maxTimestamp": str(latest),
        "recordsCount": count,
        "producerId": str(producer),
        "producerEpoch": producer_epoch,
        "baseSequence": sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control_batch,
        "partitionLeaderEpoch": epoch,
    }


def legacy_header(batch, records):
    """Set the stored offset of a wrapper to that of its last message."""
    return {
        "baseOffset": records[0]["offset"] if records else None,
        "lastOffset": str(batch._offset),
        "maxTimestamp": max((record["timestamp"] for record in records), key=int, default="-1"),
        **NO_PRODUCER,
    }


def checked_record(batch, record):
    if magic_of(batch) < 2 and not getattr(record, "validate_crc", lambda: True)():
        raise RefusedError("crc", "validate_crc() of a record is false")
    return record_of(record)


serve(
    {
        "name": "kafka-python",
        "version": kafka.__version__,
        "language": "Python",
        "homepage": "https://github.com/dpkp/kafka-python",
        "issues": "https://github.com/dpkp/kafka-python/issues",
    },
    {
        "magic": [0, 1, 2],
        "codec": list(CODECS),
        "crc": True,
        "control": "surfaced",
        "headers": "ordered",
        "batchMeta": ["magic", "sizeInBytes", "codec", "timestampType", "baseOffset", "lastOffset", "maxTimestamp"]
        + list(NO_PRODUCER),
        "bytesKeys": False,
        "partialTail": True,
        "errors": KAFKA_PYTHON_ERRORS,
    },
    decode=decode,
    encode=Encoder(DefaultRecordBatchBuilder, LegacyRecordBatchBuilder),
)
