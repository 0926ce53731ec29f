"""Family 45: what compaction leaves for a reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from authoring.batches import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from authoring.casefile import Family, must
from authoring.codecs import gzip, xerial, zstd
from authoring.control import CLEANED, data, empty, marker
from authoring.damage import COMPRESSORS
from authoring.messages import Msg, Wrapper
from authoring.own_files import own_compactions
from authoring.scenario_cases import add_scenarios

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
INT32_MAX: Final = 2**31 - 1


def compaction() -> Family:
    """Family 45."""
    flags = {
        "COMPACTED": {
            "effect": "Compacted topics hold the state of applications. A reader that stumbles over what the cleaner leaves rebuilds it wrong, or never gets to the end.",
            "links": [],
        }
    }
    family = Family(45, "compaction-results", "What compaction leaves for a reader", "facts 5.7", flags=flags)
    basis = must("SEG-REC-012", "SEG-BAT-016", flags=("COMPACTED",))
    producer = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "leader_epoch": 4}
    before = Batch(
        base=100,
        **producer,
        recs=(
            Rec(key=b"a", value=b"1"),
            Rec(key=b"b", value=None, time=1000),
            Rec(key=b"c", value=b"3", time=500),
            Rec(key=b"a", value=b"4", time=600),
        ),
    )
    source = {"flags": ("COMPACTED",)}
    one = Batch(base=100, **producer, last_delta=3, base_timestamp=1500, recs=(Rec(key=b"c", value=b"3", delta=2),))
    none = empty(100, 3, leader_epoch=4, max_timestamp=2000, producer_id=9, producer_epoch=0, base_sequence=0)
    for name, why, terms, *units in (
        ("before", "Four records of a producer, before compaction.", must("SEG-REC-012", "SEG-BAT-016", source="vector V-21", **source), before),
        ("tombstone-kept", "Compaction left two records, one of them a tombstone with a delete horizon.", must("SEG-BAT-013", "SEG-REC-012", source="vector V-22", since="3.1", **source), CLEANED),
        ("one-kept", "Compaction left one of the records.", must("SEG-REC-012", "SEG-BAT-016", source="vector V-23", **source), one),
        ("none-kept", "Compaction left no record, but kept the empty batch for the producer state.", must("SEG-BAT-018", "SEG-BAT-016", source="vector V-24", **source), none),
        ("whole-log", "A log after several compactions, with each kind of remaining batch, and gaps between them.", replace(basis, since="3.1"),
         Batch(base=3, recs=(Rec(),), last_delta=9), replace(none, base=40), one, replace(CLEANED, base=300), empty(900, 50)),
        ("first-offset-far-above", "The first batch is far above the base offset of the segment.", basis, Batch(base=5_000_000, recs=(Rec(delta=77),), last_delta=99)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    for codec, compress in COMPRESSORS.items():
        family.valid(
            f"recompressed-{codec}",
            "A batch that lost records is compressed again with its old codec.",
            basis,
            replace(
                one,
                codec=codec,
                compress=compress,
                last_delta=30,
                recs=(Rec(key=b"c", delta=2), Rec(key=b"d", delta=17, time=4)),
            ),
        )
    aborted = [
        replace(data(0, b"a"), recs=(), base_timestamp=-1, max_timestamp=1000),
        marker("ABORT", 1),
        data(5, b"c", sequence=2),
        marker("COMMIT", 9),
    ]
    stamped = Batch(
        base=10, attributes=LOG_APPEND_TIME, max_timestamp=9000, last_delta=4, recs=(Rec(delta=1), Rec(delta=3, time=7))
    )
    sequence = Batch(
        base=10,
        producer_id=9,
        producer_epoch=0,
        base_sequence=INT32_MAX - 1,
        last_delta=4,
        recs=(Rec(delta=1), Rec(delta=4)),
    )
    survivors = Wrapper(
        offset=18, inner=(Msg(offset=1), Msg(offset=4), Msg(offset=7)), offsets=(12, 15, 18), compress=gzip
    )
    old = Wrapper(magic=0, inner=tuple(Msg(magic=0, offset=at) for at in (12, 15, 18)), codec="snappy", compress=xerial)
    converted = Batch(
        base=12, codec="gzip", compress=gzip, base_timestamp=-1, recs=(Rec(), Rec(delta=3), Rec(delta=6)), last_delta=6
    )
    long = [Batch(base=1000 * at, recs=(Rec(key=b"k%d" % at),), last_delta=999 if at % 2 else 500) for at in range(12)]
    for name, why, terms, *units in (
        ("recompressed-horizon", "A batch with a delete horizon is compressed again with its old codec.", must("SEG-BAT-013", "SEG-REC-012", since="3.1", **source),
         replace(CLEANED, codec="zstd", compress=zstd)),
        ("aborted-data-gone", "Compaction removed the records of an aborted transaction and kept its marker.", must("SEG-BAT-018", "SEG-CTL-009", **source), *aborted),
        ("marker-as-empty-batch", "Compaction removed an end marker and kept its empty control batch.", must("SEG-CTL-007", "SEG-BAT-018", **source), data(0, b"a"),
         empty(1, 0, attributes=CONTROL | TRANSACTIONAL, producer_id=9, producer_epoch=2), data(2, b"b", sequence=1)),
        ("log-append-time", "With LogAppendTime, compaction keeps the broker's timestamp.", must("SEG-BAT-011", "SEG-REC-012", **source), stamped),
        ("sequences", "Sequences follow the offset deltas, gaps included, and wrap around after the greatest.", must("SEG-REC-015", "SEG-BAT-017", **source), sequence),
        ("magic-1-survivors", "A wrapper lost its first and last messages: its offset is that of the last one left.", must("SEG-MSG-012", since="0.10", **source), survivors),
        ("magic-0-survivors", "A wrapper of magic 0 lost its first and last messages.", must("SEG-MSG-011", since="0.8", **source), old),
        ("converted-by-4.0", "Cleaners since 4.0 convert messages to batches without timestamps and producers.", must("SEG-REC-012", "SEG-BAT-012", since="4.0", **source), converted),
        ("sparse-log", "Compaction left twelve of twelve thousand records.", basis, *long),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    add_scenarios(family, "compact")
    own_compactions(family)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [compaction()]
