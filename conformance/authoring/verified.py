"""What a validator has to say of directories (part of family 43)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import Batch, Rec
from authoring.casefile import Basis, hexed, may, must, should
from authoring.codecs import gzip, lz4_frame, xerial
from authoring.control import data, marker
from authoring.messages import Msg, Wrapper
from authoring.primitives import flipped
from authoring.repairs import EPOCHS, FIRST, POINTS, SECOND, epochs, offsets, segment, snapshot
from authoring.segments import ROW, SIZE, aborted, bytes_of, name_of, row, time_entry
from authoring.verified_limits import verified_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.casefile import Family

SOURCE: Final = "the level of each rule; bytes put together by hand"
LARGEST_SIZE: Final = 64 << 20
"""Bytes of a file that a reader decodes as a whole, at most."""
UNIQUE: Final = "0123456789abcdef0123456789abcdef"
Files = dict[str, bytes]
Found = tuple[str, str, str]


class Verifying:
    """Adds cases to a family."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def says(self, name: str, why: str, basis: Basis, files: Files, *found: Found) -> None:
        """All that is found, by file and requirement."""
        findings = [{"file": file, "requirement": rule, "severity": severity} for file, rule, severity in sorted(found)]
        request = {"files": hexed(files)}
        own = replace(basis, needs=("requirements",), source=SOURCE)
        self.family.add(f"verify-{name}", "verify", "valid", why, own, request=request, expect={"findings": findings})

    def finds(self, name: str, why: str, rule: str, files: Files, file: str, severity: str, *more: Found) -> None:
        """One finding that the case is about, and what follows from the same bytes."""
        basis = {"error": must, "warning": should, "note": may}[severity](rule)
        self.says(name, why, basis, files, (file, rule, severity), *more)


def whole(units: Sequence[Batch], base: int = 0) -> Files:
    """Return a segment with the indexes that brokers have by default."""
    return segment(units, base, interval=4096)


def verified(family: Family) -> None:
    """Add the cases."""
    to = Verifying(family)
    _directories(to)
    _segments(to)
    _last_offsets(to)
    _streams(to)
    _side_files(to)
    _notes(to)
    _entries(to)
    _gaps(to)
    verified_limits(family)
    request = {"files": hexed({**whole(FIRST), EPOCHS: b""}), "options": {"sizes": {EPOCHS: str(LARGEST_SIZE + 1)}}}
    finding = {"file": EPOCHS, "requirement": "SEG-PDR-020", "severity": "warning"}
    basis = should("SEG-PDR-020", needs=("requirements", "sizes"), source=SOURCE)
    why = "A file that a reader decodes as a whole is larger than the limit."
    expect = {"findings": [finding]}
    family.add("verify-too-large", "verify", "valid", why, basis, request=request, expect=expect)


def _directories(to: Verifying) -> None:
    topic = {f"topic-0/{name}": content for name, content in whole(FIRST).items()}
    to.says("log-directory", "All files are valid: a validator reports nothing.", must("SEG-LDR-001"), topic)
    for name, directory in (
        ("without-a-dash", "topic"),
        ("without-a-number", "a-b"),
        ("without-a-topic", "-1"),
        ("number-too-large", "topic-2147483648"),
    ):
        why = "The directory is not one of a partition: a broker does not start."
        to.finds(f"directory-{name}", why, "SEG-LDR-001", {**topic, f"{directory}/": b""}, directory, "error")
    cache = {**topic, "remote-log-index-cache/": b""}
    to.says("index-cache", "The directory with the cache of remote indexes is allowed.", must("SEG-LDR-001"), cache)
    copy = {f"topic-0.{UNIQUE}-future/{name}": content for name, content in whole(FIRST).items()}
    to.says("future-copy", "A `-future` copy of a partition is allowed.", must("SEG-LDR-002"), {**topic, **copy})
    twice = {f"topic-00/{name}": content for name, content in whole(FIRST).items()}
    unusual = ("topic-00", "SEG-PDR-017", "warning")
    to.finds("directory-twice", "Two directories have different names for the same partition.", "SEG-LDR-002", {**topic, **twice}, "topic-00", "error", unusual)  # fmt: skip
    for name, content, rule, severity in (
        ("no-number", b"0\n1\ntopic 0 x\n", "SEG-CKP-004", "error"),
        ("twice", offsets(("topic", 0, 1), ("topic", 0, 2)), "SEG-CKP-008", "warning"),
    ):
        to.finds(f"checkpoint-{name}", "A line of a checkpoint has no number, or names a partition again.", rule, {**topic, f"/{POINTS}": content}, POINTS, severity)  # fmt: skip
    to.finds("properties", "The version of the file or entry is unknown.", "SEG-LDR-005", {**topic, "/meta.properties": b"version=7\n"}, "meta.properties", "error")  # fmt: skip


