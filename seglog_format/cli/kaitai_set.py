"""Kaitai Struct declarations of the files on disk: one for each kind, with shared types in files of their own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from seglog_format.cli.structures import Shape, shape, structures
from seglog_format.field_names import kafka_name
from seglog_format.model import ControlRecordType
from seglog_format.schema.control_record import KRAFT_VALUES
from seglog_format.schema.fields import type_name
from seglog_format.schema.protocol import declaration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from construct import Construct, Struct

    from seglog_format.cli.structures import Structure
    from seglog_format.schema.protocol import MessageDefinition


# -- layouts as Kaitai Struct declarations, for structures that Kaitai's language can express directly -----------------


BATCH: Final = """\
seq:
  - id: header
    type: record_batch_header
  - id: content
    type: record_batch_content
    size: header.batch_length - 49
    doc: The records, in place or compressed; nothing of them is read before it is asked for.
instances:
  codec:
    value: header.attributes & 7
    doc: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
  last_offset:
    value: header.base_offset + header.last_offset_delta
"""

CONTENT: Final = """\
  record_batch_content:
    instances:
      records:
        pos: 0
        type: record
        repeat: expr
        repeat-expr: _parent.header.records_count
        if: _parent.codec == 0
      compressed:
        pos: 0
        size-eos: true
        if: _parent.codec != 0
"""

VARINT: Final = """\
seq:
  - id: groups
    type: u1
    repeat: until
    repeat-until: _ < 128
instances:
  size:
    value: groups.size
  unsigned:
    value: >-
      (@SUM@) % @MODULUS@
  value:
    value: 'unsigned % 2 == 0 ? unsigned / 2 : -(unsigned / 2) - 1'
"""

NULLABLE: Final = """\
  bytes_after_@LENGTH@:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: @TYPE@
      - id: content
        size: @VALUE@
        if: @VALUE@ >= 0
"""

HEAD: Final = """\
meta:
  id: @ID@
  title: @TITLE@
@META@  license: Apache-2.0
  endian: be
doc: |
  @DOC@
"""

NUMBERS: Final = {"int8": "s1", "int16": "s2", "int32": "s4", "int64": "s8"}
NUMBERS_ALL: Final = NUMBERS | {f"u{name}": f"u{kind[1]}" for name, kind in NUMBERS.items()}


class NotSayableError(Exception):
    """Kaitai's language cannot express a declaration directly."""


def filled(text: str, **values: object) -> str:
    """Replace every ``@NAME@`` in a text."""
    for name, value in values.items():
        text = text.replace(f"@{name.upper()}@", str(value))
    return text


def head(name: str, title: str, doc: str, *, meta: Iterable[str] = ()) -> str:
    """Return the start of a declaration."""
    lines = "".join(f"  {line}\n" for line in meta)
    return filled(HEAD, id=name, title=title, doc=doc.replace("\n", "\n  "), meta=lines)


