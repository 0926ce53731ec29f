"""Every fixed layout, read from and written to bytes that are spelled out here, field by field.

`problems` runs in a process of its own too, in which two neighbouring fields of a declaration are swapped: then it has
to name a problem of reading, one of writing, and one of each by the declarations themselves.
"""

from __future__ import annotations

import os
import sys
import tempfile
import types
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEADER = bytes.fromhex(
    "0000000000000005"  # base_offset
    "00000031"  # batch_length
    "00000007"  # partition_leader_epoch
    "02"  # magic
    "47a52546"  # crc
    "0010"  # attributes: transactional
    "00000002"  # last_offset_delta
    "0000000000000064"  # base_timestamp_ms
    "00000000000000c8"  # max_timestamp_ms
    "000000000000012c"  # producer_id
    "0003"  # producer_epoch
    "00000009"  # base_sequence
    "00000000"  # records_count
)
HEADER_FIELDS = (5, 49, 7, 2, 0x47A52546, 16, 2, 100, 200, 300, 3, 9, 0)

MESSAGE_0 = bytes.fromhex(
    "0000000000000004"  # offset
    "00000010"  # message_size
    "c9a4cee5"  # crc
    "00"  # magic
    "40"  # attributes: bits without a meaning
    "00000001"  # key length
    "6b"
    "00000001"  # value length
    "76"
)
MESSAGE_1 = bytes.fromhex(
    "0000000000000004"  # offset
    "00000018"  # message_size
    "e7274991"  # crc
    "01"  # magic
    "08"  # attributes: LogAppendTime
    "0000000000000064"  # timestamp_ms
    "00000001"  # key length
    "6b"
    "00000001"  # value length
    "76"
)
OFFSET_INDEX = bytes.fromhex("00000002000000100000000700000200")  # (relative offset, position) twice
TIME_INDEX = bytes.fromhex("00000000000000640000000200000000000000c800000007")
TRANSACTION_INDEX = bytes.fromhex("0000000000000000012c000000000000000200000000000000080000000000000009")
SNAPSHOT = bytes.fromhex(
    "0001"  # version
    "01c4b69f"  # crc
    "00000001"  # count
    "000000000000012c"  # producer_id
    "0003"  # producer_epoch
    "00000009"  # last_sequence
    "0000000000000008"  # last_offset
    "00000002"  # offset_delta
    "00000000000000c8"  # timestamp_ms
    "00000004"  # coordinator_epoch
    "0000000000000006"  # current_txn_first_offset
)
SNAPSHOT_FIELDS = (300, 3, 9, 8, 2, 200, 4, 6)
CONTROL_KEY = bytes.fromhex("00000001")  # version, type: COMMIT
END_MARKER = bytes.fromhex("000000000007")  # version, coordinator epoch
TRANSACTION_FIELDS = (0, 300, 2, 8, 9)


def read_batch_header() -> bool:
    from seglog_format.codec.framing import walk
    from seglog_format.model import RecordBatchHeader

    (frame,) = walk(HEADER)
    return frame.header == RecordBatchHeader(*HEADER_FIELDS)


def read_batch() -> bool:
    from seglog_format import decode_batch

    return decode_batch(HEADER).header.last_offset == 7


def read_messages() -> bool:
    from seglog_format import decode_batch

    entries = [decode_batch(data) for data in (MESSAGE_0, MESSAGE_1)]
    messages = [entry.records[0] for entry in entries]
    return [astuple(entry.header) for entry in entries] == [
        (4, 16, 0xC9A4CEE5, 0, 0x40, -1),
        (4, 24, 0xE7274991, 1, 8, 100),
    ] and [(one.offset, one.timestamp_ms, one.key, one.value) for one in messages] == [
        (4, -1, b"k", b"v"),
        (4, 100, b"k", b"v"),
    ]