def _segments(to: Verifying) -> None:
    log = name_of(0)
    good = whole(FIRST)
    why = "All files are valid: a validator reports nothing."
    to.says("partition", why, must("SEG-LOG-006"), {**good, **whole(SECOND, 15)})
    two = {**good, log: flipped(flipped(bytes_of(FIRST), 70), 3 * SIZE + 70)}
    both = (log, "SEG-BAT-003", "error")
    back = {log: bytes_of([*ROW[:3], replace(ROW[3], base=6)])}
    alone = (log, "SEG-PDR-012", "note")
    low = {name_of(100): bytes_of([Batch(base=99, recs=(Rec(), Rec()))])}
    over = [*FIRST[:4], replace(FIRST[4], recs=(*FIRST[4].recs, Rec(key=b"k3", value=b"value")))]
    short = {**good, "15.log": bytes_of(SECOND)}
    again = {**good, "0.log": bytes_of(SECOND)}
    for name, why, rule, files, file, severity, *more in (
        ("checksum", "A wrong checksum.", "SEG-BAT-003", {**good, log: flipped(bytes_of(FIRST), 70)}, log, "error"),
        ("checksums", "Two batches have wrong checksums: a validator reports both.", "SEG-BAT-003", two, log, "error", both),
        ("tail", "The log ends with part of an entry.", "SEG-LOG-005", {**good, log: bytes_of(FIRST) + bytes(3)}, log, "note"),
        ("order", "Offsets go back.", "SEG-LOG-006", back, log, "error", alone),
        ("below-the-base", "A batch begins below the base offset in its file name.", "SEG-LOG-008", low, name_of(100), "error", (name_of(100), "SEG-PDR-012", "note")),
        ("into-the-next", "A batch ends in the next segment.", "SEG-PDR-013", {**whole(over), **whole(SECOND, 15)}, log, "error"),
        ("name", "The name of a log file has too few digits.", "SEG-PDR-005", short, "15.log", "error", ("15.log", "SEG-PDR-012", "note")),
        ("name-twice", "Two log files have the same base offset in their names.", "SEG-PDR-005", again, "0.log", "error"),
        ("bare", "A log without indexes.", "SEG-PDR-012", {log: bytes_of(FIRST)}, log, "note"),
    ):  # fmt: skip
        to.finds(name, why, rule, files, file, severity, *more)
    to.says(
        "others", "A validator ignores files with other names.", must("SEG-PDR-011"), {**good, "notes.txt": b"mine"}
    )
    to.says(
        "set-aside", "A validator ignores a `.cleaned` file.", must("SEG-PDR-009"), {**good, f"{log}.cleaned": b"half"}
    )


def _last_offsets(to: Verifying) -> None:
    """Add entries at the end of all offsets."""
    last, past = 2**63 - 7, 2**63 - 6
    to.says("before-the-last-offset", "The last record has the last offset of a log.", must("SEG-LOG-013"), whole(row(2, base=last), last))  # fmt: skip
    to.finds("past-the-last-offset", "No offset follows the last record.", "SEG-LOG-013", whole(row(2, base=past), past), name_of(past), "error")  # fmt: skip


def _streams(to: Verifying) -> None:
    """Bytes behind the last frame of compressed data, which readers pass over."""
    log = name_of(0)
    for codec, rule, compress in (
        ("gzip", "SEG-COD-018", gzip),
        ("snappy", "SEG-COD-019", xerial),
        ("lz4", "SEG-COD-011", lz4_frame),
    ):
        batch = Batch(codec=codec, compress=compress)
        to.says(f"{codec}-to-its-end", "The compressed data ends with its last frame.", should(rule), whole([batch]))
        behind = replace(batch, compress=lambda content, compress=compress: compress(content) + b"\0\0\0")
        why = "Three bytes follow the compressed data: a validator warns."
        to.finds(f"{codec}-and-more", why, rule, whole([behind]), log, "warning")


