"""The end of all offsets: an entry that ends at 2^63 - 1 leaves none for what follows (SEG-LOG-013)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from helpers.lookup_checks import until_error
from helpers.made_logs import data_batch
from helpers.messages import message, wrapper
from helpers.walking import each_of

from seglog_format import open_partition
from seglog_format.checks import verify
from seglog_format.checks.finding import Severity
from seglog_format.errors import CorruptRecordError
from seglog_format.log.entry_table import OffsetRange
from seglog_format.recovery.salvage_scan import salvage_scan

if TYPE_CHECKING:
    from pathlib import Path

LAST = 2**63 - 1
GREATEST = LAST - 1
BASE = LAST - 10

ENDS = {
    "batch": data_batch(LAST, [1]).data,
    "batch of two": data_batch(LAST - 1, [1, 1]).data,
    "past 64 bits": data_batch(LAST, [1, 1]).data,
    "message": message(LAST),
    "message of magic 1": message(LAST, magic=1),
    "wrapper": wrapper(message(LAST), offset=LAST),
    "relative offsets": wrapper(message(0, magic=1), message(1, magic=1), offset=LAST, magic=1),
}
INSIDE = {
    "above its wrapper": wrapper(message(LAST), offset=GREATEST),
    "above its batch": data_batch(GREATEST, [1, 1], last_delta=0).data,
}


def partition_of(root: Path, *entries: bytes, base_offset: int = BASE) -> Path:
    path = root / "t-0"
    path.mkdir()
    (path / f"{base_offset:020}.log").write_bytes(b"".join(entries))
    return path


@pytest.mark.req("SEG-LOG-013")
@each_of(("name", "base_offset"), [*product(ENDS, (0, BASE)), *product(INSIDE, (0, BASE))])
def test_an_entry_that_leaves_no_next_offset_is_damaged(tmp_path: Path, name: str, base_offset: int) -> None:
    start, following = base_offset + 3, base_offset + 4
    first, entry = data_batch(start, [1]).data, (ENDS | INSIDE)[name]
    path = partition_of(tmp_path, first, entry, data_batch(following, [1]).data, base_offset=base_offset)
    with open_partition(path) as partition:
        assert [record.offset for record in until_error(partition.records())] == [start]
        with pytest.raises(CorruptRecordError, match="SEG-LOG-013") as raised:
            list(partition.records())
        assert (raised.value.location.position, raised.value.location.field) == (len(first), "offset")
        assert partition.log_end_offset == (following if name in ENDS else LAST)
    errors = [found for found in verify(path) if found.severity is Severity.ERROR]
    wanted = ("SEG-BAT-009", len(first) + 23) if name == "past 64 bits" else ("SEG-LOG-013", len(first))
    assert [(found.requirement, found.location.position) for found in errors] == [wanted]


@pytest.mark.req("SEG-LOG-013")
def test_the_greatest_offset_is_read_and_nothing_behind_it_is_passed_over(tmp_path: Path) -> None:
    for name, rest, requirement in (("a", ENDS["batch"], "SEG-LOG-013"), ("b", message(BASE), "SEG-LOG-006")):
        (tmp_path / name).mkdir()
        path = partition_of(tmp_path / name, data_batch(GREATEST - 1, [1, 1]).data, rest)
        with open_partition(path) as partition:
            assert [record.offset for record in until_error(partition.records())] == [GREATEST - 1, GREATEST]
            with pytest.raises(CorruptRecordError, match=requirement):
                list(partition.records())
            assert partition.log_end_offset == LAST


@pytest.mark.req("SEG-LOG-013")
@pytest.mark.parametrize("name", ENDS)
def test_salvage_keeps_what_stands_on_either_side(name: str) -> None:
    first, entry, following = data_batch(BASE, [1]).data, ENDS[name], data_batch(BASE + 1, [1]).data
    found = salvage_scan(first + entry + following, OffsetRange(BASE))
    assert list(found.last_offsets) == [BASE, BASE + 1]
    assert [damage.requirements for damage in found.damaged] == [("SEG-LOG-013",)]