def read_indexes() -> bool:
    from seglog_format.log.index_file import OffsetIndex, TimeIndex

    offsets = [(one.offset, one.position) for one in OffsetIndex.from_bytes(OFFSET_INDEX, 10).entries]
    times = [(one.timestamp_ms, one.offset) for one in TimeIndex.from_bytes(TIME_INDEX, 10).entries]
    return (offsets, times) == ([(12, 16), (17, 512)], [(100, 12), (200, 17)])


def read_transaction_index() -> bool:
    from seglog_format.codec.side_files import decode_transaction_index
    from seglog_format.errors import Location
    from seglog_format.model import AbortedTxn

    return decode_transaction_index(TRANSACTION_INDEX, Location()) == (AbortedTxn(*TRANSACTION_FIELDS),)


def read_snapshot() -> bool:
    from seglog_format.codec.side_files import decode_producer_snapshot
    from seglog_format.errors import Location
    from seglog_format.model import ProducerStateEntry

    return decode_producer_snapshot(SNAPSHOT, Location()).producers == (ProducerStateEntry(*SNAPSHOT_FIELDS),)


def read_control_record() -> bool:
    from seglog_format.codec.control_record import decode_control_record
    from seglog_format.errors import Location
    from seglog_format.model import ControlRecord, ControlRecordType

    wanted = ControlRecord(0, 1, ControlRecordType.COMMIT, {"version": 0, "coordinatorEpoch": 7})
    return decode_control_record(CONTROL_KEY, END_MARKER, Location()) == wanted


def reference_reads_control_record() -> bool:
    from seglog_format.codec.control_record import decode_control_record
    from seglog_format.codec.reference import CONTROLS as READER
    from seglog_format.errors import Location
    from seglog_format.model import ControlRecord, ControlRecordType

    wanted = ControlRecord(0, 1, ControlRecordType.COMMIT, {"version": 0, "coordinatorEpoch": 7})
    return decode_control_record(CONTROL_KEY, END_MARKER, Location(), READER) == wanted


def write_control_record() -> bool:
    from seglog_format.codec.build import control_record
    from seglog_format.model import ControlRecordType

    fields = {"version": 0, "coordinatorEpoch": 7}
    record = control_record(ControlRecordType.COMMIT, fields, timestamp_ms=1)
    return (record.key, record.value) == (CONTROL_KEY, END_MARKER)


def reference_reads_entries() -> bool:
    from seglog_format.codec.decode import decode_first
    from seglog_format.codec.reference import declared
    from seglog_format.errors import Location
    from seglog_format.model import MessageHeader, RecordBatchHeader

    batches = [decode_first(declared(data), Location()) for data in (HEADER, MESSAGE_0, MESSAGE_1)]
    messages = [batch.records[0] for batch in batches[1:]]
    return [batch.header for batch in batches] == [
        RecordBatchHeader(*HEADER_FIELDS),
        MessageHeader(4, 16, 0xC9A4CEE5, 0, 0x40),
        MessageHeader(4, 24, 0xE7274991, 1, 8, 100),
    ] and [(one.offset, one.timestamp_ms, one.key, one.value) for one in messages] == [
        (4, -1, b"k", b"v"),
        (4, 100, b"k", b"v"),
    ]


def reference_reads_side_files() -> bool:
    from seglog_format.codec.reference import declared
    from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
    from seglog_format.model import AbortedTxn, OffsetPosition, ProducerStateEntry, TimestampOffset

    return (
        tuple(OffsetIndex(declared(OFFSET_INDEX), 10).entries),
        tuple(TimeIndex(declared(TIME_INDEX), 10).entries),
        TransactionIndex.from_source(declared(TRANSACTION_INDEX), 10).entries,
        ProducerSnapshot.from_source(declared(SNAPSHOT)).producers,
    ) == (
        (OffsetPosition(12, 16), OffsetPosition(17, 512)),
        (TimestampOffset(100, 12), TimestampOffset(200, 17)),
        (AbortedTxn(*TRANSACTION_FIELDS),),
        (ProducerStateEntry(*SNAPSHOT_FIELDS),),
    )


