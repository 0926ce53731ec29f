"""A compressed and encrypted tier is read at 0.8 of the rate of AES, zstd and CRC alone, in 150 MB.

Reading means `Partition.scan`, as users call it: it verifies each batch, and delivers offset, timestamp, key and value
of each record. It is compared with AES, zstd and CRC alone, turn by turn, since other work on the machine slows both.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cramjam
import google_crc32c
import zstandard
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from proofs.children import watched
from proofs.harness import Outcome
from seglog_format import LogConfig, PartitionWriter, new_record, open_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import TypeAlias

    Data: TypeAlias = bytes | memoryview


MEBIBYTE: Final = 2**20
CHUNK_SIZE: Final = 4 * MEBIBYTE
"""The plug-in's default."""
SEGMENT_SIZE: Final = 128 * MEBIBYTE
MIN_SHARE: Final = 0.8
MAX_BYTES: Final = 150 * MEBIBYTE
TOPIC_ID: Final = "AAAAAAAAAAEAAAAAAAAAAQ"
BATCH_HEADER: Final = 61
CRC_FROM: Final = 21
INDEXES: Final = {"offset": ".index", "timestamp": ".timeindex"}

READ: Final = """
import os, sys, time, warnings
from seglog_format import open_partition, open_tier
warnings.filterwarnings("ignore", message=".*objects and leader epochs decide")
partition, store, key, few, end = sys.argv[1:]
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def read(end):
    remote = open_tier(store, keys={"key1": key})
    with open_partition(partition, remote=remote) as log:
        began, wall = time.process_time(), time.perf_counter()
        rows = sum(batch.num_rows for batch in log.scan(to_offset=end))
        return rows, *remote.traffic, time.process_time() - began, time.perf_counter() - wall
read(int(few))  # loads the engine
print(*read(int(end)))
"""
FEW: Final = 1000
"""Records that are read before anything counts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this proof."""
    parser.add_argument("--megabytes", type=int, default=1024, help="of the log before it is wrapped")
    parser.add_argument("--rounds", type=int, default=5, help="the best of each kind counts")


def prove(options: argparse.Namespace) -> Outcome:
    """Write a tier, read it, and compare its time with that of the parts of the work alone."""
    with tempfile.TemporaryDirectory(prefix="seglog-tier-rate-") as name:
        made = _Made(Path(name), options.seed)
        made.write(options.megabytes * MEBIBYTE)
        rounds = [{"parts": _parts(made), "read": _read(made, made.end)} for _ in range(options.rounds)]
        lookup = _lookup(made)
    parts, read = (min(each[kind]["seconds"] for each in rounds) for kind in ("parts", "read"))
    most = max(each["read"]["mib"] for each in rounds)
    facts: dict[str, Any] = {
        "log_mib": round(made.log_size / MEBIBYTE),
        "stored_bytes": made.stored_size,
        "segments": len(made.objects),
        "chunks": sum(len(sizes) for _, sizes in made.objects),
        "share_of_parts": round(parts / read, 3),
        "most_mib": most,
        "rounds": rounds,
        "lookup": lookup,
        "load": os.getloadavg(),
    }
    failures = []
    if parts / read < MIN_SHARE:
        failures.append(f"{parts / read:.2f} of the rate of AES, zstd and CRC alone")
    if most * MEBIBYTE > MAX_BYTES:
        failures.append(f"{most} MiB of memory")
    return Outcome(facts, failures)


