"""Family 44: when a log rolls, and what retention takes."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from authoring.casefile import Basis, Family, Json, must
from authoring.own_files import own_retention
from authoring.own_scenarios import own_writes
from authoring.scenario_cases import add_scenarios
from authoring.settings import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
INT32_MAX: Final = 2**31 - 1
TIERED: Final = Path(__file__).resolve().parents[2] / "fixtures" / "witnesses" / "tiered-retention.jsonl.gz"
OF_A_KIND: Final = 2
"""So many recorded questions are asked of each kind of settings and answer."""
COPIED: Final = "While segments are copied, the local limits count, and a segment waits until it is copied."


def decisions() -> Family:
    """Family 44."""
    flags = {
        "ROLL_RULES": {
            "effect": "A segment that is rolled too late cannot be indexed or deleted; one that is rolled too early multiplies open files.",
            "links": [],
        },
        "RETENTION_RULES": {
            "effect": "One segment too many is data lost for good; one too few is a full disk.",
            "links": [],
        },
        "CONFIG": {
            "effect": "Another default, or a number that brokers refuse, shapes other files than a broker makes.",
            "links": [],
        },
    }
    family = Family(44, "decisions", "When a log rolls, and what retention takes", "facts 5.2 and 5.3", flags=flags)
    _rolls(family)
    _retention(family)
    _tiered(family)
    settings(family)
    add_scenarios(family, "write", "retain")
    own_writes(family)
    own_retention(family)
    return family


def _rolls(family: Family) -> None:
    flags = {"flags": ("ROLL_RULES",)}

    def roll(
        name: str,
        why: str,
        basis: Basis,
        reason: str | None,
        *,
        active: Json | None = None,
        incoming: Json | None = None,
        config: dict[str, str] | None = None,
        now: int = 5000,
        base: int = 9,
    ) -> None:
        listing = [
            {
                "baseOffset": "0",
                "nextOffset": "9",
                "size": "231",
                "firstTimestamp": "1000",
                "created": "1000",
                **(active or {}),
            }
        ]
        given = {"size": "77", "maxTimestamp": "1500", "firstOffset": "9", "lastOffset": "11", **(incoming or {})}
        request = {"what": "roll", "listing": listing, "incoming": given, "config": config or {}, "now": str(now)}
        expect: Json = (
            {"decision": "keep"} if reason is None else {"decision": "roll", "reason": reason, "baseOffset": str(base)}
        )
        family.add(f"roll-{name}", "decide", "valid", why, basis, request=request, expect=expect)

    size = must("SEG-ROL-002", "SEG-ROL-001", **flags)
    roll("nothing", "No limit is reached: the segment is not rolled.", must("SEG-ROL-001", **flags), None)
    roll("size-fits", "With the append, the segment is exactly as large as allowed: it is not rolled.", size, None, config={"segment.bytes": "308"})  # fmt: skip
    roll("size-one-more", "With the append, the segment would be one byte too large: it is rolled before.", size, "size", config={"segment.bytes": "307"})  # fmt: skip
    roll("size-of-an-empty-one", "An empty segment takes what fits into it.", size, None, active={"size": "0"}, config={"segment.bytes": "77"})  # fmt: skip
    time = must("SEG-ROL-003", "SEG-ROL-004", **flags)
    week = {"segment.ms": "1000"}
    roll("time-within", "The timestamps span exactly `segment.ms`: the segment is not rolled.", time, None, config=week, incoming={"maxTimestamp": "2000"})  # fmt: skip
    roll("time-over", "The timestamps span a millisecond more than `segment.ms`: the segment is rolled.", time, "time", config=week, incoming={"maxTimestamp": "2001"})  # fmt: skip
    roll("time-of-records-not-clock", "The clock is far ahead, the timestamps are not: the segment is not rolled.", time, None, config=week, incoming={"maxTimestamp": "1500"}, now=10**12)  # fmt: skip
    roll("time-old-record", "A record with an old timestamp never rolls a segment.", time, None, config=week, incoming={"maxTimestamp": "5"})  # fmt: skip
    roll("time-empty", "An empty segment is never rolled by time.", time, None, config=week, active={"size": "0"}, incoming={"maxTimestamp": "99999"})  # fmt: skip
    roll("time-jitter", "The jitter makes the segment roll earlier.", time, "time", config=week, active={"jitter": "300"}, incoming={"maxTimestamp": "1701"})  # fmt: skip
    roll("time-jitter-within", "The segment is not rolled before `segment.ms` minus jitter.", time, None, config=week, active={"jitter": "300"}, incoming={"maxTimestamp": "1700"})  # fmt: skip
    roll("time-without-timestamps", "Without timestamps, the time since the segment was created decides: it is rolled.", time, "time", config=week, active={"firstTimestamp": "-1"}, incoming={"maxTimestamp": "-1"}, now=2001)  # fmt: skip
    roll("time-without-timestamps-within", "Without timestamps, the segment was created exactly `segment.ms` ago: it is not rolled.", time, None, config=week, active={"firstTimestamp": "-1"}, incoming={"maxTimestamp": "-1"}, now=2000)  # fmt: skip
    roll("time-from-zero", "A first timestamp of 0 is valid: the timestamps decide, not the clock.", time, "time", config=week, active={"firstTimestamp": "0"}, incoming={"maxTimestamp": "1001"}, now=1500)  # fmt: skip
    roll("time-compacted", "On a compacted topic, `max.compaction.lag.ms` rolls the segment if it is shorter than `segment.ms`.", time, "time", config={"segment.ms": "100000", "cleanup.policy": "compact", "max.compaction.lag.ms": "400"}, incoming={"maxTimestamp": "1401"})  # fmt: skip
    full = must("SEG-ROL-005", **flags)
    roll("offset-index-full", "The offset index has no room for another entry: the segment is rolled.", full, "offset index full", active={"isOffsetIndexFull": True})  # fmt: skip
    roll("time-index-full", "The time index has room for one entry only, its last: the segment is rolled.", must("SEG-ROL-017", **flags), "time index full", active={"isTimeIndexFull": True})  # fmt: skip
    span = must("SEG-ROL-006", **flags)
    roll("span-fits", "The append has the greatest possible relative offset.", span, None, incoming={"firstOffset": str(INT32_MAX), "lastOffset": str(INT32_MAX)})  # fmt: skip
    roll("span-one-more", "The relative offset is too large for an index by one: the segment is rolled.", span, "offset span", incoming={"firstOffset": str(INT32_MAX + 1), "lastOffset": str(INT32_MAX + 1)}, base=INT32_MAX + 1)  # fmt: skip
    for base in (0, 100):
        first = base + INT32_MAX
        roll(f"span-of-the-last-from-{base}", "The first offset of the append fits into the index, and the last one does not: the segment is rolled.", span, "offset span", active={"baseOffset": str(base), "nextOffset": str(base + 9)}, incoming={"firstOffset": str(first), "lastOffset": str(first + 1)}, base=first)  # fmt: skip
    order = must("SEG-ROL-001", "SEG-ROL-002", **flags)
    roll("size-before-time", "Size and time both require a roll: the reason is the size.", order, "size", config={"segment.bytes": "300", "segment.ms": "1"}, incoming={"maxTimestamp": "99999"})  # fmt: skip
    named = must("SEG-ROL-007", **flags)
    roll("base-is-the-end", "The base offset of the new segment is the log end offset.", named, "size", config={"segment.bytes": "300"})  # fmt: skip
    roll("base-after-a-gap", "After a gap, the base offset of the new segment is the first offset of the append.", named, "size", config={"segment.bytes": "300"}, incoming={"firstOffset": "50", "lastOffset": "55"}, base=50)  # fmt: skip
    roll("base-of-old-messages", "For messages of magic 0 and 1, the base offset is the last offset minus the greatest relative one.", named, "size", config={"segment.bytes": "300"}, incoming={"firstOffset": str(INT32_MAX + 100), "lastOffset": str(INT32_MAX + 100), "magic": 1}, base=100)  # fmt: skip


def _retention(family: Family) -> None:
    flags = {"flags": ("RETENTION_RULES",)}
    bases = (0, 10, 20, 30)

    def keep(
        name: str,
        why: str,
        basis: Basis,
        gone: int,
        *,
        config: dict[str, str],
        start: int = 0,
        mark: int = 40,
        now: int = 10_000,
        sizes: Sequence[int] = (100, 100, 100, 50),
        times: Sequence[int] = (1000, 2000, 3000, 4000),
        modified: Sequence[int] = (0, 0, 0, 0),
        left: int | None = None,
        rolls: bool = False,
        end: int = 40,
    ) -> None:
        ends = (*bases[1:], end)
        listing = [
            {
                "baseOffset": str(base),
                "nextOffset": str(until),
                "size": str(size),
                "largestTimestamp": str(time),
                "modified": str(changed),
            }
            for base, until, size, time, changed in zip(bases, ends, sizes, times, modified, strict=True)
        ]
        request = {
            "what": "retain",
            "listing": listing,
            "config": config,
            "now": str(now),
            "logStartOffset": str(start),
            "highWatermark": str(mark),
        }
        after = left if left is not None else max(start, (*bases, end)[gone])
        expect = {
            "decision": "delete" if gone else "keep",
            "segments": [str(base) for base in bases[:gone]],
            "logStartOffset": str(after),
            "rollsFirst": rolls,
        }
        family.add(f"retain-{name}", "decide", "valid", why, basis, request=request, expect=expect)

    family.add("retain-no-segment", "decide", "invalid", "Retention needs a log with at least one segment.", must("SEG-RET-001", needs=("config",), **flags), request={"what": "retain", "listing": [], "config": {}, "now": "0", "logStartOffset": "0"}, expect={"reject": {"class": "policy"}})  # fmt: skip
    off = {"retention.ms": "-1", "retention.bytes": "-1"}
    time = must("SEG-RET-003", **flags)
    keep("nothing", "No retention limit is set: all segments stay.", must("SEG-RET-001", **flags), 0, config=off)
    keep(
        "time-first", "The first segment is too old by a millisecond.", time, 1, config={**off, "retention.ms": "8999"}
    )
    keep("time-exactly", "The first segment is exactly as old as allowed: it stays.", time, 0, config={**off, "retention.ms": "9000"})  # fmt: skip
    keep("time-zero", "With `retention.ms=0`, every segment that is older than now is deleted.", time, 1, config={**off, "retention.ms": "0"}, now=2000)  # fmt: skip
    keep("time-three", "Three segments are too old.", time, 3, config={**off, "retention.ms": "6500"})
    keep("time-prefix", "A segment that is not too old keeps all segments after it, also old ones.", time, 1, config={**off, "retention.ms": "5000"}, times=(1000, 9000, 2000, 9500))  # fmt: skip
    keep("time-future", "A timestamp in the future keeps its segment, and all segments after it.", time, 0, config={**off, "retention.ms": "1"}, times=(10**12, 1, 2, 3))  # fmt: skip
    keep("time-all", "All segments are too old: a new segment is rolled first, then all old ones are deleted.", must("SEG-RET-006", "SEG-RET-003", **flags), 4, config={**off, "retention.ms": "100"}, rolls=True, left=40)  # fmt: skip
    old = must("SEG-RET-004", **flags)
    keep("file-time", "Without timestamps, the modification time of the file decides.", old, 1, config={**off, "retention.ms": "5000"}, times=(-1, -1, 9000, 9000), modified=(1000, 9000, 0, 0))  # fmt: skip
    keep("file-time-not-used", "With timestamps, the modification time of the file has no effect.", old, 0, config={**off, "retention.ms": "5000"}, times=(9000, 9000, 9000, 9000), modified=(0, 0, 0, 0))  # fmt: skip
    size = must("SEG-RET-005", **flags)
    keep("size-first", "Without the first segment, the log still has `retention.bytes`: it is deleted.", size, 1, config={**off, "retention.bytes": "250"})  # fmt: skip
    keep("size-one-less", "Without the first segment, the log has one byte less than `retention.bytes`: it stays.", size, 0, config={**off, "retention.bytes": "251"})  # fmt: skip
    keep("size-two", "Without two segments, the log still has `retention.bytes`: both are deleted.", size, 2, config={**off, "retention.bytes": "150"})  # fmt: skip
    keep("size-three", "Without three segments, the log still has `retention.bytes`: all three are deleted.", size, 3, config={**off, "retention.bytes": "50"})  # fmt: skip
    keep("size-0", "With `retention.bytes=0`, all segments are deleted.", must("SEG-RET-005", "SEG-RET-006", **flags), 4, config={**off, "retention.bytes": "0"}, rolls=True, left=40)  # fmt: skip
    mark = must("SEG-RET-002", **flags)
    keep("high-watermark", "Segments at or above the high watermark stay.", mark, 1, config={**off, "retention.ms": "100"}, mark=15)  # fmt: skip
    keep("high-watermark-at-the-end", "The high watermark is the base offset of the next segment: the segment is deleted.", mark, 2, config={**off, "retention.ms": "100"}, mark=20)  # fmt: skip
    keep("high-watermark-0", "The high watermark is 0: no segment is deleted.", mark, 0, config={**off, "retention.ms": "100"}, mark=0)  # fmt: skip
    keep("active-and-empty", "The active segment is empty: it stays.", mark, 3, config={**off, "retention.ms": "100"}, sizes=(100, 100, 100, 0), end=30, mark=30, times=(1000, 2000, 3000, -1))  # fmt: skip
    start = must("SEG-RET-008", **flags)
    keep("log-start", "The log start offset is inside the third segment: two segments are deleted.", start, 2, config=off, start=25)  # fmt: skip
    keep("log-start-at-a-base", "The log start offset is the base offset of the third segment: two segments are deleted.", start, 2, config=off, start=20)  # fmt: skip
    keep("log-start-before-a-base", "The log start offset is one below the base offset of the third segment: one segment is deleted.", start, 1, config=off, start=19)  # fmt: skip
    keep("log-start-beyond", "The log start offset is inside the active segment, which this rule never deletes.", start, 3, config=off, start=40)  # fmt: skip
    keep("log-start-stays", "The first segment that is left begins below the log start offset, which does not change.", must("SEG-RET-007", **flags), 1, config={**off, "retention.ms": "8999"}, start=15, left=15)  # fmt: skip
    keep("only-compacted", "Time and size delete nothing in a topic that is only compacted.", must("SEG-RET-001", **flags), 0, config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"})  # fmt: skip
    keep("only-compacted-log-start", "The log start offset also deletes segments of a topic that is only compacted.", must("SEG-RET-001", **flags), 1, config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"}, start=12)  # fmt: skip
    keep("size-then-time", "Size deletes the first segments, then time deletes more.", must("SEG-RET-001", **flags), 2, config={"retention.bytes": "250", "retention.ms": "7999"})  # fmt: skip


def _tiered(family: Family) -> None:
    """Add logs whose segments are copied to a remote store, or no longer, with what Kafka's `UnifiedLog` removed."""
    header, *rows = map(json.loads, gzip.decompress(TIERED.read_bytes()).splitlines())
    counts: Counter[tuple[object, ...]] = Counter()
    for number, row in enumerate(rows):
        (left, after, *_), config = row["answers"][header["releases"][-1]], row["config"]
        start, bases = row["logStartOffset"], [one[0] for one in row["segments"]]
        is_tiered, is_off = config["remote.storage.enable"], config.get("remote.log.copy.disable", "false")
        if is_tiered == "false":
            start = max(start, bases[0])  # a broker loads it so
        gone = [str(base) for base in bases if base not in dict(left)]
        rolls = len(left) > len(bases) - len(gone)
        own = config.get("local.retention.ms"), config.get("local.retention.bytes")
        kind = (is_tiered, is_off, min(len(gone), 2), rolls, after > start, *(int(one or 0) < 0 for one in own))
        counts[kind] += 1
        if counts[kind] > OF_A_KIND:
            continue
        names = ("baseOffset", "nextOffset", "size", "largestTimestamp", "modified")
        listing = [dict(zip(names, map(str, one), strict=True)) for one in row["segments"]]
        request = {"what": "retain", "listing": listing, "config": config, "now": str(header["nowMs"])}
        request |= {"logStartOffset": str(start), "highWatermark": str(max(start, row["highWatermark"]))}
        request |= {"copiedOffset": str(row["copiedOffset"])}
        expect = {"decision": "delete" if gone else "keep", "segments": gone}
        expect |= {"logStartOffset": str(after), "rollsFirst": rolls}
        source = f"recorded from kafka-storage {' and '.join(header['releases'])} ({header['script']})"
        rules = ("SEG-RET-014", "SEG-RET-015", "SEG-RET-016", "SEG-RET-017")
        basis = must(*rules, flags=("RETENTION_RULES",), needs=("tiered",), source=source)
        family.add(f"retain-tiered-{number}", "decide", "valid", COPIED, basis, request=request, expect=expect)


def families() -> list[Family]:
    """All of this module."""
    return [decisions()]