def write_batch() -> bool:
    from seglog_format import encode_batch
    from seglog_format.model import RecordBatchHeader
    from seglog_format.types import RecordBatch

    return encode_batch(RecordBatch(0, RecordBatchHeader(*HEADER_FIELDS), ())) == HEADER


def write_messages() -> bool:
    from seglog_format.codec.encode import encode_message
    from seglog_format.model import MessageHeader

    headers = MessageHeader(4, 0, 0, 0, 0x40), MessageHeader(4, 0, 0, 1, 8, 100)
    return [encode_message(header, b"k", b"v") for header in headers] == [MESSAGE_0, MESSAGE_1]


def overwrite_entry() -> bool:
    from seglog_format.codec.build import with_offset
    from seglog_format.codec.framing import walk

    moved = with_offset(HEADER, 21, 8)
    (frame,) = walk(moved)
    return moved == bytes.fromhex("0000000000000015000000310000000802") + HEADER[17:] and frame.end == len(moved)


def write_indexes() -> bool:
    from seglog_format.log.index_file import encode_offset_index, encode_time_index
    from seglog_format.model import OffsetPosition, TimestampOffset

    offsets = [OffsetPosition(12, 16), OffsetPosition(17, 512)]
    times = [TimestampOffset(100, 12), TimestampOffset(200, 17)]
    return (encode_offset_index(offsets, 10), encode_time_index(times, 10)) == (OFFSET_INDEX, TIME_INDEX)


def write_log() -> bool:
    """Write an aborted transaction as a user would; return index, transaction index and snapshot of the closed log."""
    from seglog_format import LogConfig, Origin, PartitionWriter, build_batch, build_end_marker, new_record
    from seglog_format.model import ControlRecordType

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "orders-0"
        with PartitionWriter(path, LogConfig(index_interval_bytes=0)) as writer:
            writer.append([new_record(value=b"v", timestamp_ms=100)])
            writer.append(
                build_batch(
                    [new_record(value=b"v", timestamp_ms=200)],
                    producer_id=300,
                    producer_epoch=3,
                    base_sequence=0,
                    is_transactional=True,
                )
            )
            ids = {"producer_id": 300, "producer_epoch": 3, "coordinator_epoch": 4}
            writer.append(build_end_marker(ControlRecordType.ABORT, timestamp_ms=300, **ids), origin=Origin.COORDINATOR)
        files = {file.suffix: file.read_bytes() for file in path.iterdir() if file.is_file()}
    return (files[".index"][:8], files[".txnindex"], files[".snapshot"][10:]) == (
        bytes.fromhex("0000000100000045"),
        bytes.fromhex("0000000000000000012c000000000000000100000000000000020000000000000003"),
        bytes.fromhex("000000000000012c000300000000000000000000000100000000")
        + bytes.fromhex("000000000000012c00000004ffffffffffffffff"),
    )


def write_snapshot() -> bool:
    from seglog_format.codec.side_files import encode_producer_snapshot
    from seglog_format.model import ProducerStateEntry

    return encode_producer_snapshot([ProducerStateEntry(*SNAPSHOT_FIELDS)]) == SNAPSHOT


def reference_writes_entries() -> bool:
    from seglog_format import Engine, encode_batch
    from seglog_format.codec.reference import encode_message
    from seglog_format.model import MessageHeader, RecordBatchHeader
    from seglog_format.types import RecordBatch

    headers = MessageHeader(4, 0, 0, 0, 0x40), MessageHeader(4, 0, 0, 1, 8, 100)
    batch = encode_batch(RecordBatch(0, RecordBatchHeader(*HEADER_FIELDS), ()), engine=Engine.REFERENCE)
    return [batch, *(encode_message(header, b"k", b"v") for header in headers)] == [HEADER, MESSAGE_0, MESSAGE_1]


