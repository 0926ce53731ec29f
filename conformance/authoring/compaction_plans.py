"""Part of family 45: which segments compaction rewrites, and when."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from authoring.casefile import must, should

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from authoring.casefile import Basis, Family, Json

THREE: Final = [[0, 10, 20]]
"""All but the active segment become one."""


def compaction_plans(family: Family) -> None:
    """Which segments compaction rewrites, and whether it is time."""
    plan = partial(plan_of, family)
    _extent(plan)
    _time(plan)
    _groups(plan)


def plan_of(
    family: Family,
    name: str, why: str, basis: Basis, groups: Sequence[Sequence[int]], *, due: bool | None = None, config: dict[str, str] | None = None, listing: Sequence[Json] | None = None, expect: Json | None = None, **more: str) -> None:  # fmt: skip
    """Add a listing, and which groups of its segments are rewritten."""
    rows = listing or [segment(base) for base in (0, 10, 20, 30)]
    request = {"what": "compact", "listing": list(rows), "config": config or {}, "now": "100000", **more}
    reported_groups = [[str(base) for base in group] for group in groups]
    answer: Json = {
        "decision": "clean" if groups else "keep",
        "segments": [base for group in reported_groups for base in group],
        "groups": reported_groups,
        **(expect or {}),
    }
    if due is not None:
        answer["isDue"] = due
    basis = replace(basis, needs=("decide:compact",), flags=("KEPT_FILES",))
    family.add(f"plan-{name}", "decide", "valid", why, basis, request=request, expect=answer)


def segment(base: int, **more: int) -> Json:
    """Return a row of a listing: ten offsets and 100 bytes, written a little after the one before."""
    known = {
        "baseOffset": base,
        "nextOffset": base + 10,
        "size": 100,
        "firstTimestamp": 1000 + base,
        "largestTimestamp": 1000 + base,
    }
    return {key: str(value) for key, value in {**known, **more}.items()}


def _extent(plan: Callable[..., None]) -> None:
    begin = must("SEG-CMP-001")
    stable = must("SEG-CMP-003")
    lag = must("SEG-CMP-004")
    for name, why, basis, groups, named in (
        ("all", "All segments but the active one are compacted.", must("SEG-CMP-001", "SEG-CMP-002"), THREE, {"expect": {"firstDirtyOffset": "0", "firstUncleanableOffset": "30", "endOffset": "30"}}),
        ("clean-part", "Compaction also rewrites the clean part.", begin, THREE, {"cleanerOffset": "10", "expect": {"firstDirtyOffset": "10"}}),
        ("nothing-dirty", "No part of the log is dirty: nothing is compacted.", begin, [], {"cleanerOffset": "30"}),
        ("offset-below", "The cleaner offset is below the log start offset: the dirty part begins at the latter.", begin, THREE,
         {"cleanerOffset": "3", "logStartOffset": "5", "expect": {"firstDirtyOffset": "5"}}),
        ("offset-at-the-start", "The cleaner offset is the log start offset.", begin, THREE, {"cleanerOffset": "5", "logStartOffset": "5", "expect": {"firstDirtyOffset": "5"}}),
        ("offset-at-the-end", "The cleaner offset is the log end offset: nothing is dirty.", begin, [], {"cleanerOffset": "40", "expect": {"firstDirtyOffset": "40"}}),
        ("offset-above", "The cleaner offset is above the log end offset: the whole log is dirty.", begin, THREE, {"cleanerOffset": "41", "expect": {"firstDirtyOffset": "0"}}),
        ("stable", "The segment that contains the last stable offset is not compacted.", stable, [[0, 10]], {"lastStableOffset": "25", "expect": {"firstUncleanableOffset": "20"}}),
        ("stable-at-a-base", "The last stable offset is a base offset: that segment is not compacted.", stable, [[0, 10]], {"lastStableOffset": "20", "expect": {"firstUncleanableOffset": "20"}}),
        ("stable-before-a-base", "The last stable offset is one below a base offset: the segment before is not compacted either.", stable, [[0]],
         {"lastStableOffset": "19", "expect": {"firstUncleanableOffset": "10"}}),
        ("lag", "A segment newer than `min.compaction.lag.ms` is not compacted, nor any after it.", lag, [[0]], {"config": {"min.compaction.lag.ms": str(100_000 - 1009)}}),
        ("lag-exactly", "A segment exactly as old as `min.compaction.lag.ms` is compacted.", lag, [[0, 10]], {"config": {"min.compaction.lag.ms": str(100_000 - 1010)}}),
        ("lag-without-time", "Without timestamps, the modification time of the file decides.", lag, [[0]],
         {"config": {"min.compaction.lag.ms": "10000"}, "listing": [segment(0), segment(10, largestTimestamp=-1, modified=95_000), segment(20), segment(30)]}),
        ("lag-of-the-clean", "The minimum lag has no effect on clean segments.", lag, [], {"cleanerOffset": "20", "config": {"min.compaction.lag.ms": "99000"}}),
    ):  # fmt: skip
        plan(name, why, basis, groups, **named)


def _time(plan: Callable[..., None]) -> None:
    due, late = should("SEG-CMP-005"), should("SEG-CMP-025")
    ratio = "min.cleanable.dirty.ratio"
    for name, why, basis, is_due, cleaner_offset, named in (
        ("due", "More than half of the log is dirty: compaction is due.", due, True, "10", {}),
        ("due-not", "The dirty ratio is exactly the minimum: compaction is not due.", due, False, "10", {"config": {ratio: "0.6666666666666666"}}),
        ("due-less", "The dirty ratio is a little above the minimum: compaction is due.", due, True, "10", {"config": {ratio: "0.66"}}),
        ("due-late", "A dirty record is older than `max.compaction.lag.ms`: compaction is due.", late, True, "20", {"config": {ratio: "0.9", "max.compaction.lag.ms": str(100_000 - 1021)}}),
        ("due-late-exactly", "A dirty record is exactly as old as `max.compaction.lag.ms`: compaction is not due.", late, False, "20",
         {"config": {ratio: "0.9", "max.compaction.lag.ms": str(100_000 - 1020)}}),
    ):  # fmt: skip
        plan(name, why, basis, THREE, due=is_due, cleanerOffset=cleaner_offset, **named)
    for name, first in (("old", 1), ("a-little-older", 900), ("untimed", -1), ("young", 1030)):
        for case, why, groups, cleaner_offset, config, expect in (
            (f"due-late-{name}-active", "The active segment does not count for `max.compaction.lag.ms`, however old its first record is.", THREE, "20",
             {ratio: "0.9", "max.compaction.lag.ms": str(100_000 - 1020)}, {"firstDirtyOffset": "20", "firstUncleanableOffset": "30", "endOffset": "30"}),
            (f"due-late-{name}-active-and-nothing-dirty", "The active segment alone is dirty, and does not count: nothing is compacted.", [], "30",
             {ratio: "0.9", "max.compaction.lag.ms": "1000"}, {"firstDirtyOffset": "30", "firstUncleanableOffset": "30", "endOffset": "30"}),
        ):  # fmt: skip
            plan(
                case,
                why,
                late,
                groups,
                due=False,
                cleanerOffset=cleaner_offset,
                config=config,
                expect=expect,
                listing=[*(segment(base) for base in (0, 10, 20)), segment(30, firstTimestamp=first)],
            )
    for name, time, is_late in (("0", 0, False), ("1", 1, True), ("minus-1", -1, False)):
        plan(
            f"due-late-of-time-{name}",
            "Only times above 0 say how old the first record of a dirty segment is.",
            late,
            THREE,
            due=is_late,
            cleanerOffset="20",
            config={ratio: "0.9", "max.compaction.lag.ms": "99990"},
            listing=[segment(0), segment(10), segment(20, firstTimestamp=time), segment(30)],
        )
    why = "No part of the log is dirty: compaction is not due, however old the records are."
    plan("due-nothing", why, due, [], due=False, cleanerOffset="30", config={"max.compaction.lag.ms": "1"})


def _groups(plan: Callable[..., None]) -> None:
    group = must("SEG-CMP-006")
    size = "segment.bytes"
    for name, why, groups, config in (
        ("group-size", "Segments are merged while their sizes fit in one.", [[0, 10], [20]], {size: "200"}),
        ("group-size-less", "Two segments together are one byte too large: they are not merged.", [[0], [10], [20]], {size: "199"}),
    ):  # fmt: skip
        plan(name, why, group, groups, config=config)
    for name, index in (("offset-index", "offsetIndexSize"), ("time-index", "timeIndexSize")):
        rows = [segment(base, **{index: 24}) for base in (0, 10, 20, 30)]
        for case, why, groups, config in (
            (f"group-{name}", "Two segments are merged because their indexes fit in one.", [[0, 10], [20]], {"segment.index.bytes": "48"}),
            (f"group-{name}-less", "Two segments are not merged because their indexes do not fit in one.", [[0], [10], [20]], {"segment.index.bytes": "47"}),
        ):  # fmt: skip
            plan(case, why, group, groups, config=config, listing=rows)
    top = 2**31 - 1
    for name, base, groups in (("fits", top + 1, [[0, 10]]), ("too-far", top + 2, [[0], [10]])):
        far = [segment(0), segment(10), segment(base), segment(base + 10)]
        why = "For merging, a segment ends at the offset before the next base offset."
        plan(
            f"group-span-{name}", why, group, [*groups, [base]] if name == "too-far" else [[0, 10], [base]], listing=far
        )
    hollow = [segment(0), segment(10, size=0, nextOffset=10), segment(top + 50), segment(top + 60)]
    keys = must("SEG-CMP-007")
    for name, why, basis, groups, named in (
        ("group-empty", "An empty segment is merged, whatever its offsets are.", group, [[0, 10], [top + 50]], {"listing": hollow}),
        ("keys", "The cleaner remembers keys only up to this offset: later segments are not compacted.", keys, [[0, 10]], {"endOffset": "12", "expect": {"endOffset": "12"}}),
        ("keys-at-a-base", "The cleaner remembers keys only up to a base offset.", keys, [[0]], {"endOffset": "10", "expect": {"endOffset": "10"}}),
        ("keys-enough", "The cleaner could remember more keys than the log has.", keys, THREE, {"endOffset": "99", "expect": {"endOffset": "30"}}),
    ):  # fmt: skip
        plan(name, why, basis, groups, **named)
