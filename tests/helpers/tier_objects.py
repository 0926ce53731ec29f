"""Objects of a tier as plug-ins of brokers write them, made for tests; keys are made when they are first needed."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import cramjam
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from pathlib import Path

TOPIC_ID = "-Q_rs0000000000000000-"
INDEX_ORDER = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
SEGMENT_ID = "_seg-000000000000000-_"


@cache
def private_key(key_id: str = "key1") -> bytes:
    """Return a private key in PEM, made for this run."""
    del key_id
    key = rsa.generate_private_key(65537, 2048)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(pem, pkcs8, serialization.NoEncryption())


def wrapped_key(data_key: bytes, key_id: str = "key1") -> bytes:
    public = RSA.import_key(private_key(key_id)).public_key()
    return PKCS1_OAEP.new(public, hashAlgo=SHA3_512).encrypt(data_key)


def zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def packed_sizes(sizes: list[int]) -> bytes:
    """Encode the list of chunk sizes of a variable chunk index, before it is compressed."""
    if len(sizes) < 2:
        return b"".join(each.to_bytes(4) for each in (len(sizes), *sizes))
    base = min(sizes[:-1])
    width = max(1, -(-(max(sizes[:-1]) - base).bit_length() // 8))
    rest = b"".join((size - base).to_bytes(width) for size in sizes[:-1])
    return len(sizes).to_bytes(4) + base.to_bytes(4) + bytes([width]) + rest + sizes[-1].to_bytes(4)


@dataclass
class AivenSegment:
    """One segment, and how it is wrapped.

    Attributes:
        log: the bytes of the log.
        indexes: files by the names that manifests have for them, in order.
        chunk_size: bytes of the log in a chunk.
        compressed: chunks are zstd frames.
        key_id: of the key pair; None without encryption.
    """

    log: bytes
    indexes: dict[str, bytes] = field(default_factory=dict)
    chunk_size: int = 1000
    compressed: bool = False
    key_id: str | None = None
    start_offset: int = 0
    end_offset: int = 9
    topic: str = "orders"
    partition: int = 0
    topic_id: str = TOPIC_ID
    segment_id: str = SEGMENT_ID
    epochs: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        self.data_key, self.aad = secrets.token_bytes(32), secrets.token_bytes(32)

    def encrypted(self, data: bytes) -> bytes:
        if self.key_id is None or not data:
            return data
        nonce = os.urandom(12)
        return nonce + AESGCM(self.data_key).encrypt(nonce, data, self.aad)

    def chunks(self) -> list[bytes]:
        parts = [self.log[at : at + self.chunk_size] for at in range(0, len(self.log), self.chunk_size)]
        return [self.encrypted(zstd(part) if self.compressed else part) for part in parts]

    def objects(self) -> dict[str, bytes]:
        """Return the three objects, by suffix."""
        chunks = self.chunks()
        pieces = {name: self.encrypted(self.indexes[name]) for name in INDEX_ORDER if name in self.indexes}
        manifest = self.manifest([len(chunk) for chunk in chunks], {name: len(piece) for name, piece in pieces.items()})
        return {
            ".log": b"".join(chunks),
            ".indexes": b"".join(pieces.values()),
            ".rsm-manifest": json.dumps(manifest).encode(),
        }

    def manifest(self, sizes: list[int], index_sizes: dict[str, int]) -> dict[str, Any]:
        ranges: dict[str, dict[str, int] | None] = {}
        position = 0
        for name in INDEX_ORDER:
            size = index_sizes.get(name, 0)
            ranges[name] = {"position": position, "size": size}
            position += size
        if "transaction" not in index_sizes:
            ranges["transaction"] = None
        found: dict[str, Any] = {
            "version": "1",
            "chunkIndex": self.chunk_index(sizes),
            "segmentIndexes": ranges,
            "compression": self.compressed,
            "remoteLogSegmentMetadata": self.noted(),
        }
        if self.key_id is not None:
            key = f"{self.key_id}:{base64.b64encode(wrapped_key(self.data_key, self.key_id)).decode()}"
            found["encryption"] = {"dataKey": key, "aad": base64.b64encode(self.aad).decode()}
        return found

    def chunk_index(self, sizes: list[int]) -> dict[str, Any]:
        common = {"originalChunkSize": self.chunk_size, "originalFileSize": len(self.log)}
        if self.compressed:
            packed = base64.b64encode(zstd(packed_sizes(sizes))).decode()
            return {"type": "variable", **common, "transformedChunks": packed}
        ends = {"transformedChunkSize": sizes[0], "finalTransformedChunkSize": sizes[-1]}
        return {"type": "fixed", **common, **ends}

    def noted(self) -> dict[str, Any]:
        topic = {"topicId": self.topic_id, "topicPartition": {"topic": self.topic, "partition": self.partition}}
        return {
            "remoteLogSegmentId": {"topicIdPartition": topic, "id": self.segment_id},
            "startOffset": self.start_offset,
            "endOffset": self.end_offset,
            "maxTimestampMs": 1000,
            "brokerId": 1,
            "eventTimestampMs": 2000,
            "segmentLeaderEpochs": {str(epoch): start for epoch, start in self.epochs or ((0, self.start_offset),)},
            "txnIdxEmpty": True,
        }

    def write(self, root: Path, prefix: str = "") -> dict[str, Path]:
        """Write the objects below a folder; return their paths by suffix."""
        directory = f"{prefix}{self.topic}-{self.topic_id}/{self.partition}"
        written = {}
        for suffix, data in self.objects().items():
            path = root / f"{directory}/{self.start_offset:020d}-{self.segment_id}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written[suffix] = path
        return written
