"""Family 46: the axes of the other families crossed.

The rows are a covering array: every three values that can stand together in one entry do so in some case. Each row that
a broker may have written is asked a second time with a checksum that is wrong and nothing else, so that only a reader
that looks at it can tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.batches import CONTROL, CRC, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec, with_field
from authoring.casefile import Basis, Family
from authoring.codecs import gzip, lz4_frame, lz4_frame_v0, xerial, zstd
from authoring.control import LEADER_CHANGE, empty, kraft, marker
from authoring.covering import Row, Table, covering_rows
from authoring.messages import Msg, Wrapper
from authoring.primitives import replaced

if TYPE_CHECKING:
    from collections.abc import Callable

SEED: Final = 46
RECORD_BATCH: Final = 2
AXES: Final[dict[str, tuple[Any, ...]]] = {
    "magic": (2, 1, 0),
    "depth": (0, 1, 2),
    "codec": ("none", "gzip", "snappy", "lz4", "zstd"),
    "time": ("create", "append"),
    "emptied": ("whole", "holes", "empty"),
    "transactional": (False, True),
    "control": (False, True),
    "idempotent": (False, True),
    "horizon": (False, True),
    "headers": (False, True),
}
OF_BATCHES: Final = ("transactional", "control", "idempotent", "horizon", "headers")
COMPRESSORS: Final = {"none": None, "gzip": gzip, "snappy": xerial, "lz4": lz4_frame, "zstd": zstd}
BASE: Final = 40
TIME: Final = 1_700_000_000_000
NEWEST: Final = TIME + 900


def is_possible(row: Row) -> bool:
    """Tell whether an entry can have all these values at once, written by whomever."""
    return _is_possible_batch(row) if _is_batch(row) else _is_possible_message(row)


def _is_batch(row: Row) -> bool:
    return bool(row["magic"] == RECORD_BATCH)


def _is_possible_batch(row: Row) -> bool:
    if row["depth"]:
        return False
    if row["control"]:  # a marker belongs to a producer's transaction, a record of KRaft to neither
        return row["transactional"] == row["idempotent"] and row["emptied"] != "holes" and not row["headers"]
    return (row["idempotent"] or not row["transactional"]) and not (row["headers"] and row["emptied"] == "empty")


def _is_possible_message(row: Row) -> bool:
    if any(row[name] for name in OF_BATCHES) or row["emptied"] == "empty" or row["codec"] == "zstd":
        return False
    if row["magic"] == 0 and row["time"] == "append":
        return False
    if row["depth"] == 0:
        return row["codec"] == "none" and row["emptied"] == "whole"
    return row["codec"] != "none" and (row["depth"] == 1 or row["emptied"] == "whole")


TABLE: Final = Table(AXES, is_possible, strength=3)


def is_written(row: Row) -> bool:
    """Tell whether a producer, broker or cleaner writes such an entry: markers are not compressed, nor is nothing."""
    is_compressed_for_nothing = row["codec"] != "none" and (row["control"] or row["emptied"] == "empty")
    return not is_compressed_for_nothing and not (row["emptied"] == "empty" and row["horizon"])


def name_of(row: Row) -> str:
    """Return the values of a row that are not the first of their axis, joined."""
    parts = [f"magic-{row['magic']}"]
    parts += [f"depth-{row['depth']}"] if row["depth"] else []
    parts += [row[axis] for axis in ("codec", "time", "emptied") if row[axis] != AXES[axis][0]]
    return "-".join([*parts, *(axis for axis in OF_BATCHES if row[axis])])


def entry(row: Row) -> Batch | Msg | Wrapper:
    """Return the entry that a row describes; of a wrapper in a wrapper, the inner one."""
    if not _is_batch(row):
        return _message(row)
    return _empty(row) if row["emptied"] == "empty" else _control(row) if row["control"] else _data(row)


def _attributes(row: Row) -> int:
    bits = {"transactional": TRANSACTIONAL, "control": CONTROL, "horizon": DELETE_HORIZON}
    return sum(bit for axis, bit in bits.items() if row[axis]) | (LOG_APPEND_TIME if row["time"] == "append" else 0)


def _shared(row: Row) -> dict[str, Any]:
    """Return the fields that every batch of a row has."""
    producer = {"producer_id": 2**33 + 9, "producer_epoch": 2} if row["idempotent"] else {}
    packed = {"codec": row["codec"], "compress": COMPRESSORS[row["codec"]]}
    return {"attributes": _attributes(row), "leader_epoch": 3, **producer, **packed}


def _data(row: Row) -> Batch:
    headers = ((b"h", b"x"), (b"h", None), (b"", b"")) if row["headers"] else ()
    whole = (
        Rec(key=None, value=b"first" * 9, delta=0, time=-7),
        Rec(key=b"", value=None, delta=1, time=0, headers=headers),
        Rec(key=b"k", value=b"", delta=2, time=250),
        Rec(key=b"z", value=b"last" * 9, delta=3, time=13, headers=headers[:1]),
    )
    return Batch(
        base=BASE,
        recs=whole if row["emptied"] == "whole" else whole[1:3],
        last_delta=3,
        base_timestamp=TIME,
        max_timestamp=NEWEST if row["time"] == "append" else None,
        base_sequence=2**31 - 2 if row["idempotent"] else -1,
        **_shared(row),
    )


def _control(row: Row) -> Batch:
    batch = marker("ABORT", BASE, at=TIME) if row["transactional"] else kraft("LEADER_CHANGE", LEADER_CHANGE, BASE)
    return replace(batch, **_shared(row))


def _empty(row: Row) -> Batch:
    sequence = 2**31 - 2 if row["idempotent"] and not row["control"] else -1
    return empty(BASE, 3, **{**_shared(row), "base_sequence": sequence})


def _message(row: Row) -> Msg | Wrapper:
    magic, stamped = row["magic"], LOG_APPEND_TIME if row["time"] == "append" else 0
    if not row["depth"]:
        return Msg(magic=magic, offset=BASE, attributes=stamped, key=None, value=b"v" * 40, timestamp=TIME)
    deltas = (0, 1, 2, 3) if row["emptied"] == "whole" else (1, 3)
    first = BASE if magic == 0 else 0
    inner = tuple(
        Msg(magic=magic, offset=first + at, key=b"k%d" % at, value=b"v" * 9, timestamp=TIME - 3 * at) for at in deltas
    )
    return Wrapper(
        magic=magic,
        offset=BASE + 3,
        inner=inner,
        offsets=tuple(BASE + at for at in deltas),
        codec=row["codec"],
        compress=_compressor(row),
        attributes=stamped,
        timestamp=NEWEST if stamped else None,
    )


def _compressor(row: Row) -> Callable[[bytes], bytes]:
    makes = lz4_frame_v0 if row["magic"] == 0 and row["codec"] == "lz4" else COMPRESSORS[row["codec"]]
    assert makes is not None
    return makes


def nested(row: Row) -> bytes:
    """Return a wrapper around the wrapper of a row."""
    inner = entry({**row, "depth": 1})
    assert isinstance(inner, Wrapper)
    return replace(inner, compress=lambda _: _compressor(row)(inner.encoded())).encoded()


def _rules(row: Row) -> tuple[str, ...]:
    """Return the rules that the values of a row rest on."""
    if not _is_batch(row):
        offsets = ("SEG-MSG-011", "SEG-MSG-012")[row["magic"]]
        times = ("SEG-MSG-008", "SEG-MSG-015")[row["magic"]]
        return (offsets, times) if row["depth"] else (f"SEG-MSG-00{row['magic'] + 1}",)
    rules = {
        "SEG-BAT-011": row["time"] == "append" and row["emptied"] != "empty",
        "SEG-BAT-013": row["horizon"],
        "SEG-BAT-018": row["emptied"] == "empty",
        "SEG-CTL-009": row["control"],
        "SEG-REC-010": row["headers"],
        "SEG-REC-015": row["idempotent"] and not row["control"],
    }
    return ("SEG-BAT-001", *(rule for rule, applies in rules.items() if applies))


def _since(row: Row) -> str:
    if not _is_batch(row):
        return "0.8" if row["magic"] == 0 else "0.10"
    return "3.1" if row["horizon"] else "3.0" if row["control"] and not row["transactional"] else "0.11"


def _basis(row: Row, *rules: str) -> Basis:
    needs = {f"magic:{row['magic']}", f"codec:{row['codec']}"} - {"codec:none"}
    return Basis(
        req=rules, level="must" if is_written(row) else "should", needs=tuple(sorted(needs)), since=_since(row)
    )


def with_wrong_checksum(row: Row) -> bytes:
    """Return the entry of a row with one bit of its checksum turned over."""
    data = entry(row).encoded()
    if not _is_batch(row):
        return replaced(data, 12, "I", int.from_bytes(data[12:16], "big") ^ 1 << 9)
    return with_field(data, CRC, int.from_bytes(data[CRC[0] : CRC[0] + 4], "big") ^ 1 << 9, seal=False)


def crossed() -> Family:
    """Family 46."""
    family = Family(
        46,
        "crossed",
        "Codec, time, transaction, control, producer, compaction, horizon, headers, magic and depth, crossed",
        "the rules of its values, one by one",
        flags={
            "CROSSED": {
                "effect": "Each value is read correctly alone, and two of them together are not: a branch for the one leaves out what the other asks for.",
                "links": [],
            },
            "CHECKSUM_ALONE": {
                "effect": "Everything but the checksum is as it should be. A reader that looks at checksums of plain data alone takes the rest as it comes.",
                "links": [],
            },
        },
    )
    for row in covering_rows(TABLE, SEED):
        name = name_of(row)
        if row["depth"] > 1:
            _add_nested(family, name, row)
            continue
        crossing = replace(_basis(row, *_rules(row)), flags=("CROSSED",))
        family.valid(name, f"Together in one entry: {name.replace('-', ' ')}.", crossing, entry(row))
        if is_written(row):
            _add_damaged(family, name, row)
    return family


def _add_nested(family: Family, name: str, row: Row) -> None:
    family.invalid(
        name,
        "A wrapper inside a wrapper, in each codec.",
        replace(_basis(row, "SEG-MSG-010"), flags=("CROSSED",)),
        "compression",
        Msg(magic=row["magic"], offset=3),
        nested(row),
        more=Msg(magic=row["magic"], offset=90),
    )


def _add_damaged(family: Family, name: str, row: Row) -> None:
    basis = _basis(row, "SEG-BAT-003" if _is_batch(row) else "SEG-MSG-004")
    if row["depth"]:  # the Java consumer looks at the checksums inside a wrapper alone
        basis = replace(basis, level="should")
    before, after = (Batch(base=at) if _is_batch(row) else Msg(magic=row["magic"], offset=at) for at in (3, 90))
    family.invalid(
        f"{name}-wrong-checksum",
        "This entry is valid but for its checksum: only the checksum shows the damage.",
        replace(basis, flags=("CHECKSUM_ALONE",), needs=(*basis.needs, "crc")),
        "crc",
        before,
        with_wrong_checksum(row),
        more=after,
    )


def families() -> list[Family]:
    """All of this module."""
    return [crossed()]