def varint(bits: int) -> str:
    """Return fields and values of a zigzag varint; sums of products, as JavaScript's bit operations have 32 bits."""
    count = -(-bits // 7)
    summands = ["groups[0] % 128"]
    summands += [f"(size > {n} ? (groups[{n}] % 128) * {1 << 7 * n} : 0)" for n in range(1, min(count, 9))]
    if bits == 64:  # noqa: PLR2004 - the width of a long
        return filled(VARINT, sum="\n      + ".join([*summands, _TENTH]), modulus="1").replace(") % 1\n", ")\n")
    return filled(VARINT, sum="\n      + ".join(summands), modulus=1 << bits)


_TENTH: Final = f"(size > 9 ? (groups[9] % 2) * {1 << 56} * 128 : 0)"
"""Value of the tenth group, of which one bit counts; a product, because 2^63 is no literal everywhere."""


def nullable(length: str) -> str:
    """Return the type of bytes after a length of that type."""
    kind = NUMBERS.get(length, length)
    value = "length.value" if length.startswith("varint") else "length"
    return filled(NULLABLE, length=length, type=kind, value=value)


def ksy(chosen: Iterable[Structure]) -> str:
    """Return one declaration with a type for each structure; its root reads a log of record batches of magic 2."""
    wanted = {structure.name: structure for structure in chosen}
    for needed in ("RecordHeader", "Record", "RecordBatchHeader"):
        wanted.setdefault(needed, next(one for one in structures() if one.name == needed))
    types, left_out = [], []
    for structure in wanted.values():
        try:
            types.append(type_of(structure))
        except NotSayableError:
            left_out.append(structure.name)
    doc = (
        "Structures of the segmented log format. The root reads a log of record batches of magic 2;\n"
        "logs with older messages start with the same offset and size."
    )
    parts = [
        head("seglog", "Log segments of Apache Kafka", doc, meta=["file-extension: log"]),
        "seq:\n  - id: batches\n    type: record_batch\n    repeat: eos\n",
        "types:\n",
        _indented("record_batch:\n" + _indented(BATCH)),
        CONTENT,
        *(_indented(f"varint{bits}:\n" + _indented(varint(bits))) for bits in (32, 64)),
        nullable("varint32"),
        nullable("int32"),
        *types,
    ]
    return "".join(parts).rstrip("\n") + (f"\n# Not declared here: {', '.join(left_out)}" if left_out else "")


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def type_of(structure: Structure) -> str:
    """Return the type for a structure.

    Raises:
        NotSayableError: Kaitai's language cannot express it directly.
    """
    lines = [f"  {snake(structure.name)}:", "    seq:"]
    for field in structure.declaration.subcons:
        how = shape(field)
        if how.kind != "mark":
            lines += _attribute(field, how)
    return "\n".join(lines) + "\n"


def snake(name: str) -> str:
    """Return ``record_batch_header`` for ``RecordBatchHeader``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _attribute(field: Construct, how: Shape) -> Iterator[str]:
    yield f"      - id: {snake(field.name)}"
    yield f"        -orig-id: {kafka_name(field.name)}"
    for key, value in _kind(how).items():
        yield f"        {key}: {value}"
    if field.docs:
        ids = getattr(field.docs, "requirements", ())
        yield f"        doc: {json.dumps(str(field.docs), ensure_ascii=False)}"
        if ids:
            yield f"        doc-ref: {json.dumps(', '.join(ids))}"


def _kind(how: Shape) -> dict[str, str]:
    if how.kind == "number" and how.type in NUMBERS_ALL:
        return {"type": NUMBERS_ALL[how.type] + ("le" if how.is_little_endian else "")}
    if how.kind == "varint" and how.type.startswith("varint"):
        return {"type": how.type}
    if how.kind == "nullable bytes":
        return {"type": f"bytes_after_{how.length}"}
    if how.kind == "bytes":
        return {"size": str(how.size)}
    if how.kind == "array":
        count = f"{how.count}.value" if how.element == "RecordHeader" else how.count
        return {"type": snake(how.element), "repeat": "expr", "repeat-expr": count}
    raise NotSayableError


# -- control records as a Kaitai Struct declaration: a type for each version of each Kafka message ---------------------


RECORD: Final = """\
seq:
  - id: length
    type: varint32
  - id: attributes
    type: s1
  - id: timestamp_delta
    type: varint64
  - id: offset_delta
    type: varint32
  - id: key_length
    type: varint32
  - id: key
    type: control_record_key
    size: key_length.value
  - id: value_length
    type: varint32
  - id: value
    size: value_length.value
    doc: Of a type that is not known, the bytes.
    type:
      switch-on: key.type
      cases:
@CASES@  - id: headers_count
    type: varint32
  - id: headers
    type: record_header
    repeat: expr
    repeat-expr: headers_count.value
types:
"""

VERSIONS: Final = """\
  @NAME@:
    doc: "@TITLE@; versions that are not known are read as the latest that is."
    seq:
@SEQ@    instances:
      version:
        pos: 0
        type: s2
"""

TEXT: Final = """\
  compact_string:
    doc: A length plus one, and that many bytes of UTF-8.
    seq:
      - id: length_plus_one
        type: varint32
      - id: text
        type: str
        encoding: UTF-8
        size: length_plus_one.unsigned - 1
  uuid:
    seq:
      - id: content
        size: 16
  tagged_fields:
    doc: Fields that a reader may skip.
    seq:
      - id: count
        type: varint32
      - id: fields
        type: tagged_field
        repeat: expr
        repeat-expr: count.unsigned
  tagged_field:
    seq:
      - id: tag
        type: varint32
        doc: Read it unsigned.
      - id: size
        type: varint32
      - id: content
        size: size.unsigned
"""

PLAIN: Final = {"string": "compact_string", "uuid": "uuid", "tagged fields": "tagged_fields"}
"""Types of Kafka's protocol that need only a name."""


def control_record(structures: Iterable[Structure]) -> str:
    """Return the declaration of one record of a control batch.

    Args:
        structures: all declared structures.
    """
    known = {structure.name: structure for structure in structures}
    doc = (
        "One record of a batch whose control bit (attributes, bit 5) is set: key and value by the type in the key.\n"
        "In metadata logs of Kafka 2.7 and 2.8, type 3 may stand for 2."
    )
    meta = ["imports:", "  - varint32", "  - varint64"]
    opening = head("control_record", "Apache Kafka, control record", doc, meta=meta)
    shared = [type_of(known[name]) for name in ("ControlRecordKey", "EndTransactionMarker", "RecordHeader")]
    messages = [_control_message(definition) for definition in KRAFT_VALUES.values()]
    return "".join([opening, filled(RECORD, cases=_cases()), nullable("varint32"), TEXT, *shared, *messages])


def _cases() -> str:
    marker = dict.fromkeys((ControlRecordType.ABORT, ControlRecordType.COMMIT), "end_transaction_marker")
    kinds = marker | {kind: _name(definition) for kind, definition in KRAFT_VALUES.items()}
    return "".join(f"        {int(kind)}: {name}\n" for kind, name in kinds.items())


def _name(definition: MessageDefinition) -> str:
    return snake(definition.name)


def _control_message(definition: MessageDefinition) -> str:
    """Return a type that selects by version, if there are several, and a type for each."""
    name = _name(definition)
    if definition.latest == 0:
        return "".join(_structure(name, declaration(definition, 0)))
    names = [f"{name}_v{version}" for version in range(definition.latest + 1)]
    chosen = "".join(_chosen(version, definition.latest, name) for version, name in enumerate(names))
    parts = [part for version, each in enumerate(names) for part in _structure(each, declaration(definition, version))]
    return filled(VERSIONS, name=name, title=definition.name, seq=chosen) + "".join(parts)


def _chosen(version: int, latest: int, name: str) -> str:
    condition = f"version >= {version}" if version == latest else f"version == {version}" if version else "version <= 0"
    return f"      - id: v{version}\n        type: {name}\n        if: {condition}\n"


def _structure(name: str, declared: Struct) -> Iterator[str]:
    """Yield the type, and those of nested structures."""
    lines, inner = [f"  {name}:", "    seq:"], []
    for field in declared.subcons:
        lines += _control_attribute(field, name)
        inner += [(f"{name}_{snake(field.name)}", part) for part in _parts(_plain(field))]
    yield "\n".join(lines) + "\n"
    for below, part in inner:
        yield from _structure(below, part)


def _plain(field: Construct) -> Construct:
    """Return the declaration without names and conditions."""
    from construct import Renamed

    while isinstance(field, Renamed):
        field = field.subcon
    return field


def _parts(plain: Construct) -> list[Struct]:
    """Return the structure in a field, single or repeated."""
    from construct import Array, Struct

    inside = _plain(plain.subcon) if isinstance(plain, Array) else plain
    return [inside] if isinstance(inside, Struct) else []


def _control_attribute(field: Construct, owner: str) -> Iterator[str]:
    from construct import Array

    plain, identifier = _plain(field), snake(field.name)
    is_array = isinstance(plain, Array)
    if is_array:
        yield f"      - id: {identifier}_count_plus_one"
        yield "        type: varint32"
    yield f"      - id: {identifier}"
    yield f"        type: {f'{owner}_{identifier}' if _parts(plain) else _type(plain)}"
    if is_array:
        yield "        repeat: expr"
        yield f"        repeat-expr: {identifier}_count_plus_one.unsigned - 1"
    yield f"        doc: {json.dumps(str(field.docs), ensure_ascii=False)}"
    yield f"        doc-ref: {json.dumps(', '.join(field.docs.requirements))}"


def _type(plain: Construct) -> str:
    named = type_name(plain)
    found = NUMBERS_ALL.get(named) or PLAIN.get(named)
    if found is None:
        raise NotSayableError
    return found


# -- Kaitai Struct declarations of the files on disk -------------------------------------------------------------------


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
