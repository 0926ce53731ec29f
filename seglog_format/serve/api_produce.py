"""Produce and InitProducerId: appends of producers, by the one writer of each partition."""

from __future__ import annotations

import secrets
import struct
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from seglog_format.errors import (
    AppendError,
    FormatError,
    RefusedError,
    SeglogError,
    UsageError,
    WriteError,
)
from seglog_format.model import ENTRY_PREFIX_SIZE
from seglog_format.schema.fixed_fields import MAGIC_POSITION, RECORD_BATCH_MAGIC
from seglog_format.serve.calls import UNKNOWN_OFFSET, Call, Services
from seglog_format.serve.lanes import TooMuchError
from seglog_format.serve.limits import (
    LIGHT_BATCHES,
    LIGHT_OUTPUT_SIZE,
    LIGHT_PARTS,
    Limits,
)
from seglog_format.writing.append import AppendLimits

if TYPE_CHECKING:
    from seglog_format.serve.writing import Writers
    from seglog_format.writing.append import Checked
    from seglog_format.writing.writer import PartitionWriter

ACKS: Final = (-1, 0, 1)
PRODUCER_ID_BITS: Final = 52
"""Bits of a producer id: JavaScript reads no larger integers. Ids are random, so none repeats after a restart."""

SIZE: Final = struct.Struct(">8xi")
"""The size field of a batch, which follows the base offset."""
MIN_BATCH_SIZE: Final = 61
TRANSACTIONAL: Final = 0x10
ATTRIBUTES_LOW_POSITION: Final = 22
LIGHT: Final = AppendLimits(LIGHT_OUTPUT_SIZE, LIGHT_PARTS)
"""Limits of checking a batch in the queue of fast requests."""

ERRORS: Final = {
    "SEG-APP-006": ErrorCode.message_too_large,
    "SEG-APP-007": ErrorCode.out_of_order_sequence_number,
    "SEG-APP-009": ErrorCode.invalid_producer_epoch,
    "SEG-APP-011": ErrorCode.invalid_timestamp,
    "SEG-APP-021": ErrorCode.message_too_large,
    "SEG-APP-022": ErrorCode.invalid_producer_epoch,
    "SEG-APP-023": ErrorCode.invalid_txn_state,
    "SEG-APP-024": ErrorCode.invalid_timestamp,
}
"""Error codes by the requirement that a refusal names; any other refusal is an invalid record."""


