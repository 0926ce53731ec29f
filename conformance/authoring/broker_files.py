"""Family 48: segments as brokers of seven releases left them, and what Kafka's own classes read there.

The bytes are of the bundled directories below ``fixtures/``: of each a run of whole batches that shows much in little
space. What is expected of them as batches is what Kafka's classes wrote down beside them. What is expected of lookups
and of indexes that are built again is in ``broker_answers.json``: ``python -m authoring.broker_files`` asks Kafka's
classes and writes it down. It needs Java 17 and Maven.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sys
import tarfile
import tomllib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.reference.wire import wire
from seglog_conformance.registry import Builder, listed
from seglog_conformance.testee import Allowance

from authoring.casefile import Family, must

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from authoring.casefile import Basis, Json

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
KEPT: Final = Path(__file__).with_name("broker_answers.json")
ASKED: Final = "kafka-storage@4.4.0"
LIMIT: Final = 1000
"""Bytes of a run of batches; one batch alone may be larger."""
LARGEST: Final = 5000
"""Bytes of one batch alone."""
HORIZON: Final = "SEG-BAT-013"
"""The rule about delete horizons; a directory may exercise it outside of the run that a case takes."""
LEFT_OUT: Final = ("crash-", "root", "empty", "cluster-metadata")
"""Directories whose names begin so have no sound segment, or records that are none of an application."""
UNASKED: Final = tuple(
    f"kafka-{line}" for line in tomllib.loads((FIXTURES / "selection.toml").read_text(encoding="utf-8"))["lines"]
)
"""Bundled lines of which no cases are made yet: neither Kafka's classes nor the testees were asked about them."""
DECODED: Final = {"BAT": {2}, "REC": {2}, "CTL": {2}, "MSG": {0, 1}}
"""Rules that the decoding of batches keeps, by the magics that they are about."""
SEARCHED: Final = (
    ("0.8.2.2", "compact"),
    ("0.10.2.2", "rolltime"),
    ("0.10.2.2", "mixed-compact"),
    ("1.1.1", "rolltime"),
    ("1.1.1", "compact-txn"),
    ("2.8.2", "mixed-segs"),
    ("2.8.2", "idem"),
    ("3.9.1", "rolltime"),
    ("3.9.1", "compact-empty"),
    ("4.3.0", "rolltime"),
    ("4.3.0", "compact-txn"),
    ("4.4.0", "compact-empty"),
)
"""Directories whose smallest segment is searched, by release and name."""
INTERVAL: Final = 200
"""Bytes between two entries of an index that is built again."""
ALLOWANCE: Final = Allowance(seconds=60)


@dataclass(frozen=True)
class Directory:
    """A bundled directory of a broker.

    Attributes:
        version: of the broker.
        name: what the directory was made for.
        files: its files, by path.
        lines: what Kafka's classes read in each.
        rules: requirements that the directory exercises.
    """

    version: str
    name: str
    files: dict[str, bytes]
    lines: dict[str, list[Json]]
    rules: tuple[str, ...]

    @property
    def logs(self) -> list[str]:
        """Paths of segments that hold something."""
        return sorted(path for path, content in self.files.items() if path.endswith(".log") and content)


def directories() -> Iterator[Directory]:
    """Yield those that hold sound segments, by release and name."""
    paths = sorted(FIXTURES.glob("kafka-*/*/case.toml"), key=lambda path: (_numbers(path), path))
    for path in paths:
        if not path.parent.name.startswith(LEFT_OUT) and path.parent.parent.name not in UNASKED:
            yield _read(path.parent)


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in path.parent.parent.name.removeprefix("kafka-").split(".")]


def _read(path: Path) -> Directory:
    with tarfile.open(path / "files.tar.gz") as archive:
        held = ((member.name, archive.extractfile(member)) for member in archive if member.isfile())
        files = {name: stream.read() for name, stream in held if stream is not None}
    lines: dict[str, list[Json]] = {}
    for text in gzip.decompress((path / "expected.jsonl.gz").read_bytes()).splitlines():
        line = json.loads(text)
        lines.setdefault(line["file"], []).append(line)
    described = tomllib.loads((path / "case.toml").read_text(encoding="utf-8"))
    rules = tuple(described["requirements"])
    return Directory(path.parent.name.removeprefix("kafka-"), path.name, files, lines, rules)


