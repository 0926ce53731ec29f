"""What a validator has to say on each side of the limit of a rule (part of family 43)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import TRANSACTIONAL, Batch
from authoring.casefile import may, must, should
from authoring.control import data, marker
from authoring.repairs import EPOCHS, FIRST, POINTS, SECOND, epochs, offsets, segment
from authoring.segments import SIZE, aborted, name_of, row, time_entry

if TYPE_CHECKING:
    from authoring.casefile import Family
    from authoring.verified import Files

LOG, INDEX, TIMES, ABORTS = (name_of(0, kind) for kind in (".log", ".index", ".timeindex", ".txnindex"))
ERROR, WARNING, NOTE = "error", "warning", "note"


def _entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *pair) for pair in pairs)


def _times(*pairs: tuple[int, int]) -> bytes:
    return b"".join(time_entry(*pair) for pair in pairs)


def _rows() -> dict[str, tuple[Files, str, tuple[tuple[str, str], ...]]]:
    """Return files, the file that is at a limit, and what a validator finds in it, by name of the case."""
    good = segment(FIRST)
    equal = segment(row(5, step=0))
    rows: dict[str, tuple[Files, str, tuple[tuple[str, str], ...]]] = {}

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


RULES: Final = {"index": "SEG-IDX-006", "time": "SEG-TIX-004", "times": "SEG-TIX-002", "aborted": "SEG-TXN-006"}
"""The rule that a case is about where nothing is found."""
OTHERS: Final = {"epochs": "SEG-CKP-007", "checkpoint": "SEG-CKP-012", "batch": "SEG-BAT-020"}


def verified_limits(family: Family) -> None:
    """Add the cases."""
    from authoring.verified import Verifying  # noqa: PLC0415 - it adds these cases

    to = Verifying(family)
    for name, (files, file, found) in _rows().items():
        rule, severity = found[0] if found else ((RULES | OTHERS)[name.partition("-")[0]], WARNING)
        why = "One more or less and a validator would have something to say." if not found else "Just beyond a limit."
        basis = {ERROR: must, WARNING: should, NOTE: may}[severity](rule)
        reason = f"At the limit of a rule: {why[0].lower()}{why[1:]}"
        to.says(f"limit-{name}", reason, basis, files, *((file, *one) for one in found))
