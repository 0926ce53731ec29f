"""Families 10 to 16: compressed batches, as all encoders write them."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from authoring import codecs
from authoring.batches import Batch, Rec
from authoring.casefile import Basis, Family, Json, lay, may, must, should
from authoring.codecs import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_CONTENT_SIZE,
    LZ4_END,
    LZ4_INDEPENDENT,
    LZ4_PLAIN,
    LZ4_VERSION,
    XERIAL,
    ZSTD_MAGIC,
    deflate_stored,
    deflated,
    gzip,
    gzip_header,
    lz4_frame,
    lz4_frame_v0,
    lz4_header,
    lz4_packed,
    lz4_stored,
    snappy_block,
    xerial,
    xxh32,
    zstd,
    zstd_block,
    zstd_raw,
)
from authoring.damage import COMPRESSORS, GOOD
from authoring.messages import Msg, Wrapper
from authoring.plain import R1, R2, R3
from authoring.primitives import crc32, uvarint

if TYPE_CHECKING:
    from collections.abc import Callable

V_09: Final = bytes.fromhex(
    "1f8b08000000000000ffe363606060644a64e063e06262ca66641062606361ca66292b63000001d257be1a000000"
)
V_12: Final = bytes.fromhex("28b52ffd0058d000000e000000010261000e000a02026b010012000604026b04767600010000")
VECTOR: Final = {"base": 10, "leader_epoch": -1, "recs": (R1, R2, R3)}
LONG: Final = tuple(Rec(key=b"key-%d" % at, value=b"value %d " % at * 20, time=at) for at in range(40))
WIDE: Final = (Rec(value=bytes(at % 251 for at in range(70_000))),)
TEXT: Final = tuple(Rec(value=b"the same words again and again, " * 8) for _ in range(3))


def packed(
    codec: str, compress: Callable[[bytes], bytes], recs: tuple[Rec, ...] = (R1, R2, R3), base: int = 10
) -> Batch:
    """Return a compressed batch."""
    return Batch(base=base, codec=codec, compress=compress, recs=recs)


def halves(content: bytes, count: int = 2) -> list[bytes]:
    """Return some bytes in parts, cut where no record ends."""
    size = len(content) // count + 1
    return [content[at : at + size] for at in range(0, len(content), size)]


def gzips() -> Family:
    """Family 10."""
    family = Family(
        10,
        "gzip",
        "gzip: stored blocks, optional fields, members",
        "facts 3",
        flags={
            "GZIP_MEMBERS": {
                "effect": "Encoders may write several members, and many libraries stop after the first: all records behind it are lost without a word.",
                "links": [],
            },
            "GZIP_FIELDS": {
                "effect": "A header may carry a name, a comment, extra bytes and a checksum; a reader that expects ten bytes inflates the name.",
                "links": [],
            },
        },
    )
    since = {"since": "0.11"}
    family.valid(
        "by-a-broker",
        "Three records, compressed by the library that brokers use.",
        must("SEG-COD-002", source="vector V-09", smoke=True),
        Batch(codec="gzip", stored=V_09, **VECTOR),
    )
    for level in (1, 6, 9):
        family.valid(
            f"level-{level}",
            "The encoder chooses the compression level; a decoder reads all of them.",
            must("SEG-COD-002", **since),
            packed("gzip", lambda data, level=level: gzip(data, body=deflated(data, level)), LONG),
        )
    for name, why, unit in (
        ("stored", "Deflate data that is stored and not compressed.", packed("gzip", lambda data: gzip(data, body=deflate_stored(data)))),
        ("two-stored-blocks", "A gzip member with two deflate blocks.", packed("gzip", _two_blocks)),
        ("seventy-thousand-bytes", "Seventy thousand bytes are more than a usual buffer holds.", packed("gzip", gzip, WIDE)),
    ):  # fmt: skip
        family.valid(name, why, must("SEG-COD-002"), unit)
    fields = {
        "name": (codecs.GZIP_NAME, b"data.log\0"),
        "empty-name": (codecs.GZIP_NAME, b"\0"),
        "comment": (codecs.GZIP_COMMENT, b"no comment\0"),
        "extra": (codecs.GZIP_EXTRA, b"\x05\x00extra"),
        "empty-extra": (codecs.GZIP_EXTRA, b"\0\0"),
        "name-and-comment": (codecs.GZIP_NAME | codecs.GZIP_COMMENT, b"n\0c\0"),
        "text-flag": (1, b""),
    }
    for name, (flags, optional) in fields.items():
        header = gzip_header(flags, optional)
        family.valid(
            name,
            "The gzip header has an optional field; a decoder has to skip it.",
            must("SEG-COD-002", flags=("GZIP_FIELDS",)),
            packed("gzip", lambda data, header=header: gzip(data, header=header)),
        )
    every = gzip_header(
        codecs.GZIP_EXTRA | codecs.GZIP_NAME | codecs.GZIP_COMMENT | codecs.GZIP_HEADER_CRC,
        b"\x02\x00xx" + b"name\0" + b"comment\0",
    )
    every += struct.pack("<H", crc32(every) & 0xFFFF)
    family.valid(
        "all-fields",
        "The gzip header has all optional fields, and its checksum.",
        must("SEG-COD-002", flags=("GZIP_FIELDS",)),
        packed("gzip", lambda data: gzip(data, header=every)),
    )
    for name, header in (
        ("time", "1f8b0800784f5a5f00ff"),
        ("unix", "1f8b0800000000000003"),
        ("best", "1f8b08000000000002ff"),
        ("old-java", "1f8b0800000000000000"),
    ):
        family.valid(
            f"header-{name}",
            "A decoder ignores time, operating system and compression hint in the gzip header.",
            must("SEG-COD-002"),
            packed("gzip", lambda data, header=header: gzip(data, header=bytes.fromhex(header))),
        )
    _gzip_edges(family, every)
    members = must("SEG-COD-017", flags=("GZIP_MEMBERS",))
    for count in (2, 3, 7):
        family.valid(
            f"members-{count}",
            "Several gzip members; a record continues from one to the next.",
            members,
            packed("gzip", lambda data, count=count: b"".join(map(gzip, halves(data, count)))),
        )
    for name, why, basis, unit in (
        ("empty-member-first", "The first gzip member is empty.", members, packed("gzip", lambda data: gzip(b"") + gzip(data))),
        ("empty-member-last", "The last gzip member is empty.", members, packed("gzip", lambda data: gzip(data) + gzip(b""))),
        ("members-with-names", "Each gzip member has a header with its own optional fields.", must("SEG-COD-017", flags=("GZIP_MEMBERS", "GZIP_FIELDS")),
         packed("gzip", lambda data: b"".join(gzip(half, header=gzip_header(codecs.GZIP_NAME, b"part\0")) for half in halves(data)))),
        ("members-of-a-long-batch", "Several gzip members, each of many kilobytes.", members, packed("gzip", lambda data: b"".join(map(gzip, halves(data, 4))), WIDE)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    for name, junk in (("one-byte", b"j"), ("zeros", bytes(16)), ("text", b"junk behind the last member")):
        why = "A decoder ignores bytes after the last gzip member that do not begin another member."
        family.valid(f"junk-{name}", why, may("SEG-COD-018"), packed("gzip", lambda data, junk=junk: gzip(data) + junk))
    return family


def _gzip_edges(family: Family, every: bytes) -> None:
    """Header checksums that are wrong, and deflate data that stays empty for long."""
    basis = must("SEG-COD-002", flags=("GZIP_FIELDS",))
    for name, header in (
        ("wrong-header-checksum", every[:-2] + bytes([every[-2] ^ 1, every[-1]])),
        ("wrong-header-checksum-second-byte", every[:-1] + bytes([every[-1] ^ 0x80])),
        ("header-differs-from-its-checksum", every[:4] + b"\1" + every[5:]),
    ):
        why = "The gzip header has a checksum, which is wrong."
        refused(family, name, why, basis, "gzip", lambda data, header=header: gzip(data, header=header))
    hollow = b"\0\0\0\xff\xff"
    for count in (1, 13107, 13108, 30000):
        family.valid(
            f"empty-blocks-{count}",
            "Empty deflate blocks, as a flush writes them, precede the data.",
            must("SEG-COD-002"),
            packed("gzip", lambda data, count=count: gzip(data, body=hollow * count + deflate_stored(data))),
        )
    family.valid(
        "empty-block-last",
        "The last deflate block is empty.",
        must("SEG-COD-002"),
        packed("gzip", lambda data: gzip(data, body=b"\0" + deflate_stored(data)[1:] + b"\1" + hollow[1:])),
    )


def _two_blocks(data: bytes) -> bytes:
    first, second = halves(data)
    return gzip(data, body=b"\0" + deflate_stored(first)[1:] + deflate_stored(second))


def xerials() -> Family:
    """Family 11."""
    family = Family(
        11,
        "snappy-xerial",
        "snappy in xerial blocks",
        "facts 3",
        flags={
            "XERIAL": {
                "effect": "Kafka frames snappy in its own way. Who knows only raw snappy, or only the first block, loses what follows.",
                "links": ["https://issues.apache.org/jira/browse/KAFKA-5236"],
            }
        },
    )
    basis = must("SEG-COD-003", flags=("XERIAL",))
    family.valid(
        "by-a-broker",
        "Three records in one block, as a broker writes them.",
        must("SEG-COD-003", source="vector V-10", flags=("XERIAL",), smoke=True),
        Batch(
            codec="snappy",
            stored=XERIAL + bytes.fromhex("0000001c1a640e000000010261000e000a02026b010012000604026b04767600"),
            **VECTOR,
        ),
    )
    for size in (1, 7, 8, 25):
        why = "Many small blocks; records and their lengths continue from one block to the next."
        family.valid(f"blocks-of-{size}", why, basis, packed("snappy", lambda data, size=size: xerial(data, size)))
    for size in (1024, 32768, 65536, 200_000):
        family.valid(
            f"blocks-of-{size}-long",
            "Old producers write blocks of 1,024 bytes, newer ones of 32,768; a decoder reads any size.",
            basis,
            packed("snappy", lambda data, size=size: xerial(data, size), WIDE),
        )
    for name, why, unit in (
        ("compressible", "Blocks with copies, not only literals.", packed("snappy", lambda data: xerial(data, 100), TEXT)),
        ("empty-block", "A snappy block without data.", packed("snappy", lambda data: xerial(data[:9]) + b"\0\0\0\1\0" + xerial(data[9:], header=b""))),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    for name, rest in (("5", b"\0\0\0\5"), ("greatest", b"\x7f\xff\xff\xff"), ("minus-1", b"\xff" * 4)):
        why = "The stream ends with the length of a block, and the block is missing."
        refused(family, f"length-{name}-and-nothing", why, basis, "snappy", lambda data, rest=rest: xerial(data) + rest)
    again = should("SEG-COD-005", flags=("XERIAL",))
    for name, why, compress in (
        ("header-again", "A second xerial stream follows the first: a header is in the place of a block length.", lambda data: b"".join(map(xerial, halves(data)))),
        ("three-headers", "Three xerial streams, each of several blocks.", lambda data: b"".join(xerial(half, 5) for half in halves(data, 3))),
    ):  # fmt: skip
        family.valid(name, why, again, packed("snappy", compress))
    for version, least in ((2, 1), (1, 2), (9, 9)):
        header = XERIAL[:8] + struct.pack(">ii", version, least)
        family.valid(
            f"version-{version}-{least}",
            "A decoder ignores the version numbers in the xerial header.",
            should("SEG-COD-005"),
            packed("snappy", lambda data, header=header: xerial(data, header=header)),
        )
    for count in (1, 2, 3):
        family.valid(
            f"trailing-{count}",
            "A decoder ignores bytes at the end that are too few for a block length.",
            may("SEG-COD-019"),
            packed("snappy", lambda data, count=count: xerial(data) + bytes(count)),
        )
    empty = Batch(base=10, codec="snappy", recs=(), last_delta=2, base_timestamp=-1, max_timestamp=1234, stored=XERIAL)
    for name, why, terms, unit in (
        ("no-block-and-no-record", "A xerial stream without data is a header without a block, as in a batch without records.", should("SEG-COD-003", "SEG-BAT-018"), empty),
        ("trailing-and-no-record", "A header without a block: a decoder also ignores bytes after it that are too few for a block length.",
         may("SEG-COD-019", "SEG-COD-003"), replace(empty, stored=XERIAL + bytes(3))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    literals(family, lambda block: XERIAL + struct.pack(">i", len(block)) + block)
    return family


def literals(family: Family, frame: Callable[[bytes], bytes]) -> None:
    """Add one literal of each size at which its tag changes."""
    for size in (59, 60, 61, 64, 255, 256, 257):
        family.valid(
            f"one-literal-of-{size}",
            "Up to 60 bytes, the tag of a literal has its length; from 61 on, bytes after it do.",
            must("SEG-COD-003", since="0.11"),
            packed("snappy", lambda data: frame(_literal(data)), records_of(size)),
        )


def records_of(size: int) -> tuple[Rec, ...]:
    """Return records that take so many bytes; they fill two records of nearly equal size."""
    for half in range(size // 2, size):
        first = Rec(key=None, value=b"a" * half)
        left = size - len(first.encoded())
        for length in range(max(left - 16, 0), left):
            second = Rec(delta=1, key=None, value=b"b" * length)
            if len(second.encoded()) == left:
                return first, second
    raise ValueError(size)


def _literal(data: bytes) -> bytes:
    """One raw snappy block of one literal."""
    size = len(data) - 1
    width = (size > 59) + (size > 255)  # noqa: PLR2004 - limits of the tag
    tag = bytes([size << 2]) if not width else bytes([59 + width << 2]) + size.to_bytes(width, "little")
    return uvarint(len(data)) + tag + data


def _long_literal(count: int, data: bytes) -> bytes:
    """One raw snappy block of a literal whose length takes so many bytes."""
    return bytes([len(data), 59 + count << 2]) + (len(data) - 1).to_bytes(count, "little") + data


def far_copy(data: bytes) -> bytes:
    """One raw snappy block in which the second of two equal values is a copy with a distance of four bytes."""
    value = bytes(range(32))
    first, second = data.index(value), data.rindex(value)
    rest = data[second + len(value) :]
    copy = bytes([len(value) - 1 << 2 | 3]) + struct.pack("<I", second - first)
    return bytes([len(data), second - 1 << 2]) + data[:second] + copy + bytes([len(rest) - 1 << 2]) + rest


def bare_snappy() -> Family:
    """Family 12."""
    family = Family(
        12,
        "snappy-bare",
        "snappy without a frame",
        "facts 3",
        flags={
            "BARE_SNAPPY": {
                "effect": "Clients in other languages send one raw block. A reader that insists on the xerial header refuses batches that brokers took.",
                "links": [],
            }
        },
    )
    basis = must("SEG-COD-004", flags=("BARE_SNAPPY",))
    literals(family, lambda block: block)
    for name, why, unit in (
        ("three-records", "One raw block.", packed("snappy", snappy_block)),
        ("long", "A raw block of seventy thousand bytes.", packed("snappy", snappy_block, WIDE)),
        ("compressible", "A raw block with copies of all lengths.", packed("snappy", snappy_block, TEXT)),
        ("smallest", "A raw block of less than sixteen bytes: shorter than a xerial header.", packed("snappy", snappy_block, (Rec(key=None, value=b""),))),
        ("seventeen", "A raw block about as long as a xerial header.", packed("snappy", snappy_block, (Rec(key=None, value=b"12345678"),))),
        ("literal-of-two-length-bytes", "A literal whose length takes two bytes, which encoders seldom write.",
         packed("snappy", lambda data: bytes([len(data), 61 << 2]) + struct.pack("<H", len(data) - 1) + data)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    for count, name in ((3, "three"), (4, "four")):
        why = f"A literal whose length takes {name} bytes, as one of a large block does."
        family.valid(f"literal-of-{name}-length-bytes", why, basis, packed("snappy", partial(_long_literal, count)))
    for name, why, unit in (
        ("copy-of-four-distance-bytes", "A copy whose distance takes four bytes, as one across a large block does.",
         packed("snappy", far_copy, (Rec(value=bytes(range(32))), Rec(value=bytes(range(32)))))),
        ("two-literals", "Two literals, one after the other.", packed("snappy", lambda data: bytes([len(data), 4 << 2]) + data[:5] + bytes([len(data) - 6 << 2]) + data[5:])),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    return family


def lz4s() -> Family:
    """Family 13."""
    family = Family(
        13,
        "lz4",
        "lz4: sizes, checksums, blocks, frames",
        "facts 3",
        flags={
            "LZ4_OPTIONS": {
                "effect": "Frames may carry a content size and checksums of blocks and content. Fixed offsets into the header read them as blocks.",
                "links": [],
            },
            "LZ4_FRAMES": {
                "effect": "Brokers and Java clients stop at the first end mark. Another decoder may go on to the next frame; a writer must not rely on it.",
                "links": [],
            },
            "LZ4_LINKED": {
                "effect": "Brokers and Java clients refuse linked blocks. A decoder that reads them is kinder than those, and its users send what others cannot read.",
                "links": [],
            },
            "LZ4_CHECKSUM": {
                "effect": "Brokers up to 4.4 pass over the checksum of the content; other decoders compare it.",
                "links": ["https://issues.apache.org/jira/browse/KAFKA-20528"],
            },
        },
    )
    basis = must("SEG-COD-006", "SEG-COD-009")
    options = {"flags": ("LZ4_OPTIONS",)}
    for name, why, terms, unit in (
        ("by-a-broker", "Three records in a stored block, as a broker writes them.", must("SEG-COD-006", source="vector V-11", smoke=True),
         Batch(codec="lz4", stored=bytes.fromhex("04224d186040821a0000800e000000010261000e000a02026b010012000604026b0476760000000000"), **VECTOR)),
        ("packed", "A compressed block, not a stored one.", basis, packed("lz4", lz4_frame, TEXT)),
        ("stored-and-packed", "Stored and compressed blocks in one frame.", basis,
         packed("lz4", lambda data: (lz4_header() + lz4_stored(data[:100]) + lz4_packed(data[100:400]) + lz4_stored(data[400:]) + LZ4_END), TEXT)),
        ("several-full-blocks", "The data is larger than one block of 64 KiB.", basis, packed("lz4", lz4_frame, WIDE)),
        ("many-blocks", "Blocks of five bytes; records continue from one block to the next.", basis,
         packed("lz4", lambda data: (lz4_header() + b"".join(lz4_stored(data[at : at + 5]) for at in range(0, len(data), 5)) + LZ4_END))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    for code, size in ((5, 256), (6, 1024), (7, 4096)):
        family.valid(
            f"blocks-up-to-{size}-kib",
            "The frame header allows larger blocks.",
            basis,
            packed("lz4", lambda data, code=code: lz4_header(block=code << 4) + lz4_packed(data) + LZ4_END, WIDE),
        )
    everything = LZ4_PLAIN | LZ4_CONTENT_CHECKSUM | LZ4_BLOCK_CHECKSUM | LZ4_CONTENT_SIZE
    for name, why, terms, unit in (
        ("content-size", "The frame header contains the content size.", must("SEG-COD-013", **options),
         packed("lz4", lambda data: lz4_header(LZ4_PLAIN | LZ4_CONTENT_SIZE, size=len(data)) + lz4_packed(data) + LZ4_END, TEXT)),
        ("block-checksums", "Each block has a checksum.", must("SEG-COD-012", **options),
         packed("lz4", lambda data: (lz4_header(LZ4_PLAIN | LZ4_BLOCK_CHECKSUM) + lz4_packed(data[:60], checksum=True) + lz4_stored(data[60:], checksum=True) + LZ4_END), TEXT)),
        ("content-checksum", "The frame has a content checksum, which is right.", must("SEG-COD-013", **options),
         packed("lz4", lambda data: lz4_header(LZ4_PLAIN | LZ4_CONTENT_CHECKSUM) + lz4_packed(data) + LZ4_END + xxh32(data), TEXT)),
        ("all-options", "The frame has a content size, block checksums and a content checksum.", must("SEG-COD-012", "SEG-COD-013", **options),
         packed("lz4", lambda data: (lz4_header(everything, size=len(data)) + lz4_packed(data, checksum=True) + LZ4_END + xxh32(data)), TEXT)),
        ("end-mark-with-top-bit", "A block size of 0 ends the frame, also if its top bit marks a stored block.", should("SEG-COD-024"),
         packed("lz4", lambda data: lz4_header() + lz4_stored(data) + struct.pack("<I", 1 << 31))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    for name, junk in (("junk", b"junk"), ("zeros", bytes(8))):
        family.valid(
            f"{name}-behind",
            "A decoder ignores bytes after the end mark.",
            may("SEG-COD-011"),
            packed("lz4", lambda data, junk=junk: lz4_frame(data) + junk),
        )
    _lz4_choices(family)
    _lz4_damage(family)
    return family


def _choice(family: Family, name: str, why: str, basis: Basis, batch: Batch, kinder: str = "delivered") -> None:
    """Bytes that brokers refuse and a kinder decoder may deliver."""
    log, answers = lay([GOOD, batch, batch.follower()])
    family.either(
        name,
        why,
        replace(basis, needs=("magic:2", f"codec:{batch.codec}")),
        log,
        [
            {"branch": "refused", "reject": {"class": "compression"}, "batches": answers[:1]},
            {"branch": kinder, "batches": answers, "consumed": len(log), "tail": None},
        ],
    )


def _lz4_choices(family: Family) -> None:
    for name, why, basis, batch in (
        ("linked-blocks", "The frame header lets blocks refer to earlier ones, as the lz4 tool writes it by default.", should("SEG-COD-006", flags=("LZ4_LINKED",)),
         packed("lz4", lambda data: lz4_header(LZ4_VERSION) + lz4_packed(data) + LZ4_END, TEXT)),
        ("two-frames", "The records continue in a second frame.", should("SEG-COD-011", flags=("LZ4_FRAMES",)), packed("lz4", lambda data: b"".join(map(lz4_frame, halves(data))))),
    ):  # fmt: skip
        _choice(family, name, why, basis, batch)
    for name, frame in (
        ("checksum", lambda data: lz4_header(LZ4_PLAIN | LZ4_CONTENT_CHECKSUM) + lz4_packed(data) + LZ4_END + b"\1\2\3\4"),
        ("size", lambda data: lz4_header(LZ4_PLAIN | LZ4_CONTENT_SIZE, size=len(data) + 1) + lz4_packed(data) + LZ4_END),
    ):  # fmt: skip
        why = f"The content {name} is wrong; brokers do not verify it."
        basis = must("SEG-COD-013", flags=("LZ4_CHECKSUM",))
        batch = packed("lz4", frame, TEXT)
        family.valid(f"wrong-content-{name}", why, basis, GOOD, batch, more=batch.follower())
        for magic in (0, 1):
            inner, since = (Msg(magic=magic),), "0.10" if magic else "0.8.2"
            wrapper = Wrapper(magic=magic, inner=inner, codec="lz4", compress=frame)
            family.valid(f"wrong-content-{name}-in-magic-{magic}", why, replace(basis, since=since), wrapper)


def refused(
    family: Family,
    name: str,
    why: str,
    basis: Basis,
    codec: str,
    compress: Callable[[bytes], bytes],
    recs: tuple[Rec, ...] = (R1, R2, R3),
    options: Json | None = None,
) -> None:
    """Add a batch whose compressed data has to be refused."""
    needs = {*basis.needs, "magic:2", f"codec:{codec}"} - {"codec:none"}
    family.invalid(
        name,
        why,
        replace(basis, needs=tuple(needs)),
        "compression",
        GOOD,
        packed(codec, compress, recs).encoded(),
        options=options,
    )


def _lz4_damage(family: Family) -> None:
    header = should("SEG-COD-006")
    flags = {"version-0": LZ4_INDEPENDENT, "version-2": 0x80 | LZ4_INDEPENDENT, "reserved-bit-1": LZ4_PLAIN | 2}
    for name, value in flags.items():
        why = "The frame header has another version, or a reserved bit is set."
        refused(
            family, name, why, header, "lz4", lambda data, value=value: lz4_header(value) + lz4_packed(data) + LZ4_END
        )
    for block in (0x00, 0x30, 0xC0):
        refused(
            family,
            f"block-descriptor-{block:02x}",
            "The frame header has a block size code that does not exist.",
            header,
            "lz4",
            lambda data, block=block: lz4_header(block=block) + lz4_packed(data) + LZ4_END,
        )
    for name, why, basis, compress in (
        ("wrong-magic", "The first bytes are not the magic number of an lz4 frame.", header, lambda data: b"\x05" + lz4_frame(data)[1:]),
        ("legacy-frame", "A legacy frame of the lz4 tool, which brokers refuse.", header, lambda data: bytes.fromhex("02214c18") + lz4_packed(data)),
        ("skippable-frame-first", "A skippable frame precedes the lz4 frame.", header, lambda data: bytes.fromhex("502a4d1804000000") + b"skip" + lz4_frame(data)),
        ("wrong-block-checksum", "The checksum of a block is wrong.", should("SEG-COD-012"), lambda data: lz4_header(LZ4_PLAIN | LZ4_BLOCK_CHECKSUM) + lz4_stored(data) + b"\1\2\3\4" + LZ4_END),
    ):  # fmt: skip
        refused(family, name, why, basis, "lz4", compress)
    big = (Rec(value=bytes(range(256)) * 300),)
    for name, why, compress in (
        ("stored-block-too-large", "A stored block is larger than the frame header allows.", lambda data: lz4_header() + lz4_stored(data) + LZ4_END),
        ("packed-block-too-large", "A block decompresses to more bytes than the frame header allows.", lambda data: lz4_header() + lz4_packed(data) + LZ4_END),
    ):  # fmt: skip
        refused(family, name, why, should("SEG-COD-009"), "lz4", compress, big)
    for name, why, rule, compress in (
        ("no-end-mark", "The frame ends without its end mark: cut between two blocks.", "SEG-COD-010", lambda data: lz4_header() + lz4_packed(data)),
        ("block-past-the-end", "A block size is larger than the rest of the data.", "SEG-COD-009", lambda data: lz4_header() + struct.pack("<I", len(data) + 1 | 1 << 31) + data),
    ):  # fmt: skip
        refused(family, name, why, should(rule), "lz4", compress)


def lz4_headers() -> Family:
    """Family 14."""
    family = Family(
        14,
        "lz4-header-checksum",
        "The header checksum of lz4 in magic 0",
        "facts 3",
        flags={
            "LZ4_HC": {
                "effect": "Magic 0 has a wrong header checksum in every frame ever written. A reader that checks it cannot read old topics; one that writes it "
                "into magic 1 or 2 is refused by everybody.",
                "links": ["https://issues.apache.org/jira/browse/KAFKA-3160"],
            }
        },
    )
    inner0 = (
        Msg(magic=0, offset=10, key=None, value=b"a"),
        Msg(magic=0, offset=11, value=None),
        Msg(magic=0, offset=12, value=b"vv"),
    )
    old = {"flags": ("LZ4_HC",), "since": "0.8.2"}
    v_03 = bytes.fromhex(
        "04224d1860401a4600000012000100f2050a0000000f51df3a320000ffffffff00000001611a0020000b1b0041908204f6100023016b2000000200900c0000001189e880140d009000016b00000002767600000000"
    )
    family.valid(
        "magic-0-by-a-broker",
        "A wrapper as brokers write it.",
        must("SEG-COD-008", source="vector V-03", **old),
        Wrapper(magic=0, inner=inner0, codec="lz4", compress=lambda _: v_03),
    )
    for name, mark in (("right", b"\x82"), ("zero", b"\0"), ("any", b"\x5a")):
        family.valid(
            f"magic-0-{name}",
            "In magic 0, readers do not verify the header checksum.",
            must("SEG-COD-008", **old),
            Wrapper(
                magic=0,
                inner=inner0,
                codec="lz4",
                compress=lambda data, mark=mark: lz4_header()[:6] + mark + lz4_frame(data)[7:],
            ),
        )
    inner1 = (
        Msg(offset=0, key=None, value=b"a"),
        Msg(offset=1, value=None, timestamp=1005),
        Msg(offset=2, value=b"vv", timestamp=1003),
    )
    v_04 = bytes.fromhex(
        "04224d186040824e0000001600010063178a65e96d011000b303e8ffffffff00000001611200001a005017ad111ced09000002002003ed1f00136b2800000200950200000019dc8f4bab2300c0eb000000016b00000002767600000000"
    )
    new = {"flags": ("LZ4_HC",), "since": "0.10"}
    for name, why, basis, unit in (
        ("magic-0-broken-variant", "A frame that another encoder wrote has the wrong header checksum of magic 0.", must("SEG-COD-008", **old),
         Wrapper(magic=0, inner=inner0, codec="lz4", compress=lz4_frame_v0)),
        ("magic-1-by-a-broker", "A wrapper of magic 1 with the right checksum.", must("SEG-COD-007", source="vector V-04", **new),
         Wrapper(offset=12, inner=inner1, offsets=(10, 11, 12), codec="lz4", compress=lambda _: v_04)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    wrong = Wrapper(offset=12, inner=inner1, codec="lz4", compress=lz4_frame_v0).encoded()
    family.invalid(
        "magic-1-broken-variant",
        "The wrong header checksum of magic 0 is an error in magic 1.",
        must("SEG-COD-007", needs=("magic:1", "codec:lz4"), **new),
        "compression",
        Msg(offset=3),
        wrong,
        more=Msg(offset=90),
    )
    for name, compress in (
        ("broken-variant", lz4_frame_v0),
        ("zero", lambda data: lz4_header()[:6] + b"\0" + lz4_frame(data)[7:]),
    ):
        why = "A wrong header checksum in a record batch."
        refused(family, f"magic-2-{name}", why, must("SEG-COD-007", flags=("LZ4_HC",)), "lz4", compress)
    refused(
        family,
        "magic-2-with-content-size",
        "The header checksum has to cover the content size; this one does not.",
        must("SEG-COD-007", flags=("LZ4_HC",)),
        "lz4",
        lambda data: (
            lz4_header(LZ4_PLAIN | LZ4_CONTENT_SIZE, size=len(data))[:14]
            + lz4_header(LZ4_PLAIN | LZ4_CONTENT_SIZE)[6:]
            + lz4_packed(data)
            + LZ4_END
        ),
    )
    return family


def zstds() -> Family:
    """Family 15."""
    family = Family(
        15,
        "zstd",
        "zstd: no content size, frames",
        "facts 3",
        flags={
            "ZSTD_STREAM": {
                "effect": "Kafka streams: no content size in the frame. A decoder that allocates by that size finds none, or takes 0 for it.",
                "links": [],
            },
            "ZSTD_SKIPPABLE": {
                "effect": "The library behind the Java client takes the end of the data for the end of the frame; others refuse it.",
                "links": [],
            },
            "ZSTD_FRAMES": {
                "effect": "A one-shot decoder may stop after the first frame, and the records behind it are lost.",
                "links": [],
            },
        },
    )
    basis = must("SEG-COD-014", flags=("ZSTD_STREAM",), since="2.1")
    plain = must("SEG-COD-014", since="2.1")
    for name, why, terms, unit in (
        ("by-a-broker", "Three records as a broker writes them: no content size, an empty last block.",
         must("SEG-COD-014", flags=("ZSTD_STREAM",), since="2.1", source="vector V-12", smoke=True), Batch(codec="zstd", stored=V_12, **VECTOR)),
        ("streamed", "A frame without a content size.", basis, packed("zstd", zstd, LONG)),
        ("streamed-long", "Seventy thousand bytes without a content size.", basis, packed("zstd", zstd, WIDE)),
        ("content-size", "A frame with its content size.", plain, packed("zstd", lambda data: zstd(data, size=True), LONG)),
        ("content-size-long", "The content size of the frame takes four bytes.", plain, packed("zstd", lambda data: zstd(data, size=True), WIDE)),
        ("checksum", "A frame with a content checksum.", plain, packed("zstd", lambda data: zstd(data, checksum=True), LONG)),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    for level in (1, 19):
        family.valid(
            f"level-{level}",
            "The encoder chooses the compression level; a decoder reads all of them.",
            plain,
            packed("zstd", lambda data, level=level: zstd(data, level=level), LONG),
        )
    rle = Rec(key=None, value=b"\0" * 200)
    for name, why, unit in (
        ("raw-block", "A block that is not compressed.", packed("zstd", zstd_raw)),
        ("three-raw-blocks", "Three raw blocks; records continue from one block to the next.",
         packed("zstd", lambda data: (ZSTD_MAGIC + b"\0\x58" + zstd_block(data[:7], last=False) + zstd_block(data[7:20], last=False) + zstd_block(data[20:])))),
        ("single-segment", "A single-segment frame has no window size; its content size takes one byte.", packed("zstd", lambda data: ZSTD_MAGIC + b"\x20" + bytes([len(data)]) + zstd_block(data))),
        ("repeated-byte", "An RLE block: one byte, repeated many times.",
         packed("zstd", lambda data: (ZSTD_MAGIC + b"\0\x58" + zstd_block(data[:-201], last=False) + ((201 << 3) | 3).to_bytes(3, "little") + b"\0"), (rle,))),
    ):  # fmt: skip
        family.valid(name, why, plain, unit)
    frames = must("SEG-COD-015", flags=("ZSTD_FRAMES",), since="2.1")
    for count in (2, 5):
        family.valid(
            f"frames-{count}",
            "Several frames; a record continues from one to the next.",
            frames,
            packed("zstd", lambda data, count=count: b"".join(map(zstd, halves(data, count)))),
        )
    skippable = bytes.fromhex("502a4d1804000000") + b"skip"
    skip = should("SEG-COD-023", flags=("ZSTD_FRAMES",), since="2.1")
    for name, why, terms, unit in (
        ("frames-with-sizes", "Several frames, each with its content size.", frames, packed("zstd", lambda data: b"".join(zstd(half, size=True) for half in halves(data, 3)), LONG)),
        ("frames-of-both-kinds", "One frame has a content size, the next has none.", frames, packed("zstd", lambda data: zstd(halves(data)[0], size=True) + zstd(halves(data)[1]), LONG)),
        ("empty-frame-first", "An empty frame precedes the frame with the records.", frames, packed("zstd", lambda data: zstd_raw(b"") + zstd(data))),
        ("empty-frame-last", "An empty frame follows the frame with the records.", frames, packed("zstd", lambda data: zstd(data) + zstd_raw(b""))),
        ("skippable-first", "A skippable frame precedes the records; a decoder ignores it.", skip, packed("zstd", lambda data: skippable + zstd(data))),
        ("skippable-between", "A skippable frame is between two frames with records.", skip, packed("zstd", lambda data: zstd(halves(data)[0]) + skippable + zstd(halves(data)[1]))),
        ("skippable-last", "A skippable frame with another magic number follows the records.", skip, packed("zstd", lambda data: zstd(data) + b"\x5f" + skippable[1:])),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    _zstd_damage(family, plain)
    return family


def _zstd_damage(family: Family, basis: Basis) -> None:
    why = "The content checksum of the frame is wrong."
    refused(family, "wrong-checksum", why, basis, "zstd", lambda data: zstd(data, checksum=True)[:-1] + b"\x99", LONG)
    for name, why, terms, compress in (
        ("wrong-content-size", "The frame contains less data than its content size says.", basis, lambda data: ZSTD_MAGIC + b"\x20" + bytes([len(data) + 1]) + zstd_block(data)),
        ("no-last-block", "No block is marked as the last.", basis, lambda data: ZSTD_MAGIC + b"\0\x58" + zstd_block(data, last=False)),
        ("junk-behind", "Bytes after the last frame do not begin another frame.", should("SEG-COD-014", since="2.1"), lambda data: zstd(data) + b"junk"),
        ("reserved-block-type", "A block of a type that does not exist.", basis, lambda data: ZSTD_MAGIC + b"\0\x58" + ((len(data) << 3) | 7).to_bytes(3, "little") + data),
        ("reserved-bit", "A reserved bit of the frame header is set.", basis, lambda data: ZSTD_MAGIC + b"\x08\x58" + zstd_block(data)),
        ("dictionary", "The frame requires a dictionary.", must("SEG-COD-021", since="2.1"), lambda data: ZSTD_MAGIC + b"\x01\x58\x07" + zstd_block(data)),
        ("window-256-mib", "A window that makes a decoder set aside 256 MiB for three records.", should("SEG-COD-022", since="2.1"), lambda data: ZSTD_MAGIC + b"\0\x90" + zstd_block(data)),
        ("window-of-terabytes", "The frame header has the greatest possible window size.", should("SEG-COD-022", since="2.1"), lambda data: ZSTD_MAGIC + b"\0\xff" + zstd_block(data)),
        ("content-size-of-2-62", "The content size is larger than the memory of any machine.", should("SEG-COD-014", since="2.1"),
         lambda data: ZSTD_MAGIC + b"\xe0" + struct.pack("<Q", 2**62) + zstd_block(data)),
    ):  # fmt: skip
        refused(family, name, why, terms, "zstd", compress)
    _choice(
        family,
        "skippable-cut",
        "After whole records, the data ends before the end of a skippable frame.",
        should("SEG-COD-023", flags=("ZSTD_SKIPPABLE",), since="2.1"),
        packed("zstd", lambda data: zstd(data) + bytes.fromhex("502a4d18ff000000") + b"skip"),
    )
    strict = should("SEG-COD-023", flags=("ZSTD_SKIPPABLE",), since="2.1", needs=("strictFrames",))
    for name, start in (
        ("content", "502a4d18ff000000"),
        ("content-by-one", "502a4d1805000000"),
        ("size", "502a4d18ff"),
    ):
        bad = bytes.fromhex(start) + (b"" if name == "size" else b"skip")
        why = "The data ends inside a skippable frame; a strict decoder refuses that."
        refused(family, f"skippable-cut-in-its-{name}", why, strict, "zstd", lambda data, bad=bad: zstd(data) + bad)
    refused(
        family,
        "content-size-beyond-the-limit",
        "The content size is above the limit, the content is not: the frame is refused before it is decompressed.",
        may("SEG-COD-016", since="2.1", needs=("limit",)),
        "zstd",
        lambda data: ZSTD_MAGIC + b"\x60" + (60000 - 256).to_bytes(2, "little") + zstd(data)[6:],
        LONG,
        {"limit": 20000},
    )


def mixed() -> Family:
    """Family 16."""
    family = Family(
        16,
        "mixed-magic",
        "Several batches, magic and codec changing inside",
        "facts 2.1",
        flags={
            "MIXED_MAGIC": {
                "effect": "The format of a topic could be changed while it lived. Who looks at the magic of the first entry only reads the rest as that.",
                "links": [],
            }
        },
    )
    basis = must("SEG-LOG-011", flags=("MIXED_MAGIC",))

    def entry(magic: int, offset: int) -> Msg | Batch:
        return Batch(base=offset, recs=(R1, R2)) if magic == 2 else Msg(magic=magic, offset=offset)  # noqa: PLR2004 - a magic

    for order in ((0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 2, 1, 2), (2, 0, 2, 0)):
        log = [entry(magic, 10 * at) for at, magic in enumerate(order)]
        why = "The magic changes inside a log: a reader has to read each entry by its own magic."
        family.valid("magic-" + "-".join(map(str, order)), why, basis, *log)
    inner = (Msg(offset=0), Msg(offset=1))
    wrapper = Wrapper(offset=3, inner=inner, offsets=(2, 3), compress=gzip)
    old = Wrapper(magic=0, inner=(Msg(magic=0, offset=0), Msg(magic=0, offset=1)), compress=gzip)
    every = [packed(codec, compress, base=3 * at) for at, (codec, compress) in enumerate(COMPRESSORS.items())]
    for name, why, terms, *units in (
        ("wrappers-then-batches", "Wrappers of both magics, then a compressed batch.", basis, old, wrapper, packed("gzip", gzip, base=4)),
        ("batches-then-wrappers", "A batch, then wrappers, as after a downgrade.", basis, packed("gzip", gzip, base=0), replace(wrapper, offset=6, offsets=(5, 6)), Msg(offset=7)),
        ("every-codec", "Each producer chooses its own codec.", must("SEG-COD-001", "SEG-LOG-001"), Batch(base=0, recs=(R1,)), *[replace(one, base=one.base + 1) for one in every]),
        ("compressed-and-plain", "Plain batches between compressed ones.", must("SEG-COD-001"), packed("zstd", zstd, base=0), Batch(base=3), packed("lz4", lz4_frame, base=4), Batch(base=7)),
        ("reading-goes-on-after-a-long-one", "A long compressed batch between short ones.", must("SEG-LOG-001"), Batch(base=0), packed("gzip", gzip, WIDE, base=1), packed("snappy", xerial, base=2)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    for codec, compress in COMPRESSORS.items():
        single = packed(codec, compress, (Rec(key=None, value=None),), base=0)
        gone = replace(
            packed(codec, compress, base=0), recs=(replace(R2, delta=4), replace(R3, delta=9)), last_delta=12
        )
        headers = (Rec(headers=((b"a", None), (b"", b"x"))), Rec(key=None))
        for name, why, terms, unit in (
            (f"{codec}-one-record", "A batch of one record, which compression makes larger.", must("SEG-COD-001"), single),
            (f"{codec}-compacted", "A compressed batch that lost records and was compressed again.", must("SEG-REC-012", "SEG-BAT-016"), gone),
            (f"{codec}-headers", "Headers inside compressed data.", must("SEG-REC-010"), packed(codec, compress, headers, base=0)),
        ):  # fmt: skip
            family.valid(name, why, terms, unit)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [gzips(), xerials(), bare_snappy(), lz4s(), lz4_headers(), zstds(), mixed()]
