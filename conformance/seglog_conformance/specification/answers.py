"""Conversions between the values of the algorithms and the protocol's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import parse_name

from seglog_format.codec.compression import compress as compress_as
from seglog_format.codec.compression import decompress as decompress_within
from seglog_format.errors import FormatError, Location
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, CompressionCodec

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json


def rejection(damage: Damage) -> Json:
    """Return a refusal in the format of the protocol."""
    reject: Json = {"class": "other", "message": str(damage), "requirement": damage.rule}
    if damage.position >= 0:
        reject["at"] = damage.position
    return {"ok": False, "reject": reject}


def decompress(codec: int, data: bytes, magic: int, *, limit: int = DEFAULT_OUTPUT_LIMIT) -> bytes:
    """Decompress for the algorithms, which take this function as an argument."""
    try:
        return decompress_within(codec, data, magic=magic, at=Location(), limit=limit)
    except FormatError as error:
        raise Damage(error.requirements[0], text=str(error)) from None


def compress(codec: int, data: bytes, magic: int) -> bytes:
    """Compress for the algorithms, which take this function as an argument."""
    return compress_as(CompressionCodec(codec), data, magic=magic)


def files_of(request: Json) -> dict[str, bytes]:
    """Return the partition directory of a request; ``.log`` alone is the name of base offset 0."""
    found = {name: bytes.fromhex(data) for name, data in request["files"].items()}
    return {
        f"{0:020}{name}" if name.startswith(".") and parse_name(f"0{name}") else name: data
        for name, data in found.items()
    }


def as_files(directory: dict[str, bytes]) -> dict[str, str]:
    """Return the files of a directory in an answer, except those marked for deletion."""
    return {name: data.hex() for name, data in sorted(directory.items()) if not name.endswith(".deleted")}
