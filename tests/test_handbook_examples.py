"""The articles' examples, read by Kafka's rules: the answers that stand beside them in `fixtures/handbook`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import handbook, handbook_expected, handbook_lookups

from proofs.kafka.agreement import differences
from seglog_format import open_partition, verify
from seglog_format.errors import OffsetOutOfRangeError
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from seglog_format.types import Partition

EXAMPLES = ["segments", "listing"]


def answer(partition: Partition, offset: int) -> dict[str, Any]:
    """One row of ``lookups.json``, as the package answers it."""
    try:
        fetch = partition.read(offset, max_bytes=1, min_one_message=True)
    except OffsetOutOfRangeError:
        return {"offset": offset, "outcome": "outOfRange"}
    if not fetch.batches:
        return {"offset": offset, "outcome": "end"}
    sought = partition.segment_for(offset)
    entry = sought.offset_index.lookup(offset)
    first = fetch.batches[0]
    return {
        "offset": offset,
        "outcome": "found",
        "sought": sought.base_offset,
        "indexEntry": [entry.offset, entry.position],
        "segment": partition.segment_for(first.base_offset).base_offset,
        "position": first.position,
        "firstOffset": first.base_offset,
    }


@pytest.mark.req("SEG-LKP-001", "SEG-LKP-002", "SEG-LKP-004", "SEG-LKP-005", "SEG-IDX-008")
@pytest.mark.parametrize("trust_indexes", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
def test_lookups_answer_as_the_fixture_says(name: str, *, trust_indexes: bool) -> None:
    lookups = handbook_lookups(name)
    with open_partition(handbook(name) / lookups["directory"], trust_indexes=trust_indexes) as partition:
        assert [answer(partition, row["offset"]) for row in lookups["lookups"]] == lookups["lookups"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_line_agrees(name: str) -> None:
    assert differences(handbook(name), handbook_expected(name)) == []


@pytest.mark.req("SEG-PDR-013")
@pytest.mark.parametrize(("name", "broken"), [("segments", {"SEG-PDR-013"}), ("listing", set())])
def test_naming_a_file_by_the_last_offset_before_breaks_one_rule(name: str, broken: set[str]) -> None:
    findings = [finding for finding in verify(handbook(name)) if finding.severity is not Severity.NOTE]
    assert {finding.requirement for finding in findings} == broken
