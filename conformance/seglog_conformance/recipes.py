"""Recipes for what is too large to store: bytes and lists that are made when a case is run.

- ``{"pieces": [hex, [hex, n], ...]}``: bytes; a pair is written ``n`` times;
- ``{"noise": text, "size": n}``: bytes that no codec makes smaller: SHAKE-256 of the text;
- ``{"items": [...], "times": n}``: a list, repeated;
- ``{"numbered": record, "times": n}``: copies of a record, each with the next offset and the next millisecond;
- ``{"recipe": [...], "baseOffset": n}``: a log, from a list of parts in its order:

- ``{"repeat": [{"data": hex, "at": d}, ...], "times": n, "step": k}``: some entries, repeated. A round covers ``k``
offsets; the offset in the head of an entry, which no checksum covers, is ``d`` above the first of them;
- ``{"batch": {"records": n, "value": hex, "valueTimes": t, "codec": c}, "times": n}``: a batch whose records have null
  keys, timestamps one millisecond apart and a value that is a pattern written ``t`` times; ``c`` is none or gzip.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.protocol import Json

HEAD: Final = struct.Struct(">qiib")
COVERED: Final = struct.Struct(">hiqqqhii")
CODECS: Final = ("none", "gzip")
BASE_TIMESTAMP: Final = 1_700_000_000_000
KINDS: Final = (
    {"pieces"},
    {"noise", "size"},
    {"items", "times"},
    {"numbered", "times"},
    {"recipe", "baseOffset"},
)
"""The names in a recipe of each kind."""


def is_recipe(value: object) -> bool:
    """Return whether a value of a case is a recipe."""
    return isinstance(value, dict) and set(value) in KINDS


def made(recipe: Json) -> Any:  # noqa: ANN401 - bytes as hex, or a list
    """Return what a recipe makes."""
    match recipe:
        case {"pieces": pieces}:
            return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in pieces)
        case {"noise": text, "size": size}:
            return hashlib.shake_256(text.encode()).hexdigest(size)
        case {"items": items, "times": times}:
            return items * times
        case {"numbered": record, "times": times}:
            offset, timestamp = int(record["offset"]), int(record["timestamp"])
            return [{**record, "offset": str(offset + at), "timestamp": str(timestamp + at)} for at in range(times)]
        case _:
            return log_of(recipe["recipe"], recipe["baseOffset"]).hex()


def log_of(recipe: list[Json], base_offset: int) -> bytes:
    """Return the bytes of a recipe.

    Args:
        recipe: its parts.
        base_offset: offset of the first entry.
    """
    pieces, offset = [], base_offset
    for part in recipe:
        entries, step = _round(part)
        for _ in range(part["times"]):
            pieces += [(offset + above).to_bytes(8, "big", signed=True) + entry[8:] for entry, above in entries]
            offset += step
    return b"".join(pieces)


def _round(part: Json) -> tuple[list[tuple[bytes, int]], int]:
    """Return the entries of a round, each with its offset from the first, and the number of offsets in a round."""
    if "batch" in part:
        return [(_batch(part["batch"]), 0)], part["batch"]["records"]
    return [(bytes.fromhex(entry["data"]), entry["at"]) for entry in part["repeat"]], part["step"]


def _batch(batch: Json) -> bytes:
    count, value = batch["records"], bytes.fromhex(batch["value"]) * batch["valueTimes"]
    records = b"".join(_records(count, b"\1" + _varint(len(value)) + value + b"\0"))
    if batch["codec"] == "gzip":
        coder = zlib.compressobj(wbits=31)
        records = coder.compress(records) + coder.flush()
    newest = BASE_TIMESTAMP + count - 1
    attributes = CODECS.index(batch["codec"])
    covered = COVERED.pack(attributes, count - 1, BASE_TIMESTAMP, newest, -1, -1, -1, count) + records
    head = HEAD.pack(0, HEAD.size - 12 + 4 + len(covered), 0, 2)
    return head + crc32c(covered).to_bytes(4, "big") + covered


def _records(count: int, fields: bytes) -> Iterator[bytes]:
    """Yield records that differ only in offset and timestamp; ``fields`` is the null key and the rest of the record."""
    for delta in range(count):
        number = _varint(delta)
        yield b"".join((_varint(1 + 2 * len(number) + len(fields)), b"\0", number, number, fields))


def _varint(number: int) -> bytes:
    rest, out = number << 1, bytearray()
    while rest > 0x7F:  # noqa: PLR2004 - seven bits
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def hex_size(value: object) -> int:
    """Return about how many bytes a JSON value stands for; a digest counts as the bytes that it replaces."""
    match value:
        case str():
            return len(value) // 2
        case {"bytes": int(size), "sha256": str()}:
            return size
        case dict():
            return sum(hex_size(item) + 8 for item in value.values())
        case list():
            return sum(hex_size(item) + 8 for item in value)
        case _:
            return 4
