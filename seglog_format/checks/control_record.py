"""Checks of chapter 32. Errors of the decoder of control records are reported under the ids that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem, checks
from seglog_format.codec.control_record import controls_of, decode_control_record
from seglog_format.codec.decode import field
from seglog_format.errors import FormatError
from seglog_format.model import END_MARKER_TYPES, NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Batch
    from seglog_format.record_model import ControlRecord


def control_records(batch: Batch) -> Iterator[ControlRecord]:
    """Yield the control records of a batch that can be decoded; none for a data batch."""
    for record in batch.records if batch.header.is_control else ():
        try:
            yield decode_control_record(record.key, record.value, batch.at, controls_of(batch.frame))
        except FormatError:
            continue


def refusals(batch: Batch) -> Iterator[Finding]:
    """Yield findings about the control records that cannot be decoded (SEG-CTL-001, SEG-CTL-004, SEG-CTL-006)."""
    for index, record in enumerate(batch.records if batch.header.is_control else ()):
        try:
            at = batch.at.at(f"records[{index}]")
            decode_control_record(record.key, record.value, at, controls_of(batch.frame))
        except FormatError as error:
            yield Finding.of_error(error)


@checks("SEG-CTL-003")
def known_types(batch: Batch) -> Iterator[Problem]:
    """Report a type that the specification does not list."""
    for record in control_records(batch):
        if record.type is None:
            yield Problem(batch.at.at("records"), "a control record of type 0 to 6", record.type_id)


@checks("SEG-CTL-005")
def end_marker_batch(batch: Batch) -> Iterator[Problem]:
    """Report an end marker in a form that coordinators do not write."""
    if not any(record.type in END_MARKER_TYPES for record in control_records(batch)):
        return
    if len(batch.records) > 1:
        yield Problem(field(batch.at, "records_count"), "one end marker", len(batch.records))
    if not batch.header.is_transactional:
        yield Problem(field(batch.at, "attributes"), "a transactional batch", f"{batch.header.attributes:#06x}")
    if batch.header.base_sequence != NO_SEQUENCE:
        yield Problem(field(batch.at, "base_sequence"), str(NO_SEQUENCE), batch.header.base_sequence)
