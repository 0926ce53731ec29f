"""Layouts as Kaitai Struct declarations, for structures that Kaitai's language can express directly.

`ksy` returns one declaration with a type for each structure; the module `kaitai_set` has files that import each other,
one for each kind of file on disk. Structures that need more than fixed fields, varints and counted arrays, such as the
versioned messages of control records, are left out; a comment at the end of the result of `ksy` names them.

Kaitai's numbers are those of the language it compiles to. JavaScript's bit operations have 32 bits, so varints are
computed by multiplication, and numbers beyond 2^53 lose their last digits.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from seglog_format.cli.field_shapes import Shape, shape
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from construct import Construct

    from seglog_format.cli.structures import Structure

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


def ksy(structures: Iterable[Structure]) -> str:
    """Return one declaration with a type for each structure; its root reads a log of record batches of magic 2."""
    from seglog_format.cli.structures import structures as all_structures

    wanted = {structure.name: structure for structure in structures}
    for needed in ("RecordHeader", "Record", "RecordBatchHeader"):
        wanted.setdefault(needed, next(one for one in all_structures() if one.name == needed))
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