def _side_files(to: Verifying) -> None:
    good = whole(FIRST)
    for kind in (".index", ".timeindex"):
        file = name_of(99, kind)
        to.finds(f"orphan{kind.replace('.', '-')}", "An index without a log.", "SEG-PDR-008", {**good, file: b""}, file, "error")  # fmt: skip
    shot = name_of(15, ".snapshot")
    to.finds("snapshot", "A snapshot with a wrong checksum.", "SEG-PSN-002", {**good, shot: snapshot((9, -1))[:-1] + b"\1"}, shot, "error")  # fmt: skip
    to.finds("epochs", "Epochs that go back.", "SEG-CKP-007", {**good, **epochs((3, 0), (2, 5))}, EPOCHS, "warning")
    meta = "partition.metadata"
    to.finds("metadata", "A file without a topic id.", "SEG-CKP-009", {**good, meta: b"x"}, meta, "error")
    index, times = name_of(0, ".index"), name_of(0, ".timeindex")
    row = (5).to_bytes(4, "big") + SIZE.to_bytes(4, "big")
    to.says(
        "index-entry", "An index entry has the right position and offset.", must("SEG-IDX-003"), {**good, index: row}
    )
    wrong = {**good, index: (5).to_bytes(4, "big") + (SIZE + 1).to_bytes(4, "big")}
    other = {**good, index: (1).to_bytes(4, "big") + SIZE.to_bytes(4, "big")}
    low = {**good, index: bytes(4) + SIZE.to_bytes(4, "big")}
    for name, why, rule, files in (
        ("index-position", "The position of an index entry is in the middle of a log entry.", "SEG-IDX-003", wrong),
        ("index-offset", "The offset of an index entry belongs to another log entry than its position.", "SEG-IDX-006", other),
        ("index-offset-of-the-base", "The offset of an index entry is the base offset, which belongs to the first log entry, unlike its position.", "SEG-IDX-006", low),
    ):  # fmt: skip
        to.finds(name, why, rule, files, index, "error")
    old = Wrapper(inner=tuple(Msg(offset=at) for at in range(3)), compress=gzip, offset=2, offsets=(0, 1, 2))
    follows_it = replace(old, offset=5, offsets=(3, 4, 5))
    end = len(old.encoded())
    entry = (5).to_bytes(4, "big") + end.to_bytes(4, "big")
    wrappers = {name_of(0): bytes_of([old, follows_it]), index: entry, times: time_entry(1000, 2)}
    why = "An index entry of a wrapper has the offset of its last message."
    to.says("index-of-wrappers", why, must("SEG-IDX-006"), wrappers)
    alone = {EPOCHS: epochs((3, 0), (2, 5))[EPOCHS]}
    empty = (".", "SEG-PDR-016", "note")
    to.finds("no-segment", "A directory without a segment is still a partition directory, if it has other files of one.", "SEG-CKP-007", alone, EPOCHS, "warning", empty)  # fmt: skip
    late = {**good, times: time_entry(1042, 14) + time_entry(1041, 14)}
    follows = ((times, "SEG-TIX-004", "error"), (times, "SEG-TIX-005", "warning"))
    to.finds("time-order", "The timestamps of a time index decrease.", "SEG-TIX-002", late, times, "error", *follows)
    ended = [data(0, b"a"), marker("ABORT", 1, leader_epoch=0)]
    listed = {**whole(ended), name_of(0, ".txnindex"): aborted(9, 0, 1, 2)}
    to.says("aborted", "The index of aborted transactions agrees with the log.", should("SEG-TXN-006"), listed)
    for number in (-1, 3, -5):
        wrong = {**listed, name_of(0, ".txnindex"): aborted(9, 0, 1, number)}
        to.finds(f"aborted-stable-{number}", "The last stable offset of the index entry was never that of the log.", "SEG-TXN-008", wrong, name_of(0, ".txnindex"), "warning")  # fmt: skip
    for name, size in (("one-more", 35), ("one-less", 33)):
        torn = {**listed, name_of(0, ".txnindex"): (2 * aborted(9, 0, 1, 2))[:size]}
        to.finds(f"aborted-torn-{name}", "The index of aborted transactions ends inside an entry.", "SEG-TXN-001", torn, name_of(0, ".txnindex"), "warning")  # fmt: skip
    version = {**listed, name_of(0, ".txnindex"): b"\1\0" + aborted(9, 0, 1, 2)[2:]}
    to.finds("aborted-version", "The version of the file or entry is unknown.", "SEG-TXN-002", version, name_of(0, ".txnindex"), "error")  # fmt: skip


