"""Logs that nobody has open, and retention: scenarios that Kafka's classes play, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import TRANSACTIONAL
from authoring.casefile import hexed, must
from authoring.control import marker
from authoring.scenarios import NOW, Scenario, sent, settings_of
from authoring.segments import bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from authoring.batches import Batch
    from authoring.casefile import Basis, Json


def retain_scenarios() -> Iterator[Scenario]:
    """Yield logs that nobody has open, and retention."""
    logs = {base: row(3, base=base, start=NOW + 100 * base) for base in (0, 9, 18)}
    files = {name_of(base): bytes_of(units) for base, units in logs.items()}
    files |= {name_of(base, ".index"): offset_index(units, 100, base) for base, units in logs.items()}
    files |= {name_of(base, ".timeindex"): time_index(units, 100, base) for base, units in logs.items()}
    size = len(bytes_of(logs[0]))
    epochs = b"0\n3\n0 0\n1 12\n4 20\n"

    def retained(
        name: str,
        why: str,
        basis: Basis,
        *,
        now: int = NOW,
        more: Json | None = None,
        own: dict[str, bytes] | None = None,
        **config: str,
    ) -> Scenario:
        given = hexed({"leader-epoch-checkpoint": epochs, **(own or files)})
        request = {"files": given, "config": settings_of(config), "now": str(now), "options": more or {}}
        return Scenario(f"retain-files-{name}", "retain", why, basis, request)

    basis = must("SEG-RET-009", "SEG-RET-011")
    yield retained("by-size-1", "Retention by size deletes the first segment.", basis, retention_bytes=str(2 * size), retention_ms="-1")  # fmt: skip
    yield retained("by-size-2", "Retention by size deletes two segments.", basis, retention_bytes=str(size), retention_ms="-1")  # fmt: skip
    yield retained("by-size-none", "Retention by size deletes no segment.", basis, retention_bytes=str(3 * size), retention_ms="-1")  # fmt: skip
    yield retained("by-time", "Retention by time deletes the first segment, which is too old.", basis, now=NOW + 1500, retention_ms="1000")  # fmt: skip
    yield retained("by-start", "Retention deletes segments below the log start offset.", must("SEG-RET-008", "SEG-RET-011"), more={"logStartOffset": "13"}, retention_ms="-1")  # fmt: skip
    yield retained("by-size-not-replicated", "Retention keeps segments at or above the high watermark.", must("SEG-RET-002"), more={"highWatermark": "12"}, retention_bytes="1", retention_ms="-1")  # fmt: skip
    at_bases = {**files, "leader-epoch-checkpoint": b"0\n3\n0 0\n1 9\n2 18\n"}
    why = "A leader epoch begins at the base offset of the first segment that stays: it begins there afterwards, too."
    for count in (1, 2):
        least = str((3 - count) * size)
        yield retained(f"epoch-at-base-{count}", why, basis, own=at_bases, retention_bytes=least, retention_ms="-1")
    for name, now, gone in (("two", NOW + 2500, "two segments"), ("exactly", NOW + 1020, "no segment")):
        why = f"Retention by time deletes {gone}: each that is older than the limit."
        yield retained(f"by-time-{name}", why, must("SEG-RET-003"), now=now, retention_ms="1000")
    why = "The high watermark is the base offset of the last segment: all before it may go."
    mark, late = {"highWatermark": "18"}, NOW + 100_000
    yield retained("by-time-to-the-mark", why, must("SEG-RET-002"), now=late, more=mark, retention_ms="1000")
    why = "The log start offset is one below a base offset: only the segment that ends there or before is deleted."
    yield retained("by-start-before-a-base", why, must("SEG-RET-008", "SEG-RET-011"), more={"logStartOffset": "17"}, retention_ms="-1")  # fmt: skip
    why = "The high watermark is below the log start offset: it counts as being there, and segments below are deleted."
    yield retained("by-start-above-the-mark", why, must("SEG-RET-002", "SEG-RET-008"), more={"logStartOffset": "13", "highWatermark": "5"}, retention_ms="-1")  # fmt: skip
    yield from _of_producers(retained)
    both = {"cleanup_policy": "compact,delete", "retention_bytes": str(size)}
    yield retained("of-both-policies", "A topic may be compacted and deleted.", must("SEG-RET-001"), **both)
    for number in (0, 1):
        units = {base: [*log] for base, log in logs.items()}
        units[0][number] = replace(units[0][number], base_timestamp=NOW + 5000, max_timestamp=NOW + 5010)
        own = {**files, name_of(0): bytes_of(units[0]), name_of(0, ".timeindex"): time_index(units[0], 100, 0)}
        why = "The largest timestamp of a segment is not that of its last batch: it counts."
        yield retained(f"largest-is-{number}", why, must("SEG-RET-003"), own=own, now=NOW + 2500, retention_ms="1000")
    yield from _tiered(retained, size)


def _tiered(retained: Callable[..., Scenario], size: int) -> Iterator[Scenario]:
    """Yield logs whose segments are copied, up to an offset: log start offset and leader epochs stay."""
    basis = must("SEG-RET-014", "SEG-RET-016", "SEG-RET-017", since="3.9.1", needs=("tiered",))
    why = "Segments are copied up to an offset, which is the last of a segment or not: what is copied may go."
    old: Json = {"now": NOW + 100_000, "retention_ms": "1000", "remote_storage_enable": "true"}
    for copied in (7, 8, 9, 16, 17, 26):
        yield retained(f"tiered-{copied}", why, basis, more={"copiedOffset": str(copied)}, **old)
    for name, more, config in (
        ("size", {"copiedOffset": "17"}, {"local_retention_bytes": str(2 * size), "retention_ms": "-1"}),
        ("never", {"copiedOffset": "17"}, {"local_retention_ms": "-1"}),
        ("disabled", {"copiedOffset": "7"}, {"remote_log_copy_disable": "true"}),
        ("disabled-size", {"copiedOffset": "7"}, {"remote_log_copy_disable": "true", "retention_bytes": str(2 * size), "retention_ms": "-1"}),
    ):  # fmt: skip
        why = "The local limits count while segments are copied, and no other way of removal waits."
        yield retained(f"tiered-{name}", why, basis, more=more, **{**old, **config})
    why = "The log starts inside of a segment: of the leader epochs up to there only the last is left, and it begins there."
    for start, limit in (("5", "1000"), ("5", "-1"), ("13", "-1")):
        yield retained(f"tiered-start-inside-{start}-{limit}", why, must("SEG-RCV-037", since="3.9.1", needs=("tiered",)), more={"copiedOffset": "17", "logStartOffset": start}, **{**old, "retention_ms": limit})  # fmt: skip
    yield retained("start-inside", why, must("SEG-RCV-037"), more={"logStartOffset": "5"}, retention_ms="-1")


def _of_producers(retained: Callable[..., Scenario]) -> Iterator[Scenario]:
    """Yield logs of producers: their snapshots and aborted transactions go with the segments, and their state stays."""
    logs = {
        0: [sent(7, 0, attributes=TRANSACTIONAL), ending("ABORT", 1)],
        2: [sent(7, 1, attributes=TRANSACTIONAL, base=2), ending("ABORT", 3)],
        4: [sent(7, 2, base=4)],
    }
    files = {name_of(base): bytes_of(units) for base, units in logs.items()}
    files |= {name_of(base, suffix): b"" for base in logs for suffix in (".index", ".timeindex")}
    size = len(files[name_of(4)])
    why = "The snapshot and the aborted transactions of a deleted segment are deleted with it, and no others."
    both = must("SEG-RET-009", "SEG-RET-010")
    for count, left in ((1, size + len(files[name_of(2)])), (2, size)):
        own = {"retention_bytes": str(left), "retention_ms": "-1"}
        yield retained(f"of-a-producer-{count}", why, both, own=files, **own)
    why = "All segments are too old: the state of the producer is stored with the new segment."
    both = must("SEG-RET-006", "SEG-ROL-015")
    yield retained("all-of-a-producer", why, both, own=files, now=NOW + 100_000, retention_ms="1000")
    begun = {name_of(0): sent(7, 5, count=2, attributes=TRANSACTIONAL).encoded()}
    begun |= {name_of(0, suffix): b"" for suffix in (".index", ".timeindex")}
    yield retained("all-of-a-transaction", why, both, own=begun, now=NOW + 100_000, retention_ms="1000")


def ending(kind: str, base: int) -> Batch:
    """Return an end marker of producer 7."""
    return marker(kind, base, producer_id=7, producer_epoch=0, at=NOW, leader_epoch=0)
