"""Parts of families 40, 44 and 45: files that nobody has open, and power cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from authoring.casefile import must, should
from authoring.compact_scenarios import ended, part
from authoring.compaction_plans import compaction_plans
from authoring.recorded_scenarios import left_by_kafka
from authoring.scenario_cases import FLAG, ScenarioCases, checkpoint
from authoring.scenarios import NOW, SMALL, keyed
from authoring.segments import aborted, bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from authoring.casefile import Family, Json

IDEMPOTENT: Final = {"producer_id": 9, "producer_epoch": 0}


def three_segments() -> dict[str, bytes]:
    """Return a log of three segments, with indexes and snapshots."""
    found: dict[str, bytes] = {}
    for base in (0, 9, 18):
        units = row(3, base=base, start=NOW)
        found |= {
            name_of(base): bytes_of(units),
            name_of(base, ".index"): offset_index(units, 100, base),
            name_of(base, ".timeindex"): time_index(units, 100, base),
        }
    return found


def reported(last: int, first: int = 0) -> str:
    """Offsets, as an outcome tells them."""
    return " ".join(str(offset) for offset in range(first, last))


def own_retention(family: Family) -> None:
    """Family 44, without Kafka."""
    add = ScenarioCases(family)
    files = three_segments()
    size = len(files[name_of(0)])
    base: Json = {"config": {**SMALL, "retention.bytes": str(size), "retention.ms": "-1"}, "now": str(NOW)}
    others = checkpoint("other 3 7", "topic 0 2")
    add.on_files(
        "retain",
        "checkpoint",
        "Retention writes the new log start offset to the checkpoint; entries of other partitions stay.",
        should("SEG-RET-012", needs=("logDirectory",)),
        {"segments": ["0", "9"], "checkpoints": {"log-start-offset-checkpoint": checkpoint("other 3 7", "topic 0 18")}},
        files,
        **base,
        options={"checkpoints": {"log-start-offset-checkpoint": others}},
    )
    for name, lines in (
        ("of-others", ("topic 1 5", "other 0 9")),
        ("of-more-partitions", ("topic 1 5", "topic 10 6", "topic2 0 9")),
        ("without-lines", ()),
    ):
        add.on_files(
            "retain",
            f"checkpoint-{name}",
            "The checkpoint has no line of this log: retention adds one, and the others stay.",
            should("SEG-RET-012", needs=("logDirectory",)),
            {"checkpoints": {"log-start-offset-checkpoint": checkpoint(*sorted((*lines, "topic 0 18")))}},
            files,
            **base,
            options={"checkpoints": {"log-start-offset-checkpoint": checkpoint(*lines)}},
        )
    for name, why, basis, expect, options in (
        ("clean-shutdown", "After retention, the mark of a clean shutdown is written again.", must("SEG-FLS-010", needs=("logDirectory",)),
         {"segments": ["0", "9"], "isClean": True}, {"cleanShutdown": True}),
        ("power-cuts", "Whenever the power fails during retention, no segment is missing inside the log.", should("SEG-RET-012", needs=("powerCuts",)),
         {"outcomes": [reported(27), reported(27, 9), reported(27, 18)]}, {"powerCuts": True}),
    ):  # fmt: skip
        add.on_files("retain", name, why, basis, expect, files, **base, options=options)
    for operation in ("write", "fsync"):
        add.on_files(
            "retain",
            f"failed-{operation}",
            "A disk error ends the pass.",
            should("SEG-RET-012", needs=("diskErrors",)),
            {"reject": {"class": "other"}},
            files,
            result="invalid",
            **base,
            options={"fails": operation, "logStartOffset": "0"},
        )


def own_recoveries(family: Family) -> None:
    """Family 40: power cuts."""
    add = ScenarioCases(family)
    family.flags |= FLAG
    files = three_segments()
    cuts = {"powerCuts": True, "indexIntervalBytes": 100}
    add.on_files(
        "truncate",
        "power-cuts",
        "Truncation deletes segments from the last one on, and flushes each deletion before the next.",
        must("SEG-TRN-001", needs=("powerCuts",)),
        {"nextOffset": "4", "outcomes": [reported(27), reported(18), reported(9), reported(3)]},
        files,
        offset="4",
        options=cuts,
    )
    damaged = {**files, name_of(0): files[name_of(0)][:-5]}
    for name, like_broker in (("power-cuts", False), ("power-cuts-like-a-broker", True)):
        add.on_files(
            "recover",
            name,
            "Recovery deletes the segments after the damage, and flushes that, before it cuts the damaged one.",
            must("SEG-RCV-004", "SEG-RCV-029", needs=("powerCuts",)),
            {"nextOffset": "6", "outcomes": [reported(6)]},
            damaged,
            options={**cuts, "likeBroker": like_broker},
        )
    swapped = {key + (".swap" if key.startswith(name_of(0, "")) else ""): data for key, data in files.items()}
    old = {name_of(0): files[name_of(0)][: len(files[name_of(0)]) // 3]}
    shorter = files[name_of(0)][: len(files[name_of(0)]) // 3]
    for name, why, given in (
        ("power-cuts-in-a-replacement", "Recovery finishes a replacement that was begun, whenever the power fails again.", {**swapped, **old}),
        ("power-cuts-in-an-undone-replacement", "Recovery undoes a replacement that was not complete, whenever the power fails again.",
         {**files, name_of(0, ".log.swap"): shorter, name_of(0, ".index.cleaned"): b""}),
    ):  # fmt: skip
        add.on_files(
            "recover",
            name,
            why,
            must("SEG-RCV-021", needs=("powerCuts",)),
            {"nextOffset": "27", "outcomes": [reported(27)]},
            given,
            options=cuts,
        )


def own_compactions(family: Family) -> None:
    """Family 45, without Kafka."""
    add = ScenarioCases(family)
    config = {**SMALL, "cleanup.policy": "compact", "segment.bytes": "400"}
    units = {0: [keyed(0, "a", "b"), keyed(2, "c")], 10: [keyed(10, "a", "d")], 1000: [keyed(1000, "z")]}
    files = {name_of(base): bytes_of(row_of) for base, row_of in units.items()}
    files |= {name_of(base, ".index"): b"" for base in units}
    files |= {name_of(base, ".timeindex"): time_index(row_of, 100, base) for base, row_of in units.items()}
    base: Json = {"config": config, "now": str(NOW + 100_000)}
    for name, why, basis, expect, options in (
        ("power-cuts", "Whenever the power fails during compaction, the log is the old one or the new one.", must("SEG-CMP-022", needs=("powerCuts",)),
         {"outcomes": ["0 1 2 10 11 1000", "1 2 10 11 1000"]}, {"powerCuts": True}),
        ("checkpoint", "The cleaner writes its offset to the checkpoint; entries of other partitions stay.", must("SEG-CMP-023", needs=("logDirectory",)),
         {"checkpoints": {"cleaner-offset-checkpoint": checkpoint("other 1 7", "topic 0 1000")}, "endOffset": "1000"},
         {"checkpoints": {"cleaner-offset-checkpoint": checkpoint("other 1 7", "topic 0 2")}}),
    ):  # fmt: skip
        add.on_files("compact", name, why, basis, expect, files, **base, options=options)
    _unusual_compactions(add, base)
    compaction_plans(family)


def _unusual_compactions(add: ScenarioCases, base: Json) -> None:
    """Add logs that something is wrong with, or that little is known of."""
    doubled = [
        keyed(0, "a", base_sequence=0, **IDEMPOTENT),
        keyed(1, "a", base_sequence=1, **IDEMPOTENT),
        keyed(2, "a"),
    ]
    files = {name_of(0): bytes_of(doubled), name_of(1000): bytes_of([keyed(1000, "z")])}
    files |= {name_of(base_offset, ending): b"" for base_offset in (0, 1000) for ending in (".index", ".timeindex")}
    left = left_by_kafka()["compact-producer-last-batch"]["expect"]["files"]
    add.on_files(
        "compact",
        "without-snapshots",
        "Without a snapshot, compaction finds the producer state in the log.",
        must("SEG-CMP-015", needs=("producersFromLog",)),
        {"files": {name_of(0): left[name_of(0)]}},
        files,
        **base,
    )
    add.on_files(
        "compact",
        "damaged",
        "Compaction refuses a log that does not end with a whole entry: it has to be recovered first.",
        should("SEG-LOG-004", needs=("strictFrames",)),
        {"reject": {"class": "length"}},
        {**files, name_of(0): files[name_of(0)][:-5]},
        result="invalid",
        **base,
    )
    for operation in ("write", "fsync"):
        add.on_files(
            "compact",
            f"failed-{operation}",
            "A disk error ends the pass.",
            must("SEG-CMP-022", needs=("diskErrors",)),
            {"reject": {"class": "other"}},
            files,
            result="invalid",
            **base,
            options={"fails": operation},
        )
    rows = {name_of(at, ending): b"" for at in (0, 10, 20, 1000) for ending in (".index", ".timeindex")}
    for kind, mark in (("ABORT", 10), ("ABORT", 20), ("COMMIT", 19), ("COMMIT", 20)):
        ended_above = {
            name_of(0): bytes_of([keyed(0, "a"), part(1, "b"), keyed(2, "a")]),
            name_of(10): bytes_of([keyed(10, "a")]),
            name_of(20): bytes_of([ended(kind, 20), keyed(21, "a")]),
            name_of(1000): bytes_of([keyed(1000, "z")]),
        }
        add.on_files(
            "compact",
            f"{kind.lower()}-above-{mark}",
            "A transaction that ends at the high watermark or above is open for compaction: nothing of it is touched.",
            should("SEG-CMP-003", needs=("producersFromLog",)),
            {"files": {name: ended_above[name].hex() for name in sorted(ended_above)}},
            {**ended_above, **rows},
            **base,
            options={"highWatermark": str(mark)},
        )
    hidden = {**files, name_of(0): bytes_of([keyed(0, "a")]), name_of(10): bytes_of([keyed(10, "a")])}
    hidden |= {name_of(0, ".txnindex"): aborted(9, 0, 4, 4), name_of(10, ".index"): b"", name_of(10, ".timeindex"): b""}
    settings = {**base["config"], "segment.bytes": "80"}
    add.on_files(
        "compact",
        "nothing-left-hides-the-old-list",
        "Without remaining records, an empty transaction index replaces the old one, also for a reader after a crash.",
        must("SEG-CMP-022", needs=("logDirectory",)),
        {"files": {name_of(0): "", name_of(0, ".txnindex"): ""}},
        hidden,
        **{**base, "config": settings},
    )
