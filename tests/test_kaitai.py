"""The Kaitai Struct declarations: compiled to JavaScript and Python, they read what the reference reads."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from helpers import node_tools
from helpers.batches import batch, record
from helpers.node_support import need_node
from helpers.support import REPOSITORY, bundled, bundled_cases, handbook, vector

from seglog_format.cli.kaitai_set import kaitai_set, snake
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.codec.message_set import read_message_entry
from seglog_format.codec.side_files import PRODUCER_STATE_ENTRY
from seglog_format.errors import FormatError, Location
from seglog_format.model import Frame, Record, RecordBatchHeader
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.producer_snapshot import ProducerSnapshotHeader, ProducerStateEntry
from seglog_format.schema.protocol import UNKNOWN_TAGGED_FIELDS
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.transaction_index import TransactionIndexEntry
from seglog_format.storage.byte_source import open_bytes

if TYPE_CHECKING:
    from pathlib import Path


DECLARATIONS = REPOSITORY / "docs" / "reference" / "kaitai"
SCRIPTS = REPOSITORY / "tests" / "node"
READER = REPOSITORY / "tests" / "helpers" / "kaitai_read.py"
KINDS = {
    ".log": "log_segment",
    ".index": "offset_index",
    ".timeindex": "time_index",
    ".txnindex": "transaction_index",
    ".snapshot": "producer_snapshot",
}
SLOTS = {
    "offset_index": (OFFSET_INDEX_ENTRY, OffsetIndexEntry),
    "time_index": (TIME_INDEX_ENTRY, TimeIndexEntry),
    "transaction_index": (TRANSACTION_INDEX_ENTRY, TransactionIndexEntry),
}
VECTORS = ("V-01", "V-04", "V-06", "V-10", *(f"V-{number}" for number in range(13, 20)))
"""The last seven are control records, one of each type."""
IDS = {"voterDirectoryId"}
"""Fields that hold 16 bytes, which the reference shows as Base64."""
LARGEST_RECORDS = 60_000
"""Bytes of a log whose records are compared as well as its headers."""
EXACT = 2**53
"""Numbers of JavaScript are exact below this."""

Untyped: TypeAlias = Any
"""What construct and JSON hand out."""


@pytest.fixture(scope="module")
def parsers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories ``javascript`` and ``python`` with parsers; in CI, where there is node, they have to come."""
    need_node("the Kaitai compiler")
    target = tmp_path_factory.mktemp("kaitai")
    node_tools.node(SCRIPTS / "kaitai_compile.cjs", str(DECLARATIONS), str(target))
    return target


@cache
def files() -> dict[str, tuple[str, bytes]]:
    """Kind and content of every bundled file that is declared, by a name for messages; zeros at an end are cut."""
    roots = {name: bundled(name) for name in bundled_cases()}
    roots |= {name: handbook(name) for name in ("segments", "listing")}
    found = {}
    for name, root in roots.items():
        for path in sorted(root.rglob("*")):
            kind = KINDS.get(path.suffix)
            if kind and path.is_file():
                found[f"{name}: {path.relative_to(root)}"] = kind, _content(path, kind)
    found |= {name: ("log_segment", vector(name)) for name in VECTORS}
    return found | {name: ("log_segment", data) for name, data in made_control_batches().items()}


def made_control_batches() -> dict[str, bytes]:
    """Return what no bundled file has: a voter's directory, an unknown version and type, text of multi-byte letters."""
    voter = b"\0\0\0\7" + bytes(range(16)) + b"\0"
    leader = b"\0\1" + b"\0\0\0\7" + b"\2" + voter + b"\3" + voter + voter + b"\0"
    host = "Łódź".encode()
    endpoint = b"\2C" + bytes([len(host) + 1]) + host + b"\xff\xff" + b"\0"
    voters = b"\0\0" + b"\2" + b"\0\0\0\7" + bytes(range(16)) + b"\2" + endpoint + b"\0\0\0\1\0" + b"\0\0"
    tagged = b"\0\0" + b"\0\1" + b"\1" + b"\x81\1" + b"\2xy"
    rows = {"leader, version 1": (2, leader), "leader, version 9": (2, b"\0\x09" + leader[2:])}
    rows |= {"voters": (6, voters), "a tag": (5, tagged), "type 99": (99, b"\1\2\3")}
    return {name: _control_batch(kind, value) for name, (kind, value) in rows.items()}


def _control_batch(kind: int, value: bytes) -> bytes:
    return batch(record(0, 0, struct.pack(">hh", 0, kind), value), 1, attributes=32)


@pytest.mark.parametrize("name", made_control_batches())
def test_the_made_control_batches_are_read_by_the_reference(name: str) -> None:
    (entry,) = _entries(made_control_batches()[name]) or ()
    assert entry["control"][0]["fields"] or name == "type 99"