def reference_writes_slots() -> bool:
    from seglog_format.codec.reference import slots
    from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY

    offset, time, aborted = slots(OFFSET_INDEX_ENTRY), slots(TIME_INDEX_ENTRY), slots(TRANSACTION_INDEX_ENTRY)
    return (
        offset.pack(2, 16) + offset.pack(7, 512),
        time.pack(100, 2) + time.pack(200, 7),
        aborted.pack(*TRANSACTION_FIELDS),
    ) == (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)


def reference_writes_snapshot() -> bool:
    from seglog_format.codec.reference import encode_producer_snapshot
    from seglog_format.model import ProducerStateEntry

    return encode_producer_snapshot([ProducerStateEntry(*SNAPSHOT_FIELDS)]) == SNAPSHOT


READING = (
    read_batch_header,
    read_batch,
    read_messages,
    read_indexes,
    read_transaction_index,
    read_snapshot,
    read_control_record,
)
REFERENCE_READING = (reference_reads_entries, reference_reads_side_files, reference_reads_control_record)
WRITING = (
    write_batch,
    write_messages,
    overwrite_entry,
    write_indexes,
    write_log,
    write_snapshot,
    write_control_record,
)

REFERENCE_WRITING = (
    reference_writes_entries,
    reference_writes_slots,
    reference_writes_snapshot,
    write_control_record,  # there is no other writer of control records
)

CHECKS = {
    "reading": READING,
    "writing": WRITING,
    "reference-reading": REFERENCE_READING,
    "reference-writing": REFERENCE_WRITING,
}


def problems(checks: tuple[Callable[[], bool], ...]) -> Iterator[str]:
    """Name the checks that do not find what they should."""
    for check in checks:
        try:
            is_right = check()
        except Exception as error:  # noqa: BLE001 - whatever a wrong layout leads to
            yield f"{check.__name__}: {type(error).__name__}"
        else:
            if not is_right:
                yield check.__name__


def use_layouts(text: str) -> None:
    """Have the package import this text as its layouts; nothing of the package may be imported yet."""
    module: Any = types.ModuleType("seglog_format.layouts")
    sys.modules["seglog_format.layouts"] = module
    exec(compile(text, "layouts.py", "exec"), module.__dict__)  # noqa: S102 - what tools/make_layouts.py writes


def swap_declared(name: str, first: str, second: str) -> None:
    """Swap two neighbouring fields of a declaration, and of those that begin with it."""
    from seglog_format.schema.message_set import MESSAGES
    from seglog_format.schema.producer_snapshot import ProducerSnapshot
    from tools import make_layouts

    longer = {"MESSAGE_V0_HEADER": MESSAGES[0], "MESSAGE_V1_HEADER": MESSAGES[1]}
    longer["PRODUCER_SNAPSHOT_HEADER"] = ProducerSnapshot
    for declaration in filter(None, (make_layouts.declarations()[name], longer.get(name))):
        fields = declaration.subcons
        at = [field.name for field in fields].index(first)
        assert fields[at + 1].name == second
        fields[at], fields[at + 1] = fields[at + 1], fields[at]


def is_noticed(name: str, text: str) -> list[str]:
    """Return what notices these layouts: the keys of `CHECKS`; found out in a child process."""
    child = os.fork()
    if child == 0:
        os.fsync = lambda _descriptor: None
        use_layouts(text)
        try:
            swap_declared(*name.replace(":", "").replace(" <-> ", " ").split())
        except AssertionError:  # the package does not even load
            os._exit((1 << len(CHECKS)) - 1)
        os._exit(sum(1 << bit for bit, checks in enumerate(CHECKS.values()) if any(problems(checks))))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [kind for bit, kind in enumerate(CHECKS) if status & 1 << bit]


def main() -> None:
    """Read layouts from standard input, one module text after a line ``== NAME``; print what notices each."""
    import construct  # noqa: F401 - loaded once for all children
    import crcmod  # noqa: F401
    import google_crc32c  # noqa: F401

    for part in sys.stdin.read().split("== ")[1:]:
        name, _, text = part.partition("\n")
        sys.stdout.write(f"{name} noticed by {' '.join(is_noticed(name, text))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
