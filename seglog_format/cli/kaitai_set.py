"""Kaitai Struct declarations of the files on disk: one for each kind, with shared types in files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.cli.kaitai_control import control_record
from seglog_format.cli.render_ksy import BATCH, CONTENT, filled, head, nullable, type_of, varint
from seglog_format.cli.structures import structures

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTROL: Final = """\
  is_control:
    value: (header.attributes & 32) != 0
    doc: The records are of brokers and controllers, and no data.
"""

CONTROL_CONTENT: Final = """\
      control_records:
        pos: 0
        type: control_record
        repeat: expr
        repeat-expr: _parent.header.records_count
        if: _parent.codec == 0 and _parent.is_control
        doc: The same records, with keys and values decoded.
"""

MESSAGE: Final = """\
  message_v@MAGIC@:
    seq:
      - id: header
        type: message_v@MAGIC@_header
      - id: content
        type: key_and_value
        size: header.message_size - @FIXED@
        doc: Key and value; they are not read before they are asked for.
"""

KEY_AND_VALUE: Final = """\
  key_and_value:
    instances:
      fields:
        pos: 0
        type: pair
  pair:
    seq:
      - id: key
        type: bytes_after_int32
      - id: value
        type: bytes_after_int32
        doc: In a compressed wrapper, the messages inside.
"""

MESSAGE_SET: Final = """\
seq:
  - id: messages
    type: message
    repeat: eos
"""

MESSAGE_SEQ: Final = """\
seq:
  - id: v0
    type: message_v0
    if: magic == 0
  - id: v1
    type: message_v1
    if: magic == 1
instances:
  magic:
    pos: _io.pos + 16
    type: s1
"""

LOG: Final = """\
seq:
  - id: entries
    type: entry
    repeat: until
    repeat-until: _.is_last
    if: starts_whole
  - id: tail
    size-eos: true
    doc: Zeros, or an entry that is cut short.
instances:
  first_size:
    pos: 8
    type: s4
  starts_whole:
    value: _io.size > 17 and first_size >= 14 and first_size <= _io.size - 12
types:
  entry:
    seq:
      - id: batch
        type: record_batch
        if: magic == 2
      - id: message
        type: message
        if: magic == 0 or magic == 1
      - id: end
        size: 0
        valid:
          expr: magic >= 0 and magic <= 2
    instances:
      magic:
        pos: _io.pos + 16
        type: s1
        doc: At the same position in every format; it decides what the rest means.
      following_size:
        pos: _io.pos + 8
        type: s4
      is_last:
        value: _io.size - _io.pos <= 17 or following_size < 14 or following_size > _io.size - _io.pos - 12
"""

SLOTS: Final = """\
seq:
  - id: entries
    type: @TYPE@
    repeat: expr
    repeat-expr: _io.size / @SIZE@
    doc: "@NOTE@"
  - id: rest
    size-eos: true
    doc: Bytes that are no whole entry; there should be none.
types:
"""

SNAPSHOT: Final = """\
seq:
  - id: header
    type: producer_snapshot_header
  - id: producers
    type: producer_state_entry
    repeat: expr
    repeat-expr: header.count
types:
"""

INDEXES: Final = (
    ("offset_index", "index", "OffsetIndexEntry", "Zeros may follow the last entry of a file that is in use."),
    ("time_index", "timeindex", "TimeIndexEntry", "Zeros may follow the last entry of a file that is in use."),
    ("transaction_index", "txnindex", "TransactionIndexEntry", "One for each aborted transaction that ends here."),
)
MESSAGE_FIXED_SIZES: Final = {0: 6, 1: 14}
"""Bytes between the message size and the key, by magic."""


def kaitai_set() -> dict[str, str]:
    """Return the content of every file, by name."""
    named = {f"varint{bits}.ksy": _varint(bits) for bits in (32, 64)}
    named |= {"record_batch.ksy": _record_batch(), "control_record.ksy": control_record(structures())}
    named |= {"message.ksy": _message(), "message_set.ksy": _set()}
    named |= {f"{name}.ksy": _index(name, *rest) for name, *rest in INDEXES}
    return named | {"log_segment.ksy": _log(), "producer_snapshot.ksy": _snapshot()}


def _types(names: Iterable[str]) -> str:
    known = {structure.name: structure for structure in structures()}
    return "".join(type_of(known[name]) for name in names)


def _title(what: str) -> str:
    return f"Apache Kafka, {what}"


def _imports(*names: str) -> list[str]:
    return ["imports:", *(f"  - {name}" for name in names)]


def _varint(bits: int) -> str:
    doc = (
        f"A signed number of {bits} bits, zig-zag encoded, in groups of seven bits, low group first.\n"
        "Higher bits of the last group are dropped."
    )
    return head(f"varint{bits}", _title(f"varint of {bits} bits"), doc) + varint(bits)


def _record_batch() -> str:
    doc = "A record batch of magic 2: a header of 61 bytes, and records that may be compressed together."
    meta = _imports("varint32", "varint64", "control_record")
    opening = head("record_batch", _title("record batch (magic 2)"), doc, meta=meta)
    types = _types(["RecordBatchHeader", "Record", "RecordHeader"])
    return opening + BATCH + CONTROL + "types:\n" + CONTENT + CONTROL_CONTENT + nullable("varint32") + types


def _message() -> str:
    doc = "One message of magic 0 or 1, plain or a compressed wrapper."
    messages = "".join(filled(MESSAGE, magic=magic, fixed=size) for magic, size in MESSAGE_FIXED_SIZES.items())
    types = KEY_AND_VALUE + nullable("int32") + _types(["MessageV0Header", "MessageV1Header"])
    return head("message", _title("message (magic 0 and 1)"), doc) + MESSAGE_SEQ + "types:\n" + messages + types


def _set() -> str:
    doc = "Messages of magic 0 and 1, one after the other: what a compressed wrapper holds once it is decompressed."
    return head("message_set", _title("message set (magic 0 and 1)"), doc, meta=_imports("message")) + MESSAGE_SET


def _log() -> str:
    doc = (
        "A .log file: entries one after the other, each read by its own magic. A size that cannot be right\n"
        "ends the entries, as the end of the file does; what follows is the tail."
    )
    meta = ["file-extension: log", *_imports("record_batch", "message")]
    return head("log_segment", _title("log segment"), doc, meta=meta) + LOG


def _index(name: str, extension: str, entry: str, note: str) -> str:
    structure = next(one for one in structures() if one.name == entry)
    kind = type_of(structure)
    seq = filled(SLOTS, type=kind.split(":", 1)[0].strip(), size=structure.size, note=note)
    what = name.replace("_", " ")
    doc = f"An array of entries of {structure.size} bytes, with neither header nor checksum."
    return head(name, _title(what), doc, meta=[f"file-extension: {extension}"]) + seq + kind


def _snapshot() -> str:
    doc = "What a broker knows about producers at an offset, which is the name of the file."
    opening = head("producer_snapshot", _title("producer snapshot"), doc, meta=["file-extension: snapshot"])
    return opening + SNAPSHOT + _types(["ProducerSnapshotHeader", "ProducerStateEntry"])
