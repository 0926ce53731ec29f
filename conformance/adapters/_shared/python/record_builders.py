"""Shared parts for kafka-python and aiokafka, whose record modules have a common origin."""

from __future__ import annotations

from typing import Any

from seglog_adapter import CODECS, GZIP_ERRORS, SkipError, as_stored, header_pair, hexed, unhexed, why_unencodable

KAFKA_PYTHON_ERRORS = ["kafka.errors.*", *GZIP_ERRORS, "snappy.*", "zstandard.*", "builtins.RuntimeError"]
"""Errors of kafka-python, and of the packages that decompress for it.

`RuntimeError` is all that the package lz4 raises for a damaged frame. Assertions, index errors and the errors of
`struct` are left out: the documentation names none of them.
"""

AIOKAFKA_ERRORS = ["aiokafka.errors.*", *GZIP_ERRORS, "cramjam.*", "builtins.RuntimeError"]
"""Errors of aiokafka, and of the packages that decompress for it.

Its reader of messages raises `RuntimeError` itself, for a codec that it does not know.
"""

UNLIMITED = 1 << 30
"""Batch size in bytes that no case reaches."""


def record_of(record: Any) -> dict[str, Any]:
    """Return a record in the format of the protocol."""
    return {
        "offset": str(record.offset),
        "timestamp": str(-1 if record.timestamp is None else record.timestamp),
        "key": hexed(record.key),
        "value": hexed(record.value),
        "headers": [header_pair(pair) for pair in record.headers],
    }


class Encoder:
    """The operation ``encode``.

    Args:
        default_builder: class of the library for magic 2.
        legacy_builder: class of the library for magic 0 and 1.
    """

    def __init__(self, default_builder: Any, legacy_builder: Any) -> None:
        self.default_builder, self.legacy_builder = default_builder, legacy_builder

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the bytes of all batches of a request."""
        return {"ok": True, "data": b"".join(map(self._encoded, request["batches"])).hex()}

    def _encoded(self, batch: dict[str, Any]) -> bytes:
        if reason := why_unencodable(batch):
            raise SkipError(reason)
        codec = CODECS.index(batch.get("codec", "none"))
        return self._default(batch, codec) if batch.get("magic", 2) == 2 else self._legacy(batch, codec)

    def _default(self, batch: dict[str, Any], codec: int) -> bytes:
        builder = self.default_builder(
            magic=2,
            compression_type=codec,
            is_transactional=int(batch.get("isTransactional", False)),
            producer_id=int(batch.get("producerId", -1)),
            producer_epoch=batch.get("producerEpoch", -1),
            base_sequence=batch.get("baseSequence", -1),
            batch_size=UNLIMITED,
        )
        base = int(batch.get("baseOffset") or 0)
        for record in batch["records"]:
            headers = [(bytes.fromhex(key).decode(), unhexed(value)) for key, value in record.get("headers", [])]
            key, value = unhexed(record.get("key")), unhexed(record.get("value"))
            builder.append(int(record["offset"]) - base, int(record["timestamp"]), key, value, headers)
        return as_stored(builder.build(), batch)

    def _legacy(self, batch: dict[str, Any], codec: int) -> bytes:
        builder = self.legacy_builder(magic=batch["magic"], compression_type=codec, batch_size=UNLIMITED)
        if codec and batch["records"][0]["offset"] != "0":
            raise SkipError("its encoder sets no offset on a wrapper")
        for record in batch["records"]:
            key, value = unhexed(record.get("key")), unhexed(record.get("value"))
            builder.append(int(record["offset"]), int(record.get("timestamp", -1)), key, value)
        return bytes(builder.build())
