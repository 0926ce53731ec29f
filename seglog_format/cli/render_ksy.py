"""Layouts as a Kaitai Struct declaration: the structures that Kaitai's language can say without help.

The root reads a log of magic 2 batches. Structures that need more than fixed fields, varints and counted arrays, such
as the versioned messages of control records, are left out; a comment at the end names them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from construct import Array, Bytes, FormatField, Renamed, Tell

from seglog_format.schema.varint import NullableBytes, UnsignedVarint, Varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from construct import Construct

    from seglog_format.cli.structures import Structure

HEAD: Final = """\
meta:
  id: seglog
  title: Log segments of Apache Kafka
  file-extension: log
  license: Apache-2.0
  endian: be
doc: |
  Structures of the segmented log format. The root reads a log of record batches of magic 2;
  logs with older messages start with the same offset and size.
seq:
  - id: batches
    type: record_batch
    repeat: eos
types:
  record_batch:
    seq:
      - id: header
        type: record_batch_header
      - id: records
        type: record
        repeat: expr
        repeat-expr: header.records_count
        if: codec == 0
      - id: compressed_records
        size: header.batch_length - 49
        if: codec != 0
    instances:
      codec:
        value: header.attributes & 7
  varint:
    doc: A signed number, zig-zag encoded, in groups of seven bits, low group first.
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
          (groups[0] & 127)
          + (size > 1 ? (groups[1] & 127) << 7 : 0)
          + (size > 2 ? (groups[2] & 127) << 14 : 0)
          + (size > 3 ? (groups[3] & 127) << 21 : 0)
          + (size > 4 ? (groups[4] & 127) << 28 : 0)
          + (size > 5 ? (groups[5] & 127) << 35 : 0)
          + (size > 6 ? (groups[6] & 127) << 42 : 0)
          + (size > 7 ? (groups[7] & 127) << 49 : 0)
          + (size > 8 ? (groups[8] & 127) << 56 : 0)
          + (size > 9 ? (groups[9] & 1) << 63 : 0)
      value:
        value: (unsigned >> 1) ^ -(unsigned & 1)
  bytes_after_varint:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: varint
      - id: content
        size: length.value
        if: length.value >= 0
  bytes_after_int32:
    doc: A length and that many bytes; a negative length is null.
    seq:
      - id: length
        type: s4
      - id: content
        size: length
        if: length >= 0
"""

COUNT_NAME: Final = re.compile(r"this\.(\w+)|this\['(\w+)'\]")
KSY_NUMBERS: Final = {"b": "s1", "h": "s2", "i": "s4", "l": "s4", "q": "s8"}
KSY_NUMBERS_ALL: Final = KSY_NUMBERS | {code.upper(): "u" + name[1] for code, name in KSY_NUMBERS.items()}


class NotSayableError(Exception):
    """Kaitai's language has no plain words for a declaration."""


def ksy(structures: Iterable[Structure]) -> str:
    """One declaration with a type for each structure."""
    from seglog_format.cli.structures import structures as all_structures

    named = {id(one.declaration): _snake(one.name) for one in all_structures()}
    wanted = {structure.name: structure for structure in structures}
    for needed in ("RecordHeader", "Record", "RecordBatchHeader"):
        wanted.setdefault(needed, next(one for one in all_structures() if one.name == needed))
    types, left_out = [], []
    for structure in wanted.values():
        try:
            types.append(_type(structure, named))
        except NotSayableError:
            left_out.append(structure.name)
    note = f"# Not declared here: {', '.join(left_out)}" if left_out else ""
    return HEAD + "\n".join(types) + ("\n" + note if note else "")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _type(structure: Structure, named: dict[int, str]) -> str:
    lines = [f"  {_snake(structure.name)}:", "    seq:"]
    for field in structure.declaration.subcons:
        if not isinstance(_plain(field), type(Tell)):
            lines += _attribute(field, named)
    return "\n".join(lines)


def _attribute(field: Construct, named: dict[int, str]) -> Iterator[str]:
    yield f"      - id: {_snake(field.name)}"
    for key, value in _kind(_plain(field), named).items():
        yield f"        {key}: {value}"
    if field.docs:
        ids = getattr(field.docs, "requirements", ())
        yield f"        doc: {json.dumps(str(field.docs), ensure_ascii=False)}"
        if ids:
            yield f"        doc-ref: {json.dumps(', '.join(ids))}"


def _plain(field: Construct) -> Any:  # noqa: ANN401 - construct is untyped
    while isinstance(field, Renamed):
        field = field.subcon
    return field


def _kind(plain: Any, named: dict[int, str]) -> dict[str, str]:  # noqa: ANN401 - construct is untyped
    if isinstance(plain, FormatField):
        number = KSY_NUMBERS_ALL.get(plain.fmtstr[-1])
        if number is not None:
            little = plain.fmtstr[0] == "<" and number[1] != "1"
            return {"type": number + ("le" if little else "")}
    if isinstance(plain, Varint):
        return {"type": "varint"}
    if isinstance(plain, NullableBytes):
        is_varint = isinstance(plain.subcon, UnsignedVarint)
        return {"type": "bytes_after_varint" if is_varint else "bytes_after_int32"}
    if isinstance(plain, Bytes) and isinstance(plain.length, int):
        return {"size": str(plain.length)}
    if isinstance(plain, Array):
        return _array(plain, named)
    raise NotSayableError


def _array(plain: Any, named: dict[int, str]) -> dict[str, str]:  # noqa: ANN401 - construct is untyped
    count = COUNT_NAME.search(repr(plain.count))
    element = named.get(id(plain.subcon))
    if not count or element is None:
        raise NotSayableError
    name = next(group for group in count.groups() if group)
    is_varint = name == "headers_count"
    return {"type": element, "repeat": "expr", "repeat-expr": f"{name}.value" if is_varint else name}