# Batches


def batches_of(lines: Sequence[Json]) -> list[tuple[Json, list[Json]]]:
    """Return the batches of a log, each with its records."""
    found: list[tuple[Json, list[Json]]] = []
    for line in lines:
        if line["type"] == "batch":
            found.append((line, []))
        elif line["type"] == "record":
            found[-1][1].append(line)
    return found


def _shown(batch: Json, records: list[Json]) -> tuple[Any, ...]:
    """Return what makes a batch unlike others."""
    names = ("magic", "codec", "timestampType", "isTransactional", "isControl")
    nulls = {(record["key"] is None, record["value"] is None, "headers" in record) for record in records}
    is_cleaned = batch["recordsCount"] not in {None, batch["lastOffset"] - batch["baseOffset"] + 1}
    control = records[0].get("control") if records else None
    return (*map(batch.get, names), batch["deleteHorizonMs"] is None, is_cleaned, control, *sorted(nulls))


def run_of_batches(log: Sequence[tuple[Json, list[Json]]]) -> Sequence[tuple[Json, list[Json]]]:
    """Return those in a row that show the most kinds of batches in so many bytes, the first such run and the smallest."""
    best: tuple[int, int] = (0, 0)
    found: Sequence[tuple[Json, list[Json]]] = ()
    for first in range(len(log)):
        for behind in range(first + 1, len(log) + 1):
            run = log[first:behind]
            size = sum(batch["sizeInBytes"] for batch, _ in run)
            if size > (LARGEST if len(run) == 1 else LIMIT) or not all(_is_short(*one) for one in run):
                break
            worth = (len({_shown(*one) for one in run}), -size)
            if worth > best:
                best, found = worth, run
    return found


def _is_short(batch: Json, records: list[Json]) -> bool:
    """Return whether all values are written out, and the batch is sound."""
    parts = [record[name] for record in records for name in ("key", "value")]
    parts += [value for record in records for _, value in record.get("headers", ())]
    return batch["isValid"] and not any(isinstance(part, dict) for part in parts)


def answered(batch: Json, records: list[Json], start: int) -> Json:
    """Return what a reader answers, from what Kafka's classes wrote down; positions count from a start."""
    kept = {name: batch[name] for name in batch if name not in {"recordsRead", "lastSequence"}}
    fields = {"lastSequence": batch["lastSequence"], "baseTimestamp": batch.get("baseTimestamp")}
    found = wire({**kept, "position": batch["position"] - start, **fields})
    return {**found, "records": [_record(record) for record in records]}


def _record(record: Json) -> Json:
    found = wire({name: value for name, value in record.items() if name != "position"})
    found |= {name: _hex(record[name]) for name in ("key", "value")}
    if "headers" in record:
        found["headers"] = [[key.encode().hex(), _hex(value)] for key, value in record["headers"]]
    return found


def _hex(text: str | None) -> str | None:
    return None if text is None else base64.b64decode(text).hex()


def _basis(directory: Directory, run: Sequence[tuple[Json, list[Json]]]) -> Basis:
    magics = {batch["magic"] for batch, _ in run} | {
        record.get("innerMagic", 2) for _, records in run for record in records
    }
    codecs = {batch["codec"] for batch, _ in run} - {"none"}
    rules = [rule for rule in directory.rules if DECODED.get(rule.split("-")[1], set()) & magics]
    rules += [rule for rule in directory.rules if codecs and rule.startswith("SEG-COD-")]
    needs = {f"magic:{magic}" for magic in magics} | {f"codec:{codec}" for codec in codecs}
    has_horizon = any(batch.get("deleteHorizonMs") is not None for batch, _ in run)
    others = [rule for rule in rules if rule != HORIZON]
    rules = others if not has_horizon else rules if HORIZON in rules else [*others, HORIZON]
    return must(*rules, needs=tuple(needs), since="", source=_source(directory))


def _source(directory: Directory) -> str:
    return f"bytes of a broker {directory.version}; Kafka's classes read this there"