class _Made:
    """A partition of which all but the last segment are in a store.

    Args:
        root: directory for the files.
        seed: seed of the contents of records.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.store, self.key = root / "store", root / "key1.pem"
        self.data_key, self.aad = os.urandom(32), os.urandom(32)
        private = RSA.generate(2048)
        self.key.write_bytes(private.export_key())
        wrapped = PKCS1_OAEP.new(private.public_key(), hashAlgo=SHA3_512).encrypt(self.data_key)
        self.wrapped = f"key1:{base64.b64encode(wrapped).decode()}"
        self.partition = root / "logs" / "orders-0"
        self.log_size = self.stored_size = self.end = 0
        self.objects: list[tuple[Path, list[int]]] = []

    def write(self, size: int) -> None:
        """Write a log of about `size` bytes, and move its segments into the store."""
        words = [self.random.randbytes(5).hex() for _ in range(2000)]
        config = LogConfig(segment_bytes=min(SEGMENT_SIZE, size // 2))
        written, number = 0, 0
        with PartitionWriter(self.partition, config, topic_id=TOPIC_ID) as writer:
            while written < size:
                values = [" ".join(self.random.choices(words, k=60)).encode() for _ in range(80)]
                writer.append([new_record(key=b"%d" % each, value=value) for each, value in enumerate(values)])
                written, number = written + sum(map(len, values)), number + len(values)
            writer.roll()
        self.end = number
        with open_partition(self.partition) as log:
            bases = [(each.base_offset, each.next_offset - 1) for each in log.segments[:-1]]
        for each, (base, end) in enumerate(bases):
            self._store(each, base, end)

    def _store(self, number: int, base: int, end: int) -> None:
        """Move one segment into the store."""
        files = {name: self.partition / f"{base:020d}{suffix}" for name, suffix in INDEXES.items()}
        log = self.partition / f"{base:020d}.log"
        stem = self.store / f"orders-{TOPIC_ID}" / "0" / f"{base:020d}-{number:021d}A"
        stem.parent.mkdir(parents=True, exist_ok=True)
        sizes = []
        with log.open("rb") as source, stem.with_name(stem.name + ".log").open("wb") as target:
            while chunk := source.read(CHUNK_SIZE):
                sizes.append(target.write(self._encrypted(bytes(cramjam.zstd.compress(chunk)))))
        pieces = {name: self._encrypted(path.read_bytes()) for name, path in files.items()}
        pieces["producerSnapshot"] = self._encrypted(bytes.fromhex("000148674bc700000000"))
        pieces["leaderEpoch"] = self._encrypted(b"0\n1\n0 0\n")
        stem.with_name(stem.name + ".indexes").write_bytes(b"".join(pieces.values()))
        manifest = self._manifest(log.stat().st_size, sizes, pieces, (base, end), f"{number:021d}A")
        stem.with_name(stem.name + ".rsm-manifest").write_text(json.dumps(manifest))
        self.objects.append((stem.with_name(stem.name + ".log"), sizes))
        self.log_size, self.stored_size = self.log_size + log.stat().st_size, self.stored_size + sum(sizes)
        for path in (log, *files.values()):
            path.unlink()

    def _encrypted(self, data: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + AESGCM(self.data_key).encrypt(nonce, data, self.aad)

    def _manifest(
        self, size: int, sizes: list[int], pieces: dict[str, bytes], offsets: tuple[int, int], id_: str
    ) -> dict[str, Any]:
        spans, position = {}, 0
        for name, piece in pieces.items():
            spans[name] = {"position": position, "size": len(piece)}
            position += len(piece)
        packed = base64.b64encode(bytes(cramjam.zstd.compress(_packed(sizes)))).decode()
        index = {"originalChunkSize": CHUNK_SIZE, "originalFileSize": size, "transformedChunks": packed}
        topic = {"topicId": TOPIC_ID, "topicPartition": {"topic": "orders", "partition": 0}}
        return {
            "version": "1",
            "chunkIndex": {"type": "variable", **index},
            "segmentIndexes": {**spans, "transaction": None},
            "compression": True,
            "encryption": {"dataKey": self.wrapped, "aad": base64.b64encode(self.aad).decode()},
            "remoteLogSegmentMetadata": {
                "remoteLogSegmentId": {"topicIdPartition": topic, "id": id_},
                "startOffset": offsets[0],
                "endOffset": offsets[1],
                "eventTimestampMs": 1,
                "segmentLeaderEpochs": {"0": offsets[0]},
            },
        }

    def chunks(self) -> Iterator[bytes]:
        """Return the chunks as they are stored, without the time of reading them."""
        for path, sizes in self.objects:
            with path.open("rb") as file:
                for size in sizes:
                    yield file.read(size)


def _packed(sizes: list[int]) -> bytes:
    if len(sizes) < 2:  # noqa: PLR2004 - no differences
        return b"".join(each.to_bytes(4) for each in (len(sizes), *sizes))
    base = min(sizes[:-1])
    rest = b"".join((size - base).to_bytes(4) for size in sizes[:-1])
    return len(sizes).to_bytes(4) + base.to_bytes(4) + b"\x04" + rest + sizes[-1].to_bytes(4)


def _read(made: _Made, end: int) -> dict[str, Any]:
    """Read the partition up to an offset in a process of its own, on one core."""
    child = watched(["-c", READ, str(made.partition), str(made.store), str(made.key), str(FEW), str(end)])
    if child.status:
        raise RuntimeError(child.errors[-2000:])
    rows, requests, size, seconds, wall = child.output.split()
    if int(rows) != end:
        msg = f"{rows} records instead of {end}"
        raise RuntimeError(msg)
    return {
        "seconds": round(float(seconds), 3),
        "wall_seconds": round(float(wall), 3),
        "requests": int(requests),
        "fetched_bytes": int(size),
        "mib": child.anonymous_bytes // MEBIBYTE,
    }


def _parts(made: _Made) -> dict[str, float]:
    """Return the processor time of AES, zstd and CRC alone, in seconds."""
    cipher, spent, rest = AESGCM(made.data_key), dict.fromkeys(("aes", "zstd", "crc"), 0.0), b""
    for chunk in made.chunks():
        began = time.process_time()
        packed = cipher.decrypt(chunk[:12], chunk[12:], made.aad)
        decrypted = time.process_time()
        data = zstandard.ZstdDecompressor().decompress(packed)
        decompressed = time.process_time()
        spent["aes"] += decrypted - began
        spent["zstd"] += decompressed - decrypted
        rest += data
        batches, rest = batches_in(rest)
        began = time.process_time()
        for batch in batches:
            google_crc32c.value(batch)
        spent["crc"] += time.process_time() - began
    found = {f"{name}_seconds": round(seconds, 3) for name, seconds in spent.items()}
    return {**found, "seconds": round(sum(spent.values()), 3)}


def batches_in(data: Data) -> tuple[list[Data], Data]:
    """Return the checksummed bytes of whole batches, and the bytes after them; a log ends with a batch."""
    position = 0
    found: list[Data] = []
    while position + BATCH_HEADER <= len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12])
        if end > len(data):
            break
        found.append(data[position + CRC_FROM : end])
        position = end
    return found, data[position:]


def _lookup(made: _Made) -> dict[str, int]:
    """Return the traffic of a lookup in the middle of the tier."""
    command = ["-m", "seglog_format.cli", "lookup", "--json", "--offset", str(made.end // 2), "--remote"]
    child = watched([*command, str(made.store), "--key", f"key1={made.key}", str(made.partition)])
    answer = json.loads(child.output.splitlines()[-1])
    fetched: dict[str, int] = answer["fetched"]
    shutil.rmtree(made.store)
    return fetched
