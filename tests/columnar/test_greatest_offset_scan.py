"""The boundary of offsets, drawn at random: both engines, `verify` and recovery say the same of every log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.made_logs import data_batch
from helpers.messages import message, wrapper
from helpers.scans import expected, scanned, segment_directory
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format import engine, open_partition
from seglog_format.checks import verify_log
from seglog_format.columnar.index_log import ColumnarRecovery
from seglog_format.engine import Engine
from seglog_format.errors import FormatError
from seglog_format.log import reading
from seglog_format.recovery.segment_scan import scan_segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.partition import Partition

LAST = 2**63 - 1
BASE = LAST - 10

KINDS: dict[str, Callable[[int], bytes]] = {
    "batch": lambda last: data_batch(last, [1]).data,
    "batch of two": lambda last: data_batch(last - 1, [1, 1]).data,
    "compacted": lambda last: data_batch(last - 2, [1], last_delta=2).data,
    "control": lambda last: data_batch(last, [], last_delta=0).data,
    "message": message,
    "message of magic 1": lambda last: message(last, magic=1),
    "wrapper": lambda last: wrapper(message(last - 1), message(last), offset=last),
    "relative": lambda last: wrapper(message(0, magic=1), message(1, magic=1), offset=last, magic=1),
    "one too high inside": lambda last: wrapper(message(min(last + 1, LAST)), offset=last),
    "one delta too high": lambda last: data_batch(last, [1, 1], last_delta=0).data,
    "past 64 bits": lambda last: data_batch(LAST, [1] * (LAST - last + 2)).data,
}
NO_OFFSET = {"SEG-LOG-013", "SEG-BAT-009", "SEG-REC-014"}
"""`verify` first judges an entry alone, and names what is wrong with that."""
ENTRIES = st.tuples(st.sampled_from(sorted(KINDS)), st.integers(LAST - 3, LAST))


def records_of(partition: Partition) -> tuple[list[int], str]:
    """Offsets of the records as objects, and the error that ends them."""
    found: list[int] = []
    try:
        found.extend(record.offset for record in partition.records())
    except FormatError as error:
        return found, str(error)
    return found, ""


@pytest.mark.req("SEG-LOG-013")
@pytest.mark.filterwarnings("ignore:.*overlapping entries:seglog_format.errors.MissingOffsetsWarning")
@settings(max_examples=60)
@given(entries=st.lists(ENTRIES, min_size=1, max_size=4), is_ascending=st.booleans(), is_engine=st.booleans())
def test_everyone_agrees_at_the_greatest_offset(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, int]],
    is_ascending: bool,  # noqa: FBT001 - drawn
    is_engine: bool,  # noqa: FBT001 - drawn
) -> None:
    if is_ascending:
        entries = sorted(entries, key=lambda entry: entry[1])
    data = b"".join(KINDS[kind](last) for kind, last in entries)
    path = segment_directory(tmp_path_factory.mktemp("log"), data, BASE)
    with open_partition(path) as partition, pytest.MonkeyPatch.context() as patch:
        rows, error = expected(partition)
        assert scanned(partition) == (rows, error)
        patch.setattr(reading, "QUICK_SIZE", 0)
        patch.setattr(engine, "COLUMNAR_SIZE", 0 if is_engine else LAST)
        offsets = [row[0] for row in rows]
        assert records_of(partition) == (offsets, error)
        assert max(offsets, default=0) < LAST
        assert partition.log_end_offset <= LAST
    plain = list(verify_log(data, base_offset=BASE, engine=Engine.REFERENCE))
    assert list(verify_log(data, base_offset=BASE, engine=Engine.COLUMNAR)) == plain
    found = {finding.requirement for finding in plain}
    assert found & NO_OFFSET if "SEG-LOG-013" in error else error or "SEG-LOG-013" not in found
    scan = scan_segment(data, BASE)
    assert scan_segment(data, BASE, kernels=ColumnarRecovery()) == scan
    assert scan.next_offset <= LAST
