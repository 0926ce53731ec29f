"""The other half of family 51: counts, sizes and damage of all sizes, and logs whose numbers are at their limits."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from authoring.batches import COUNT, HEADER_SIZE, LENGTH, Batch, Rec, sealed, with_field
from authoring.casefile import Basis, Family, Json, features, hexed, lay, must, should
from authoring.codecs import (
    GZIP_HEADER,
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_CONTENT_SIZE,
    LZ4_END,
    LZ4_PLAIN,
    XERIAL,
    gzip,
    lz4_frame,
    lz4_header,
    lz4_stored,
    xerial,
    xxh32,
    zstd,
    zstd_raw,
)
from authoring.compressed import packed, records_of, refused
from authoring.control import data, empty, marker
from authoring.encodings import add_encoding
from authoring.messages import Msg, Wrapper
from authoring.primitives import crc32, flipped, replaced, sized, uvarint, varint
from authoring.producers import batch as produced
from authoring.producers import opened
from authoring.producers import sent as produced_again
from authoring.segments import aborted, bytes_of, name_of, offset_index, row, time_index
from authoring.written import entry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from authoring.casefile import Unit

Files = dict[str, bytes]

FLAGS: Final[dict[str, Json]] = {
    "ALL_SIZES": {
        "effect": "A check that is made of small batches alone, or a codec that is right for one block, fails when a batch has more than 64 KiB.",
        "links": [],
    },
    "OUT_OF_RANGE": {
        "effect": "The text says that the offset is out of range, and a read of it is an error. A lookup that has no batch to name answers nothing or refuses it.",
        "links": [],
    },
    "NO_OFFSET_AFTER": {
        "effect": "The offset after the greatest one has no place in 64 bits: it comes out negative, or a check of it refuses what can be read.",
        "links": [],
    },
    "OFTEN_ONCE": {
        "effect": "What occurs once in most logs occurs twice in some: a key of a header, a sequence, a transaction from offset 0 on.",
        "links": [],
    },
}
SIZED: Final = ("ALL_SIZES",)
OFTEN: Final = ("OFTEN_ONCE",)
KIB: Final = 1024
LARGE: Final = 70_000
"""Bytes of what is more than 64 KiB."""
PACKED: Final = {"gzip": gzip, "snappy": xerial, "lz4": lz4_frame, "zstd": zstd}


# -- sizes of compressed data -----------------------------------------------------------------------------------------


def gzip_stored(content: bytes) -> bytes:
    """Return a gzip member that is as large as its content."""
    pieces = [content[at : at + 65535] for at in range(0, len(content), 65535)]
    blocks = [
        bytes([at == len(pieces) - 1]) + struct.pack("<HH", len(piece), len(piece) ^ 0xFFFF) + piece
        for at, piece in enumerate(pieces)
    ]
    return GZIP_HEADER + b"".join(blocks) + struct.pack("<II", crc32(content), len(content))


def snappy_stored(content: bytes) -> bytes:
    """Return a xerial stream of blocks that are as large as their content."""
    pieces = [content[at : at + 32768] for at in range(0, len(content), 32768)]
    blocks = [uvarint(len(piece)) + b"\xf4" + struct.pack("<H", len(piece) - 1) + piece for piece in pieces]
    return XERIAL + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def lz4_stored_frame(content: bytes) -> bytes:
    """Return an lz4 frame that is as large as its content."""
    pieces = [content[at : at + 65536] for at in range(0, len(content), 65536)]
    return lz4_header() + b"".join(map(lz4_stored, pieces)) + LZ4_END


STORED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip_stored,
    "snappy": snappy_stored,
    "lz4": lz4_stored_frame,
    "zstd": zstd_raw,
}
"""Codecs of which the output is not smaller than the input, so that a batch is large on disk."""
BLOCKS: Final = {"one-block": 64 * KIB, "two-blocks": 64 * KIB + 1, "many-blocks": 300_000}
BLOCKS |= {"half-a-block": 32 * KIB, "half-a-block-and-1": 32 * KIB + 1, "two-blocks-and-1": 128 * KIB + 1}
"""Bytes of the records section: of one, two and five blocks of lz4, and of more blocks of snappy."""
SCALED: Final = {"1-mebibyte": 1 << 20, "2-mebibytes": 2 << 20}
"""The same, for the family that takes minutes."""


def compressed(family: Family, sizes: dict[str, int], decode: Callable[..., None]) -> None:
    """Add what a decoder reads and an encoder writes in every codec, with one block, two and many.

    Args:
        family: that gets the cases.
        sizes: of the records sections, by name.
        decode: adds a case of decoding: name, reason, terms, batch.
    """
    for name, size in sizes.items():
        recs = records_of(size)
        for codec, compress in {"none": None, **PACKED}.items():
            rule = must("SEG-COD-001", "SEG-REC-006", flags=family_flags(family))
            batch = Batch(leader_epoch=-1, recs=recs, codec=codec, compress=compress)
            why = f"A records section of {size} bytes, which is {name.replace('-', ' ')} of lz4."
            decode(f"decode-{codec}-{name}", why, rule, batch)
            add_encoding(family, f"encode-{codec}-{name}", why, rule, batch, exact=False)


def family_flags(family: Family) -> tuple[str, ...]:
    """Return the flag of cases of all sizes, as a family has it."""
    return SIZED if "ALL_SIZES" in family.flags else ("SCALE",)


def incompressible(family: Family) -> None:
    """Add what an encoder writes of bytes that no codec makes smaller."""
    for codec, compress in PACKED.items():
        for size in (1000, 100_000):
            recs = (Rec(key=None, value=b""),)
            basis = must("SEG-COD-001", "SEG-BAT-003", flags=SIZED)
            batch = Batch(leader_epoch=-1, recs=recs, codec=codec, compress=compress)
            name = f"encode-{codec}-noise-{size}"
            add_encoding(
                family, name, "No codec makes this value smaller: it may stay as it is.", basis, batch, exact=False
            )
            case = family.cases[-1]
            noise = {"noise": name, "size": size}
            case["request"]["batches"][0]["records"][0]["value"] = noise
            (written,) = case["expect"]["batches"]
            written["records"][0]["value"] = noise
            branches = {"compressed": written, "as it is": {**written, "codec": "none"}}
            case["result"] = "acceptable"
            case["expect"] = {"allowed": [{"branch": name, "batches": [one]} for name, one in branches.items()]}


def lz4_options(family: Family) -> None:
    """Add what ends or breaks a frame, under each option of its header: alone, and all together."""
    options = (0, LZ4_BLOCK_CHECKSUM, LZ4_CONTENT_CHECKSUM, LZ4_CONTENT_SIZE)
    for option in (*options, sum(options)):

        def frame(
            content: bytes, *, size: int = 65536, bits: int = 0, end: bytes = LZ4_END, option: int = option
        ) -> bytes:
            checks = bool(option & LZ4_BLOCK_CHECKSUM)
            blocks = (lz4_stored(content[at : at + size], checksum=checks) for at in range(0, len(content), size))
            stated = len(content) if option & LZ4_CONTENT_SIZE else None
            behind = xxh32(content) if option & LZ4_CONTENT_CHECKSUM else b""
            return lz4_header(LZ4_PLAIN | option | bits, size=stated) + b"".join(blocks) + end + behind

        name = f"decode-lz4-options-{option:02x}"
        ends, top = must("SEG-COD-024", flags=SIZED), struct.pack("<I", 1 << 31)
        for kind, section in (("one-block", 1000), ("full-block", 65536), ("two-blocks", 65537)):
            batch = packed("lz4", partial(frame, end=top), records_of(section))
            family.valid(
                f"{name}-top-bit-{kind}", "A block size of 0 ends the frame, also with its top bit.", ends, batch
            )
        large, header = should("SEG-COD-009", flags=SIZED), should("SEG-COD-006", flags=SIZED)
        for more in (1, 1000):
            refused(family, f"{name}-block-of-65536-and-{more}", "A stored block is larger than the header allows.", large, "lz4", partial(frame, size=1 << 20), records_of(65536 + more))  # fmt: skip
        for bits in (1, 2):
            refused(family, f"{name}-reserved-{bits}", "A reserved bit of the header is set, or a dictionary announced.", header, "lz4", partial(frame, bits=bits))  # fmt: skip


# -- damage -----------------------------------------------------------------------------------------------------------

GOOD: Final = Batch()
CONTENTS: Final = {"small": 30, "large": LARGE}


def holding(size: int, codec: str, **more: Any) -> Batch:  # noqa: ANN401 - fields of Batch
    """Return a batch of three records, the second of which has a value of a size."""
    recs = (Rec(key=b"a"), Rec(key=b"b", value=b"v" * size), Rec(key=b"c"))
    return Batch(base=1, recs=recs, codec=codec, compress=STORED.get(codec), **more)


def damaged(family: Family) -> None:
    """Add damage of one bit, and wrong lengths, in small batches and in large ones."""
    flips = must("SEG-BAT-003", flags=SIZED, needs=("crc", "magic:2"))
    for label, size in CONTENTS.items():
        for codec in ("none", *STORED):
            whole = holding(size, codec).encoded()
            bytes_hit = {"first": HEADER_SIZE, "middle": (HEADER_SIZE + len(whole)) // 2, "last": len(whole) - 1}
            for which, position in bytes_hit.items():
                why = f"One bit of the {which} byte of the records of a {label} batch was changed."
                needs = (*flips.needs, *((f"codec:{codec}",) if codec != "none" else ()))
                basis = replace(flips, needs=needs)
                family.invalid(
                    f"decode-flip-{label}-{codec}-{which}", why, basis, "crc", GOOD, flipped(whole, position)
                )
        whole = holding(size, "none").encoded()
        _wrong_lengths(family, label, whole)
        _left_over(family, label, size)
        _damage_in_files(family, label, whole)


def _wrong_lengths(family: Family, label: str, whole: bytes) -> None:
    for name, change in (("short", -1), ("long", 1)):
        wrong = replaced(whole, LENGTH[0], "i", len(whole) - 12 + change)
        basis = must("SEG-BAT-003", flags=SIZED, needs=("crc", "magic:2"))
        why = f"The length of a {label} batch is one byte too {name}."
        family.invalid(f"decode-length-{label}-{name}", why, basis, "crc", GOOD, wrong)
        counted = with_field(whole, COUNT, 3 + change)
        rule = must("SEG-BAT-008", flags=SIZED, needs=("magic:2",))
        why = f"The records count of a {label} batch is one too {'many' if change > 0 else 'few'}."
        family.invalid(f"decode-count-{label}-{name}", why, rule, "count", GOOD, counted)
    batch = holding(CONTENTS[label], "none")
    for name, change in (("short", -1), ("long", 1)):
        body = batch.placed[1].body()
        stored = [one.encoded() for one in batch.placed]
        stored[1] = varint(len(body) + change) + body
        why = f"The length of a record in a {label} batch is one byte too {name}."
        rule = must("SEG-REC-001", flags=SIZED, needs=("magic:2",))
        family.invalid(f"decode-record-length-{label}-{name}", why, rule, "length", GOOD, replace(batch, stored=b"".join(stored)).encoded())  # fmt: skip


def _left_over(family: Family, label: str, size: int) -> None:
    """Add bytes that are left over inside a batch, behind its last record."""
    for codec in ("none", *PACKED):
        for name, rest in (("byte", b"\0"), ("many", b"\0" * size), ("record", sized(Rec(delta=3).body()))):
            if name == "record" and label == "large":
                continue
            batch = Batch(base=1, recs=(Rec(key=b"a"), Rec(key=b"b")), codec=codec)
            section = batch.section() + rest
            stored = section if codec == "none" else PACKED[codec](section)
            needs = ("magic:2", *((f"codec:{codec}",) if codec != "none" else ()))
            basis = must("SEG-BAT-008", flags=SIZED, needs=needs)
            why = "Bytes are left over inside a batch, behind its last record."
            family.invalid(f"decode-left-over-{label}-{codec}-{name}", why, basis, "count", GOOD, replace(batch, stored=stored).encoded())  # fmt: skip
    batch = Batch(recs=(Rec(), Rec()), leader_epoch=-1)
    extra = sealed(batch.encoded() + b"\0" * size)
    request = {"data": extra.hex(), "policy": "append", "now": "1000", "config": {}}
    family.add(f"append-left-over-{label}", "validate", "invalid", "A leader refuses a batch with bytes behind its last record.", must("SEG-BAT-008", flags=SIZED), request=request, expect={"reject": {"class": "policy"}})  # fmt: skip


def _damage_in_files(family: Family, label: str, whole: bytes) -> None:
    """Add damage to a batch of a segment, and to one that is appended."""
    units = [GOOD, Batch(base=1, recs=holding(CONTENTS[label], "none").recs), Batch(base=4)]
    log = bytes_of(units)
    first = len(GOOD.encoded())
    for which, position in {"first": HEADER_SIZE, "middle": (HEADER_SIZE + len(whole)) // 2, "last": len(whole) - 1}.items():  # fmt: skip
        broken = flipped(log, first + position)
        files = {name_of(0): broken}
        why = f"One bit of a {label} batch was changed: recovery cuts the log before it."
        request = {"files": hexed(files), "options": {"indexIntervalBytes": 100}}
        expect = {"nextOffset": "1", "files": {name_of(0): GOOD.encoded().hex()}, "truncatedBytes": len(log) - first}
        family.add(f"recover-flip-{label}-{which}", "recover", "valid", why, must("SEG-RCV-003", flags=SIZED), request=request, expect=expect)  # fmt: skip
        sent = Batch(leader_epoch=-1, recs=holding(CONTENTS[label], "none").recs).encoded()
        for policy in ("append", "replicate"):
            request = {"data": flipped(sent, position).hex(), "policy": policy, "now": "1000", "config": {}}
            needs = (f"policy:{policy}",)
            why = f"One bit of a {label} batch was changed: it is not appended."
            family.add(f"{policy}-flip-{label}-{which}", "validate", "invalid", why, must("SEG-BAT-003", flags=SIZED, needs=needs), request=request, expect={"reject": {"class": "crc"}})  # fmt: skip
    needs = ("policy:replicate",)
    sent = Batch(leader_epoch=0, recs=holding(CONTENTS[label], "none").recs).encoded()
    request = {"data": sent.hex(), "policy": "replicate", "now": "1000", "config": {}}
    family.add(f"replicate-{label}", "validate", "valid", f"A follower appends a {label} batch as it is.", must("SEG-BAT-003", flags=SIZED, needs=needs), request=request, expect={"accept": True})  # fmt: skip


# -- repeated keys of headers -----------------------------------------------------------------------------------------


def repeated_headers(family: Family) -> None:
    """Add headers with equal keys, which an encoder has to write all of, in their order."""
    rows: dict[str, tuple[tuple[bytes, bytes | None], ...]] = {
        "twice": ((b"h", b"1"), (b"h", b"2")),
        "equal": ((b"h", b"1"), (b"h", b"1")),
        "apart": ((b"h", b"1"), (b"g", b"2"), (b"h", b"3")),
        "with-null": ((b"h", None), (b"h", b""), (b"h", b"1"), (b"h", None)),
        "empty-key": ((b"", b"1"), (b"", b"2")),
        "not-sorted": ((b"b", b"1"), (b"a", b"2"), (b"b", b"3"), (b"a", b"4")),
    }
    basis = must("SEG-REC-010", flags=OFTEN)
    for name, headers in rows.items():
        batch = Batch(leader_epoch=-1, recs=(Rec(headers=headers), Rec(), Rec(headers=headers[::-1])))
        add_encoding(family, f"encode-headers-{name}", "Headers may have equal keys: all of them are written, in their order.", basis, batch)  # fmt: skip


# -- logs whose numbers are at their limits ---------------------------------------------------------------------------

SMALL_LIMITS: Final = (127, 128, 255, 256, 32767, 32768, 65535, 65536)
INT32_MAX: Final = 2**31 - 1
TIMES: Final = (127, 128, 255, 256, 65535, 65536, INT32_MAX, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1)
BASES: Final = (
    127,
    128,
    32767,
    32768,
    65535,
    65536,
    INT32_MAX,
    2**31,
    2**32 - 1,
    2**32,
    2**53,
    2**53 + 1,
    2**63 - 20,
    2**63 - 4,
)
"""Base offsets of segments; the last one ends at the last offset of a log."""


def ends_at(*positions: int) -> list[Batch]:
    """Return batches that begin at certain positions of a file; the first is 0."""
    units: list[Batch] = []
    for at, (start, end) in enumerate(pairwise(positions)):
        size = end - start
        length = next(
            n
            for n in range(size - HEADER_SIZE - 12, size)
            if len(Batch(recs=(Rec(key=None, value=bytes(n)),)).encoded()) == size
        )
        units.append(Batch(base=at, recs=(Rec(key=None, value=b"v" * length),), base_timestamp=1000 + at))
    return [*units, Batch(base=len(units), base_timestamp=1000 + len(units))]


TAKEN: Final = {"accept": True, "duplicateOf": None, "aborted": []}
REFUSED: Final = {"reject": {"class": "policy"}}
LOGS: Final[dict[str, list[Batch]]] = {
    "offsets": [Batch(base=base, base_timestamp=1000 + at) for at, base in enumerate((0, *SMALL_LIMITS, INT32_MAX))],
    "positions-below": ends_at(0, 127, 255, 32767, 65535),
    "positions-above": ends_at(0, 128, 256, 32768, 65536),
    "times": [Batch(base=at, base_timestamp=time) for at, time in enumerate(TIMES)],
}
"""Segments with base offset 0: where a relative offset, a position and a timestamp have their limits."""


LAST_OF_ALL: Final = 2**63 - 2
"""The last offset that a log can have."""


def add_logs(family: Family) -> None:
    """Add operations on logs."""
    for name, units in LOGS.items():
        _on_log(family, name, units, 0)
    for base in BASES:
        _on_log(family, f"base-{base}", row(3, 1, base=base), base)
    _last_offsets(family)
    _empty_ends(family)
    _greatest(family)
    _outside(family)
    _sequences(family)
    _default_size(family)
    _transactions(family)
    _counted_lines(family)


def _on_log(family: Family, name: str, units: Sequence[Batch], base: int) -> None:
    """Add each operation on a segment: its indexes are built, searched, rebuilt, and cut."""
    log = {name_of(base): bytes_of(units)}
    index, times = offset_index(units, 0, base), time_index(units, 0, base)
    whole = {**log, name_of(base, ".index"): index, name_of(base, ".timeindex"): times}
    text = f"The numbers of a log are at the limits of their types ({name.replace('-', ' ')})."
    flags = ("FIELD_LIMITS",)
    request: Json = {"data": log[name_of(base)].hex(), "baseOffset": str(base), "indexIntervalBytes": 0}
    basis = must("SEG-ROL-010", "SEG-ROL-011", flags=flags, since="4.1")
    family.add(f"index-{name}", "index", "valid", text, basis, request=request, expect={"files": {".index": index.hex(), ".timeindex": times.hex()}})  # fmt: skip
    request = {
        "files": hexed(log),
        "options": {"indexIntervalBytes": 0, "logStartOffset": str(base), "recoveryPoint": str(base)},
    }
    expect: Json = {"nextOffset": str(units[-1].next_offset), "truncatedBytes": 0, "files": hexed(whole)}
    family.add(f"recover-{name}", "recover", "valid", text, must("SEG-RCV-025", flags=flags), request=request, expect=expect)  # fmt: skip
    cut = units[len(units) // 2]
    kept = [unit for unit in units if unit.base < cut.base]
    request = {
        "files": hexed(whole),
        "offset": str(cut.base),
        "options": {"indexIntervalBytes": 0, "logStartOffset": str(base)},
    }
    expect = {"nextOffset": str(cut.base), "files": {name_of(base): bytes_of(kept).hex()}}
    family.add(f"truncate-{name}", "truncate", "valid", text, must("SEG-TRN-001", flags=flags), request=request, expect=expect)  # fmt: skip
    position = 0
    for unit in units:
        asked = {"files": hexed(whole), "offset": str(unit.base), "options": {"logStartOffset": str(base)}}
        found = {"position": position, "baseOffset": str(unit.base)}
        family.add(f"lookup-{name}-{unit.base}", "lookup", "valid", text, must("SEG-LKP-001", "SEG-LKP-002", flags=flags), request=asked, expect={"found": found})  # fmt: skip
        position += len(unit.encoded())
    for unit in (units[1], units[-1]) if name != "times" else units:
        asked = {"files": hexed(whole), "timestamp": str(unit.newest), "options": {"logStartOffset": str(base)}}
        found = {"offset": str(unit.base), "timestamp": str(unit.newest)}
        family.add(f"lookup-{name}-time-{unit.newest}", "lookup", "valid", text, must("SEG-LKP-008", flags=flags), request=asked, expect={"found": found})  # fmt: skip
    for unit in (units[len(units) // 2], units[-1]):
        records = [
            record for answer in lay(units)[1] for record in answer["records"] if int(record["offset"]) >= unit.base
        ]
        asked = {"files": hexed(whole), "offset": str(unit.base), "options": {"logStartOffset": str(base)}}
        expect = {"records": records, "nextOffset": str(units[-1].next_offset)}
        family.add(f"read-{name}-{unit.base}", "read", "valid", text, must("SEG-LKP-002", "SEG-LKP-003", flags=flags), request=asked, expect=expect)  # fmt: skip


def _last_offsets(family: Family) -> None:
    """Add logs that end at the last offset a log can have: recovery by the text keeps all of them."""
    last = LAST_OF_ALL
    for name, units in (
        ("three-batches", [Batch(base=last - at) for at in (2, 1, 0)]),
        ("one-batch", [Batch(base=last)]),
        ("many-records", [Batch(base=last - 300, recs=(Rec(), Rec(delta=300)))]),
        ("messages", [Msg(offset=last - 1), Msg(offset=last)]),
    ):
        base = int(units[0].answer(0)["baseOffset"])
        epochs = {} if isinstance(units[0], Msg) else {"leader-epoch-checkpoint": f"0\n1\n0 {base}\n".encode()}
        log = {name_of(base): bytes_of(units)}
        left = {
            **log,
            name_of(base, ".index"): offset_index(units, 0, base),
            name_of(base, ".timeindex"): time_index(units, 0, base),
            **epochs,
        }
        request = {
            "files": hexed(log),
            "options": {
                "indexIntervalBytes": 0,
                "logStartOffset": str(base),
                "recoveryPoint": str(base),
                "likeBroker": False,
            },
        }
        expect = {"nextOffset": str(last + 1), "truncatedBytes": 0, "names": sorted(left), "files": hexed(left)}
        basis = must("SEG-LOG-013", "SEG-RCV-025", flags=("FIELD_LIMITS",), needs=("recovery:by-the-text",))
        why = "The log ends at the last offset that a log can have."
        family.add(f"recover-last-offset-{name}", "recover", "valid", why, basis, request=request, expect=expect)


def _empty_ends(family: Family) -> None:
    """Add logs whose last segment is empty and begins at a limit of its number."""
    for base in (128, 256, 65536, 2**31, 2**32, 2**53 + 1, 2**63 - 1):
        units = row(3, 1, base=base - 10)
        log = {name_of(base - 10): bytes_of(units), name_of(base): b""}
        options = {"indexIntervalBytes": 0, "logStartOffset": str(base - 10), "recoveryPoint": str(base - 10)}
        why = "The last segment is empty: the log ends at its base offset, behind a gap."
        left = {**log, name_of(base, ".index"): b"", name_of(base, ".timeindex"): b""}
        request: Json = {"files": hexed(log), "options": options}
        expect: Json = {"nextOffset": str(base), "truncatedBytes": 0, "files": hexed(left)}
        family.add(f"recover-empty-end-{base}", "recover", "valid", why, must("SEG-RCV-004", flags=("FIELD_LIMITS",)), request=request, expect=expect)  # fmt: skip
        request = {"files": hexed(log), "offset": str(base), "options": {"logStartOffset": str(base - 10)}}
        expect = {"records": [], "nextOffset": str(base)}
        family.add(f"read-empty-end-{base}", "read", "valid", why, must("SEG-LKP-005", "SEG-LKP-015", flags=("FIELD_LIMITS",)), request=request, expect=expect)  # fmt: skip


def _greatest(family: Family) -> None:
    """Add entries that end at the greatest number of 64 bits: no log has them, and yet they can be read."""
    top = 2**63 - 1
    basis = should("SEG-BAT-009", "SEG-REC-014", flags=("NO_OFFSET_AFTER",))
    old = should("SEG-MSG-025", flags=("NO_OFFSET_AFTER",))
    last_two = tuple(Msg(offset=at) for at in range(2))
    for name, own, unit in (
        ("one-record", basis, Batch(base=top)),
        ("three-records", basis, Batch(base=top - 2, recs=(Rec(),) * 3)),
        ("gap", basis, Batch(base=top - 300, recs=(Rec(), Rec(delta=300)))),
        ("gzip", basis, Batch(base=top - 1, recs=(Rec(), Rec()), codec="gzip", compress=gzip)),
        ("no-record", basis, empty(top - 4, 4)),
        ("greatest-delta", basis, Batch(base=top - INT32_MAX, recs=(Rec(delta=INT32_MAX),))),
        ("magic-0", old, Msg(magic=0, offset=top)),
        ("magic-1", old, Msg(offset=top)),
        ("wrapper", old, Wrapper(offset=top, inner=last_two, offsets=(top - 1, top), compress=gzip)),
    ):
        data_of, (answer,) = lay([unit])
        why = "The entry ends at the greatest number of 64 bits: its records can be read, and no offset is after it."
        following = {"beyond 64 bits": top + 1, "around": -top - 1}
        rest: Json = {"consumed": len(data_of), "tail": None}
        allowed = [
            {"branch": branch, "batches": [{**answer, "nextOffset": str(at)}], **rest}
            for branch, at in following.items()
        ]
        needs = tuple(sorted(features([unit])))
        family.either(f"decode-ends-at-the-greatest-{name}", why, replace(own, needs=needs), data_of, allowed)
        read = replace(own, needs=(*needs, "policy:read"))
        family.add(f"validate-ends-at-the-greatest-{name}", "validate", "valid", why, read, request={"data": data_of.hex(), "policy": "read"}, expect={"accept": True})  # fmt: skip


def _default_size(family: Family) -> None:
    """Add batches at the default of `max.message.bytes`, and at that of brokers before 2.5."""
    for size in (1_000_012, 1_000_013, (1 << 20) + 12, (1 << 20) + 13):
        basis = must("SEG-APP-006", since="2.5", flags=SIZED, needs=("appended", "policy:append"))
        new = Batch(leader_epoch=-1, recs=records_of(size - HEADER_SIZE))
        placed = replace(new, leader_epoch=0)
        written = entry(placed, 0) | entry(placed, 0, bytes_count=False)
        expect: Json = {"accept": True, "entries": [written]} if size <= (1 << 20) + 12 else REFUSED
        request = {"data": new.encoded().hex(), "policy": "append", "now": "1000", "config": {}}
        result = "valid" if "accept" in expect else "invalid"
        why = f"Without a setting a batch of 1048588 bytes is taken, and no larger one; it has {size} bytes."
        family.add(f"append-by-default-{size}", "validate", result, why, basis, request=request, expect=expect)


def _outside(family: Family) -> None:
    """Add offsets and times below the log start and above the end."""
    low, high = row(3, base=100), row(2, base=200)
    files = {name_of(100): bytes_of(low), name_of(200): bytes_of(high)}
    out, none = must("SEG-LKP-004", flags=OFTEN), must("SEG-LKP-004", "SEG-LKP-005", flags=OFTEN)
    started = replace(out, needs=("logStartOffset",))
    why = "The offset is below the first one of the log, or above its end: it is out of range."
    nothing = {"found": None}
    either = {"allowed": [{"branch": "not found", **nothing}, {"branch": "refused", "reject": {"class": "offset"}}]}
    outside = must("SEG-LKP-004", "SEG-LKP-005", flags=("OUT_OF_RANGE",))
    end = high[-1].next_offset
    for side, offset in [("below", 0), ("below", 1), ("below", 99), *(("above", at) for at in (end, end + 1, 2**31, 2**53 + 1, 2**63 - 1))]:  # fmt: skip
        result, basis, expect = ("valid", none, nothing) if offset == end else ("acceptable", outside, either)
        family.add(f"lookup-{side}-{offset}", "lookup", result, why, basis, request={"files": hexed(files), "offset": str(offset)}, expect=expect)  # fmt: skip
    for offset in (0, 99, 207, 2**31, 2**32 + 100, 2**63 - 1):
        family.add(f"read-outside-{offset}", "read", "invalid", why, out, request={"files": hexed(files), "offset": str(offset)}, expect={"reject": {"class": "offset"}})  # fmt: skip
    for offset in (100, 103, 104):
        request = {"files": hexed(files), "offset": str(offset), "options": {"logStartOffset": "105"}}
        family.add(f"read-below-start-{offset}", "read", "invalid", "The records are still there, but the log starts above them.", started, request=request, expect={"reject": {"class": "offset"}})  # fmt: skip
    hidden = must("SEG-LKP-010", "SEG-LKP-008", flags=OFTEN, needs=("logStartOffset",))
    for start, time, found in (
        (105, 0, (105, 1012)),
        (104, 1000, (104, 1011)),
        (200, 0, (200, 1000)),
        (106, 1012, (106, 1020)),
    ):
        request = {"files": hexed(files), "timestamp": str(time), "options": {"logStartOffset": str(start)}}
        expect = {"found": {"offset": str(found[0]), "timestamp": str(found[1])}}
        family.add(f"lookup-time-{time}-from-{start}", "lookup", "valid", "A record below the log start is not found by its time.", hidden, request=request, expect=expect)  # fmt: skip
    for time in (1023, 2**31, 2**53 + 1, 2**63 - 1):
        request = {"files": hexed(files), "timestamp": str(time)}
        family.add(f"lookup-time-above-{time}", "lookup", "valid", "No record has that time or a later one.", must("SEG-LKP-008", flags=OFTEN), request=request, expect={"found": None})  # fmt: skip


# -- producers and transactions ---------------------------------------------------------------------------------------


def _append(
    family: Family, name: str, why: str, rule: str, log: Sequence[Unit], new: Unit, expect: Json, **more: str
) -> None:
    end = log[-1].next_offset if log else 0
    request = {
        "data": new.encoded().hex(),
        "policy": "append",
        "log": bytes_of(log).hex(),
        "baseOffset": str(end),
        "now": "1000",
        **more,
    }
    result = "invalid" if "reject" in expect else "valid"
    basis = must(rule, flags=OFTEN, needs=("logState",))
    family.add(f"append-{name}", "validate", result, why, basis, request=request, expect=expect)


def _sequences(family: Family) -> None:
    """Add sequences over epochs and over their greatest number."""
    same = "A newer epoch begins with sequences that the older one has used: the batch is no duplicate."
    epochs = {
        "one": ([produced(0, 0)], produced_again(0, epoch=3)),
        "three": ([produced(0, 0, 3)], produced_again(0, 3, epoch=3)),
        "last-of-several": ([produced(0, 0, 3), produced(3, 3, 3)], produced_again(0, 3, epoch=3)),
        "skipped-epoch": ([produced(0, 0, 3)], produced_again(0, 3, epoch=9)),
        "epoch-127-to-128": ([produced(0, 0, 2, epoch=127)], produced_again(0, 2, epoch=128)),
        "epoch-255-to-256": ([produced(0, 0, 2, epoch=255)], produced_again(0, 2, epoch=256)),
        "transactional": ([opened(0), marker("COMMIT", 1)], opened(0, epoch=3)),
    }
    for name, (log, new) in epochs.items():
        _append(family, f"newer-epoch-{name}", same, "SEG-APP-008", log, new, TAKEN)
    twice = [produced(0, 0, 2), produced(2, 0, 2, epoch=3)]
    again = {"accept": True, "duplicateOf": "3", "entries": []}
    _append(family, "newer-epoch-again", "The batch repeats the one of the newer epoch, not that of the older.", "SEG-APP-008", twice, produced_again(0, 2, epoch=3), again)  # fmt: skip
    _append(family, "older-epoch-again", "The batch repeats one of the older epoch, which is over.", "SEG-APP-009", twice, produced_again(0, 2), REFUSED)  # fmt: skip
    for last in (127, 255, 32767, 65535, INT32_MAX):
        log = [produced(0, last - 1, 2)]
        after, skipped = (0, 1) if last == INT32_MAX else (last + 1, last + 2)
        text = f"The last sequence is {last}."
        _append(family, f"sequence-after-{last}", text, "SEG-APP-007", log, produced_again(after, 2), TAKEN)
        _append(family, f"sequence-gap-after-{last}", text, "SEG-APP-007", log, produced_again(skipped), REFUSED)
        repeated = {"accept": True, "duplicateOf": "1", "entries": []}
        _append(family, f"sequence-again-{last}", text, "SEG-APP-008", log, produced_again(last - 1, 2), repeated)
    wrapped = [produced(0, INT32_MAX - 1, 5)]
    over = "The last batch has sequences before and after the greatest one."
    _append(family, "wrapped-next", over, "SEG-APP-007", wrapped, produced_again(3, 2), TAKEN)
    _append(family, "wrapped-gap", over, "SEG-APP-007", wrapped, produced_again(4), REFUSED)
    _append(family, "wrapped-again", over, "SEG-APP-008", wrapped, produced_again(INT32_MAX - 1, 5), {"accept": True, "duplicateOf": "4", "entries": []})  # fmt: skip


def _transactions(family: Family) -> None:
    """Add committed transactions beside aborted ones, and one that is open since offset 0."""
    listed = must("SEG-TXN-009", "SEG-TXN-003", flags=OFTEN)
    one, two = {"producer_id": 1}, {"producer_id": 2}
    commits = [
        data(0, b"a", **one),
        data(1, b"b", **two),
        marker("COMMIT", 2, producer_id=1),
        marker("ABORT", 3, producer_id=2),
    ]
    swapped = [
        data(0, b"a", **one),
        data(1, b"b", **two),
        marker("ABORT", 2, producer_id=2),
        marker("COMMIT", 3, producer_id=1),
    ]
    again = [
        data(0, b"a"),
        marker("COMMIT", 1),
        data(2, b"b", sequence=1),
        marker("ABORT", 3),
        data(4, b"c", sequence=2),
        marker("COMMIT", 5),
    ]
    open_since_0 = [data(0, b"a", **one), data(1, b"b", **two), marker("ABORT", 2, producer_id=2), Batch(base=3), marker("COMMIT", 4, producer_id=3)]  # fmt: skip
    both_open = [
        data(0, b"a", **one),
        data(1, b"b", **two),
        marker("COMMIT", 2, producer_id=2),
        data(3, b"c"),
        marker("ABORT", 4),
    ]
    rows: dict[str, tuple[list[Batch], bytes, tuple[int, ...], int]] = {
        "commit-then-abort": (commits, aborted(2, 1, 3, 4), (0,), 4),
        "abort-then-commit": (swapped, aborted(2, 1, 2, 0), (0,), 4),
        "commit-abort-commit": (again, aborted(9, 2, 3, 4), (0, 4), 6),
        "open-since-0": (open_since_0, aborted(2, 1, 2, 0), (), 0),
        "open-since-0-twice": (both_open, aborted(9, 3, 4, 0), (), 0),
    }
    for name, (units, index, offsets, end) in rows.items():
        log = {name_of(0): bytes_of(units)}
        is_open = name.startswith("open-since-0")
        why = (
            "A transaction is open since offset 0."
            if is_open
            else "Only aborted transactions are listed, never a committed one."
        )
        built = {".index": offset_index(units, 4096), ".timeindex": time_index(units, 4096), ".txnindex": index}
        request: Json = {"data": log[name_of(0)].hex(), "baseOffset": "0", "indexIntervalBytes": 4096}
        family.add(f"index-{name}", "index", "valid", why, listed, request=request, expect={"files": hexed(built)})
        request = {"files": hexed(log), "options": {"indexIntervalBytes": 4096}}
        rebuilt = {**log, **{f"{0:020}{kind}": content for kind, content in built.items()}}
        expect = {"nextOffset": str(units[-1].next_offset), "truncatedBytes": 0, "files": hexed(rebuilt)}
        family.add(f"recover-{name}", "recover", "valid", why, must("SEG-RCV-008", "SEG-RCV-025", flags=OFTEN), request=request, expect=expect)  # fmt: skip
        listing = {**log, name_of(0, ".txnindex"): index}
        for suffix, files in (("", listing), ("-without-index", log)):
            records = [
                record for answer in lay(units)[1] for record in answer["records"] if int(record["offset"]) in offsets
            ]
            request = {"files": hexed(files), "offset": "0", "isolation": "read_committed"}
            expect = {"records": records, "nextOffset": str(end)}
            rule = must("SEG-LKP-012" if is_open else "SEG-LKP-011", flags=OFTEN)
            family.add(f"read-committed-{name}{suffix}", "read", "valid", why, rule, request=request, expect=expect)
    coordinator = {"origin": "coordinator"}
    for name, log, ended, reported in (
        ("commit-beside-open", [opened(0), opened(1, 8)], marker("COMMIT", 0), []),
        ("commit-after-abort", [opened(0), marker("ABORT", 1), opened(2, sequence=1)], marker("COMMIT", 0), []),
        ("abort-beside-open-since-0", [opened(0, 8), opened(1)], marker("ABORT", 0), [_reported(9, 1, 2, 0)]),
        ("abort-of-open-since-0", [opened(0), opened(1, 8)], marker("ABORT", 0), [_reported(9, 0, 2, 1)]),
    ):
        why = "Only aborted transactions are listed, from their first offset on, which may be 0."
        _append(family, name, why, "SEG-TXN-003", log, ended, {"accept": True, "duplicateOf": None, "aborted": reported}, **coordinator)  # fmt: skip


def _reported(producer_id: int, first: int, last: int, stable: int) -> Json:
    names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
    return {name: str(value) for name, value in zip(names, (producer_id, first, last, stable), strict=True)}


# -- counts of lines --------------------------------------------------------------------------------------------------


def _counted_lines(family: Family) -> None:
    """Add files with more or fewer lines than they count."""
    files = {"recovery-point-offset-checkpoint": "t {0} {0}", "leader-epoch-checkpoint": "{0} {0}"}
    for file, line in files.items():
        kind = "epochs" if "epoch" in file else "offsets"
        for count, lines in ((0, 1), (1, 0), (1, 2), (2, 1), (3, 5), (5, 3), (256, 0), (257, 1), (65536, 0), (65537, 1), (-1, 0), (-1, 1)):  # fmt: skip
            text = f"0\n{count}\n" + "".join(line.format(at) + "\n" for at in range(lines))
            request = {"kind": "checkpoint", "name": file, "data": text.encode().hex()}
            why = f"The file counts {count} lines and has {lines}."
            family.add(f"parse-{kind}-{count}-of-{lines}", "parse", "invalid", why, must("SEG-CKP-002", flags=OFTEN), request=request, expect={"reject": {"class": "text"}})  # fmt: skip


def add_sized(family: Family) -> None:
    """Add counts, sizes and damage."""
    family.flags |= FLAGS

    def decode(name: str, why: str, basis: Basis, batch: Batch) -> None:
        family.valid(name, why, basis, batch)

    compressed(family, BLOCKS, decode)
    incompressible(family)
    lz4_options(family)
    damaged(family)
    repeated_headers(family)
