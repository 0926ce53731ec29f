"""Part of family 44: logs while they are open, where Kafka's classes are not asked.

It is about power cuts, disks that fail, other generations of brokers, and the files of the log directory.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.casefile import Family, Json, must, should
from authoring.control import data
from authoring.messages import Msg
from authoring.repairs import EMPTY, segment, snapshot
from authoring.scenario_cases import ScenarioCases, checkpoint
from authoring.scenarios import NOW, append, batch, follow, sent
from authoring.segments import bytes_of, name_of, offset_index, row, time_entry, time_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.batches import Batch


def own_writes(family: Family) -> None:
    """Family 44, without Kafka."""
    add = ScenarioCases(family)
    _indexes(add)
    _jitter(add)
    _leftovers(add)
    _flushes(add)
    _opening(add)
    _closing(add)
    _failures(add)
    _retention(add)
    _epochs(add)


def _indexes(add: ScenarioCases) -> None:
    units = [batch(NOW + at, base=at) for at in range(6)]
    size = len(units[0].encoded())
    tied = [batch(NOW + at // 3, base=at) for at in range(6)]
    for name, all_units, count in (
        ("", units, 2),
        ("-of-three", units, 3),
        ("-tied", tied, 3),
        ("-tied-in-pairs", tied, 2),
    ):
        appends = [all_units[at : at + count] for at in range(0, 6, count)]
        index = offset_index([Group(each) for each in appends], size)
        times = time_entry(NOW + 1, 3) if "tied" in name else time_index([Group(each) for each in appends], size)
        for generation in ("2.0", "3.7"):
            add.write(
                f"interval-by-appends-{generation}{name}",
                "Brokers before 4.1 count appends, not batches; of several with the largest timestamp, the first is named.",
                must("SEG-ROL-011", since="2.0", needs=("generations",)),
                {"files": {name_of(0, ".index"): index.hex(), name_of(0, ".timeindex"): times.hex()}},
                *(follow(*each) for each in appends),
                index_interval_bytes=str(size),
                generation=generation,
            )
    largest = must("SEG-ROL-011", "SEG-APP-015", since="2.0", needs=("generations",))
    for generation, equal in (("2.0", (3, 3, 3)), ("3.7", (3, 3, 3)), ("3.7", (1, 3, 3)), ("2.0", (3, 1, 3))):
        appended = [batch(NOW + time, base=at) for at, time in enumerate((*equal, *(time + 5 for time in equal)))]
        name = "".join(map(str, equal))
        add.write(
            f"same-largest-{name}-of-{generation}",
            "Of several entries of an append with the largest timestamp the first one is indexed.",
            largest,
            {"files": {name_of(0, ".timeindex"): time_entry(NOW + 8, 3 + equal.index(3)).hex()}},
            follow(*appended[:3]),
            follow(*appended[3:]),
            index_interval_bytes="0",
            generation=generation,
        )
    for generation, first in (("0.11", True), ("0.10.1", True), ("2.0", False), ("3.7", False), ("4.1", False)):
        old = generation == "0.10.1"
        sparse = [
            [Msg(offset=4 * at, timestamp=NOW + at)]
            if old
            else [batch(*(NOW + 5 * at + by for by in range(4)), base=4 * at)]
            for at in range(5)
        ]
        rows_at = [(4 * at + (0 if old or first else 3), at * len(bytes_of(sparse[0]))) for at in range(1, 5)]
        add.write(
            f"indexed-offset-of-{generation}",
            "The offset index names the first offset of a unit in brokers before 2.0, and the last since.",
            must("SEG-ROL-011", since="0.10.1", needs=("generations",)),
            {"files": {name_of(0, ".index"): b"".join(struct.pack(">ii", *one) for one in rows_at).hex()}},
            *(follow(*pair) for pair in sparse),
            index_interval_bytes="0",
            generation=generation,
        )
    _room(add)


def _room(add: ScenarioCases) -> None:
    full = should("SEG-ROL-016", needs=("strictAppend",))
    add.write(
        "room-without-new-timestamps",
        "An append that gives no time index entry needs no room in the time index.",
        full,
        {"steps": [{"rolled": None}, {"rolled": None}]},
        follow(batch(NOW, base=0)),
        follow(*(batch(NOW + 1, base=1 + at) for at in range(4))),
        index_interval_bytes="0",
        segment_index_bytes="36",
    )
    due = "time index full"
    for name, count, reason, size in (("room", 2, None, 36), ("no-room", 3, due, 36), ("room-of-4", 3, None, 48), ("no-room-of-4", 4, due, 48), ("no-room-of-5", 5, due, 60)):  # fmt: skip
        add.write(
            name,
            "An append of several entries needs room in the indexes for all of them.",
            full,
            {"steps": [{"rolled": None}, {"rolled": reason}]},
            follow(batch(NOW, base=0)),
            follow(*(batch(NOW + 1 + at, base=1 + at) for at in range(count))),
            index_interval_bytes="0",
            segment_index_bytes=str(size),
        )

    for count in (5, 8):
        many = [batch(NOW + at, base=at) for at in range(count)]
        index, times = offset_index(many, 0), time_index(many, 0)
        add.write(
            f"no-room-in-an-empty-segment-{count}",
            "An append of several entries to an empty segment goes beyond its indexes: entries without a slot are left out.",
            full,
            {
                "files": {
                    name_of(0, ".index"): index[:32].hex(),
                    name_of(0, ".timeindex"): (times[:24] + times[-12:]).hex(),
                },
                "steps": [{"rolled": None}],
            },
            follow(*many),
            index_interval_bytes="0",
            segment_index_bytes="36",
        )


class Group:
    """Several batches of one append."""

    def __init__(self, units: Sequence[Batch]) -> None:
        self.units = units
        self.next_offset = units[-1].next_offset

    def encoded(self) -> bytes:
        """One behind the other."""
        return bytes_of(self.units)

    def answer(self, _position: int) -> Json:
        """Return the largest timestamp."""
        return {"maxTimestamp": max(one.newest for one in self.units)}

    def follower(self, offset: int | None = None) -> Batch:
        """Return the next entry."""
        return self.units[-1].follower(offset)


def _jitter(add: ScenarioCases) -> None:
    for name, later, reason, random in (
        ("within", 500, None, "0.5"),
        ("over", 501, "time", "0.5"),
        ("long-within", 100, None, "0.9"),
        ("long-over", 101, "time", "0.9"),
    ):
        add.write(
            f"jitter-{name}",
            "The jitter is at most `segment.ms`.",
            must("SEG-ROL-008", needs=("random",)),
            {"steps": [{"rolled": None}, {"rolled": reason}]},
            append(batch(NOW)),
            append(batch(NOW + later)),
            options={"random": random},
            segment_ms="1000",
            segment_jitter_ms="5000",
        )


def _leftovers(add: ScenarioCases) -> None:
    one = batch(NOW)
    old = {name_of(1, ending): b"old".hex() for ending in (".log", ".index", ".timeindex", ".txnindex")}
    add.write(
        "old-files-of-that-name",
        "A new segment begins empty, also if files with its name exist.",
        must("SEG-ROL-009"),
        {
            "files": {
                name_of(1): replace(one, base=1).encoded().hex(),
                name_of(1, ".index"): "",
                name_of(1, ".txnindex"): None,
            }
        },
        append(one),
        {"do": "put", "files": old},
        {"do": "roll"},
        append(one),
    )
    for name, content in old.items():
        add.write(
            f"old-{name[21:]}-of-that-name",
            "A new segment begins empty, also if one file with its name exists.",
            must("SEG-ROL-009"),
            {"files": {name_of(1): replace(one, base=1).encoded().hex(), name_of(1, ".txnindex"): None}},
            append(one),
            {"do": "put", "files": {name: content}},
            {"do": "roll"},
            append(one),
        )
    for name, tail in (("few-bytes", b"\0" * 11), ("partial-entry", one.encoded()[:-1]), ("zeros", bytes(500))):
        add.write(
            f"behind-{name}",
            "An append begins right after the last whole entry, and replaces any tail.",
            must("SEG-APP-013", needs=("strictAppend",)),
            {"files": {name_of(0): bytes_of([one, replace(one, base=1)]).hex()}, "nextOffset": "2"},
            append(one),
            files={name_of(0): one.encoded() + tail, name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""},
            options={"cleanShutdown": True},
        )


def _flushes(add: ScenarioCases) -> None:
    one = batch(NOW)
    wait = append(one, acks="flushed")
    cut: Json = {"do": "cut"}
    basis = must("SEG-FLS-002", needs=("powerCuts",))
    for name, why, terms, expect, *steps in (
        ("flushed-is-there", "After a power cut, flushed data is still there, and also the file name.", basis,
         {"steps": [{}, {"outcomes": ["0"]}, {}, {"outcomes": ["0", "0 1"]}, {}, {"outcomes": ["0 1 2"]}]}, wait, cut, append(one), cut, wait, cut),
        ("flushed-in-a-new-segment", "After a power cut, flushed data of the next segment is still there.", basis, {"steps": [{}, {}, {}, {"outcomes": ["0 1"]}]},
         append(one), {"do": "roll"}, wait, cut),
        ("no-hole", "A segment is flushed before the next one is written.", must("SEG-FLS-009", needs=("powerCuts",)),
         {"steps": [{}, {}, {}, {}, {"outcomes": ["0 1", "0 1 2"]}]}, append(one), append(one), {"do": "roll"}, append(one), cut),
        ("flushes-together", "Appends that wait for a flush at the same time share one.", should("SEG-FLS-003", needs=("together",)),
         {"steps": [{"mostSyncs": 1, "recoveryPoint": "4"}], "nextOffset": "4"}, {"do": "together", "records": [one.encoded().hex()] * 4}),
    ):  # fmt: skip
        add.write(name, why, terms, expect, *steps)
    for name, waits, points in (
        ("twice", (999, 1000, 1999, 2000), (0, 3, 3, 5)),
        ("late", (1500, 2499, 2500), (2, 2, 4)),
        ("early", (999, 1000, 1001, 2000, 2001), (0, 3, 3, 5, 5)),
    ):
        add.write(
            f"flush-by-time-{name}",
            "The time to the next flush counts from the last one.",
            must("SEG-FLS-001", needs=("scheduled",)),
            {"steps": [{}, *({"recoveryPoint": str(point)} for point in points)]},
            append(one),
            *(append(one, now=NOW + wait) for wait in waits),
            flush_ms="1000",
        )
    add.write(
        "flush-by-time",
        "The log is flushed when its oldest unflushed record is as old as `flush.ms`.",
        must("SEG-FLS-001", needs=("scheduled",)),
        {"steps": [{}, {"recoveryPoint": "0"}, {"recoveryPoint": "1"}]},
        append(one),
        {"do": "schedule", "now": str(NOW + 999)},
        {"do": "schedule", "now": str(NOW + 1000)},
        flush_ms="1000",
    )


def _opening(add: ScenarioCases) -> None:
    files = {name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""}
    for name, times, first in (("", (10, 30, 20), 1), ("-twice", (10, 30, 30), 1), ("-thrice", (30, 10, 30, 30), 0)):
        units = [batch(NOW + at, base=number) for number, at in enumerate(times)]
        add.write(
            f"largest-timestamp{name}-of-a-log-that-was-there",
            "When a log is opened, its largest timestamp is found also without a time index entry.",
            should("SEG-ROL-014", needs=("strictAppend",)),
            {"files": {name_of(0, ".timeindex"): time_entry(NOW + 30, first).hex()}},
            append(batch(NOW + 5)),
            {"do": "roll"},
            files={**files, name_of(0): bytes_of(units)},
            options={"cleanShutdown": True},
            index_interval_bytes="4096",
        )
    old = [Msg(offset=at, timestamp=NOW + at) for at in range(3)]
    add.write(
        "old-log-goes-on",
        "A log of brokers before 0.11, without producer state and leader epochs, can be continued.",
        should("SEG-ROL-015", needs=("generations",)),
        {
            "nextOffset": "4",
            "files": {name_of(0): bytes_of([*old, Msg(offset=3, timestamp=NOW + 9)]).hex()},
            "names": [name_of(0, ending) for ending in (".index", ".log", ".timeindex")],
        },
        follow(Msg(offset=3, timestamp=NOW + 9)),
        files={**files, name_of(0): bytes_of(old)},
        options={"cleanShutdown": True},
        generation="0.10.1",
    )
    for magic in (0, 1):
        for name, epochs, new in (("followed", ((3, 0),), follow), ("led", ((3, 0), (5, 1)), append)):
            first = [replace(batch(NOW + at, base=at), leader_epoch=epoch) for epoch, at in epochs]
            add.write(
                f"old-messages-of-magic-{magic}-{name}",
                "Messages have no leader epoch: with their append all known epochs are removed.",
                must("SEG-APP-025", needs=("generations", f"magic:{magic}")),
                {"files": {"leader-epoch-checkpoint": b"0\n0\n".hex()}},
                *(follow(each) for each in first),
                new(Msg(magic=magic, offset=len(first) if new is follow else 0, timestamp=NOW + 9)),
                generation="2.0",
            )
    _states(add)
    add.write(
        "sent-again",
        "A duplicate batch is not written again.",
        must("SEG-APP-008", needs=("duplicates",)),
        {
            "steps": [{"isDuplicate": False}, {"isDuplicate": True, "firstOffset": "0", "lastOffset": "1"}],
            "nextOffset": "2",
        },
        append(sent(7, 0, count=2)),
        append(sent(7, 0, count=2)),
    )


def _states(add: ScenarioCases) -> None:
    """Ask for logs that show no state of a producer, and for snapshots that cannot be read."""
    began, plain = data(0, b"a"), data(1, b"b", transactional=False, sequence=1)
    clean, basis = {"cleanShutdown": True}, must("SEG-APP-023")
    for name, units in (("last", [began, plain]), ("between", [began, plain, data(2, b"c", sequence=2)])):
        files = {name_of(0): bytes_of(units), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""}
        why = "A batch outside of the open transaction of its producer shows no state: the log is not opened."
        refused: Json = {"reject": {"class": "other"}}
        known = {**files, name_of(1, ".snapshot"): snapshot((9, 0))}
        add.write(f"outside-of-a-transaction-{name}", why, basis, refused, files=known, options=clean, result="invalid")
        for op, config in (("retain", {"retention.ms": "1"}), ("compact", {"cleanup.policy": "compact"})):
            bare = {name_of(0): bytes_of(units), **({name_of(len(units)): b""} if op == "compact" else {})}
            more = {"config": config, "now": str(NOW), "options": {"modified": dict.fromkeys(bare, "0")}}
            add.on_files(op, f"outside-of-a-transaction-{name}", why, basis, refused, bare, "invalid", **more)
    files = {**segment(row(2, start=NOW)), **segment(row(2, base=6, start=NOW), 6)}
    broken = EMPTY[:-1]
    for name, shots, left in (
        ("of-the-log", {9: broken}, {9: None}),
        ("newest-of-two", {6: EMPTY, 9: broken}, {6: EMPTY, 9: None}),
        ("older-of-two", {6: broken, 9: EMPTY}, {6: broken, 9: EMPTY}),
        ("both-of-two", {6: broken, 9: broken}, {9: None}),
    ):
        add.write(
            f"unreadable-snapshot-{name}",
            "Of the snapshots that cannot be read, those are removed that are above the newest readable one.",
            must("SEG-RCV-027"),
            {"files": {name_of(at, ".snapshot"): None if one is None else one.hex() for at, one in left.items()}},
            files={**files, **{name_of(at, ".snapshot"): one for at, one in shots.items()}},
            options=clean,
        )


def _closing(add: ScenarioCases) -> None:
    one = batch(NOW)
    whole = {name_of(0): bytes_of(row(3, start=NOW)), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""}
    clean = {"cleanShutdown": True}
    root = must("SEG-FLS-005", needs=("logDirectory",))
    marks = must("SEG-FLS-006", needs=("logDirectory",))
    for name, why, basis, expect, options, *steps in (
        ("checkpoints", "The checkpoints contain the recovery point; a log start offset only if the first segment begins elsewhere.", root,
         {"checkpoints": {"recovery-point-offset-checkpoint": checkpoint("topic 0 10"), "replication-offset-checkpoint": checkpoint("topic 0 10"), "log-start-offset-checkpoint": checkpoint()}},
         clean, append(one)),
        ("checkpoint-of-a-start", "The checkpoint contains a log start offset that is inside a segment.", root,
         {"checkpoints": {"log-start-offset-checkpoint": checkpoint("topic 0 5")}, "logStartOffset": "5"}, {**clean, "logStartOffset": "5"}, append(one)),
        ("mark-goes-and-comes", "The mark of a clean shutdown is removed before the first write and written again when the log is closed.", marks,
         {"steps": [{"isClean": False}, {}], "isClean": True}, clean, {"do": "look"}, append(one)),
    ):  # fmt: skip
        add.write(name, why, basis, expect, *steps, files=whole, options=options)
    others = must("SEG-FLS-007", needs=("logDirectory",))
    for name, why, expect, options in (
        ("mark-for-all-logs", "No mark of a clean shutdown is written while another log may be damaged.", {"isClean": False}, {"beside": {"other-0": {}}}),
        ("mark-with-whole-logs", "The mark of a clean shutdown is written if the other logs were closed cleanly as well.", {"isClean": True}, {**clean, "beside": {"other-0": {}}}),
        ("mark-beside-deleted-logs", "A log that is marked for deletion does not prevent the mark of a clean shutdown.", {"isClean": True},
         {"beside": {"other-0.0123456789abcdef0123456789abcdef-delete": {}}}),
    ):  # fmt: skip
        add.write(name, why, others, expect, append(one), options=options)


def _epochs(add: ScenarioCases) -> None:
    one = batch(NOW)
    known, gone = replace(one, base=0, leader_epoch=4), {"files": {"leader-epoch-checkpoint": b"0\n0\n".hex()}}
    for magic in (0, 1):
        old = [Msg(magic=magic, offset=at, timestamp=NOW if magic else -1) for at in (1, 2)]
        add.write(
            f"old-{magic}-behind-an-epoch",
            "Messages of magic 0 and 1 have no leader epoch: an append of them removes those that are known.",
            must("SEG-APP-025", needs=(f"magic:{magic}",)),
            {"steps": [{}, {}, gone, {}, {"files": {"leader-epoch-checkpoint": b"0\n1\n6 3\n".hex()}}]},
            follow(known),
            follow(old[0]),
            {"do": "look"},
            follow(old[1], replace(one, base=3, leader_epoch=6)),
            {"do": "look"},
        )
    files = {
        name_of(0): replace(one, base=0, leader_epoch=5).encoded(),
        name_of(0, ".index"): b"",
        name_of(0, ".timeindex"): b"",
    }
    for name, known, steps in (
        ("of-the-log", None, (3, 4, 5, 6)),
        ("of-the-log-above-the-checkpoint", b"0\n1\n2 0\n", (2, 4, 5, 5)),
        ("of-the-log-and-the-checkpoint", b"0\n1\n5 0\n", (4, 5, 6, 5)),
        ("of-the-checkpoint", b"0\n2\n5 0\n9 1\n", (8, 4, 9, 9)),
    ):
        newest, expected = (9 if known and b"9" in known else 5), list[Json]()
        log = [replace(one, base=0, leader_epoch=5)]
        for epoch in steps:
            expected.append({} if epoch >= newest else {"reject": {}})
            log += [] if epoch < newest else [replace(one, base=len(log), leader_epoch=epoch)]
            newest = max(newest, epoch)
        add.write(
            f"epoch-{name}",
            "A leader goes on under the newest epoch of the log or of its checkpoint, or a newer one.",
            must("SEG-APP-017", needs=("strictAppend",)),
            {"steps": expected, "files": {name_of(0): bytes_of(log).hex()}},
            *(append(one, leaderEpoch=epoch) for epoch in steps),
            files=files if known is None else {**files, "leader-epoch-checkpoint": known},
            options={"cleanShutdown": True},
        )
    add.write(
        "epoch-goes-back",
        "A leader refuses to append with an older leader epoch than that of the log.",
        must("SEG-APP-017", needs=("strictAppend",)),
        {"steps": [{"firstOffset": "0"}, {"reject": {}}, {"firstOffset": "1"}], "nextOffset": "2"},
        append(one, leaderEpoch=5),
        append(one, leaderEpoch=3),
        append(one, leaderEpoch=5),
    )


def _failures(add: ScenarioCases) -> None:
    one = batch(NOW)
    policy: Json = {"reject": {}}
    kept = {"write": one.encoded().hex(), "fsync": bytes_of([one, replace(one, base=1)]).hex()}
    for operation in ("write", "fsync"):
        add.write(
            f"after-a-failed-{operation}",
            "After a disk error, the log takes no more appends, and gets no mark of a clean shutdown.",
            must("SEG-FLS-008", needs=("diskErrors", "logDirectory")),
            {"steps": [{"firstOffset": "0"}, policy, policy], "isClean": False, "files": {name_of(0): kept[operation]}},
            append(one),
            append(one, acks="flushed", fails=operation),
            append(one),
        )


def _retention(add: ScenarioCases) -> None:
    one = batch(NOW)
    steps = [step for at in range(3) for step in (append(sent(7, at)), {"do": "roll"})]
    gone = [f"{name_of(0, ending)}.deleted" for ending in (".index", ".log", ".timeindex")]
    basis = must("SEG-RET-009", needs=("scheduled",))
    add.write(
        "deleted-after-a-delay",
        "Files with the suffix `.deleted` are deleted after `file.delete.delay.ms`.",
        basis,
        {"steps": [*({} for _ in steps), {"segments": ["0"]}, {"deleted": gone}, {"deleted": gone}, {"deleted": []}]},
        *steps,
        {"do": "retain"},
        {"do": "look"},
        {"do": "delete", "now": str(NOW + 999)},
        {"do": "delete", "now": str(NOW + 1000)},
        retention_bytes=str(2 * len(one.encoded())),
        retention_ms="-1",
        file_delete_delay_ms="1000",
    )
    start = should("SEG-RET-012", needs=("logDirectory",))
    add.write(
        "start-after-retention",
        "The checkpoint of the log start offset is written before any segment is deleted.",
        start,
        {
            "steps": [
                *({} for _ in steps),
                {},
                {"checkpoints": {"log-start-offset-checkpoint": checkpoint("topic 0 1")}},
            ]
        },
        *steps,
        {"do": "retain"},
        {"do": "look"},
        retention_bytes=str(2 * len(one.encoded())),
        retention_ms="-1",
    )