def _content(path: Path, kind: str) -> bytes:
    with open_bytes(path) as opened:
        data = bytes(opened.view(0, opened.size))
    if kind not in SLOTS:
        return data
    size = SLOTS[kind][0].size
    used = len(data.rstrip(b"\0"))
    return data[: min(len(data), (used // size + 2) * size)]


def expected(kind: str, data: bytes) -> Untyped:
    """Return what the reference reads; None where it refuses an entry whose magic it does not know."""
    if kind == "log_segment":
        return _entries(data)
    if kind == "producer_snapshot":
        return _snapshot(data)
    layout, declaration = SLOTS[kind]
    whole = len(data) // layout.size * layout.size
    return [_named(declaration, values) for values in layout.iter_unpack(data[:whole])]


def _named(declaration: Untyped, values: tuple[int, ...]) -> dict[str, int]:
    return dict(zip([field.name for field in declaration.subcons], values, strict=True))


def _snapshot(data: bytes) -> list[dict[str, int]]:
    header = ProducerSnapshotHeader.parse(data)
    rows = PRODUCER_STATE_ENTRY.iter_unpack(data[10:])
    return [_named(ProducerSnapshotHeader, tuple(header[field.name] for field in ProducerSnapshotHeader.subcons))] + [
        _named(ProducerStateEntry, row) for row in rows
    ]


def _entries(data: bytes) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] = []
    try:
        found.extend(_entry(frame, with_records=len(data) <= LARGEST_RECORDS) for frame in walk(data))
    except FormatError as problem:
        if "SEG-BAT-004" in problem.requirements:
            return None
    return found


def _entry(frame: Frame, *, with_records: bool) -> dict[str, Any]:
    header = dataclasses.asdict(frame.header)
    if not isinstance(frame.header, RecordBatchHeader):
        if frame.header.magic == 0:
            del header["timestamp_ms"]
        return {"header": header, **_key_and_value(frame)}
    if not with_records or frame.header.codec_id:
        return {"header": header}
    try:
        batch = decode_frame(frame, at=Location())
    except FormatError:
        return {"header": header}
    records = [
        {
            "timestamp_delta": record.timestamp_delta,
            "offset_delta": record.offset_delta,
            "key": _hex(record.key),
            "value": _hex(record.value),
            "headers": [[_hex(header.key), _hex(header.value)] for header in record.headers],
        }
        for record in batch.records
    ]
    control = [_control(record) for record in batch.records] if frame.header.is_control else None
    return {"header": header, "records": records} | ({} if control is None else {"control": control})


def _control(record: Record) -> dict[str, Any]:
    found = decode_control_record(record.key, record.value, Location())
    return {"version": found.version, "type": found.type_id, "fields": _snake(found.fields)}


def _snake(value: Untyped) -> Untyped:
    """Fields under the names of the declarations; ids as the bytes that they stand for."""
    if isinstance(value, list):
        return [_snake(each) for each in value]
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name != UNKNOWN_TAGGED_FIELDS}
        return {snake(name): _directory(each) if name in IDS else _snake(each) for name, each in kept.items()}
    return value


def _directory(text: str) -> str:
    return base64.urlsafe_b64decode(f"{text}==").hex()


def _key_and_value(frame: Frame) -> dict[str, str | None]:
    """Of a plain message; what a wrapper holds is compressed."""
    if frame.header.codec_id:
        return {}
    try:
        (message,) = read_message_entry(frame, at=Location(), limit=1 << 20).messages
    except FormatError:
        return {}
    return {"key": _hex(message.key), "value": _hex(message.value)}


def _hex(data: bytes | memoryview | None) -> str | None:
    return None if data is None else bytes(data).hex()


def agrees(found: Untyped, wanted: Untyped, *, exact: bool) -> bool:
    """Hold what was found against the reference; without ``exact``, large numbers as JavaScript rounds them."""
    if isinstance(wanted, dict):
        return all(agrees(found.get(key), value, exact=exact) for key, value in wanted.items())
    if isinstance(wanted, list):
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(agrees(one, other, exact=exact) for one, other in pairs)
    if isinstance(wanted, int) and not exact and abs(wanted) > EXACT:
        return float(found) == float(wanted)
    return bool(found == wanted)


def compare(results: dict[str, Any], *, exact: bool) -> None:
    count = 0
    for name, (kind, data) in files().items():
        wanted = expected(kind, data)
        if wanted is None:
            assert "refused" in results[name], name
            continue
        assert isinstance(results[name], list), (name, results[name])
        assert agrees(results[name], wanted, exact=exact), name
        count += len(wanted)
    assert count > 10_000


def test_javascript_reads_what_the_reference_reads(parsers: Path) -> None:
    questions = [{"kind": kind, "hex": data.hex()} for kind, data in files().values()]
    answer = node_tools.node(SCRIPTS / "kaitai_read.cjs", str(parsers / "javascript"), text=json.dumps(questions))
    compare(dict(zip(files(), json.loads(answer), strict=True)), exact=False)


def python(parsers: Path, questions: list[dict[str, str]]) -> list[Any]:
    """Return what the Python parsers read, in a process of their own: see `kaitai_read`."""
    pytest.importorskip("kaitaistruct")
    command = [sys.executable, "-W", "error", str(READER), str(parsers / "python")]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_python_reads_what_the_reference_reads(parsers: Path) -> None:
    questions = [{"kind": kind, "hex": data.hex()} for kind, data in files().values()]
    compare(dict(zip(files(), python(parsers, questions), strict=True)), exact=True)


def test_what_is_committed_is_what_the_schemas_say() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in DECLARATIONS.glob("*.ksy")}
    assert committed == kaitai_set(), "make docs writes it anew"


def test_varints_of_every_size(parsers: Path) -> None:
    values = (0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**40, -(2**52), 2**63 - 1, -(2**63))
    wanted = [("varint64", value) for value in values]
    wanted += [("varint32", value) for value in values if -(2**31) <= value < 2**31]
    questions = [{"kind": kind, "hex": zigzag(value).hex()} for kind, value in wanted]
    assert list(zip((kind for kind, _ in wanted), python(parsers, questions), strict=True)) == wanted


def zigzag(value: int) -> bytes:
    groups, rest = bytearray(), value << 1 if value >= 0 else (-value << 1) - 1
    while rest > 127:
        groups.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*groups, rest])
