"""Families 35 and 36: compressed data that no encoder should write, and bombs."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring import codecs
from authoring.batches import Batch, Rec
from authoring.casefile import Basis, Family, must, should
from authoring.codecs import (
    LZ4_END,
    XERIAL,
    ZSTD_MAGIC,
    deflated,
    gzip,
    lz4_frame,
    lz4_header,
    lz4_stored,
    snappy_block,
    xerial,
    zstd,
    zstd_block,
    zstd_raw,
)
from authoring.compressed import LONG, TEXT, halves, packed, refused
from authoring.damage import COMPRESSORS, GOOD
from authoring.messages import Msg, Wrapper
from authoring.plain import R1, R2, R3

if TYPE_CHECKING:
    from collections.abc import Callable

SNAPPY_MAGIC_SIZE = 8
LZ4_HEADER_SIZE = 7
LZ4_SIZE_SIZE = 4


def bad_data() -> Family:
    """Family 35."""
    family = Family(
        35,
        "bad-compression",
        "Unknown codecs, cut streams, garbage",
        "facts 3 and 7",
        flags={
            "CODEC_ID": {
                "effect": "Ids 5 to 7 name no codec. A client that takes them for none hands on compressed bytes, or crashes on them.",
                "links": [],
            },
            "BAD_STREAM": {
                "effect": "The checksum is right, so the batch was written like this. Partial results would be taken for the whole.",
                "links": [],
            },
        },
    )
    unknown = must("SEG-COD-001", flags=("CODEC_ID",), needs=("magic:2",))
    for number in (5, 6, 7):
        for name, why, unit in (
            (f"codec-{number}", "The attributes name a codec that does not exist; the records are not compressed.", Batch(base=10, attributes=number, recs=(R1, R2)).encoded()),
            (f"codec-{number}-transactional", "The attributes name a codec that does not exist, and set other bits.",
             Batch(base=10, attributes=number | 0x10, producer_id=4, producer_epoch=0, base_sequence=0).encoded()),
        ):  # fmt: skip
            family.invalid(name, why, unknown, "compression", GOOD, unit)
        family.invalid(
            f"magic-1-codec-{number}",
            "The attributes of a message of magic 1 name a codec that does not exist.",
            must("SEG-COD-001", flags=("CODEC_ID",), needs=("magic:1",), since="0.10"),
            "compression",
            Msg(offset=3),
            Msg(offset=4, attributes=number).encoded(),
            more=Msg(offset=9),
        )
    basis = must("SEG-COD-002", flags=("BAD_STREAM",))
    starts = {"gzip": "SEG-COD-002", "snappy": "SEG-COD-004", "lz4": "SEG-COD-006", "zstd": "SEG-COD-014"}
    as_records = {"gzip": "SEG-REC-002", "snappy": "SEG-REC-006", "lz4": "SEG-REC-006", "zstd": "SEG-REC-006"}
    for codec, compress in COMPRESSORS.items():
        start = replace(basis, req=(starts[codec],))
        size = len(packed(codec, compress).encoded()) - 61
        for cut in sorted({1, 2, 4, 8, size // 2, size - 8, size - 5, size - 4, size - 2, size - 1}):
            refused(
                family,
                f"{codec}-cut-at-{cut}",
                "The compressed data is cut short; the checksum of the batch is right.",
                _of_a_cut(codec, cut, size, basis),
                codec,
                lambda data, cut=cut, compress=compress: compress(data)[:cut],
            )
        for why, terms, value in (
            (f"{codec}-nothing", "The attributes name a codec and records are counted, but there is no data.", lambda _: b""),
            (f"{codec}-plain-records", "The attributes name a codec, but the records are not compressed.", lambda data: data),
        ):  # fmt: skip
            refused(family, why, terms, start, codec, value)
        for name, junk in (
            ("zeros", bytes(40)),
            ("ones", b"\xff" * 40),
            ("text", b"This is no compressed data at all, is it?"),
        ):
            why = "The attributes name a codec, but the bytes are not compressed data."
            refused(family, f"{codec}-{name}", why, start, codec, lambda _, junk=junk: junk)
        other = COMPRESSORS["gzip" if codec != "gzip" else "zstd"]
        why = "The data was compressed by another codec than the attributes name."
        refused(family, f"{codec}-of-another-codec", why, start, codec, lambda data, other=other: other(data))
        family.invalid(
            f"{codec}-as-none",
            "The data is compressed, but the attributes name no codec.",
            must(as_records[codec], "SEG-REC-001", "SEG-BAT-008", flags=("BAD_STREAM",), needs=("magic:2",)),
            "length",
            GOOD,
            Batch(
                base=10, stored=compress(b"".join(rec.encoded() for rec in (R1, R2, R3))), recs=(R1, R2, R3)
            ).encoded(),
        )
    _bad_gzip(family, basis)
    _bad_snappy(family, replace(basis, req=("SEG-COD-003",)))
    return family


def _bad_gzip(family: Family, basis: Basis) -> None:
    def trailer(change: int, position: int) -> Callable[[bytes], bytes]:
        return lambda data: (whole := gzip(data))[:position] + bytes([whole[position] ^ change]) + whole[position:][1:]

    for why, terms, value in (
        ("gzip-wrong-crc", "The checksum in the trailer is wrong.", trailer(1, -8)),
        ("gzip-wrong-size", "The size in the trailer is wrong.", lambda data: gzip(data)[:-4] + struct.pack("<I", len(data) + 1)),
        ("gzip-wrong-method", "A compression method that is not deflate.", lambda data: b"\x1f\x8b\x09" + gzip(data)[3:]),
    ):  # fmt: skip
        refused(family, why, terms, basis, "gzip", value)
    for why, terms, value in (
        ("gzip-second-member-damaged", "The second member has a wrong checksum.", lambda data: gzip(halves(data)[0]) + trailer(1, -8)(halves(data)[1])),
        ("gzip-second-member-cut", "The second member is cut.", lambda data: gzip(halves(data)[0]) + gzip(halves(data)[1])[:-9]),
    ):  # fmt: skip
        refused(family, why, terms, replace(basis, req=("SEG-COD-002", "SEG-COD-017")), "gzip", value, LONG)
    for why, terms, value in (
        ("gzip-bad-distance", "A deflate distance points before the start of the data.", lambda data: gzip(data, body=bytes.fromhex("4b04120000"))),
        ("zlib-not-gzip", "A zlib stream in place of a gzip one.", lambda data: b"\x78\x9c" + deflated(data) + b"\0\0\0\0"),
    ):  # fmt: skip
        refused(family, why, terms, basis, "gzip", value)


def _of_a_cut(codec: str, cut: int, size: int, basis: Basis) -> Basis:
    """Return what data breaks that was cut: before its header ends, in a block, or before what ends the frame."""
    match codec:
        case "snappy":
            rule = "SEG-COD-004" if cut < SNAPPY_MAGIC_SIZE else "SEG-COD-003"
        case "lz4" if cut < LZ4_HEADER_SIZE:
            rule = "SEG-COD-006"
        case "lz4":
            is_in_block = LZ4_HEADER_SIZE + LZ4_SIZE_SIZE <= cut < size - LZ4_SIZE_SIZE
            rule = "SEG-COD-009" if is_in_block else "SEG-COD-010"
        case _:
            rule = "SEG-COD-002" if codec == "gzip" else "SEG-COD-014"
    return replace(basis, req=(rule,))


def _bad_snappy(family: Family, basis: Basis) -> None:
    def block(raw: bytes) -> bytes:
        return XERIAL + struct.pack(">i", len(raw)) + raw

    rows = {
        "block-too-long": lambda data: XERIAL + struct.pack(">i", 10_000) + snappy_block(data),
        "block-length-negative": lambda data: XERIAL + struct.pack(">i", -1) + snappy_block(data),
        "block-length-2147483647": lambda data: XERIAL + struct.pack(">i", 2**31 - 1) + snappy_block(data),
        "size-too-large": lambda data: block(bytes([len(data) + 5]) + snappy_block(data)[1:]),
        "size-too-small": lambda data: block(bytes([len(data) - 5]) + snappy_block(data)[1:]),
        "size-of-4-gib": lambda data: block(b"\xff\xff\xff\xff\x0f" + snappy_block(data)[1:]),
        "copy-before-the-start": lambda data: block(bytes([len(data)]) + b"\x05\x64"),
        "copy-offset-0": lambda data: block(
            bytes([len(data)]) + bytes([4 << 2]) + data[:5] + bytes([(len(data) - 6) << 2 | 2, 0, 0])
        ),
        "literal-past-the-end": lambda data: block(bytes([len(data)]) + bytes([60 << 2, 200]) + data),
        "block-of-no-bytes": lambda data: XERIAL + bytes(4) + xerial(data, header=b""),
    }
    for name, compress in rows.items():
        why = "A size or copy in the snappy block is impossible; a reader must not allocate memory for such a size."
        refused(family, f"snappy-{name}", why, basis, "snappy", compress)
    for why, terms, offset, value in (
        ("snappy-header-only", "A xerial header without a block decompresses to no bytes, but the batch counts records.", replace(basis, req=("SEG-BAT-008", "SEG-COD-003")), lambda _: XERIAL),
        ("snappy-header-cut", "The data ends inside the xerial header.", basis, lambda _: XERIAL[:12]),
        ("snappy-bare-size-of-4-gib", "A raw block that claims 4 GiB.", replace(basis, req=("SEG-COD-004",)), lambda data: b"\xff\xff\xff\xff\x0f" + snappy_block(data)[1:]),
        ("snappy-cut-between-blocks", "The data is cut off between two snappy blocks: only the records count shows that something is missing.",
         replace(basis, req=("SEG-BAT-008",)), lambda data: xerial(data[:8])),
    ):  # fmt: skip
        refused(family, why, terms, offset, "snappy", value)


def bombs() -> Family:
    """Family 36."""
    family = Family(
        36,
        "bombs",
        "Bombs by ratio, count and nesting",
        "facts 3",
        flags={
            "BOMB": {
                "effect": "A few kilobytes become gigabytes. A consumer that decompresses whatever it gets is stopped by one message of one producer.",
                "links": [],
            }
        },
    )
    small = 2**20
    value = bytes(8 * small)
    for codec, compress in (("gzip", gzip), ("zstd", zstd)):
        why = "Eight mebibytes of zeros in some kilobytes are valid: a high compression ratio is no reason to refuse a batch."
        family.valid(
            f"{codec}-8-mib", why, must("SEG-COD-016", flags=("BOMB",)), packed(codec, compress, (Rec(value=value),))
        )
    for name, why, unit in (
        ("lz4-1-mib", "One mebibyte of zeros is valid with lz4, which compresses to a 255th at best.", packed("lz4", lz4_frame, (Rec(value=bytes(small)),))),
        ("snappy-256-kib", "A quarter of a mebibyte of zeros is valid with snappy.", packed("snappy", xerial, (Rec(value=bytes(small // 4)),))),
    ):  # fmt: skip
        family.valid(name, why, must("SEG-COD-016", flags=("BOMB",)), unit)
    _limits(family)
    hostile = should("SEG-COD-016", flags=("BOMB",))

    def bomb(name: str, why: str, codec: str, stored: bytes, count: int = 1) -> None:
        batch = Batch(base=10, codec=codec, stored=stored, recs=(), count=count, last_delta=count - 1).encoded()
        family.survive(
            name, why, replace(hostile, needs=("magic:2", f"codec:{codec}")), GOOD, batch, GOOD.follower(2**32)
        )

    rle = (128 * 1024 << 3 | 2).to_bytes(3, "little") + b"\0"
    gigabytes = codecs.kept("gzip-64-mib", b"64 MiB of zeros", lambda _: deflated_zeros(64))
    for name, why, codec, stored in (
        ("zstd-of-1-gib", "A gibibyte of zeros in 32 kilobytes. A reader that decompresses piece by piece stops at the first record.", "zstd", ZSTD_MAGIC + b"\0\x58" + rle * 8192 + zstd_block(b"")),
        ("gzip-of-64-mib", "Sixty-four mebibytes of zeros in 64 kilobytes.", "gzip", codecs.GZIP_HEADER + gigabytes + struct.pack("<II", 0, 64 * small)),
        ("gzip-many-members", "Two thousand empty gzip members.", "gzip", gzip(b"") * 2000),
        ("snappy-many-empty-blocks", "Ten thousand empty snappy blocks.", "snappy", XERIAL + b"\0\0\0\1\0" * 10_000),
        ("snappy-many-headers", "A thousand xerial headers and no block.", "snappy", XERIAL * 1000),
        ("zstd-many-frames", "Three thousand empty zstd frames.", "zstd", zstd_raw(b"") * 3000),
        ("zstd-many-skippable", "Three thousand skippable zstd frames and no other.", "zstd", bytes.fromhex("502a4d1800000000") * 3000),
        ("lz4-many-blocks", "A thousand stored lz4 blocks of one byte.", "lz4", lz4_header() + lz4_stored(b"\0") * 1000 + LZ4_END),
    ):  # fmt: skip
        bomb(name, why, codec, stored)
    for name, why, codec, stored in (
        ("records-of-nothing", "The records count is 2147483647 over a stream of zeros: a careless reader loops for hours or allocates too much.", "zstd",
         ZSTD_MAGIC + b"\0\x58" + rle * 64 + zstd_block(b"")),
        ("gzip-count-2147483647", "The records count is 2147483647 over one compressed record.", "gzip", gzip(R1.encoded())),
    ):  # fmt: skip
        bomb(name, why, codec, stored, 2**31 - 1)
    _nested(family)
    return family


def _limits(family: Family) -> None:
    """Add cases of a limit that the caller sets, where a library takes one."""
    for codec, compress in COMPRESSORS.items():
        batch = packed(codec, compress, TEXT)
        size = len(batch.section())
        basis = must("SEG-COD-016", flags=("BOMB",), needs=("limit",))
        why = "The data decompresses to exactly the caller's limit: the reader delivers it."
        family.valid(f"limit-{codec}-exact", why, basis, batch, options={"limit": size})
        basis = must("SEG-COD-016", flags=("BOMB",), needs=("limit", "magic:2", f"codec:{codec}"))
        for limit in (size - 1, 10, 0):
            why = (
                "The data decompresses to more than the caller's limit: the reader refuses it, but does not "
                "report damage."
            )
            family.invalid(
                f"limit-{codec}-{limit}", why, basis, "limit", GOOD, batch.encoded(), options={"limit": limit}
            )


def deflated_zeros(mebibytes: int) -> bytes:
    """Raw deflate data of so many mebibytes of zeros."""
    import zlib  # noqa: PLC0415 - it is made once and then kept

    coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join(coder.compress(bytes(2**20)) for _ in range(mebibytes)) + coder.flush()


def _nested(family: Family) -> None:
    for magic, since in ((0, "0.8"), (1, "0.10")):
        basis = must("SEG-MSG-010", flags=("BOMB",), needs=(f"magic:{magic}", "codec:gzip"), since=since)
        leaf = Wrapper(magic=magic, offset=0, inner=(Msg(magic=magic),), compress=gzip)
        for depth in (2, 3, 20):
            inner = leaf.encoded()
            for _ in range(depth - 1):
                outer = inner
                inner = Wrapper(
                    magic=magic, offset=0, inner=(Msg(magic=magic),), compress=lambda _, outer=outer: gzip(outer)
                ).encoded()
            family.invalid(
                f"magic-{magic}-nested-{depth}",
                "A wrapper inside a wrapper: a reader that unwraps without a limit runs out of stack or memory.",
                basis,
                "compression",
                Msg(magic=magic),
                inner,
                more=Msg(magic=magic, offset=9),
            )


def families() -> list[Family]:
    """All of this module."""
    return [bad_data(), bombs()]