def _notes(to: Verifying) -> None:
    """Add what brokers live with, and a validator tells all the same."""
    good, log, times = whole(FIRST), name_of(0), name_of(0, ".timeindex")
    longest = "t" * 250
    topic = {f"{longest}-0/{name}": content for name, content in good.items()}
    to.finds("topic-too-long", "A topic name of 250 characters.", "SEG-PDR-002", topic, f"{longest}-0", "warning")
    digits = "\u0660" * 20 + ".log"
    to.finds("digits", "A name with digits of another script.", "SEG-PDR-006", {**good, digits: b""}, digits, "warning")
    to.finds("empty", "The partition directory has no segment.", "SEG-PDR-016", {EPOCHS: b"0\n0\n"}, ".", "note")
    unusual = whole([replace(FIRST[0], leader_epoch=-2), *FIRST[1:]])
    to.finds("leader-epoch", "A leader epoch below -1.", "SEG-BAT-021", unusual, log, "warning")
    to.finds("time-of-another", "The timestamp of a time index entry is not that of its log entry.", "SEG-TIX-005", {**good, times: time_entry(1043, 14)}, times, "warning")  # fmt: skip
    two = {**good, **whole(SECOND, 15)}
    to.finds("time-not-the-largest", "The time index of a closed segment does not have its largest timestamp.", "SEG-TIX-006", {**two, times: time_entry(1012, 5)}, times, "warning")  # fmt: skip
    shot = name_of(15, ".snapshot")
    to.finds("snapshot-twice", "The snapshot contains the same producer twice.", "SEG-PSN-004", {**two, shot: snapshot((9, -1), (9, -1), last_offset=-1)}, shot, "warning")  # fmt: skip
    to.finds("snapshot-ahead", "The snapshot contains an offset above its own.", "SEG-PSN-006", {**two, shot: snapshot((9, 99), last_offset=-1)}, shot, "warning")  # fmt: skip
    to.finds("snapshot-of-another-log", "The snapshot names a batch of its producer that is not in the log.", "SEG-PSN-009", {**two, shot: snapshot((9, -1))}, shot, "error")  # fmt: skip
    to.finds("snapshot-of-another-producer", "The batch at the newest offset of a producer in the snapshot was sent by another producer.", "SEG-PSN-009", {**two, shot: snapshot((9, -1), last_offset=2)}, shot, "error")  # fmt: skip
    placed = {f"topic-0/{name}": content for name, content in good.items()}
    ahead = {**placed, f"/{POINTS}": offsets(("topic", 0, 99))}
    to.finds("checkpoint-ahead", "A recovery point above the end of the log.", "SEG-CKP-012", ahead, POINTS, "warning")


def _entries(to: Verifying) -> None:
    """Add entries that brokers take as they are, and whose writer made a mistake."""
    log, alone = name_of(0), (name_of(0), "SEG-PDR-012", "note")
    first, second, *rest = FIRST
    why = "A batch begins at or below the last offset of the one before, and ends above it."
    for name, base in (("by-one", 2), ("from-its-base", 0)):
        over = replace(second, base=base, recs=(*second.recs, *second.recs), last_delta=5)
        units = [first, over, *(replace(one, base=one.base + 3) for one in rest)]
        to.finds(f"overlap-{name}", why, "SEG-LOG-007", {log: bytes_of(units)}, log, "warning", alone)
    why = "The leader epoch of a batch is below that of the batch before."
    for name, units in (
        ("in-a-segment", [replace(first, leader_epoch=3), *FIRST[1:]]),
        ("at-the-end", [*(replace(one, leader_epoch=3) for one in FIRST[:-1]), replace(FIRST[-1], leader_epoch=2)]),
    ):
        to.finds(f"epochs-back-{name}", why, "SEG-LOG-012", whole(units), log, "warning")
    for magic in (0, 1):
        given = {log: bytes_of([Msg(magic=magic), Msg(magic=magic, offset=1, behind=b"junk")])}
        to.finds(f"magic-{magic}-behind-the-value", "The value ends before the message does.", "SEG-MSG-006", given, log, "warning", alone)  # fmt: skip


