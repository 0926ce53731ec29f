"""Contents of the data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from templates import Record

from seglog_format import CompressionCodec

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """The contents of a data set.

    Attributes:
        name: name of the set in reports.
        size: bytes at scale 1: of the file, or of the data before compression.
        about: description in words.
        record: sizes, if contents are random bytes of equal size.
        batch_size: bytes of a batch before compression.
        codec: codec of the batches or wrappers.
        magic: 1 or 2.
        producer: whether batches have a producer.
    """

    name: str
    size: int
    about: str
    record: Record | None = None
    batch_size: int = 16_384
    codec: CompressionCodec = CompressionCodec.NONE
    magic: int = 2
    producer: bool = False


SMALL: Final = Record(10, 100)
TEXTS: Final = "JSON-like text of some 180 bytes, batches of 64 KB, "
RECIPES: Final = (
    Recipe("u100", 256 * MIB, "keys of 10 and values of 100 random bytes, batches of 16 KB", SMALL),
    Recipe("u1k", 256 * MIB, "values of 1,000 bytes, batches of 16 KB", Record(10, 1000)),
    Recipe("h100", 128 * MIB, "as u100 with two headers", Record(10, 100, ("content-type", "trace-id"), 22)),
    Recipe("s100", 64 * MIB, "as u100, one record a batch", SMALL, batch_size=1),
    Recipe("p100", 128 * MIB, "as u100, with idempotent producers", SMALL, producer=True),
    Recipe("jlz4", 256 * MIB, TEXTS + "lz4", None, 65_536, CompressionCodec.LZ4),
    Recipe("jzstd", 256 * MIB, TEXTS + "zstd", None, 65_536, CompressionCodec.ZSTD),
    Recipe("jsnappy", 256 * MIB, TEXTS + "snappy", None, 65_536, CompressionCodec.SNAPPY),
    Recipe("jgzip", 256 * MIB, TEXTS + "gzip", None, 65_536, CompressionCodec.GZIP),
    Recipe("m1u100", 256 * MIB, "magic 1, keys of 10 and values of 100 random bytes", SMALL, magic=1),
    Recipe("m1lz4", 128 * MIB, "magic 1, text in lz4 wrappers of 64 KB", None, 65_536, CompressionCodec.LZ4, magic=1),
    Recipe("u100_8m", 8 * MIB, "as u100, small", SMALL),
    Recipe("u100_96m", 96 * MIB, "as u100, in between", SMALL),
    Recipe("u100_1g", 1024 * MIB, "as u100, four times as large", SMALL),
)
