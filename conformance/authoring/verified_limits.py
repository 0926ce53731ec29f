"""What a validator has to say on each side of the limit of a rule (part of family 43)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import TRANSACTIONAL, Batch, Rec
from authoring.casefile import may, must, should
from authoring.control import data, marker
from authoring.derived import STATE_NAMES, snapshot_file
from authoring.repairs import ALL, EPOCHS, FIRST, POINTS, SECOND, epochs, offsets, segment
from authoring.segments import SIZE, aborted, name_of, row, time_entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from authoring.casefile import Family
    from authoring.verified import Files

    Findings = Sequence[tuple[str, str]]
    Row = tuple[Files, str, Findings]
    NamedRow = tuple[str, Files, str, Findings]

LOG, INDEX, TIMES, ABORTS = (name_of(0, kind) for kind in (".log", ".index", ".timeindex", ".txnindex"))
ERROR, WARNING, NOTE = "error", "warning", "note"


def _entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *pair) for pair in pairs)


def _times(*pairs: tuple[int, int]) -> bytes:
    return b"".join(time_entry(*pair) for pair in pairs)


def _rows() -> dict[str, Row]:
    """Return files, the file that is at a limit, and what a validator finds in it, by name of the case."""
    good = segment(FIRST)
    equal = segment(row(5, step=0))
    rows: dict[str, Row] = {}

    def add(name: str, files: Files, file: str, *found: tuple[str, str]) -> None:
        rows[name] = files, file, found

    add("index-of-every-entry", segment(FIRST, interval=0), INDEX)
    for offset, found in ((-1, ("SEG-IDX-002", ERROR)), (2, ("SEG-IDX-006", ERROR)), (3, None), (5, None), (6, None)):
        add(f"index-offset-{offset}", {**good, INDEX: _entries((offset, SIZE))}, INDEX, *([found] if found else []))
    for name, at in (("0", 0), ("less-by-one", SIZE - 1), ("the-last", 4 * SIZE), ("the-end", 5 * SIZE)):
        is_start = at % SIZE == 0 and at < 5 * SIZE
        found = () if is_start else (("SEG-IDX-003", ERROR),)
        add(f"index-position-{name}", {**good, INDEX: _entries((14 if at else 2, at))}, INDEX, *found)
    for name, pairs, rule in (
        ("offsets-equal", ((8, SIZE), (8, 2 * SIZE)), "SEG-IDX-004"),
        ("offsets-next", ((7, SIZE), (8, 2 * SIZE)), ""),
        ("positions-equal", ((5, SIZE), (6, SIZE)), "SEG-IDX-005"),
    ):
        add(f"index-{name}", {**good, INDEX: _entries(*pairs)}, INDEX, *([(rule, ERROR)] if rule else []))
    other = name_of(15, ".index")
    zero = {**segment(SECOND, 15), other: _entries((0, SIZE))}
    add("index-offset-of-the-base-15", zero, other, ("SEG-IDX-006", ERROR))

    add("times-equal", {**equal, TIMES: _times((1002, 2), (1002, 5))}, TIMES, ("SEG-TIX-002", ERROR))
    add("times-next", {**segment(row(5, step=1)), TIMES: _times((1002, 2), (1003, 5))}, TIMES)
    same = {**good, TIMES: _times((1012, 5), (1013, 5))}
    add("times-of-one-offset", same, TIMES, ("SEG-TIX-005", WARNING))
    back = {**good, TIMES: _times((1012, 5), (1013, 4))}
    add("times-of-an-offset-before", back, TIMES, ("SEG-TIX-003", ERROR), ("SEG-TIX-005", WARNING))
    near = {**segment(row(5, step=1)), **segment(SECOND, 15)}
    less = {**near, TIMES: _times((1005, 11))}
    add("time-below-the-largest-by-one", less, TIMES, ("SEG-TIX-006", WARNING))
    add("time-of-the-largest", {**near, TIMES: _times((1006, 14))}, TIMES)
    low = {**segment(row(5, step=1)), TIMES: _times((1005, 14))}
    add("time-reached-by-one-more", low, TIMES, ("SEG-TIX-004", ERROR), ("SEG-TIX-005", WARNING))
    for offset in (15, 99):
        add(f"time-at-offset-{offset}", {**good, TIMES: _times((1042, offset))}, TIMES, ("SEG-TIX-005", WARNING))

    ended = [replace(data(0, b"a"), leader_epoch=0), marker("ABORT", 1, leader_epoch=0)]
    whole = segment(ended)
    right = aborted(9, 0, 1, 2)
    for name, entries, found in (
        ("twice", right + right, (("SEG-TXN-004", ERROR),)),
        ("of-its-marker-alone", aborted(9, 1, 1, 2), ()),
        ("from-behind-its-marker", aborted(9, 2, 1, 2), (("SEG-TXN-005", ERROR),)),
        ("from-minus-1", aborted(9, -1, 1, 2), (("SEG-TXN-005", ERROR),)),
        ("of-another-producer", aborted(8, 0, 1, 2), (("SEG-TXN-006", WARNING),)),
        ("of-another-offset", aborted(9, 0, 2, 2), (("SEG-TXN-006", WARNING),)),
        ("stable-0", aborted(9, 0, 1, 0), ()),
        ("stable-1", aborted(9, 0, 1, 1), ()),
    ):
        add(f"aborted-{name}", {**whole, ABORTS: entries}, ABORTS, *found)
    split = {**segment(ended[:1]), **segment(ended[1:], 1)}
    later = name_of(1, ".txnindex")
    add("aborted-at-the-base", {**split, later: right}, later)
    below = {**split, later: aborted(9, 0, 0, 1)}
    add("aborted-below-the-base", below, later, ("SEG-TXN-003", ERROR), ("SEG-TXN-006", WARNING))

    for name, starts, is_wrong in (
        ("epoch-0", ((0, 0),), False),
        ("equal-epochs", ((3, 0), (3, 5)), True),
        ("equal-offsets", ((3, 5), (4, 5)), True),
    ):
        found = (("SEG-CKP-007", WARNING),) if is_wrong else ()
        add(f"epochs-{name}", {**good, **epochs(*starts)}, EPOCHS, *found)
    placed = {f"topic-0/{name}": content for name, content in good.items()}
    for number, wrong in ((14, False), (15, False), (16, True)):
        found = (("SEG-CKP-012", WARNING),) if wrong else ()
        add(f"checkpoint-{number}", {**placed, f"/{POINTS}": offsets(("topic", 0, number))}, POINTS, *found)
    apart = offsets(("topic", 0, 1), ("other", 0, 1), ("topic", 0, 2))
    add("checkpoint-twice-apart", {**placed, f"/{POINTS}": apart}, POINTS, ("SEG-CKP-008", WARNING))
    add("checkpoint-below-0", {**placed, f"/{POINTS}": offsets(("topic", 0, -1))}, POINTS, ("SEG-CKP-008", WARNING))

    own = Batch(producer_id=9, producer_epoch=0, base_sequence=0)
    newest = Batch().newest
    for name, unit, rule in (
        ("leader-epoch-minus-1", Batch(leader_epoch=-1), ""),
        ("producer-epoch-0", own, ""),
        ("producer-epoch-minus-1", replace(own, producer_epoch=-1), "SEG-BAT-020"),
        ("producer-epoch-without-id", Batch(producer_epoch=0), "SEG-BAT-020"),
        ("largest-above-by-one", Batch(max_timestamp=newest + 1), "SEG-BAT-015"),
        ("largest-below-by-one", Batch(max_timestamp=newest - 1), "SEG-BAT-015"),
        ("producer-0-sequence-0", replace(own, producer_id=0), ""),
        ("producer-0-no-sequence", replace(own, producer_id=0, base_sequence=-1), "SEG-BAT-024"),
        ("transaction-of-producer-0", replace(own, producer_id=0, attributes=TRANSACTIONAL), ""),
        ("transaction-of-nobody", Batch(attributes=TRANSACTIONAL), "SEG-BAT-022"),
        ("attribute-bit-7", Batch(attributes=0x80), "SEG-BAT-014"),
        ("attribute-bit-14", Batch(attributes=0x4000), "SEG-BAT-014"),
    ):
        severity = NOTE if rule == "SEG-BAT-014" else WARNING
        add(f"batch-{name}", segment([unit]), LOG, *([(rule, severity)] if rule else []))
    return rows


WHICH: Final = ("first", "second", "third")
SLOTS: Final = ((5, SIZE), (8, 2 * SIZE), (11, 3 * SIZE))
TIMED: Final = ((1012, 5), (1022, 8), (1032, 11))


def _placed() -> dict[str, Row]:
    """Return the same where one entry of three is wrong, for each of them."""
    rows: dict[str, Row] = {}
    for at, which in enumerate(WHICH):
        for make in (_slots, _stamps, _ended, _states, _lines):
            for name, *found in make(at):
                rows[f"{name}-{which}"] = tuple(found)
    return rows


def _with(right: Sequence[tuple[int, ...]], at: int, wrong: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [*right[:at], wrong, *right[at + 1 :]]


def _slots(at: int) -> Iterator[NamedRow]:
    offset, position = SLOTS[at]
    repeated = [("SEG-IDX-004", ERROR)] if at else []
    for name, slot, found in (
        ("slot-position-less-by-one", (offset, position - 1), [("SEG-IDX-003", ERROR)]),
        ("slot-position-more-by-one", (offset, position + 1), [("SEG-IDX-003", ERROR)]),
        ("slot-position-before", (offset, position - SIZE), [("SEG-IDX-005", ERROR)] if at else []),
        ("slot-offset-before", (offset - 3, position), [*repeated, ("SEG-IDX-006", ERROR)]),
    ):
        yield name, {**segment(FIRST), INDEX: _entries(*_with(SLOTS, at, slot))}, INDEX, found


def _stamps(at: int) -> Iterator[NamedRow]:
    time, offset = TIMED[at]
    early, other = ("SEG-TIX-004", ERROR), ("SEG-TIX-005", WARNING)
    for name, slot, found in (
        ("stamp-less-by-one", (time - 1, offset), [early, other]),
        ("stamp-more-by-one", (time + 1, offset), [other]),
        ("stamp-before", (time - 10, offset), [*([("SEG-TIX-002", ERROR)] if at else []), early, other]),
        ("stamp-offset-before", (time, offset - 3), [other]),
        ("stamp-offset-back", (time, offset - 4), [*([("SEG-TIX-003", ERROR)] if at else []), other]),
    ):
        yield name, {**segment(FIRST), TIMES: _times(*_with(TIMED, at, slot))}, TIMES, found
    three = {**segment(FIRST), **segment(SECOND, 15)} if at == len(WHICH) - 1 else ALL
    file = name_of((0, 15, 0)[at], ".timeindex")
    yield "stamps-empty", {**three, file: b""}, file, [("SEG-TIX-006", WARNING)]


def _ended(at: int) -> Iterator[NamedRow]:
    units = [unit for at in (0, 2, 4) for unit in (data(at, b"a", sequence=at // 2), marker("ABORT", at + 1))]
    units = [replace(unit, leader_epoch=3) for unit in units]
    right = [(9, first, first + 1, first + 2) for first in (0, 2, 4)]
    first, last = right[at][1:3]
    for name, entry, rule in (
        ("end-stable-more-by-one", (9, first, last, last + 2), "SEG-TXN-008"),
        ("end-stable-minus-1", (9, first, last, -1), "SEG-TXN-008"),
        ("end-begins-behind", (9, last + 1, last, last + 1), "SEG-TXN-005"),
        ("end-of-another-producer", (8, first, last, last + 1), "SEG-TXN-006"),
        ("end-at-the-data", (9, first, first, first + 1), "SEG-TXN-006"),
    ):
        content = b"".join(aborted(*each) for each in _with(right, at, entry))
        yield name, {**segment(units), ABORTS: content}, ABORTS, [(rule, WARNING if rule != "SEG-TXN-005" else ERROR)]
    emptied = [*units[: 2 * at + 1], replace(units[2 * at + 1], recs=(), last_delta=0), *units[2 * at + 2 :]]
    files = {**segment(emptied), ABORTS: b"".join(aborted(*each) for each in right)}
    yield "end-emptied", files, LOG, [("SEG-BAT-019", NOTE)]


def _states(at: int) -> Iterator[NamedRow]:
    right = [(9 + number, 2, -1, -1, 0, 1000, 7, -1) for number in range(3)]
    wrong = [(f"{name}-below", name, -2, "SEG-PSN-004") for name in STATE_NAMES]
    wrong += [(f"{name}-at-the-end", name, None, "SEG-PSN-006") for name in ("last_offset", "current_txn_first_offset")]
    for name, field, value, rule in wrong:
        for label, end in (("older", 15), ("newest", 24)):
            state = [*right[at]]
            state[STATE_NAMES.index(field)] = end if value is None else value
            good = {name_of(one, ".snapshot"): snapshot_file(right) for one in (15, 24)}
            files = {**segment(FIRST), **segment(SECOND, 15), **good}
            file = name_of(end, ".snapshot")
            changed = snapshot_file(_with(right, at, tuple(state)))
            yield f"{label}-{name.replace('_', '-')}", {**files, file: changed}, file, [(rule, WARNING)]


def _lines(at: int) -> Iterator[NamedRow]:
    starts = [(3, 0), (5, 5), (7, 10)]
    epoch, start = starts[at]
    for name, line in (("epoch-equal", (epoch - 2, start)), ("epoch-less", (epoch - 3, start)), ("start-equal", (epoch, start - 5))):  # fmt: skip
        if at:
            yield name, {**segment(FIRST), **epochs(*_with(starts, at, line))}, EPOCHS, [("SEG-CKP-007", WARNING)]
    back = [replace(unit, leader_epoch=2 if number == at + 1 else 3) for number, unit in enumerate(FIRST)]
    yield "epoch-back-by-one", segment(back), LOG, [("SEG-LOG-012", WARNING)]
    placed = {f"topic-0/{name}": content for name, content in segment(FIRST).items()}
    for file in (POINTS, "replication-offset-checkpoint"):
        for name, offset, rule in (("above", 16, "SEG-CKP-012"), ("below", -1, "SEG-CKP-008"), ("at", 15, "")):
            lines = [("other", 0, 99), ("topic", 1, 99)]
            lines.insert(at, ("topic", 0, offset))
            found = [(rule, WARNING)] if rule else []
            yield f"{name}-the-end-in-{file[:3]}", {**placed, f"/{file}": offsets(*lines)}, file, found
    if at < len(WHICH) - 1:
        units, base = (FIRST, SECOND)[at], (0, 15)[at]
        longer = [*units[:-1], replace(units[-1], recs=(*units[-1].recs, Rec(key=b"k3", value=b"value")))]
        yield "overlap-by-one", {**ALL, **segment(longer, base)}, name_of(base), [("SEG-PDR-013", ERROR)]


RULES: Final = {"index": "SEG-IDX-006", "time": "SEG-TIX-004", "times": "SEG-TIX-002", "aborted": "SEG-TXN-006"}
"""The rule that a case is about where nothing is found."""
OTHERS: Final = {"epochs": "SEG-CKP-007", "checkpoint": "SEG-CKP-012", "batch": "SEG-BAT-020"}
PLACED: Final = {"slot": "SEG-IDX-005", "at": "SEG-CKP-012"}


def verified_limits(family: Family) -> None:
    """Add the cases."""
    from authoring.verified import Verifying  # noqa: PLC0415 - it adds these cases

    to = Verifying(family)
    for name, (files, file, found) in (_rows() | _placed()).items():
        rule, severity = found[0] if found else ((RULES | OTHERS | PLACED)[name.partition("-")[0]], WARNING)
        why = "One more or less and a validator would have something to say." if not found else "Just beyond a limit."
        basis = {ERROR: must, WARNING: should, NOTE: may}[severity](rule)
        reason = f"At the limit of a rule: {why[0].lower()}{why[1:]}"
        to.says(f"limit-{name}", reason, basis, files, *((file, *one) for one in found))
