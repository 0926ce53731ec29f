"""Family 44: when a log rolls, and what retention takes."""

from __future__ import annotations

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
    settings(family)
    add_scenarios(family, "write", "retain")
    own_writes(family)
    own_retention(family)
    return family


def _rolls(family: Family) -> None:
    flags = {"flags": ("ROLL_RULES",), "since": "4.1"}

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
    roll("nothing", "Nothing asks for it.", must("SEG-ROL-001", **flags), None)
    roll("size-fits", "The segment gets exactly as large as it may.", size, None, config={"segment.bytes": "308"})
    roll("size-one-more", "One byte more: it ends before.", size, "size", config={"segment.bytes": "307"})
    roll(
        "size-of-an-empty-one",
        "An empty segment takes what fits into it.",
        size,
        None,
        active={"size": "0"},
        config={"segment.bytes": "77"},
    )
    time = must("SEG-ROL-003", "SEG-ROL-004", **flags)
    week = {"segment.ms": "1000"}
    roll("time-within", "Exactly as long as allowed.", time, None, config=week, incoming={"maxTimestamp": "2000"})
    roll("time-over", "A millisecond more.", time, "time", config=week, incoming={"maxTimestamp": "2001"})
    roll(
        "time-of-records-not-clock",
        "The clock is far ahead, the records are not: nothing happens.",
        time,
        None,
        config=week,
        incoming={"maxTimestamp": "1500"},
        now=10**12,
    )
    roll(
        "time-old-record",
        "A record from the past never ends a segment.",
        time,
        None,
        config=week,
        incoming={"maxTimestamp": "5"},
    )
    roll(
        "time-empty",
        "An empty segment is never too old.",
        time,
        None,
        config=week,
        active={"size": "0"},
        incoming={"maxTimestamp": "99999"},
    )
    roll(
        "time-jitter",
        "The jitter lets it end earlier.",
        time,
        "time",
        config=week,
        active={"jitter": "300"},
        incoming={"maxTimestamp": "1701"},
    )
    roll(
        "time-jitter-within",
        "But not earlier than that.",
        time,
        None,
        config=week,
        active={"jitter": "300"},
        incoming={"maxTimestamp": "1700"},
    )
    roll(
        "time-without-timestamps",
        "Without timestamps the clock counts, from when the segment was opened.",
        time,
        "time",
        config=week,
        active={"firstTimestamp": "-1"},
        incoming={"maxTimestamp": "-1"},
        now=2001,
    )
    roll(
        "time-without-timestamps-within",
        "Exactly as long by the clock.",
        time,
        None,
        config=week,
        active={"firstTimestamp": "-1"},
        incoming={"maxTimestamp": "-1"},
        now=2000,
    )
    roll(
        "time-from-zero",
        "A first timestamp of 0 is a timestamp: the records count, not the clock.",
        time,
        "time",
        config=week,
        active={"firstTimestamp": "0"},
        incoming={"maxTimestamp": "1001"},
        now=1500,
    )
    roll(
        "time-compacted",
        "On a compacted topic the lag may be the shorter span.",
        time,
        "time",
        config={"segment.ms": "100000", "cleanup.policy": "compact", "max.compaction.lag.ms": "400"},
        incoming={"maxTimestamp": "1401"},
    )
    full = must("SEG-ROL-005", **flags)
    roll(
        "offset-index-full",
        "No slot is left in the offset index.",
        full,
        "offset index full",
        active={"isOffsetIndexFull": True},
    )
    roll(
        "time-index-full",
        "Only the last slot is left in the time index.",
        full,
        "time index full",
        active={"isTimeIndexFull": True},
    )
    span = must("SEG-ROL-006", **flags)
    roll(
        "span-fits",
        "The greatest relative offset there is.",
        span,
        None,
        incoming={"firstOffset": str(INT32_MAX), "lastOffset": str(INT32_MAX)},
    )
    roll(
        "span-one-more",
        "One more does not fit an index.",
        span,
        "offset span",
        incoming={"firstOffset": str(INT32_MAX + 1), "lastOffset": str(INT32_MAX + 1)},
        base=INT32_MAX + 1,
    )
    order = must("SEG-ROL-001", "SEG-ROL-002", **flags)
    roll(
        "size-before-time",
        "Both hold: the size is named first.",
        order,
        "size",
        config={"segment.bytes": "300", "segment.ms": "1"},
        incoming={"maxTimestamp": "99999"},
    )
    named = must("SEG-ROL-007", **flags)
    roll(
        "base-is-the-end",
        "The new segment is named after the end of the log.",
        named,
        "size",
        config={"segment.bytes": "300"},
    )
    roll(
        "base-after-a-gap",
        "Or after the first offset that comes, where that is greater.",
        named,
        "size",
        config={"segment.bytes": "300"},
        incoming={"firstOffset": "50", "lastOffset": "55"},
        base=50,
    )
    roll(
        "base-of-old-messages",
        "For old messages it is what fits the index below the last offset.",
        named,
        "size",
        config={"segment.bytes": "300"},
        incoming={"firstOffset": str(INT32_MAX + 100), "lastOffset": str(INT32_MAX + 100), "magic": 1},
        base=100,
    )


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

    family.add(
        "retain-no-segment",
        "decide",
        "invalid",
        "A log without a segment is none.",
        must("SEG-RET-001", needs=("config",), **flags),
        request={"what": "retain", "listing": [], "config": {}, "now": "0", "logStartOffset": "0"},
        expect={"reject": {"class": "policy"}},
    )
    off = {"retention.ms": "-1", "retention.bytes": "-1"}
    time = must("SEG-RET-003", **flags)
    keep("nothing", "No limit is set.", must("SEG-RET-001", **flags), 0, config=off)
    keep(
        "time-first", "The first segment is too old by a millisecond.", time, 1, config={**off, "retention.ms": "8999"}
    )
    keep("time-exactly", "Exactly as old as allowed: it stays.", time, 0, config={**off, "retention.ms": "9000"})
    keep("time-zero", "Nothing may be older than now.", time, 1, config={**off, "retention.ms": "0"}, now=2000)
    keep("time-three", "Three are too old.", time, 3, config={**off, "retention.ms": "6500"})
    keep(
        "time-prefix",
        "A young segment keeps the old ones behind it.",
        time,
        1,
        config={**off, "retention.ms": "5000"},
        times=(1000, 9000, 2000, 9500),
    )
    keep(
        "time-future",
        "A record of the future keeps its segment, and all after it.",
        time,
        0,
        config={**off, "retention.ms": "1"},
        times=(10**12, 1, 2, 3),
    )
    keep(
        "time-all",
        "All are too old: a new segment is begun first, then all go.",
        must("SEG-RET-006", "SEG-RET-003", **flags),
        4,
        config={**off, "retention.ms": "100"},
        rolls=True,
        left=40,
    )
    old = must("SEG-RET-004", **flags)
    keep(
        "file-time",
        "Without timestamps the file's own time counts.",
        old,
        1,
        config={**off, "retention.ms": "5000"},
        times=(-1, -1, 9000, 9000),
        modified=(1000, 9000, 0, 0),
    )
    keep(
        "file-time-not-used",
        "With timestamps the file's time does not count.",
        old,
        0,
        config={**off, "retention.ms": "5000"},
        times=(9000, 9000, 9000, 9000),
        modified=(0, 0, 0, 0),
    )
    size = must("SEG-RET-005", **flags)
    keep(
        "size-first",
        "Without the first there is still as much as asked for.",
        size,
        1,
        config={**off, "retention.bytes": "250"},
    )
    keep(
        "size-one-less",
        "One byte less would be left than asked for: it stays.",
        size,
        0,
        config={**off, "retention.bytes": "251"},
    )
    keep("size-two", "Two may go.", size, 2, config={**off, "retention.bytes": "150"})
    keep("size-three", "Three may go.", size, 3, config={**off, "retention.bytes": "50"})
    keep(
        "size-0",
        "A limit of 0: all of it.",
        must("SEG-RET-005", "SEG-RET-006", **flags),
        4,
        config={**off, "retention.bytes": "0"},
        rolls=True,
        left=40,
    )
    mark = must("SEG-RET-002", **flags)
    keep(
        "high-watermark",
        "What is not on all replicas yet stays.",
        mark,
        1,
        config={**off, "retention.ms": "100"},
        mark=15,
    )
    keep(
        "high-watermark-at-the-end",
        "The high watermark is at the base of the next one: it may go.",
        mark,
        2,
        config={**off, "retention.ms": "100"},
        mark=20,
    )
    keep("high-watermark-0", "Nothing is replicated.", mark, 0, config={**off, "retention.ms": "100"}, mark=0)
    keep(
        "active-and-empty",
        "The active segment is empty: it stays.",
        mark,
        3,
        config={**off, "retention.ms": "100"},
        sizes=(100, 100, 100, 0),
        end=30,
        mark=30,
        times=(1000, 2000, 3000, -1),
    )
    start = must("SEG-RET-008", **flags)
    keep("log-start", "The log starts inside the third segment: two may go.", start, 2, config=off, start=25)
    keep("log-start-at-a-base", "It starts where the third begins.", start, 2, config=off, start=20)
    keep("log-start-before-a-base", "One offset before.", start, 1, config=off, start=19)
    keep(
        "log-start-beyond",
        "It starts in the active segment, which never goes by this rule.",
        start,
        3,
        config=off,
        start=40,
    )
    keep(
        "log-start-stays",
        "What is left begins below the log start offset: that stays.",
        must("SEG-RET-007", **flags),
        1,
        config={**off, "retention.ms": "8999"},
        start=15,
        left=15,
    )
    keep(
        "only-compacted",
        "Neither time nor size count for a topic that is only compacted.",
        must("SEG-RET-001", **flags),
        0,
        config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"},
    )
    keep(
        "only-compacted-log-start",
        "The log start offset counts for it all the same.",
        must("SEG-RET-001", **flags),
        1,
        config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"},
        start=12,
    )
    keep(
        "size-then-time",
        "First by size, and on by time.",
        must("SEG-RET-001", **flags),
        2,
        config={"retention.bytes": "250", "retention.ms": "7999"},
    )


def families() -> list[Family]:
    """All of this module."""
    return [decisions()]