def _gaps(to: Verifying) -> None:
    """Offsets that are missing: compaction may take them, and nothing else."""
    good, log, index = whole(FIRST), name_of(0), name_of(0, ".index")
    behind = {**good, **whole(row(3, base=20), 20)}
    to.finds("gap", "Offsets are missing between two segments.", "SEG-PDR-014", behind, log, "warning")
    to.finds("gap-behind-nothing", "The segment before the gap is empty.", "SEG-PDR-014", {log: b"", index: b"", name_of(0, ".timeindex"): b"", **whole(SECOND, 15)}, log, "warning")  # fmt: skip
    inside = {**whole([FIRST[0], *FIRST[2:]]), **whole(row(3, base=20), 20)}
    to.finds("gap-and-one-inside", "Offsets are also missing inside a segment: the log was compacted.", "SEG-PDR-014", inside, log, "note")  # fmt: skip
    fewer = {
        **whole([*FIRST[:-1], replace(FIRST[-1], recs=FIRST[-1].recs[:1], last_delta=2)]),
        **whole(row(3, base=20), 20),
    }
    to.finds("gap-and-fewer-records", "An entry has also lost records: the log was compacted.", "SEG-PDR-014", fewer, log, "note", (log, "SEG-BAT-019", "note"))  # fmt: skip
    for topic, severity in (
        ("__consumer_offsets", "note"),
        ("__transaction_state", "note"),
        ("__share_group_state", "warning"),
        ("__remote_log_metadata", "warning"),
    ):
        placed = {f"{topic}-0/{name}": content for name, content in behind.items()}
        why = (
            "Offsets are missing in a topic of Kafka that brokers compact."
            if severity == "note"
            else "Offsets are missing in a topic of Kafka that brokers do not compact."
        )
        to.finds(f"gap-in-{topic.strip('_').replace('_', '-')}", why, "SEG-PDR-014", placed, f"{topic}-0/{log}", severity)  # fmt: skip
    for topic, severity in (("topic", "note"), ("other", "warning")):
        cleaned = {f"topic-0/{name}": content for name, content in behind.items()} | {
            "/cleaner-offset-checkpoint": offsets((topic, 0, 15))
        }
        why = (
            "The cleaner's checkpoint names this partition: the gap comes from compaction."
            if severity == "note"
            else "The cleaner's checkpoint names only another partition: the gap does not come from compaction."
        )
        to.finds(f"gap-with-cleaned-{topic}", why, "SEG-PDR-014", cleaned, f"topic-0/{log}", severity)
    torn = {**behind, log: bytes_of(FIRST) + bytes_of(FIRST)[:40]}
    to.finds("cut-inside-an-entry", "A segment ends inside an entry, and offsets are missing after it.", "SEG-PDR-024", torn, log, "error", (log, "SEG-LOG-004", "warning"))  # fmt: skip
    named = {**behind, index: (19).to_bytes(4, "big") + (5 * SIZE).to_bytes(4, "big")}
    to.finds("cut-before-its-index", "An index contains offsets that are missing in the log.", "SEG-PDR-024", named, log, "error", (index, "SEG-IDX-003", "error"))  # fmt: skip
    lost = {**behind, name_of(15, ".index"): b"", name_of(15, ".timeindex"): b""}
    orphans = ((name_of(15, kind), "SEG-PDR-008", "error") for kind in (".index", ".timeindex"))
    to.says(
        "missing-log", "The log file of a segment is missing, its indexes exist.", must("SEG-PDR-008"), lost, *orphans
    )
    shot = name_of(15, ".snapshot")
    to.finds("missing-segment", "A segment is missing, its snapshot exists.", "SEG-PDR-024", {**behind, shot: snapshot()}, shot, "error")  # fmt: skip
    late = name_of(16, ".snapshot")
    to.finds("snapshot-above-the-end", "A snapshot names an offset above the end of the log.", "SEG-PSN-008", {**good, late: snapshot()}, late, "warning")  # fmt: skip
