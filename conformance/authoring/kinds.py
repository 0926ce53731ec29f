"""Cases for kinds of faults, planted into decoders, recovery, truncation and lookups, that one case alone showed or none."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

from authoring.appends import ask_leader
from authoring.batches import (
    BASE_OFFSET,
    CONTROL,
    COUNT,
    DELETE_HORIZON,
    LAST_OFFSET_DELTA,
    MAGIC,
    TRANSACTIONAL,
    Batch,
    Rec,
    with_field,
)
from authoring.boundaries import listed
from authoring.casefile import Basis, hexed, lay, may, must, should
from authoring.codecs import (
    GZIP_EXTRA,
    GZIP_HEADER,
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_END,
    LZ4_PLAIN,
    XERIAL,
    gzip,
    gzip_header,
    lz4_header,
    lz4_stored,
    xxh32,
    zstd,
)
from authoring.compressed import GOOD, packed, refused
from authoring.control import control_key, data, empty, marker, marker_value
from authoring.encodings import NOW
from authoring.messages import Msg, Wrapper
from authoring.primitives import uvarint
from authoring.repairs import EMPTY, FIRST, SECOND, Repairs, epochs, segment, snapshot
from authoring.segments import SIZE, aborted, bytes_of, name_of, offset_index, row, time_entry, time_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from authoring.casefile import Family, Json

PRODUCER: Final = {"producer_id": 9, "producer_epoch": 2}
ENDS: Final = {"ABORT": 0, "COMMIT": 1}
PROOF: Final = ("provesIndexes",)


def kinds(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _headers(families)
    _ends(families["index-build"], families["transactions"], Repairs(families["recovery"]))
    _outside(families["transactions"])
    _scans(Repairs(families["recovery"]))
    _loaded(Repairs(families["recovery"]))
    _names(Repairs(families["recovery"]))
    _truncations(Repairs(families["recovery"]))
    _lost(families["transactions"])
    _entries(families["lookup"])
    _ranges(families["lookup"])
    _times(families["lookup"])
    _streams(families)
    _left(families)
    _starts(families["lookup"], families["transactions"])
    _replaced(Repairs(families["recovery"]))
    _stamped(families["append-policy"])
    _policies(families["decisions"])


def _headers(families: Mapping[str, Family]) -> None:
    """Ask for numbers one below their least, in batches with no record, of a producer or compressed, and short tails."""
    hollow = {
        "empty": empty(10, 4),
        "empty-of-a-producer": empty(10, 0, base_sequence=3, **PRODUCER),
        "empty-marker": empty(10, 0, attributes=CONTROL | TRANSACTIONAL, **PRODUCER),
        "compressed": Batch(base=10, recs=(Rec(), Rec(delta=1)), codec="gzip", compress=gzip),
    }
    for field, name, rule, reject, to in (
        (COUNT, "count", "SEG-BAT-007", "count", families["records-count"]),
        (LAST_OFFSET_DELTA, "last-delta", "SEG-BAT-006", "offset", families["offset-order"]),
        (BASE_OFFSET, "base-offset", "SEG-BAT-005", "offset", families["offset-order"]),
    ):
        for kind, unit in hollow.items():
            content = with_field(unit.encoded(), field, -1)
            to.invalid(
                f"{name}-minus-1-of-{kind}", "The number is one below the least.", should(rule), reject, GOOD, content
            )
    for size in (-1, 0, 13):
        for count in (18, 19, 30):
            content = struct.pack(">qi", 7, size) + b"\2" * (count - 12)
            why = "The bytes at the end are enough for an entry, and contain an impossible size."
            basis = must("SEG-LOG-003")
            families["tails"].invalid(f"size-{size}-in-{count}", why, basis, "length", GOOD, content, more=False)


def _ends(builds: Family, reads: Family, to: Repairs) -> None:
    """Ask for end markers that are compressed, outside of a transactional batch, or beside another record."""
    begun = data(0, b"a")

    def ending(*kinds: str, **fields: Any) -> Batch:  # noqa: ANN401 - fields of Batch
        recs = [replace(marker(kind, 1).recs[0], delta=at) for at, kind in enumerate(kinds)]
        return replace(marker(kinds[0], 1), recs=tuple(recs), **fields)

    two = "Of several records in a control batch the first decides."
    bit = "A control batch without the transactional bit ends a transaction as any other."
    packed: dict[str, Any] = {"codec": "gzip", "compress": gzip}
    for name, why, rule, unit, kind in (
        *((f"{kind.lower()}-not-transactional", bit, "SEG-LKP-016", ending(kind, attributes=CONTROL), kind) for kind in ENDS),
        *((f"{kind.lower()}-before-the-other", two, "SEG-CTL-007", ending(kind, other), kind) for kind, other in (("ABORT", "COMMIT"), ("COMMIT", "ABORT"))),
        *((f"{kind.lower()}-twice", two, "SEG-CTL-007", ending(kind, kind), kind) for kind in ENDS),
        *((f"{kind.lower()}-compressed", "An end marker may be compressed.", "SEG-CTL-007", ending(kind, **packed), kind) for kind in ENDS),
        *((f"{kind.lower()}-before-the-other-compressed", two, "SEG-CTL-007", ending(kind, other, **packed), kind) for kind, other in (("ABORT", "COMMIT"), ("COMMIT", "ABORT"))),
    ):  # fmt: skip
        last = unit.next_offset - 1
        units = [begun, unit, *row(1, base=last + 1)]
        basis = must(rule, "SEG-TXN-003")
        rows = aborted(9, 0, 1, 2) if kind == "ABORT" else b""
        made = {".index": offset_index(units, 100).hex(), ".timeindex": time_index(units, 100).hex()}
        made |= {".txnindex": rows.hex()} if rows else {}
        request: Json = {"data": bytes_of(units).hex(), "baseOffset": "0", "indexIntervalBytes": 100}
        builds.add(f"end-{name}", "index", "valid", why, basis, request=request, expect={"files": made})
        kept = segment(units)
        listed = {name_of(0, ".txnindex"): rows} if rows else {}
        to.recover(f"end-{name}", why, basis, kept, {**kept, **listed, **epochs((0, 0), (3, 1))}, last + 4)
        found = [one for answer in lay([begun, *row(1, base=last + 1)])[1] for one in answer["records"]]
        found = found[1:] if rows else found
        reading = {"files": hexed({**kept, **listed}), "offset": "0", "isolation": "read_committed"}
        expect: Json = {"records": found, "nextOffset": str(last + 4)}
        reads.add(f"end-{name}", "read", "valid", why, must(rule, "SEG-LKP-011"), request=reading, expect=expect)


def _outside(reads: Family) -> None:
    """Ask for logs with plain batches while their producer has a transaction open, as no leader lets it write."""
    done: list[Batch] = [data(0, b"a"), marker("COMMIT", 1), data(2, b"b", sequence=1)]
    for name, count in (("", 1), ("-twice", 2)):
        plain = [data(3 + at, b"x", sequence=2 + at, transactional=False) for at in range(count)]
        end = marker("ABORT", 3 + count)
        given = segment([*done, *plain, end]) | {name_of(0, ".txnindex"): aborted(9, 2, 3 + count, 4 + count)}
        found = [one for answer in lay([done[0], *plain])[1] for one in answer["records"]]
        why = "A batch outside of transactions is delivered, even if its producer's transaction around it is aborted."
        request = {"files": hexed(given), "offset": "0", "isolation": "read_committed"}
        reads.add(f"outside-of-aborted{name}", "read", "valid", why, must("SEG-LKP-011"), request=request, expect={"records": found, "nextOffset": str(4 + count)})  # fmt: skip


def _unread(to: Repairs) -> None:
    """Ask for recovery of logs with end markers that cannot be read."""
    good = [data(0, b"a"), *row(1, base=1)]
    for name, key, value, rule in (
        *((f"{kind.lower()}-null-value", control_key(at), None, "SEG-CTL-004") for kind, at in ENDS.items()),
        *((f"{kind.lower()}-empty-value", control_key(at), b"", "SEG-CTL-004") for kind, at in ENDS.items()),
        *((f"{kind.lower()}-5-bytes", control_key(at), marker_value(0)[:5], "SEG-CTL-004") for kind, at in ENDS.items()),
        *((f"{kind.lower()}-value-of-version-minus-1", control_key(at), marker_value(0, version=-1), "SEG-CTL-004") for kind, at in ENDS.items()),
        *((f"{kind.lower()}-key-of-version-minus-1", control_key(at, version=-1), marker_value(0), "SEG-CTL-001") for kind, at in ENDS.items()),
    ):  # fmt: skip
        for bits, suffix in ((CONTROL | TRANSACTIONAL, ""), (CONTROL, "-not-transactional")):
            unit = Batch(base=4, recs=(Rec(key=key, value=value),), attributes=bits, **PRODUCER)
            position = len(bytes_of(good))
            cut = {"baseOffset": "0", "position": position, "nextOffset": "4", "requirements": ["SEG-RCV-008", rule]}
            to.recover(f"unread-{name}{suffix}", "By the specification, recovery removes an end marker that cannot be read.", must("SEG-RCV-008"), segment([*good, unit, *row(1, base=5)]), {**segment(good), **epochs((0, 0))}, 4, modes="t", plan={"cuts": [cut], "remarks": [{"at": position, "requirement": rule}]})  # fmt: skip


def _scans(to: Repairs) -> None:
    """Ask what recovery keeps: later magics, offsets that overlap, producers of a log that was closed cleanly."""
    _unread(to)
    why = "An entry of a magic that this text does not know has a right size and checksum: recovery keeps it."
    for magic in (3, 4, 5, 64, 127):
        for at in {3: (0, 4), 4: (0, 1, 4)}.get(magic, (1,)):
            units = [
                with_field(one.encoded(), MAGIC, magic) if number == at else one for number, one in enumerate(FIRST)
            ]
            kept = {**segment(FIRST), name_of(0): bytes_of(units)}
            left = {**kept, **epochs((0, 0))}
            to.recover(f"magic-{magic}-at-{at}-stays", why, must("SEG-RCV-038"), kept, left, 15, modes="t")
    why = "By the specification, an entry that begins below the end of the one before, and ends above it, stays."
    for name, at, base in (("by-1", 2, 5), ("by-2", 2, 4), ("from-its-base", 2, 3), ("of-the-last", 4, 11)):
        moved = replace(FIRST[at], base=base, recs=FIRST[at].recs[:1], last_delta=3 * at + 2 - base)
        units = [*FIRST[:at], moved, *FIRST[at + 1 :]]
        files = segment(units)
        to.recover(f"overlap-{name}", why, must("SEG-RCV-032"), files, {**files, **epochs((0, 0))}, 15, modes="t")
    why = (
        "By the specification, recovery cuts a segment before the first entry that ends no higher than the one before."
    )
    for at, base, last in ((1, 0, 2), (2, 3, 2), (4, 9, 2), (4, 11, 0), (4, 2, 1)):
        units = [*FIRST[:at], replace(FIRST[at], base=base, recs=FIRST[at].recs[:1], last_delta=last)]
        left = {**segment(FIRST[:at]), **epochs((0, 0))}
        rule = must("SEG-RCV-032", "SEG-LOG-006")
        files = {name_of(0): bytes_of(units), name_of(0, ".index"): b""}
        to.recover(f"order-{base}-to-{base + last}-behind-{at}", why, rule, files, left, 3 * at, modes="t")


def _loaded(to: Repairs) -> None:
    """Ask for what else decides when a log is loaded: equal offsets, epochs, snapshots, unfinished files."""
    why = "An index entry is due where an offset is that of the entry before: brokers empty the segment."
    for at in (2, 3, 4):
        units = [*FIRST[:at], replace(FIRST[at - 1], base_timestamp=5000), *FIRST[at:]]
        files = {name_of(0): bytes_of(units), name_of(0, ".index"): b""}
        to.recover(f"order-same-as-{at - 1}", why, should("SEG-RCV-023"), files, segment([]), 0, modes="b")
    for name, starts in (("first", ((0, -1),)), ("second", ((0, 0), (1, -5))), ("least", ((3, -(2**63)),))):
        why = "A leader epoch begins at a negative offset: brokers do not start."
        to.stops(f"epochs-negative-offset-{name}", why, should("SEG-CKP-007"), {**segment(FIRST), **epochs(*starts)})
    begun = {**segment(SECOND, 15), **segment([marker("ABORT", 24)], 24)}
    why = "The newest snapshot cannot be read: the one before it says which transaction was open."
    for name, broken in (
        ("empty", b""),
        ("cut", EMPTY[:-1]),
        ("checksum", EMPTY[:5] + b"\1" + EMPTY[6:]),
        ("version", b"\0\2" + EMPTY[2:]),
    ):
        older = {name_of(15, ".snapshot"): snapshot((9, 3), last_offset=3)}
        left = {**begun, **older, name_of(24, ".txnindex"): aborted(9, 3, 24, 25), **epochs((0, 15), (3, 24))}
        given = {**begun, **older, name_of(24, ".snapshot"): broken}
        to.recover(f"older-than-a-snapshot-{name}", why, must("SEG-RCV-025", "SEG-RCV-027"), given, left, 25, modes="t")
    for kind in ENDS:
        files = {**segment([marker(kind, 0)]), **epochs((3, 0))}
        shot = snapshot((9, -1), last_offset=-1, sequence=-1, time=1234)
        why = (
            "A producer of which there is only an end marker has no batch: sequence and offset are -1, the delta is 0."
        )
        left = {**files, name_of(1, ".snapshot"): shot}
        rule = must("SEG-PSN-010", "SEG-PSN-011")
        to.recover(f"only-{kind.lower()}", why, rule, files, left, 1, modes="t", cleanShutdown=True)
    why = "A file of the replacement was still being written: the replacement is undone."
    for kind in (".log", ".index", ".timeindex", ".txnindex"):
        given = {**segment(FIRST), name_of(0, ".log.swap"): bytes_of(FIRST[:2]), name_of(0, f"{kind}.cleaned"): b""}
        left = {**segment(FIRST), **epochs((0, 0))}
        to.recover(f"swap-beside-cleaned-{kind[1:]}", why, must("SEG-RCV-021", "SEG-PDR-010"), given, left, 15)


def _names(to: Repairs) -> None:
    """Ask for names with few digits: of a log, and of what belongs to it."""
    rule, why = must("SEG-PDR-005"), "A file name has too few digits: recovery gives it all, as brokers look for that."
    kinds = (".log", ".index", ".timeindex")
    for count in (1, 2):
        for short in combinations(kinds, count):
            files = segment(SECOND, 15)
            moved = {
                name.lstrip("0") if name.endswith(short) and name[20:] in short else name: content
                for name, content in files.items()
            }
            left = {**segment(FIRST), **files, **epochs((0, 0))}
            name = "-and-".join(one[1:] for one in short)
            to.recover(f"few-digits-of-{name}", why, rule, {**segment(FIRST), **moved}, left, 24, modes="t")


def _truncations(to: Repairs) -> None:
    """Ask for truncation of logs whose segments have every side file, to offsets around their snapshots and markers."""
    ended = [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1), marker("ABORT", 3), *row(1, base=4)]
    rows = [aborted(9, 0, 1, 2), aborted(9, 2, 3, 4)]
    whole = {**segment(ended, interval=0), name_of(0, ".txnindex"): b"".join(rows)}
    for offset, count, left in ((1, 1, 0), (2, 2, 1), (3, 3, 1), (4, 4, 2)):
        kept = {**segment(ended[:count], interval=0), name_of(0, ".txnindex"): b"".join(rows[:left])}
        why = "Truncation removes aborted transactions that ended at the offset or above, whatever indexes there are."
        unlike = [name_of(0, ".timeindex")]
        to.truncate(f"indexed-aborted-{offset}", why, must("SEG-TRN-006"), offset, whole, kept, unlike=unlike)
    for offset in (3, 9, 12):
        shots = {name_of(base, ".snapshot"): EMPTY for base in (offset - 1, offset, offset + 1)}
        kept = {
            **segment(FIRST[: offset // 3]),
            **{name: shots[name] for name in shots if name <= name_of(offset, ".snapshot")},
        }
        why = "Truncation keeps a snapshot at the offset, and removes those above."
        given = {**segment(FIRST), **shots}
        unlike = [name_of(offset - 1, ".snapshot"), name_of(0, ".timeindex")]
        to.truncate(f"snapshots-around-{offset}", why, must("SEG-TRN-004"), offset, given, kept, unlike=unlike)


def _lost(family: Family) -> None:
    """Ask for reads across missing offsets, among which an open transaction may have ended, or which compaction removed."""
    thin = Batch(base=1, recs=(Rec(), Rec(delta=2)), last_delta=2)
    gap, dense = [Batch(base=1), Batch(base=3)], [Batch(base=1), Batch(base=2)]
    named = struct.pack(">ii", 6, SIZE)
    text = "Offsets are missing between two segments: compaction removed them if others are missing inside of one."
    shown = "Offsets are missing that an index or its name names: they existed, and a transaction may have ended there."
    for name, why, inner, side, is_lost in (
        ("gap-inside", text, gap, {}, False),
        ("thin-batch", text, [thin], {}, False),
        ("nothing-inside", text, dense, {}, True),
        ("gap-inside-indexed", shown, gap, {name_of(0, ".index"): named}, True),
        ("gap-inside-timed", shown, gap, {name_of(0, ".timeindex"): time_entry(1000, 6)}, True),
        ("gap-inside-orphan", shown, gap, {name_of(6, ".index"): b""}, True),
        ("thin-batch-orphan", shown, [thin], {name_of(5, ".timeindex"): b""}, True),
    ):
        for kind in ENDS:
            later = [marker(kind, 10), Batch(base=11)]
            files = {name_of(0): bytes_of([data(0, b"a"), *inner]), name_of(10): bytes_of(later), **side}
            delivered = [*inner, later[1]] if kind == "ABORT" else [data(0, b"a"), *inner, later[1]]
            records = [] if is_lost else [one for answer in lay(delivered)[1] for one in answer["records"]]
            expect: Json = {"reject": {"class": "other"}} if is_lost else {"nextOffset": "12"}
            request = {"files": hexed(files), "isolation": "read_committed"}
            basis = should("SEG-LKP-012", "SEG-LKP-019", needs=("verifiedRead", "readAll") if is_lost else ("readAll",))
            result = "invalid" if is_lost else "valid"
            expect |= {"records": records}
            family.add(f"lost-{name}-{kind.lower()}", "read", result, why, basis, request=request, expect=expect)


def _find(
    family: Family, name: str, why: str, basis: Basis, files: dict[str, bytes], found: Json | None, **asked: int | Json
) -> None:
    request: Json = {
        "files": hexed(files),
        **{key: value if isinstance(value, dict) else str(value) for key, value in asked.items()},
    }
    family.add(name, "lookup", "valid", why, basis, request=request, expect={"found": found})


def _entries(family: Family) -> None:
    """Ask for offsets with a trusted index that passes over the right entry, and times of the year 1970."""
    find = partial(_find, family)
    log, basis = bytes_of(FIRST), should("SEG-IDX-009", needs=("trustIndexes", *PROOF), flags=("INDEX_TRUST",))
    trusting = {"options": {"trustIndexes": True}}
    for at in (1, 2, 3):
        for offset in (3 * at - 1, 3 * at - 3):
            content = struct.pack(">ii", 3 * at - 3, at * SIZE)
            found = {"position": (at - 1) * SIZE, "baseOffset": str(3 * at - 3)}
            why = "An index entry that is not above the offset points behind its entry: the entry before is the right one."
            files = {name_of(0): log, name_of(0, ".index"): content}
            find(f"passed-over-{at}-{offset}", why, basis, files, found, offset=offset, **trusting)
            family.cases[-1]["untold"] = ["found.entry"]
    early = row(4, start=0, step=10)
    why = "A time of 0 is one: the time index begins with an entry of that time."
    tix = should("SEG-TIX-009", "SEG-TIX-008", needs=PROOF)
    first = [
        replace(early[0], recs=early[0].recs[:1], last_delta=0),
        *(replace(one, base=one.base - 2) for one in early[1:]),
    ]
    for name, units, time, entry, offset in (
        ("itself", first, 0, (0, 0), 0),
        ("then-later", first, 10, (0, 0), 1),
        ("then-last", first, 12, (12, 3), 3),
    ):
        files = {
            name_of(0): bytes_of(units),
            name_of(0, ".timeindex"): time_entry(0, 0) + time_entry(12, 3) + time_entry(22, 6),
        }
        found = {
            "entry": {"timestamp": str(entry[0]), "offset": str(entry[1])},
            "offset": str(offset),
            "timestamp": str(time),
        }
        find(f"time-0-{name}", why, tix, files, found, timestamp=time)


def _ranges(family: Family) -> None:
    """Ask for aborted transactions around both ends of a range, and with versions that a reader does not know."""
    basis = must("SEG-TXN-007", needs=("abortedLookup",))
    facts = [(7, 0, 3, 1), (8, 2, 5, 4), (7, 6, 9, 8)]
    rows = [aborted(*one) for one in facts]
    files = {name_of(0): bytes_of(FIRST), name_of(0, ".txnindex"): b"".join(rows)}
    why = "A transaction is part of a range if it begins below its end and does not end below its start."
    for start, end in ((0, 6), (0, 7), (3, 4), (4, 6), (4, 7), (5, 6), (6, 7), (9, 10), (10, 11), (1, 2), (1, 3)):
        found, is_complete = [], False
        for producer, first, last, stable in facts:
            if last >= start and first < end:
                listed = {"producerId": producer, "firstOffset": first, "lastOffset": last, "lastStableOffset": stable}
                found.append({key: str(value) for key, value in listed.items()})
            is_complete = stable >= end
            if is_complete:
                break
        answer = {"aborted": found, "isComplete": is_complete}
        _find(family, f"aborted-{start}-to-{end}-of-three", why, basis, files, answer, fromOffset=start, toOffset=end)
    why = "An entry of a transaction index has a version that a reader does not know."
    for version in (1, 2, 256, 32767):
        for at in (0, 2):
            content = b"".join(
                struct.pack(">h", version) + one[2:] if number == at else one for number, one in enumerate(rows)
            )
            request: Json = {
                "files": hexed({**files, name_of(0, ".txnindex"): content}),
                "fromOffset": "0",
                "toOffset": "15",
            }
            rule = should("SEG-TXN-002", flags=("LOOSE_VERSION",), needs=("abortedLookup",))
            refused = {"branch": "refused", "reject": {"class": "index"}}
            expect = {"allowed": [refused, {"branch": "unknown", "found": {"aborted": [], "isComplete": False}}]}
            family.add(
                f"aborted-version-{version}-at-{at}", "lookup", "acceptable", why, rule, request=request, expect=expect
            )


def _times(family: Family) -> None:
    """Ask for the end of logs whose last segment is empty."""
    basis = must("SEG-LKP-015", "SEG-LKP-009", needs=("specialTimestamps",))
    why = "The last segment is empty: its name is the log end offset."
    for name, files, end in (
        ("behind-two", {name_of(0): bytes_of(FIRST), name_of(15): bytes_of(SECOND), name_of(24): b""}, 24),
        ("after-a-gap", {name_of(15): bytes_of(SECOND), name_of(99): b""}, 99),
        ("behind-an-empty-one", {name_of(15): bytes_of(SECOND), name_of(24): b"", name_of(30): b""}, 30),
        ("alone", {name_of(77): b""}, 77),
    ):
        _find(family, f"latest-of-an-empty-segment-{name}", why, basis, files, {"offset": str(end)}, timestamp=-1)


def _streams(families: Mapping[str, Family]) -> None:
    """Ask for lengths in compressed data above one byte and two, and for what is left of a member, frame or block."""
    fields = must("SEG-COD-002", flags=("GZIP_FIELDS",))
    for size in (255, 256, 257):
        header = gzip_header(GZIP_EXTRA, struct.pack("<H", size) + bytes(size))
        why = "The extra field of the gzip header is as long as one byte can say, or longer."
        families["gzip"].valid(f"extra-of-{size}", why, fields, packed("gzip", partial(gzip, header=header)))
    for size in (10, 17, 18):
        behind = (GZIP_HEADER + bytes(8))[:size]
        why = "What follows a member begins like one, and is too short to be one."
        families["gzip"].valid(f"header-of-{size}-behind", why, may("SEG-COD-018"), packed("gzip", lambda raw, behind=behind: gzip(raw) + behind))  # fmt: skip
    for size in (19, 20, 30):
        behind = (GZIP_HEADER + bytes([2]) + bytes(30))[:size]
        why = "A second member begins, and its data is damaged."
        refused(families["bad-compression"], f"gzip-header-of-{size}-behind", why, must("SEG-COD-002", flags=("BAD_STREAM",)), "gzip", lambda raw, behind=behind: gzip(raw) + behind)  # fmt: skip

    def framed(raw: bytes, count: int, at: int) -> bytes:
        parts = (raw[:at], raw[at:]) if at else (raw,)
        blocks = [bytes([len(one), 59 + count << 2]) + (len(one) - 1).to_bytes(count, "little") + one for one in parts]
        return XERIAL + b"".join(struct.pack(">i", len(one)) + one for one in blocks)

    for count, at in product((2, 3, 4), (0, 9)):
        why = "The length of a literal takes more bytes than it needs."
        families["snappy-xerial"].valid(f"literal-of-{count}-length-bytes-{'alone' if not at else 'in-two-blocks'}", why, must("SEG-COD-003", flags=("XERIAL",)), packed("snappy", partial(framed, count=count, at=at)))  # fmt: skip

    def far(raw: bytes, distance: int) -> bytes:
        first = raw[: len(raw) - 33 - distance + 32] + b"\0"
        left = distance - 33
        parts = bytes([60 << 2, len(first) - 1]) + first + b"\xfe\1\0" * (left // 64)
        parts += bytes([(left % 64 - 1) << 2 | 2]) + b"\1\0" if left % 64 else b""
        return uvarint(len(raw)) + parts + b"\x7f" + struct.pack("<I", distance) + b"\0" + raw[-1:]

    def shown(raw: bytes, distance: int) -> bytes:
        block = far(raw, distance)
        return XERIAL + struct.pack(">i", len(block)) + block

    for distance in (65_535, 65_536):
        mark = bytes(range(1, 33))
        rec = Rec(key=None, value=mark + bytes(distance - 32) + mark)
        why = "A copy with a distance of four bytes, of which the upper two count."
        content = packed("snappy", partial(shown, distance=distance), (rec,))
        families["snappy-xerial"].valid(f"copy-from-{distance}", why, must("SEG-COD-003"), content)
    for size in (1, 3, 4, 5, 15, 16, 17, 31, 32, 33):
        why = "Each block has a checksum, which is that of so many bytes."
        families["lz4"].valid(f"checksum-of-{size}-bytes", why, must("SEG-COD-012"), packed("lz4", lambda raw, size=size: lz4_header(LZ4_PLAIN | LZ4_BLOCK_CHECKSUM) + b"".join(lz4_stored(raw[at : at + size], checksum=True) for at in range(0, len(raw), size)) + LZ4_END))  # fmt: skip
    for count in (1, 2, 3):
        why = "The header announces a checksum of the content, and the data ends within it."
        refused(families["lz4"], f"checksum-of-stored-content-cut-at-{count}", why, should("SEG-COD-010"), "lz4", lambda raw, count=count: lz4_header(LZ4_PLAIN | LZ4_CONTENT_CHECKSUM) + lz4_stored(raw) + LZ4_END + xxh32(raw)[:count])  # fmt: skip
    for size in (255, 256, 65_536):
        skipped = bytes.fromhex("5a2a4d18") + struct.pack("<I", size) + bytes(size)
        for name, order in (("before", (skipped, b"")), ("behind", (b"", skipped)))[: 1 + (size < 2**16)]:  # fmt: skip
            why = "A reader passes over a skippable frame, however long it is."
            families["zstd"].valid(f"skippable-of-{size}-{name}", why, should("SEG-COD-023", flags=("ZSTD_FRAMES",), since="2.1"), packed("zstd", lambda raw, order=order: order[0] + zstd(raw) + order[1]))  # fmt: skip


def _left(families: Mapping[str, Family]) -> None:
    """Ask for zeros behind the last message of a wrapper: as many as its offset and size take, or fewer."""
    for magic, count in product((0, 1), (1, 11, 12, 13, 26)):
        family = families[f"magic-{magic}-wrappers"]
        inner = tuple(Msg(magic=magic, offset=at) for at in range(2))
        unit = Wrapper(
            magic=magic,
            offset=11,
            offsets=(10, 11) if magic else (0, 1),
            inner=inner,
            compress=lambda raw, count=count: gzip(raw + bytes(count)),
        )
        unit = unit if magic else replace(unit, offset=1)
        if count < 12:  # noqa: PLR2004 - offset and size
            why = "Zeros behind the last message are too few for an offset and a size: they are dropped."
            family.valid(f"{count}-zeros-behind", why, should("SEG-MSG-019"), unit)
        else:
            why = "Zeros behind the last message are an offset and a size, which is too small."
            needs = (f"magic:{magic}", "codec:gzip")
            family.invalid(f"{count}-zeros-behind", why, should("SEG-MSG-003", needs=needs), "length", Msg(magic=magic), replace(unit, offset=unit.offset + 5, offsets=tuple(at + 5 for at in unit.offsets)).encoded(), more=Msg(magic=magic, offset=90))  # fmt: skip


def _starts(finds: Family, reads: Family) -> None:
    """Ask for a log that begins inside of a batch, or of a transaction."""
    units = [Batch(recs=(Rec(time=90), Rec(time=10), Rec(time=20))), Batch(base=3, recs=(Rec(time=30), Rec(time=50)))]
    needs = ("specialTimestamps", "logStartOffset")
    for start, offset, time in ((0, 0, 1090), (1, 4, 1050), (2, 4, 1050), (3, 4, 1050)):
        why = "The record with the largest timestamp may be below the log start offset: the next one counts."
        found = {"offset": str(offset), "timestamp": str(time)}
        _find(finds, f"largest-from-{start}", why, should("SEG-LKP-013", "SEG-LKP-010", needs=needs), {name_of(0): bytes_of(units)}, found, timestamp=-3, options={"logStartOffset": str(start)})  # fmt: skip
        finds.cases[-1]["untold"] = ["found.entry", "found.position", "found.baseOffset"]
    begun = [data(0, b"a", b"b"), Batch(base=2), data(3, b"c", sequence=2), Batch(base=4)]
    for start, end in ((1, 1), (2, 2), (3, 3), (4, 4)):
        why = "A transaction that is open began below the log start offset: nothing from the start on is stable."
        request: Json = {
            "files": hexed({name_of(0): bytes_of(begun)}),
            "isolation": "read_committed",
            "options": {"logStartOffset": str(start)},
        }
        for name, given, needs in (("", {"offset": str(start)}, ()), ("all-", {}, ("readAll",))):
            reads.add(f"open-{name}from-{start}", "read", "valid", why, must("SEG-LKP-012", "SEG-CKP-010", needs=("logStartOffset", *needs)), request=request | given, expect={"records": [], "nextOffset": str(end)})  # fmt: skip


def _replaced(to: Repairs) -> None:
    """Ask for files of replaced segments that the replacement lacks, and for an index that names other ends."""
    merged = [replace(FIRST[0], recs=FIRST[0].recs[:1], last_delta=2), *FIRST[1:], *SECOND]
    swap = {f"{name}.swap": content for name, content in segment(merged).items()}
    why = "A replaced segment has a file that its replacement lacks: recovery removes it."
    old = {".txnindex": aborted(9, 0, 1, 2), ".index": struct.pack(">ii", 5, SIZE)}
    for base, (kind, content) in product((0, 15), old.items()):
        given = {**segment(FIRST), **segment(SECOND, 15), **swap, name_of(base, kind): content}
        left = {**segment(merged), **epochs((0, 0))}
        to.recover(f"swap-over-{kind[1:]}-of-{base}", why, must("SEG-RCV-021", "SEG-PDR-010", since="3.0"), given, left, 24)  # fmt: skip


def _stamped(family: Family) -> None:
    """Ask a leader that stamps batches for their other bits, and for wrappers with offsets that are not dense."""
    takes = partial(ask_leader, family, result="valid")
    why = "A leader writes the time of the append, and leaves the other bits of the attributes."
    basis = must("SEG-APP-010", flags=("APPEND_POLICY",))
    for name, bits in (("horizon", DELETE_HORIZON), ("transaction", TRANSACTIONAL)):
        fields = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0} if bits == TRANSACTIONAL else {}
        unit = Batch(recs=(Rec(), Rec()), leader_epoch=-1, base_timestamp=NOW, attributes=bits, **fields)
        for topic in ("LogAppendTime", "CreateTime"):
            takes(f"stamped-{name}-{topic.lower()}", why=why, basis=basis, content=unit.encoded(), message_timestamp_type=topic)  # fmt: skip
    why = "The offsets inside a wrapper repeat, skip or go back: a leader writes the wrapper anew."
    for magic, offsets in product((0, 1), ((0, 0, 2), (0, 2, 2), (0, 2, 1, 3), (1, 2, 3))):
        inner = tuple(Msg(magic=magic, offset=at, timestamp=NOW) for at in offsets)
        unit = Wrapper(magic=magic, offset=offsets[-1], offsets=offsets, inner=inner, compress=gzip)
        takes(f"magic-{magic}-inside-{'-'.join(map(str, offsets))}", why=why, basis=must("SEG-APP-003", needs=(f"magic:{magic}",)), content=unit.encoded())  # fmt: skip


def _policies(family: Family) -> None:
    """Ask retention by policies with spaces around their commas."""
    for number, policy in enumerate(("compact, delete", "compact ,delete", " delete , compact ", "compact, compact", "delete, delete")):  # fmt: skip
        request: Json = {"what": "retain", "listing": listed([(100, 1000, 0), (100, 1000, 0), (100, 9990, 0)])}
        request |= {"config": {"retention.ms": "100", "retention.bytes": "-1", "cleanup.policy": policy}, "now": "10000", "logStartOffset": "0", "highWatermark": "30"}  # fmt: skip
        gone = 2 if "delete" in policy else 0
        expect: Json = {
            "decision": "delete" if gone else "keep",
            "segments": ["0", "10"][:gone],
            "logStartOffset": str(10 * gone),
            "rollsFirst": False,
        }
        why = "White space around the commas of a list of policies does not count."
        family.add(f"retain-policies-{number}", "decide", "valid", why, must("SEG-RET-001", flags=("RETENTION_RULES",)), request=request, expect=expect)  # fmt: skip
