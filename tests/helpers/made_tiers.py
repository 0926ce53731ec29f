"""Tiered partitions of any settings, made for tests: a generated log, of which a store gets the older segments.

What is made varies with a seed: layout, chunk size, compression and key of each segment, prefix, custom metadata, noted
or absent transaction indexes, leader epochs, how much is in both places, and what lies beside it in the store: attempts
that never finished, segments of a lost log end, deleted ones, and another topic of nearly the same name.
"""

from __future__ import annotations

import base64
import random
import shutil
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from helpers.remote_records import append, started, updated, varint
from helpers.tier_objects import AivenSegment, private_key
from seglog_format import open_partition
from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, encode_leader_epoch_checkpoint
from seglog_format.codec.framing import walk
from seglog_format.errors import Location
from seglog_format.generation.generate import generate
from seglog_format.generation.recipe import recipe_from
from seglog_format.model import EpochStart
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.tier.layouts import epochs_from
from seglog_format.tier.segments import RemotePartitionId, RemoteSegment, RemoteSegmentId, SegmentState

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.types import Partition

TOPIC = "orders"
NAME = f"{TOPIC}-0"
FINISHED, GONE = SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_FINISHED
INDEXES = {"offset": ".index", "timestamp": ".timeindex", "transaction": ".txnindex"}


@dataclass
class MadeTier:
    """A tiered partition.

    Attributes:
        whole: the log directory as it would be without tiering.
        local: the log directory with what is left there.
        store: the folder of objects.
        keys: files of private keys by id.
        finished: paths of the whole log's segments that are in the store, by segment id.
        settings: what was chosen, for messages.
    """

    whole: Path
    local: Path
    store: Path
    keys: dict[str, Path]
    finished: dict[str, Path]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def partition(self) -> Path:
        """What is left of the partition."""
        return self.local / NAME


def _recipe(rng: random.Random) -> dict[str, Any]:
    epoch, steps = 0, []
    for _ in range(rng.randint(3, 6)):
        kind = rng.choice(["plain", "transactional", "transactional"])
        producers = {"kind": kind, "count": rng.randint(1, 3), "batches": [1, 5], "abort": 0.4}
        codec = rng.choice(["none", "none", "gzip", "snappy", "lz4", "zstd"])
        steps.append(
            {
                "records": rng.randint(30, 90),
                "batch": [1, rng.choice([3, 12])],
                "codec": codec,
                "leader_epoch": epoch,
                "producers": producers if kind == "transactional" else {"kind": kind},
            }
        )
        epoch += rng.choice([0, 1, 1, 3])
    settings = {"segment.bytes": rng.choice([1500, 4000, 9000]), "index.interval.bytes": rng.choice([200, 4096])}
    return {"topic": [{"name": TOPIC, "settings": settings, "step": steps}]}


def made_tier(root: Path, seed: int) -> MadeTier:
    """Make a tiered partition of a seed."""
    rng = random.Random(seed)  # noqa: S311 - repeatable
    generate(recipe_from(_recipe(rng)), root / "whole", seed)
    return _Making(root, rng).made()