class RejectedError(Exception):
    """A batch is refused.

    Attributes:
        code: error code for the producer.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Batch:
    """A batch of a produce request.

    Args:
        topic: the topic to append to.
        asked: the partition's part of the request.
    """

    def __init__(self, topic: str, asked: Any) -> None:
        self._topic = topic
        self._number: int = asked.index
        self._data: bytes = asked.records or b""
        self._ready: tuple[PartitionWriter, Checked] | None = None
        self._refused: dict[str, Any] | None = None

    def prepare(self, services: Services, call: Call) -> None:
        """Check the batch as far as that is possible before appending.

        Raises:
            TooMuchError: the check takes too long for the queue of fast requests.
        """
        try:
            writer = self._writer(services, call)
            _check_form(self._data)
            self._ready = writer, _checked(services, call, writer, self._data)
        except RejectedError as error:  # not kept: its frames refer to decompressed records and this object
            self._refused = self._rejection(error)

    def _writer(self, services: Services, call: Call) -> PartitionWriter:
        if services.writers is None:
            raise RejectedError(ErrorCode.topic_authorization_failed, "this server only reads")
        if call.body.acks not in ACKS:
            raise RejectedError(ErrorCode.invalid_required_acks, "acks is -1, 0 or 1")
        writer = services.writers.find(self._topic, self._number)
        if writer is None:
            raise RejectedError(ErrorCode.unknown_topic_or_partition, "there is no such partition")
        return writer

    def answer(self, services: Services, call: Call) -> dict[str, Any]:
        """Append the batch if it is valid; return the answer for the producer."""
        if self._ready is None and self._refused is None:
            self.prepare(services, call)
        if self._refused is not None:
            return self._refused
        try:
            return self._append(services)
        except RejectedError as error:
            return self._rejection(error)

    def _rejection(self, error: RejectedError) -> dict[str, Any]:
        return _fields(self._number, error.code, UNKNOWN_OFFSET, -1, str(error))

    def _append(self, services: Services) -> dict[str, Any]:
        ready, self._ready = self._ready, None  # so its records are released as soon as they are written
        assert ready is not None
        assert services.writers is not None
        writer, checked = ready
        offset = _written(services.writers, writer, checked)
        services.arrivals.announce(self._topic, self._number)
        return _fields(self._number, ErrorCode.none, offset, writer.log_start_offset, None)


def produce(services: Services, call: Call) -> None:
    """Append batches. Without writers refuse: clients take the record version from the version of this API.

    In the queue of fast requests all batches are checked before the first is appended: if one takes longer, the whole
    request moves to the queue of long ones. There each batch is checked and appended before the next.
    """
    body = call.body
    topics = [(topic.name, [Batch(topic.name, each) for each in topic.partition_data]) for topic in body.topic_data]
    if not call.is_long:
        batches = [batch for _, parts in topics for batch in parts]
        if len(batches) > LIGHT_BATCHES:
            raise TooMuchError
        for batch in batches:
            batch.prepare(services, call)
    responses = [
        {"name": topic, "partition_responses": [each.answer(services, call) for each in parts]}
        for topic, parts in topics
    ]
    if body.acks != 0:
        call.respond({"throttle_time": 0, "responses": responses})
    elif all(each["error_code"] is ErrorCode.none for topic in responses for each in topic["partition_responses"]):
        call.finish()
    else:
        call.hang_up()  # with acks=0, the only way to report an error


def _check_form(data: bytes) -> None:
    """Check that the bytes are exactly one whole batch of magic 2."""
    if len(data) < MIN_BATCH_SIZE or ENTRY_PREFIX_SIZE + SIZE.unpack_from(data)[0] != len(data):
        raise RejectedError(ErrorCode.invalid_record, "a producer sends one whole batch for a partition")
    if data[MAGIC_POSITION] != RECORD_BATCH_MAGIC:
        raise RejectedError(ErrorCode.unsupported_for_message_format, "only batches of magic 2 are accepted")
    if data[ATTRIBUTES_LOW_POSITION] & TRANSACTIONAL:
        raise RejectedError(ErrorCode.invalid_txn_state, "there is no coordinator of transactions")


def _checked(services: Services, call: Call, writer: PartitionWriter, data: bytes) -> Checked:
    assert services.writers is not None
    try:
        return services.writers.check(writer, data, _append_limits(services.limits) if call.is_long else LIGHT)
    except RefusedError as error:
        if not call.is_long:
            raise TooMuchError from error
        raise RejectedError(ErrorCode.message_too_large, str(error)) from error
    except FormatError as error:
        raise RejectedError(ErrorCode.corrupt_message, str(error)) from error
    except UsageError as error:
        raise RejectedError(_code_of(error), str(error)) from error


def _append_limits(limits: Limits) -> AppendLimits:
    return AppendLimits(limits.batch_output_size, limits.batch_parts)


def _written(writers: Writers, writer: PartitionWriter, checked: Checked) -> int:
    try:
        return writers.append(writer, checked).first_offset
    except WriteError as error:
        raise RejectedError(ErrorCode.kafka_storage_error, str(error)) from error
    except UsageError as error:
        code = _code_of(error)
        if code is ErrorCode.duplicate_sequence_number:
            _make_safe(writers, writer)
        raise RejectedError(code, str(error)) from error


def _make_safe(writers: Writers, writer: PartitionWriter) -> None:
    try:
        writers.make_safe(writer)
    except SeglogError as error:
        raise RejectedError(ErrorCode.kafka_storage_error, str(error)) from error


def _code_of(error: UsageError) -> ErrorCode:
    if not isinstance(error, AppendError):
        return ErrorCode.invalid_record
    if error.is_duplicate:
        return ErrorCode.duplicate_sequence_number
    return ERRORS.get(error.requirement, ErrorCode.invalid_record)


def _fields(number: int, error: ErrorCode, offset: int, start: int, message: str | None) -> dict[str, Any]:
    return {
        "index": number,
        "error_code": error,
        "base_offset": offset,
        "log_append_time": None,  # records have the timestamps of their producers
        "log_start_offset": start,
        "record_errors": (),
        "error_message": message,
    }


def init_producer_id(services: Services, call: Call) -> None:
    """Answer InitProducerId with an unused producer id."""
    error, producer_id = ErrorCode.none, secrets.randbits(PRODUCER_ID_BITS)
    if services.writers is None:
        error = ErrorCode.cluster_authorization_failed
    elif call.body.transactional_id is not None:
        error = ErrorCode.transactional_id_authorization_failed
    is_given = error is ErrorCode.none
    call.respond(
        {
            "throttle_time": 0,
            "error_code": error,
            "producer_id": producer_id if is_given else -1,
            "producer_epoch": 0 if is_given else -1,
        }
    )
