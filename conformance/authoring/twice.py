"""Second cases for faults that one case alone showed, planted into the checks of a leader and the decisions of a log."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from authoring.appends import ask_leader
from authoring.batches import BASE_OFFSET, CONTROL, LAST_OFFSET_DELTA, TRANSACTIONAL, Batch, Rec, with_field
from authoring.boundaries import listed
from authoring.casefile import hexed, lay, must, should
from authoring.codecs import gzip
from authoring.compaction_plans import THREE, plan_of
from authoring.compaction_plans import segment as planned
from authoring.control import control_key, empty, marker, marker_value
from authoring.encodings import HOUR, INT32_MAX, NOW
from authoring.files import EPOCHS, PROPERTIES, RECOVERY_POINTS, TOPIC_ID, Parsing
from authoring.messages import Msg, Wrapper
from authoring.producers import LAST, States, assigned, batch, opened, sent
from authoring.repairs import MARKS, POINTS, STARTS, Repairs, epochs, offsets, segment
from authoring.segments import SIZE, bytes_of, name_of, offset_index, row
from authoring.written import Written, entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from authoring.casefile import Family, Json

POLICY: Final = ("APPEND_POLICY",)
OFF: Final = {"retention.ms": "-1", "retention.bytes": "-1"}


def twice(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _repeated(States(families["append-policy"]))
    _fenced(States(families["append-policy"]))
    _epochs(families["append-policy"])
    _leaders(families["append-policy"])
    _rolls(families["decisions"])
    _retention(families["decisions"])
    _gaps(families["decisions"])
    _plans(families["compaction-results"])
    _metadata(families["files"])
    _checkpoints(families["files"])
    _times(families["lookup"])
    _truncation(Repairs(families["recovery"]))


def _repeated(to: States) -> None:
    """Ask for batches that a producer sends again."""
    pairs = [batch(2 * at, 2 * at, 2) for at in range(6)]
    reason = "The batch of two records repeats the fifth from the end, which a leader remembers."
    to.repeats("again-the-fifth-of-pairs", reason, pairs, sent(2, 2), 3)
    refused = "SEG-APP-007"
    for name, why, log, new in (
        ("the-sixth-of-pairs", "It repeats the sixth from the end, which a leader does not remember.", pairs, (0, 2)),
        ("ends-alike", "It has the last sequence of another one, but begins after it.", pairs, (9, 1)),
        ("begins-alike", "It has the first sequence of another one, but ends before it.", pairs, (8, 1)),
    ):
        to.refuses(f"again-{name}", f"The batch is no duplicate. {why}", refused, log, sent(*new))
    marked = [*(opened(at, sequence=at) for at in range(5)), marker("COMMIT", 5)]
    reason = "The batch repeats the fifth from the end: the end marker behind it is none of the five."
    to.repeats("again-the-fifth-before-a-marker", reason, marked, opened(0), 0)
    to.refuses(
        "again-of-an-older-epoch-with-its-sequences",
        "The batch has the sequences of one of the newest producer epoch, and an older epoch: it is no duplicate.",
        "SEG-APP-009",
        [batch(0, 0, 3, epoch=3)],
        sent(0, 3),
    )
    hollow = empty(3, 0, attributes=CONTROL | TRANSACTIONAL, producer_id=9, producer_epoch=5)
    log = [batch(0, 0, 3), hollow]
    why = "A control batch that compaction has emptied changes nothing: its producer epoch does not count."
    to.takes("behind-an-emptied-newer-marker", why, "SEG-CTL-007", log, sent(3))
    to.repeats("again-behind-an-emptied-newer-marker", why, log, sent(0, 3), 2)
    log = [batch(0, 0, 3), batch(3, 3, 2)]
    for first in (1, LAST):
        to.refuses(f"new-epoch-{first}", "A new epoch begins at 0.", refused, log, sent(first, epoch=3))


def _fenced(to: States) -> None:
    """Ask for what a newer producer or coordinator has replaced, of a leader and of a follower."""
    coordinator, epoch = {"origin": "coordinator"}, "SEG-APP-009"
    seen = [opened(0), marker("COMMIT", 1, epoch=7), opened(2, sequence=1)]
    why = "The end marker has an older coordinator epoch than the last one; a batch between them has none."
    for kind in ("ABORT", "COMMIT"):
        older = marker(kind, 0, epoch=6)
        to.refuses(f"older-coordinator-{kind.lower()}-later", why, "SEG-APP-022", seen, older, **coordinator)
    copied = marker("COMMIT", 3, epoch=6)
    taken = "A follower takes an end marker of an older coordinator epoch from its leader."
    to.takes("older-coordinator-replicated", taken, "SEG-APP-022", seen, copied, policy="replicate")
    listed = {"producerId": "9", "firstOffset": "2", "lastOffset": "3", "lastStableOffset": "4"}
    aborts = {"aborted": [listed], "policy": "replicate"}
    undone = marker("ABORT", 3, epoch=6)
    to.takes("older-coordinator-abort-replicated", taken, "SEG-TXN-006", seen, undone, **aborts)
    newer = [batch(0, 0, epoch=3)]
    reason = "A follower takes a batch of an older producer epoch from its leader."
    to.takes("older-epoch-of-data-replicated", reason, epoch, newer, batch(1, 0), policy="replicate")
    reason = "A batch of a coordinator has an older producer epoch: it is refused as that of a producer is."
    to.refuses("older-epoch-of-a-coordinator", reason, epoch, newer, sent(1), **coordinator)
    for name, reason, rule, log, new in (
        ("older-epoch-by-a-commit", "The batch has an older producer epoch than an end marker behind its last batch.", epoch, [opened(0), marker("COMMIT", 1, producer_epoch=3)], sent(1)),
        ("not-part-of-the-second", "A second transaction is open: all batches of its producer have to be part of it.", "SEG-APP-023", [opened(0), marker("COMMIT", 1), opened(2, sequence=1)], sent(2)),
    ):  # fmt: skip
        to.refuses(name, reason, rule, log, new)


def _epochs(family: Family) -> None:
    """Ask for known leader epochs at the offset of a batch, and for several old messages."""
    known = ((0, 0), (5, 10), (7, 20))
    why = "A batch removes known epochs that begin at its offset."
    basis = must("SEG-APP-016", needs=("leaderEpochs",), source="facts 4.7 and 5.1", flags=POLICY)
    assigned(family, "at-the-start-of-two", why, known, [Batch(base=10, leader_epoch=9)], ((0, 0), (9, 10)), basis)
    old = [Msg(magic=0, offset=30), Msg(magic=0, offset=31)]
    gone = "Messages of magic 0 have no leader epoch: all known epochs are removed."
    assigned(family, "old-messages", gone, known, old, (), replace(basis, req=("SEG-APP-025",)))


def _leaders(family: Family) -> None:
    """Ask a leader for batches that it takes or refuses for the record that is not the first, or by one."""
    takes, refuses = (partial(ask_leader, family, result="valid"), partial(ask_leader, family, result="invalid"))
    clocks, keys = must("SEG-APP-024", flags=("CLOCKS",)), must("SEG-APP-012", flags=POLICY)
    single = must("SEG-APP-004", flags=POLICY)

    def new(*recs: Rec, time: int = NOW, **fields: Any) -> bytes:  # noqa: ANN401
        return Batch(recs=recs, leader_epoch=-1, base_timestamp=time, **fields).encoded()

    limits = {"message_timestamp_after_max_ms": str(HOUR), "message_timestamp_before_max_ms": str(2 * HOUR)}
    for name, time in (("ahead", HOUR), ("behind", -2 * HOUR)):
        why = f"The timestamp of the second record is exactly as far {name} of the clock as allowed."
        takes(name=f"second-record-{name}", why=why, basis=clocks, content=new(Rec(), Rec(time=time)), **limits)
    why = "Records without timestamps are never too far from the clock."
    takes(name="no-time-of-two", why=why, basis=clocks, content=new(Rec(), Rec(), time=-1), **limits)
    far = new(Rec(), time=NOW - 99 * HOUR)
    why = "With LogAppendTime, the producer's timestamp may be any."
    stamped = {"message_timestamp_type": "LogAppendTime", **limits}
    takes(name="stamped-topic-behind", why=why, basis=clocks, content=far, **stamped)
    why = "A compacted topic refuses a record without a key, wherever it is in the batch."
    for number in (1, 2):
        recs = tuple(Rec(key=None if at == number else b"k") for at in range(3))
        config = {"cleanup_policy": "compact"}
        refuses(name=f"compacted-null-key-of-{number}", why=why, basis=keys, content=new(*recs), **config)
    why = "A compacted topic takes a record with an empty key."
    empty_key = new(Rec(), Rec(key=b""), Rec())
    takes(name="compacted-empty-key-of-1", why=why, basis=keys, content=empty_key, cleanup_policy="compact")
    for base in (1, 2**40):
        why = "A batch of a producer has to begin at offset 0; the leader assigns the offsets."
        moved = with_field(new(Rec()), BASE_OFFSET, base)
        refuses(name=f"base-offset-{base}", why=why, basis=single, content=moved)
    fields = {"attributes": CONTROL | TRANSACTIONAL, "producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    abort = new(Rec(key=control_key(0), value=marker_value(0)), **fields)
    why = "A leader refuses a control batch of a producer, also with a sequence."
    refuses(name="control-abort", why=why, basis=single, content=abort)
    old = must("SEG-APP-004", flags=POLICY, needs=("magic:0", "magic:1"))
    mixed = Msg(magic=1).encoded() + Msg(magic=0, offset=1).encoded()
    why = "A leader refuses messages of two magics in one append, in either order."
    refuses(name="two-magics-back", why=why, basis=old, content=mixed)
    unnumbered = {"producer_id": 9, "producer_epoch": 0, "base_sequence": -1}
    why = "A batch with a producer id has a sequence, also in a transaction, however many records it has."
    for count in (1, 2):
        parts = new(*(Rec() for _ in range(count)), attributes=TRANSACTIONAL, **unnumbered)
        basis = must("SEG-APP-007", flags=POLICY)
        refuses(name=f"transaction-without-sequence-{count}", why=why, basis=basis, content=parts)
    old_clocks = replace(clocks, needs=("magic:1",))
    for name, time in (("ahead", NOW + HOUR + 1), ("behind", NOW - 2 * HOUR - 1)):
        late = Msg(offset=0, timestamp=time)
        for kind, content in (
            ("message", late),
            ("wrapper", Wrapper(offset=0, inner=(late,), offsets=(0,), compress=gzip)),
        ):
            why = f"The timestamp of a {kind} of magic 1 is too far {name} of the clock, as that of a record."
            refuses(name=f"{kind}-{name}-by-1", why=why, basis=old_clocks, content=content.encoded(), **limits)
    units = [Batch(base=40 + at, leader_epoch=epoch) for at, epoch in enumerate((2, 3, 3, 2))]
    Written(family).follows(
        "behind-two-of-a-later-epoch",
        "A follower also leaves out all batches after some of a later leader epoch.",
        should("SEG-APP-014", flags=POLICY),
        units,
        [entry(units[0], 40)],
        40,
        leaderEpoch=2,
    )
    for delta in (-1, 1):
        hollow = with_field(empty(0, 0, leader_epoch=-1).encoded(), LAST_OFFSET_DELTA, delta)
        why = "A leader refuses a batch without records, whatever its last offset delta is."
        basis = single if delta > 0 else must("SEG-BAT-006", "SEG-APP-004", flags=POLICY)
        refuses(name=f"empty-with-last-delta-{delta}", why=why, basis=basis, content=hollow)


def _rolls(family: Family) -> None:
    """Ask whether a segment is rolled, just before a limit and at it."""
    time, span = must("SEG-ROL-003", "SEG-ROL-004", flags=("ROLL_RULES",)), must("SEG-ROL-006", flags=("ROLL_RULES",))
    untimed, top = {"firstTimestamp": "-1"}, str(INT32_MAX + 100)
    moved = {"baseOffset": "100", "nextOffset": "109"}
    for name, why, basis, is_due, active, incoming, now in (
        ("jitter-by-the-clock", "Without timestamps, the jitter also makes it roll earlier.", time, True, {**untimed, "jitter": "300"}, {"maxTimestamp": "-1"}, 1701),
        ("jitter-by-the-clock-within", "Without timestamps, it is not rolled before the limit minus jitter.", time, False, {**untimed, "jitter": "300"}, {"maxTimestamp": "-1"}, 1700),
        ("empty-by-the-clock", "An empty segment is never rolled by time, nor by the clock.", time, False, {**untimed, "size": "0"}, {"maxTimestamp": "-1"}, 99_999),
        ("from-zero-within", "A first timestamp of 0 is valid: by the clock the segment would be rolled.", time, False, {"firstTimestamp": "0"}, {"maxTimestamp": "1000"}, 99_999),
        ("span-fits-from-100", "The append has the greatest possible relative offset of this segment.", span, False, moved, {"firstOffset": top, "lastOffset": top}, 1500),
    ):  # fmt: skip
        listing = {"baseOffset": "0", "nextOffset": "9", "size": "231", "firstTimestamp": "1000", "created": "1000"}
        given = {"size": "77", "maxTimestamp": "1500", "firstOffset": "9", "lastOffset": "11", **incoming}
        request: Json = {"what": "roll", "listing": [{**listing, **active}], "incoming": given}
        request |= {"config": {"segment.ms": "1000"}, "now": str(now)}
        expect = {"decision": "roll", "reason": "time", "baseOffset": "9"} if is_due else {"decision": "keep"}
        family.add(f"roll-{name}", "decide", "valid", why, basis, request=request, expect=expect)


def _retention(family: Family) -> None:
    """Ask what retention deletes of segments of ten offsets: size, largest timestamp, time of the last write."""
    new, old = 9990, 1000
    for name, why, rule, rows, gone, config in (
        ("time-zero-of-two", "With `retention.ms=0`, every segment that is older than now is deleted.", "SEG-RET-003", [(100, old, new), (100, new, new), (100, 10_000, new)], 2, {"retention.ms": "0"}),
        ("size-0-of-three", "With `retention.bytes=0`, all segments are deleted.", "SEG-RET-005", [(100, old, new)] * 3, 3, {"retention.bytes": "0"}),
        ("time-0-of-two", "A timestamp of 0 is one: the age counts from it, not from the last write.", "SEG-RET-003", [(100, 0, new), (100, 0, new), (100, new, old)], 2, {"retention.ms": "100"}),
        ("time-of-both-policies", "A topic that is compacted and deleted has both policies.", "SEG-RET-001", [(100, old, old)] * 2 + [(100, new, new)], 2, {"retention.ms": "100", "cleanup.policy": "compact,delete"}),
        ("size-of-both-policies", "A topic that is compacted and deleted has both policies.", "SEG-RET-001", [(100, new, new)] * 3, 1, {"retention.bytes": "150", "cleanup.policy": "delete,compact"}),
        ("all-of-both-policies", "A topic that is compacted and deleted has both policies.", "SEG-RET-001", [(100, old, old)] * 2, 2, {"retention.ms": "100", "cleanup.policy": "delete,compact"}),
        ("size-of-two-then-time", "Removal by time goes on where removal by size has stopped.", "SEG-RET-001", [(100, new, 0), (100, new, 0), (100, old, 0), (100, new, 0)], 3, {"retention.ms": "100", "retention.bytes": "200"}),
    ):  # fmt: skip
        request: Json = {"what": "retain", "listing": listed(rows), "config": {**OFF, **config}, "now": "10000"}
        request |= {"logStartOffset": "0", "highWatermark": str(10 * len(rows))}
        expect: Json = {"decision": "delete", "segments": [str(10 * at) for at in range(gone)]}
        expect |= {"logStartOffset": str(10 * gone), "rollsFirst": gone == len(rows)}
        basis = must(rule, flags=("RETENTION_RULES",))
        family.add(f"retain-{name}", "decide", "valid", why, basis, request=request, expect=expect)


def _gaps(family: Family) -> None:
    """Ask what retention deletes of segments between which offsets are missing, and by a broker's settings."""
    hour, start, mark = 3_600_000, "0", 50
    now = 10 * hour
    ages = (3 * hour // 2, 90_000, 30_000)
    limits = {
        "log.retention.hours": ("1", 1),
        "log.retention.minutes": ("1", 2),
        "log.retention.ms": ("1000", 3),
        "retention.ms": (str(9 * hour), 0),
    }
    asked = []
    for first, second in permutations(limits, 2):
        config = {name: limits[name][0] for name in (first, second)}
        text = "Of the settings of a broker that with the smallest unit counts, and the topic's own before all."
        gone = limits[max(first, second, key=[*limits].index)][1]
        name = f"by-{first}-and-{second}".replace(".", "-").replace("log-retention-", "")
        asked.append((name, text, "SEG-RET-013", config, start, mark, gone, gone))
    text = "Offsets are missing behind a segment: it ends where the next one begins."
    for name, limit, low, high, gone, left in (
        *((f"time-{at}", {"retention.ms": str(ages[at - 1] - 1)}, 0, 50, at, at) for at in (1, 2)),
        *((f"size-{at}", {"retention.bytes": str(300 - 100 * at)}, 0, 50, at, at) for at in (1, 2)),
        *((f"mark-{high}", {"retention.bytes": "0"}, 0, high, gone, gone) for high, gone in ((10, 0), (19, 0), (20, 1), (30, 1), (39, 1), (40, 2))),
        *((f"start-{low}", {}, low, 50, gone, -1) for low, gone in ((10, 0), (19, 0), (20, 1), (30, 1), (39, 1), (40, 2), (45, 2), (50, 2))),
        *((f"start-{low}-and-size", {"retention.bytes": "200"}, low, 50, 1, at) for low, at in ((9, 1), (15, 1), (25, -1))),
    ):  # fmt: skip
        after = low if left < 0 else 20 * left
        asked.append((f"gaps-{name}", text, "SEG-RET-007", {**OFF, **limit}, str(low), high, gone, after))
    for name, why, rule, config, low, high, gone, after in asked:
        bases = (0, 20, 40) if rule == "SEG-RET-007" else (0, 10, 20)
        rows = listed([(100, now - age, 0) for age in ages])
        positions = [{"baseOffset": str(base), "nextOffset": str(base + 10)} for base in bases]
        request: Json = {"what": "retain", "listing": [{**row, **at} for row, at in zip(rows, positions, strict=True)]}
        end = bases[-1] + 10
        request |= {"config": config, "now": str(now), "logStartOffset": low, "highWatermark": str(min(high, end))}
        expect: Json = {"decision": "delete" if gone else "keep", "segments": [str(base) for base in bases[:gone]]}
        left = after if rule == "SEG-RET-007" else (*bases, end)[gone]
        expect |= {"logStartOffset": str(left), "rollsFirst": gone == len(bases)}
        basis = must(rule, flags=("RETENTION_RULES",))
        family.add(f"retain-{name}", "decide", "valid", why, basis, request=request, expect=expect)


def _plans(family: Family) -> None:
    """Ask which segments compaction rewrites, at the limits."""
    plan = partial(plan_of, family)
    begin, lag, group, due = must("SEG-CMP-001"), must("SEG-CMP-004"), must("SEG-CMP-006"), should("SEG-CMP-005")
    for at, start, name in ((1000, 5, "far-above"), (0, 12, "far-below")):
        plan(
            f"offset-{name}",
            "The cleaner offset is not in the log: the dirty part begins at the log start offset.",
            begin,
            THREE,
            cleanerOffset=str(at),
            logStartOffset=str(start),
            expect={"firstDirtyOffset": str(start)},
        )
    exactly = {"min.compaction.lag.ms": str(100_000 - 1020)}
    rows = [planned(0), planned(10), planned(20), planned(30)]
    why = "A segment exactly as old as `min.compaction.lag.ms` is compacted."
    plan("lag-exactly-of-the-last", why, lag, THREE, config=exactly)
    for at in (0, 1):
        written = [*rows[:at], planned(10 * at, largestTimestamp=0, modified=99_999), *rows[at + 1 :]]
        why = "A timestamp of 0 is one: the age counts from it, and not from the last write."
        plan(f"lag-of-time-0-of-{at}", why, lag, THREE, config={"min.compaction.lag.ms": "10000"}, listing=written)
    ratio, longest = "min.cleanable.dirty.ratio", "max.compaction.lag.ms"
    late = {ratio: "0.9", longest: str(100_000 - 1020)}
    undated = [rows[0], planned(10, firstTimestamp=0), *rows[2:]]
    why = "The first record with a time is exactly as old as allowed, and a time of 0 is none: compaction is not due."
    plan("due-late-of-time-0-of-two", why, due, THREE, due=False, cleanerOffset="10", config=late, listing=undated)
    oldest = {ratio: "0.9", longest: str(100_000 - 1010)}
    why = "The oldest dirty record is exactly as old as allowed: compaction is not due."
    plan("due-late-exactly-of-two", why, due, THREE, due=False, cleanerOffset="10", config=oldest)
    why = "Exactly half of the log is dirty, which is the minimum: compaction is not due."
    half = partial(plan, due=False, cleanerOffset="10", lastStableOffset="20")
    half("due-not-of-half", why, due, [[0, 10]], config={ratio: "0.5"})
    plan("group-size-of-three", "Three segments fit in one.", group, THREE, config={"segment.bytes": "300"})
    for name, active, groups in (("fits", INT32_MAX + 1, [[0, 10]]), ("too-far", INT32_MAX + 2, [[0], [10]])):
        why = "For merging, the last segment ends at the offset before the active one."
        plan(f"group-span-to-the-active-{name}", why, group, groups, listing=[*rows[:2], planned(active)])
    far = INT32_MAX + 50
    hollow = [rows[0], planned(far, size=0, nextOffset=far), planned(far + 10)]
    plan("group-empty-far", "An empty segment is merged, whatever its offset is.", group, [[0, far]], listing=hollow)


def _metadata(family: Family) -> None:
    """Ask for small files whose second line or second name decides."""
    topic, properties = Parsing(family, "metadata", "partition.metadata"), Parsing(family, "metadata", PROPERTIES)
    basis = must("SEG-CKP-009", since="2.8")
    for name, text in (
        ("zero-id-and-bits", f"version: 0\ntopic_id: {'A' * 21}P"),
        ("zero-id-and-a-bit", f"version: 0\ntopic_id: {'A' * 21}B"),
        ("zero-id-of-version-1", f"version: 1\ntopic_id: {'A' * 22}\n"),
        ("least-version", f"version: -2147483648\ntopic_id: {TOPIC_ID}"),
    ):
        why = "The file `partition.metadata` without a valid version and topic id is refused."
        topic.bad(f"topic-id-{name}", why, basis, text.encode())
    for name, between in (("a-tab", "\t"), ("three-spaces", "   "), ("a-space-and-a-tab", " \t")):
        content = f"version:{between}0\ntopic_id:{between}{TOPIC_ID}".encode()
        why = "Any white space may follow the colons."
        topic.good(f"topic-id-behind-{name}", why, basis, content, {"version": 0, "topicId": TOPIC_ID})
    run = "kafka-server-common 4.4.0 agrees (its class MetaProperties was run)"
    rule = must("SEG-LDR-005", since="0.9", source=f"facts 1 and 4; {run}")
    for version, node in ((0, 3), (1, 7)):
        content = f"version={version}\nbroker.id=3\nnode.id=7\ncluster.id=c\n".encode()
        found = {"version": version, "clusterId": "c", "nodeId": node, "directoryId": None}
        why = "Of broker id and node id, the one of the file's version counts."
        properties.good(f"properties-{version}-both-ids", why, rule, content, found)
    java = "The file `meta.properties` follows the rules of Java properties"
    for name, why, content, cluster in (
        ("twice", "of two lines with one key, the last counts", b"cluster.id=b\ncluster.id=c\n", "c"),
        ("twice-apart", "of two lines with one key, the last counts", b"cluster.id:c\n#x\ncluster.id b\n", "b"),
        ("of-latin-1", "a byte is a character", b"cluster.id=\xe9\n", "\xe9"),
        ("of-utf-8", "a byte is a character", b"cluster.id=\xc3\xa9\n", "\xc3\xa9"),
        ("escaped-letter", "a backslash before another letter is dropped", b"cluster.id=a\\zb\n", "azb"),
        ("escaped-letters", "a backslash before another letter is dropped", b"cluster.id=\\q\\c\n", "qc"),
        ("continued", "a backslash at its end continues a line", b"cluster.id=a\\\n\t b\n", "ab"),
        ("continued-in-its-key", "a backslash at its end continues a line", b"clus\\\r\n  ter.id=ab\n", "ab"),
        ("behind-colons", "a colon ends a key", b"cluster.id:c\n", "c"),
        ("behind-a-tab", "white space before a key does not count", b" \t\x0ccluster.id\t=\tc\n", "c"),
        ("behind-a-remark", "a remark is not continued", b"!a\\\ncluster.id=c\n", "c"),
        ("behind-another-remark", "a remark is not continued", b" # a\\\ncluster.id=c\n", "c"),
        ("behind-remarks", "a line may be a remark", b"!cluster.id=a\n \t#cluster.id=b\ncluster.id=c\n!", "c"),
        ("behind-a-remark-with-half-an-escape", "a remark has no escapes", b"!\\u12\ncluster.id=c\n", "c"),
        ("behind-another-with-half-an-escape", "a remark has no escapes", b"\t#\\u12\ncluster.id=c\n", "c"),
        ("ends-in-white-space", "white space at the end of a value counts", b"cluster.id=c \t\n", "c \t"),
        ("ends-in-a-form-feed", "white space at the end of a value counts", b"cluster.id = c\x0c\r\n", "c\x0c"),
        ("of-a-tab", "an escape may be a tab, a form feed or a line end", b"cluster.id=a\\tb\\f\n", "a\tb\x0c"),
        ("of-line-ends", "an escape may be a tab, a form feed or a line end", b"cluster.id=\\na\\r\\t\n", "\na\r\t"),
    ):
        found = {"version": 1, "clusterId": cluster, "nodeId": 7, "directoryId": None}
        properties.good(f"properties-{name}", f"{java}: {why}.", rule, b"version=1\nnode.id=7\n" + content, found)
    for version in (-1, 3):
        content = f"version={version}\nnode.id=7\ncluster.id=c\n".encode()
        properties.bad(f"properties-version-{version}", "There is no such version of the file.", rule, content)
    for name in ("cluster.id", "node.id"):
        kept = "".join(f"{key}=5\n" for key in ("node.id", "cluster.id") if key != name)
        content = f"version=1\nbroker.id=3\ndirectory.id={TOPIC_ID}\n{kept}".encode()
        why = "Version 1 of `meta.properties` requires a cluster id and a node id, whatever else it has."
        properties.bad(f"properties-1-more-without-{name.replace('.', '-')}", why, rule, content)


def _checkpoints(family: Family) -> None:
    """Ask for lines and fields that end in other characters than brokers write, in both kinds of checkpoint."""
    basis = must("SEG-CKP-006", since="0.8")
    for kind, file, lines, entries in (
        (
            "",
            RECOVERY_POINTS,
            ("t 1 2",),
            [["t", 1, "2"]],
        ),  # one, since brokers read partitions into a map without order
        ("epochs-", EPOCHS, ("1 2", "3 4"), [["1", "2"], ["3", "4"]]),
    ):
        files = Parsing(family, "checkpoint", file)
        for name, why, between, end in (
            ("of-tabs", "Any white space separates fields.", "\t", "\n"),
            ("of-vertical-tabs", "Any white space separates fields.", "\x0b", "\n"),
            ("of-form-feeds", "Any white space separates fields.", " \x0c", "\r\n"),
            ("of-carriage-returns", "A carriage return alone ends a line.", " ", "\r"),
            ("before-white-space", "White space may follow the last field of a line.", " ", " \t\n"),
        ):
            eol = end.lstrip(" \t")
            rows = "".join(one.replace(" ", between) + end for one in lines)
            found = {"version": 0, "entries": entries}
            files.good(f"{kind}{name}", why, basis, f"0{eol}{len(lines)}{eol}{rows}".encode(), found)


def _times(family: Family) -> None:
    """Ask for the largest time of a closed segment, by its index."""
    long, short = Batch(recs=(Rec(),) * 6), Batch(base=3)
    overlapping = [long, short, Batch(base=8, recs=(Rec(), Rec()))]
    log = {name_of(0): bytes_of(overlapping), name_of(0, ".index"): struct.pack(">ii", 3, len(long.encoded()))}
    for offset in (4, 5):
        why = "The index names an entry behind the one that has the offset, and the next one is above it: it proves nothing."
        doubt = should("SEG-IDX-009", needs=("trustIndexes",))
        request = {"files": hexed(log), "offset": str(offset), "options": {"trustIndexes": True}}
        found = {"position": 0, "baseOffset": "0"}
        family.add(
            f"index-passes-over-{offset}", "lookup", "valid", why, doubt, request=request, expect={"found": found}
        )
    _disordered(family)
    basis = must("SEG-LKP-008", needs=("trustIndexes",))
    files: dict[str, bytes] = {}
    for base, start in ((0, 1000), (6, 1500), (12, 2000)):
        files |= segment(row(2, base=base, start=start), base)
    for base, time in ((0, 1012), (6, 1512)):
        request = {"files": hexed(files), "timestamp": str(time), "options": {"trustIndexes": True}}
        why = "The time is the largest of a closed segment, the last entry of its time index: the record is in it."
        expect = {"found": {"offset": str(base + 5), "timestamp": str(time)}}
        family.add(f"time-of-the-end-of-{base}", "lookup", "valid", why, basis, request=request, expect=expect)
        family.cases[-1]["untold"] = [f"found.{one}" for one in ("baseOffset", "entry", "position")]


def _disordered(family: Family) -> None:
    """Ask a reader that trusts indexes for what is behind entries out of order, which it does not walk."""
    low, high = row(4), row(3, base=6, start=2000)
    options: Json = {"trustIndexes": True}
    index = offset_index(low, 0) + struct.pack(">ii", 14, 6 * SIZE)
    inside = {name_of(0): bytes_of([*low, *high]), name_of(0, ".index"): index}
    why = "Entries before the one that the index names are out of order: a reader that trusts it does not walk them."
    request: Json = {"files": hexed(inside), "offset": "14", "options": options}
    basis = should("SEG-LKP-015", "SEG-IDX-009", needs=("trustIndexes",))
    expect: Json = {"records": lay([high[2]])[1][0]["records"][2:], "nextOffset": "15"}
    family.add("read-behind-disorder", "read", "valid", why, basis, request=request, expect=expect)
    files = {**segment(low, interval=0), **segment(high, 6, interval=0)}
    why = "A segment that is older by its time index ends above the base offset of the next: a lookup passes over it."
    for time, offset in ((2012, 11), (2022, 14)):
        request = {"files": hexed(files), "timestamp": str(time), "options": options}
        expect = {"found": {"offset": str(offset), "timestamp": str(time)}}
        basis = should("SEG-LKP-008", needs=("trustIndexes",))
        family.add(f"time-behind-overlap-{time}", "lookup", "valid", why, basis, request=request, expect=expect)
        family.cases[-1]["untold"] = [f"found.{one}" for one in ("baseOffset", "entry", "position")]


def _truncation(to: Repairs) -> None:
    """Ask for truncation to the end of logs that do not begin at 0."""
    for base in (0, 100):
        whole = {**segment(row(3, base=base), base), **epochs((4, base))}
        high = {POINTS: offsets(("topic", 0, base + 50)), STARTS: offsets(("topic", 0, base + 50))}
        why = "Truncation to the log end offset changes nothing, not even a checkpoint."
        name = f"at-the-end-from-{base}"
        to.truncate(name, why, must("SEG-TRN-002"), base + 9, whole, whole, beside={**high, MARKS: None}, root=high)