def _decode(family: Family, directory: Directory) -> None:
    """Add the run of the log that shows the most."""
    runs = [(path, run_of_batches(batches_of(directory.lines[path]))) for path in directory.logs]
    path, run = max(runs, key=lambda one: len({_shown(*each) for each in one[1]}))
    if not run:
        return
    start, last = run[0][0]["position"], run[-1][0]
    data = directory.files[path][start : last["position"] + last["sizeInBytes"]]
    expect = {"batches": [answered(*one, start) for one in run], "consumed": len(data), "tail": None}
    request = {"data": data.hex(), "options": {"crc": True}}
    name = f"{directory.version}-{directory.name}"
    why = f"A broker {directory.version} wrote this: {len(run)} entries of its directory {directory.name}."
    family.add(name, "decode", "valid", why, _basis(directory, run), request=request, expect=expect)


# Lookups, and indexes that are built again


def searches() -> Iterator[tuple[str, Directory, Json]]:
    """Yield what Kafka's classes are asked: a name, the directory that it is about, and the request."""
    for version, name in SEARCHED:
        directory = _read(FIXTURES / f"kafka-{version}" / name)
        stem = min(directory.logs, key=lambda path: len(directory.files[path])).removesuffix(".log")
        files = {path: content for path, content in directory.files.items() if path.startswith(stem)}
        held = {Path(path).name: content.hex() for path, content in files.items() if path.endswith(("index", ".log"))}
        offsets, times = _sought(batches_of(directory.lines[f"{stem}.log"]))
        label = f"{version}-{name}"
        for what, numbers in (("offset", offsets), ("timestamp", times)):
            for number in numbers:
                yield f"{label}-{what}-{number}", directory, {"op": "lookup", "files": held, what: str(number)}
        base = int(Path(stem).name)
        built = {"data": files[f"{stem}.log"].hex(), "baseOffset": str(base), "indexIntervalBytes": INTERVAL}
        yield f"{label}-index", directory, {"op": "index", **built}


def _sought(log: Sequence[tuple[Json, list[Json]]]) -> tuple[list[int], list[int]]:
    """Return offsets and timestamps that are there, between others, and behind the last."""
    offsets = sorted({log[0][0]["baseOffset"], log[len(log) // 2][0]["lastOffset"], log[-1][0]["nextOffset"]})
    stamps = sorted({record["timestamp"] for _, records in log for record in records} - {-1})
    return offsets, sorted({stamps[len(stamps) // 2], stamps[-1] + 1}) if stamps else []


def digest(request: Json) -> str:
    """Return a digest of what was asked."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


def _search(family: Family, name: str, directory: Directory, request: Json, kept: Json) -> None:
    asked, answer = kept[name]
    assert asked == digest(request), f"{name}: ask Kafka's classes again"
    op = request["op"]
    areas = ("SEG-LKP-", "SEG-IDX-", "SEG-TIX-") if op == "lookup" else ("SEG-IDX-", "SEG-TIX-", "SEG-TXN-")
    rules = tuple(rule for rule in directory.rules if rule.startswith(areas)) or ("SEG-IDX-006",)
    needs = tuple(f"magic:{magic}" for magic in _magics(directory) if op == "lookup")
    why = f"A broker {directory.version} wrote this segment, and its indexes."
    basis = must(*rules, needs=needs, since="", source=f"bytes of a broker {directory.version}")
    body = {part: value for part, value in request.items() if part != "op"}
    family.add(name, op, "valid", why, basis, request=body, expect=answer)


def _magics(directory: Directory) -> list[int]:
    return sorted({batch["magic"] for path in directory.logs for batch, _ in batches_of(directory.lines[path])})


def families() -> list[Family]:
    """Return the family."""
    family = Family(48, "broker-files", "Segments that brokers left", "bytes of brokers")
    for directory in directories():
        _decode(family, directory)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    for name, directory, request in searches():
        _search(family, name, directory, request, kept)
    return [family]


def main() -> int:
    """Ask Kafka's classes, and write down their answers."""
    answers = {}
    with closing(Builder().testee(listed(ASKED))) as testee:
        testee.start()
        for number, (name, _, request) in enumerate(searches()):
            answer = testee.ask({**request, "seq": number}, ALLOWANCE).answer or {}
            if not answer.get("ok"):
                print(f"{name}: {answer}")
                return 1
            answers[name] = [
                digest(request),
                {part: value for part, value in answer.items() if part not in {"ok", "seq"}},
            ]
    KEPT.write_text(json.dumps(answers, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(answers)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
