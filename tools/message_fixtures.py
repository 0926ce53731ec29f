"""The fixtures of messages in Kafka's own topics: a selection of messages that its generated classes wrote and read.

``kinds.jsonl.gz`` has messages of every kind and version, with random content; ``records.jsonl.gz`` has records that
brokers wrote, key and value as bytes and as Kafka's converters print them. ``releases.jsonl.gz`` has records of every
kind and version that the classes of each release wrote; ``python -m proofs messages --keep`` makes it.
``early-access.jsonl.gz`` has the metadata log of a node of Kafka 2.8.2, with the output of its own tool.
"""

from __future__ import annotations

import base64
import gzip
import json
import tarfile
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from seglog_format import decode_batch, walk
from seglog_format.errors import Location
from seglog_format.types import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

RELEASE: Final = "4.4.0"
CASES: Final = (
    *("consumer-offsets", "share-group-state", "transaction-state", "remote-log-metadata"),
    *("cluster-metadata-kinds", "cluster-metadata"),
)
EACH: Final = 3
"""Number of selected messages of each kind and version."""
MAX_SIZE: Final = 600
"""Maximum bytes of a selected message, unless all messages are longer."""
ABOUT: Final = """\
producer = "generated classes and brokers of Apache Kafka 4.4.0, generated classes of 2.8.2 to 4.4.0"
version = "4.4.0"
source = "Messages and their JSON: generated classes and JSON converters of Apache Kafka 4.4.0. \
Records: logs of brokers 4.4.0, read by the same classes. \
Releases: content by the definitions in the jars of each release, written by its generated classes."
about = "messages of every kind and version that brokers store, and records of Kafka's own topics"
requirements = ["SEG-CTL-004", "SEG-CTL-006", "SEG-CTL-010"]
"""
RENAMED: Final = {
    ("ProducerIdsRecord", "producerIdsEnd"): "nextProducerId",
    ("PartitionRecord", "lastKnownELR"): "lastKnownElr",
    ("PartitionChangeRecord", "lastKnownELR"): "lastKnownElr",
}
"""Fields that a later release renamed: the same bytes, shown by the newest name."""
Line = dict[str, Any]


def build(source: Path, fixtures: Path) -> None:
    """Write the selection.

    Args:
        source: the full collection of broker directories.
        fixtures: the directory of all fixtures.
    """
    target = fixtures / "messages"
    target.mkdir(exist_ok=True)
    write(target / "kinds.jsonl.gz", _kinds(source / RELEASE))
    write(target / "records.jsonl.gz", (line for case in CASES for line in _records(source / RELEASE, case)))
    (target / "case.toml").write_text(ABOUT, encoding="utf-8")


def write(path: Path, lines: Iterable[Line]) -> None:
    """Write lines to a compressed file; the same lines give the same bytes."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Iterator[Line]:
    """Yield the objects of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def renamed(kind: str, fields: Mapping[str, Any]) -> Line:
    """Return the fields of a message of any release under the names of the newest release."""
    return {RENAMED.get((kind, name), name): value for name, value in fields.items()}


def _kinds(source: Path) -> Iterator[Line]:
    taken: Counter[tuple[str, int]] = Counter()
    for line in read(source / "kinds.jsonl.gz"):
        kind = line["kind"], line["version"]
        is_first = not taken[kind]
        if is_first or (taken[kind] < EACH and len(line["valueBytes"]) <= MAX_SIZE):
            taken[kind] += 1
            yield line


def _records(source: Path, case: str) -> Iterator[Line]:
    stored = dict(_stored(source / f"{case}.tar.gz"))
    taken: Counter[tuple[object, ...]] = Counter()
    for line in read(source / f"{case}.decoded.jsonl.gz"):
        if "control" in line:
            continue
        kind = tuple(line.get(name) for name in ("keyType", "valueVersion", "apiKey", "version"))
        taken[kind] += 1
        if taken[kind] <= EACH:
            key, value = stored[line["file"], line["offset"]]
            origin = {"case": case, "topic": _topic(line["file"]), "offset": line["offset"]}
            decoded = {name: found for name, found in line.items() if name not in {"file", "offset", "timestamp"}}
            yield {**origin, "keyBytes": key, "valueBytes": value, **decoded}


def _topic(file: str) -> str:
    return PurePosixPath(file).parent.name.rpartition("-")[0]


def _stored(archive: Path) -> Iterator[tuple[tuple[str, int], tuple[str | None, str | None]]]:
    """Yield key and value of every record in the logs and snapshots of an archive, by file and offset."""
    with tarfile.open(archive) as files:
        for member in files:
            path = PurePosixPath(member.name)
            if path.suffix in {FileKind.LOG.value, FileKind.METADATA_SNAPSHOT.value}:
                content = files.extractfile(member)
                assert content is not None
                for frame in walk(content.read()):
                    for record in decode_batch(frame.data, at=Location(str(path), frame.position)).records:
                        yield (str(path), record.offset), (_text(record.key), _text(record.value))


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
