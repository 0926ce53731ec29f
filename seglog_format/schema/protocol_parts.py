"""The building blocks of messages of Kafka's protocol: lengths, text, arrays, tagged fields (chapter 32)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from construct import (
    Adapter,
    Array,
    Bytes,
    Construct,
    SizeofError,
    Subconstruct,
    stream_read,
    stream_write,
)

from seglog_format.schema.varint import UnsignedVarint, UnsignedVarint32

if TYPE_CHECKING:
    from collections.abc import Mapping

TAGGED_FIELDS = "taggedFields"
"""Name of the last field of every structure of a flexible version."""

UNKNOWN_TAGGED_FIELDS = "unknownTaggedFields"
"""Name of the field for tags that are not in the definition."""


class CompactLength(UnsignedVarint):
    """A length stored as an unsigned varint of itself plus one, so 0 is null."""

    def __init__(self) -> None:
        super().__init__(32)
        self.type_name = "compact length"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return super()._parse(stream, context, path) - 1

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(obj + 1, stream, context, path)
        return obj


class Uuid(Adapter):
    """Sixteen bytes as Kafka shows them: 22 characters of URL-safe Base64 without padding."""

    type_name = "uuid"

    def __init__(self) -> None:
        super().__init__(Bytes(16))

    def _decode(self, obj: bytes, context: Any, path: str) -> str:
        return base64.urlsafe_b64encode(obj).decode("ascii").rstrip("=")

    def _encode(self, obj: str, context: Any, path: str) -> bytes:
        return base64.urlsafe_b64decode(obj + "==")


class Measured(Subconstruct):
    """Bytes after their length; a negative one is null."""

    type_name = "bytes"

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        size = self.subcon._parsereport(stream, context, path)
        return None if size < 0 else self._content(stream_read(stream, size, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = b"" if obj is None else self._bytes(obj)
        self.subcon._build(-1 if obj is None else len(data), stream, context, path)
        stream_write(stream, data, len(data), path)
        return obj

    def _content(self, data: bytes) -> Any:
        return data

    def _bytes(self, content: Any) -> bytes:
        return bytes(content)

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class Utf8(Measured):
    """Text. Bytes that are not UTF-8 become replacement characters, as in Kafka's own tools."""

    type_name = "string"

    def _content(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")

    def _bytes(self, content: str) -> bytes:
        return content.encode("utf-8")


class CountedArray(Array):
    """Elements after their count; a negative count is null. The bytes, not the count, limit the memory."""

    type_name = "array"

    def __init__(self, count: Construct, element: Construct) -> None:
        super().__init__(0, element)
        self.countsubcon = count

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.countsubcon._parsereport(stream, context, path)
        return None if count < 0 else Array(count, self.subcon)._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.countsubcon._build(-1 if obj is None else len(obj), stream, context, path)
        for element in obj or ():
            self.subcon._build(element, stream, context, path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class Optional(Subconstruct):
    """A structure after a number that says whether it is present.

    Args:
        structure: the optional structure.
        mark: the number: an unsigned varint in a tagged field, else a byte.
        absent: value of the number if the structure is absent; a greater value means that it is present.
    """

    def __init__(self, structure: Construct, mark: Construct, absent: int) -> None:
        super().__init__(structure)
        self.mark = mark
        self.absent = absent

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        is_null = self.mark._parsereport(stream, context, path) <= self.absent
        return None if is_null else self.subcon._parsereport(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.mark._build(self.absent if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)


class TaggedFields(Construct):
    """Pairs of a tag and a value after its size: known ones by name, the others as stored."""

    type_name = "tagged fields"

    def __init__(self, known: Mapping[int, Construct]) -> None:
        super().__init__()
        self.known = known

    def _parse(self, stream: Any, context: Any, path: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        unknown = []
        for _ in range(UnsignedVarint32._parsereport(stream, context, path)):
            tag = UnsignedVarint32._parsereport(stream, context, path)
            data = stream_read(stream, UnsignedVarint32._parsereport(stream, context, path), path)
            if tag in self.known:
                values[self.known[tag].name] = self.known[tag].parse(data)
            else:
                unknown.append({"tag": tag, "data": data})
        return values | ({UNKNOWN_TAGGED_FIELDS: unknown} if unknown else {})

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        known = {tag: field.build(obj[field.name]) for tag, field in self.known.items() if field.name in obj}
        unknown = {each["tag"]: each["data"] for each in obj.get(UNKNOWN_TAGGED_FIELDS, ())}
        values = sorted((known | unknown).items())
        UnsignedVarint32._build(len(values), stream, context, path)
        for tag, data in values:
            UnsignedVarint32._build(tag, stream, context, path)
            UnsignedVarint32._build(len(data), stream, context, path)
            stream_write(stream, data, len(data), path)
        return obj
