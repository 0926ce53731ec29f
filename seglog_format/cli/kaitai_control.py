"""Control records as a Kaitai Struct declaration: a type for each version of each Kafka message.

A compact length is stored as an unsigned number plus one. Its type in this file is a signed varint, of which the
declaration takes the unsigned reading.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seglog_format.cli.render_ksy import NUMBERS_ALL, NotSayableError, filled, head, nullable, snake, type_of
from seglog_format.model import ControlRecordType
from seglog_format.schema.control_record import KRAFT_VALUES
from seglog_format.schema.fields import type_name
from seglog_format.schema.protocol import declaration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from construct import Construct, Struct

    from seglog_format.cli.structures import Structure
    from seglog_format.schema.protocol import MessageDefinition

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
    messages = [_message(definition) for definition in KRAFT_VALUES.values()]
    return "".join([opening, filled(RECORD, cases=_cases()), nullable("varint32"), TEXT, *shared, *messages])


def _cases() -> str:
    marker = dict.fromkeys((ControlRecordType.ABORT, ControlRecordType.COMMIT), "end_transaction_marker")
    kinds = marker | {kind: _name(definition) for kind, definition in KRAFT_VALUES.items()}
    return "".join(f"        {int(kind)}: {name}\n" for kind, name in kinds.items())


def _name(definition: MessageDefinition) -> str:
    return snake(definition.name)


def _message(definition: MessageDefinition) -> str:
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
        lines += _attribute(field, name)
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


def _attribute(field: Construct, owner: str) -> Iterator[str]:
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