class _Making:
    def __init__(self, root: Path, rng: random.Random) -> None:
        self.rng = rng
        self.whole, self.local, self.store = root / "whole", root / "local", root / "store"
        self.layout = rng.choice(["local", "aiven", "aiven"])
        self.prefix = rng.choice(["", "tier/", "c-1/log_", "a/b/"])
        self.encrypted, self.compressed = rng.random() < 0.6, rng.random() < 0.6
        self.custom = rng.choice([(), (0,), (0, 1, 2)])
        self.keys = {}
        for id_ in ("key1", "other.key-2"):
            self.keys[id_] = root / f"{id_}.pem"
            self.keys[id_].write_bytes(private_key(id_))
        text = (self.whole / NAME / "partition.metadata").read_text()
        self.topic_id = text.split("topic_id: ")[1].split()[0]
        checkpoint = (self.whole / NAME / "leader-epoch-checkpoint").read_bytes()
        self.epochs = decode_leader_epoch_checkpoint(checkpoint, Location("")).entries
        self.values: list[bytes] = []
        self.finished: dict[str, Path] = {}

    def made(self) -> MadeTier:
        with open_partition(self.whole / NAME) as log:
            count = self._uploaded(log)
            bases = [segment.base_offset for segment in log.segments]
            for number in range(count):
                self._noise(bases[number], bases[number + 1] - 1)
                self._upload(bases[number], bases[number + 1] - 1)
        self._neighbour()
        kept = self.rng.randint(1, count) if count else 0
        self._leave(bases, kept)
        chosen = {name: getattr(self, name) for name in ("layout", "prefix", "encrypted", "compressed", "custom")}
        return MadeTier(self.whole, self.local, self.store, self.keys, self.finished, chosen)

    def _uploaded(self, log: Partition) -> int:
        stable = log.last_stable_offset
        ends = [segment.base_offset for segment in log.segments[1:]]
        return sum(end <= stable for end in ends)

    def _leave(self, bases: list[int], kept: int) -> None:
        """Leave the segments from a number on in the log directory, with its checkpoints and the metadata topic."""
        shutil.copytree(self.whole, self.local)
        for path in (self.local / NAME).iterdir():
            if path.name[:20].isdecimal() and int(path.name[:20]) < bases[kept]:
                path.unlink()
        starts = self.local / "log-start-offset-checkpoint"
        self.start = self.rng.choice([0, 0, self.rng.randrange(bases[kept] + 1)])
        starts.write_text(f"0\n1\n{TOPIC} 0 {self.start}\n")
        append(self.local, *self.values)

    # -- one segment --------------------------------------------------------------------------------------------------

    def _new_id(self) -> RemoteSegmentId:
        text = base64.urlsafe_b64encode(uuid.UUID(int=self.rng.getrandbits(128)).bytes).decode()[:22]
        return RemoteSegmentId(RemotePartitionId(TOPIC, self.topic_id, 0), text)

    def _described(self, start: int, end: int, epochs: tuple[EpochStart, ...] | None = None) -> RemoteSegment:
        log = self._file(start, ".log").read_bytes()
        until = tuple(each for each in self.epochs if each.start_offset <= end)
        of_segment = epochs_from(until, start) if epochs is None else epochs
        is_empty = not self._file(start, ".txnindex").is_file() and self.rng.random() < 0.5
        state = SegmentState.COPY_SEGMENT_STARTED
        return RemoteSegment(
            self._new_id(), state, start, end, of_segment, len(log), is_transaction_index_empty=is_empty
        )

    def _file(self, start: int, suffix: str) -> Path:
        return self.whole / NAME / f"{start:020d}{suffix}"

    def _upload(self, start: int, end: int) -> None:
        segment = self._described(start, end)
        custom = self._write(segment, start)
        self.values += [started(segment), updated(segment.id, FINISHED, custom)]
        self.finished[segment.id.segment_id] = self._file(start, ".log")

    def _noise(self, start: int, end: int) -> None:
        """Write what does not count: an attempt that never finished, one that was deleted, one of a lost log end."""
        kind = self.rng.choice(["", "", "unfinished", "deleted", "lost"])
        if kind == "unfinished":
            segment = self._described(start, end)
            self._write(segment, start, only_log=True)
            self.values.append(started(segment))
        elif kind == "deleted":
            segment = self._described(start, end)
            self.values += [started(segment), updated(segment.id, FINISHED)]
            self.values += [updated(segment.id, SegmentState.DELETE_SEGMENT_STARTED), updated(segment.id, GONE)]
        elif kind == "lost" and self.epochs[-1].epoch > 0:
            lost = self.epochs[-1].epoch - 1
            known = {each.epoch: each.start_offset for each in self.epochs}
            if known.get(lost, start) <= start and start > 0:
                segment = self._described(start, end, (EpochStart(lost, start),))
                custom = self._write(segment, start)
                self.values += [started(segment), updated(segment.id, FINISHED, custom)]

    def _neighbour(self) -> None:
        """Write a topic whose name ends like this one, and an earlier topic of the same name."""
        for topic, topic_id in ((f"my-{TOPIC}", self.topic_id[::-1]), (TOPIC, self.topic_id[::-1])):
            segment = self._described(0, 0)
            id_ = RemoteSegmentId(RemotePartitionId(topic, topic_id[:21] + "A", 0), self._new_id().segment_id)
            self._write(replace(segment, id=id_), 0)

    def _write(self, segment: RemoteSegment, start: int, *, only_log: bool = False) -> bytes | None:
        """Write the objects; return the custom metadata."""
        files = {name: self._file(start, suffix) for name, suffix in INDEXES.items()}
        indexes = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
        indexes["producerSnapshot"] = self._snapshot(segment.end_offset + 1)
        until = [each for each in self.epochs if each.start_offset <= segment.end_offset]
        log = self._file(start, ".log").read_bytes()
        if segment.id.partition.topic == TOPIC and segment.epochs != epochs_from(tuple(until), segment.start_offset):
            lost = segment.epochs[-1]
            until = [
                *(each for each in until if each.epoch < lost.epoch and each.start_offset < lost.start_offset),
                lost,
            ]
            log = with_epoch(log, lost.epoch)
        indexes["leaderEpoch"] = encode_leader_epoch_checkpoint(until)
        if self.layout == "local":
            return self._write_local(segment, log, indexes, only_log=only_log)
        made = AivenSegment(
            log,
            indexes,
            chunk_size=self.rng.choice([64, 700, 1024, 50_000]),
            compressed=self.compressed and self.rng.random() < 0.7,
            key_id=self.rng.choice(list(self.keys)) if self.encrypted else None,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            topic=segment.id.partition.topic,
            topic_id=segment.id.partition.topic_id,
            segment_id=segment.id.segment_id,
            epochs=segment.epochs,
        )
        written = made.write(self.store, self.prefix)
        if only_log:
            written.pop(".log")
            for path in written.values():
                path.unlink()
            return None
        sizes = sum(path.stat().st_size for path in written.values())
        return self._custom(sizes, segment)

    def _write_local(
        self, segment: RemoteSegment, log: bytes, indexes: dict[str, bytes], *, only_log: bool
    ) -> bytes | None:
        suffixes = INDEXES | {"producerSnapshot": ".snapshot", "leaderEpoch": ".leader_epoch_checkpoint"}
        topic, topic_id, number = segment.id.partition
        directory = self.store / f"{topic}-{number}-{topic_id}"
        directory.mkdir(parents=True, exist_ok=True)
        base = f"{segment.start_offset:020d}-{segment.id.segment_id}"
        (directory / f"{base}.log").write_bytes(log)
        for name, data in () if only_log else indexes.items():
            (directory / f"{base}{suffixes[name]}").write_bytes(data)
        return None

    def _snapshot(self, offset: int) -> bytes:
        path = self._file(offset, ".snapshot")
        return path.read_bytes() if path.is_file() else bytes.fromhex("000148674bc700000000")

    def _custom(self, size: int, segment: RemoteSegment) -> bytes | None:
        """Return the tagged fields that the plug-in keeps: size, prefix, key."""
        if not self.custom:
            return None
        topic, topic_id, number = segment.id.partition
        key = f"{topic}-{topic_id}/{number}/{segment.start_offset:020d}-{segment.id.segment_id}"
        fields = {0: varint(size << 1), 1: compact(self.prefix), 2: compact(key)}
        body = b"".join(varint(tag) + varint(len(fields[tag])) + fields[tag] for tag in self.custom)
        return varint(len(self.custom)) + body


def with_epoch(log: bytes, epoch: int) -> bytes:
    """Return a log whose batches have another leader epoch, which no checksum covers."""
    found = bytearray(log)
    for frame in walk(MemoryBytes(log)):
        found[frame.position + 12 : frame.position + 16] = epoch.to_bytes(4)
    return bytes(found)


def compact(text: str) -> bytes:
    return varint(len(text.encode()) + 1) + text.encode()
