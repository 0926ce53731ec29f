"""The entries of a log as Wireshark's dissector shows them, from its packet details in XML (PDML)."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import Element, iterparse

from seglog_conformance.toolchains import child_processes

from proofs.dissecting.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NULL: Final = "<NULL>"
UNDECODED: Final = "[Cannot decompress records]"
TIME: Final = "%b %d, %Y %H:%M:%S"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

BATCH: Final = {
    "offset": "kafka.offset",
    "size": "kafka.message_size",
    "partition_leader_epoch": "kafka.leader_epoch",
    "magic": "kafka.message_magic",
    "crc": "kafka.batch_crc",
    "codec": "kafka.batch_codec",
    "timestamp_type": "kafka.batch_timestamp_type",
    "is_transactional": "kafka.batch_transactional",
    "is_control": "kafka.batch_control_batch",
    "last_offset_delta": "kafka.batch_last_offset_delta",
    "producer_id": "kafka.producer_id",
    "producer_epoch": "kafka.producer_epoch",
    "base_sequence": "kafka.batch_base_sequence",
    "records_count": "kafka.batch_size",
}
BATCH_TIMES: Final = {"base_timestamp": "kafka.batch_first_timestamp", "max_timestamp": "kafka.batch_last_timestamp"}
MESSAGE: Final = {
    "offset": "kafka.offset",
    "size": "kafka.message_size",
    "crc": "kafka.message_crc",
    "magic": "kafka.message_magic",
    "codec": "kafka.message_codec",
    "timestamp_type": "kafka.message_timestamp_type",
}
KEY: Final = "kafka.message_key"
VALUE: Final = "kafka.message_value"
TIMESTAMP: Final = "kafka.message_timestamp"


def dissector_version() -> str:
    """Return the version line of ``tshark``."""
    command = ["tshark", "--version"]
    done = child_processes.run(command, directory=child_processes.NOWHERE, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def shown_answers(capture: Path) -> Iterator[list[Entry]]:
    """Yield the entries of each Fetch response in order.

    Raises:
        subprocess.CalledProcessError: ``tshark`` fails.
    """
    command = ["tshark", "-r", str(capture), "-n", "-T", "pdml"]
    done = child_processes.run(
        command,
        directory=child_processes.NOWHERE,
        capture_output=True,
        check=True,
        changes={"TZ": "UTC", "LC_ALL": "C"},
    )
    yield from answers_in(done.stdout)


def answers_in(pdml: bytes) -> Iterator[list[Entry]]:
    """Yield the entries of each Fetch response in packet details."""
    for _, element in iterparse(BytesIO(pdml)):  # noqa: S314 - a program of this machine has written it
        if element.tag == "packet":
            for protocol in element.iterfind("proto[@name='kafka']"):
                if protocol.find("field[@name='kafka.request_frame']") is not None:
                    yield [entry for field in _message_sets(protocol) for entry in _entries(field)]
            element.clear()


def _message_sets(protocol: Element) -> Iterator[Element]:
    """Yield the outermost message sets."""
    for field in protocol:
        if _title(field).startswith("Message Set"):
            yield field
        else:
            yield from _message_sets(field)


def _title(field: Element) -> str:
    """Return the text of a branch of the tree; the name of a field is no title."""
    return "" if field.get("name") else field.get("show", "")


def _entries(message_set: Element) -> Iterator[Entry]:
    for field in message_set:
        if _title(field).startswith("Record Batch"):
            yield _batch(field)
        elif _title(field).startswith("Message"):
            yield _message(field)


def _batch(branch: Element) -> Entry:
    named = _named(branch)
    fields: dict[str, Any] = {name: _number(named[theirs]) for name, theirs in BATCH.items() if theirs in named}
    for name, theirs in BATCH_TIMES.items():
        fields[f"{name}_ms"] = int.from_bytes(bytes.fromhex(named[theirs].get("value", "")), "big", signed=True)
        fields[f"{name}_text"] = _milliseconds(named[theirs].get("show", ""))
    records = [_record(field) for field in branch if _title(field).startswith("Record")]
    return Entry(fields, records, {"is_undecoded": UNDECODED in _title(branch)})


def _record(branch: Element) -> Entry:
    named = _named(branch)
    headers = [_named(each) for field in branch if _title(field).startswith("Headers") for each in field]
    fields = {
        "attributes": _number(named["kafka.record_attributes"]),
        "timestamp_ms": _milliseconds(named[TIMESTAMP].get("show", "")),
        "offset": _number(named["kafka.offset"]),
        "key": _bytes(named[KEY]),
        "value": _bytes(named[VALUE]),
        "headers": [(_bytes(each["kafka.header_key"]), _bytes(each["kafka.header_value"])) for each in headers],
    }
    return Entry(fields)


def _message(branch: Element) -> Entry:
    named = _named(branch)
    fields: dict[str, Any] = {name: _number(named[theirs]) for name, theirs in MESSAGE.items() if theirs in named}
    fields |= {"timestamp_ms": _milliseconds(named[TIMESTAMP].get("show", ""))} if TIMESTAMP in named else {}
    fields |= {name: _sized_bytes(named[their]) for name, their in (("key", KEY), ("value", VALUE)) if their in named}
    messages = [entry for field in branch if _title(field).startswith("Message Set") for entry in _entries(field)]
    codec, timestamp_type = (int(named[MESSAGE[name]].get("pos", "0")) for name in ("codec", "timestamp_type"))
    return Entry(fields, messages, {"is_undecoded": UNDECODED in _title(branch), "is_late": codec != timestamp_type})


def _named(branch: Element) -> dict[str, Element]:
    return {field.get("name", ""): field for field in branch}


def _number(field: Element) -> int:
    return int(field.get("show", ""), 0)


def _bytes(field: Element) -> bytes | None:
    value = field.get("value")
    if value is None:
        return None if NULL in field.get("showname", "") else b""
    return bytes.fromhex(value)


def _sized_bytes(field: Element) -> bytes | None:
    """Return bytes that are shown together with the 4 bytes of their size."""
    return bytes.fromhex(field.get("show", "").replace(":", "")) if field.get("show") else _empty(field)


def _empty(field: Element) -> bytes | None:
    return None if field.get("value", "").startswith("ff") else b""


def _milliseconds(text: str) -> int | None:
    """Return a time as the number that is stored; None for a text that is no time."""
    moment, _, rest = text.removesuffix(" UTC").rpartition(".")
    try:
        seconds = datetime.strptime(moment, TIME).replace(tzinfo=UTC) - EPOCH
        return int(seconds.total_seconds()) * 1000 + _thousandths(rest)
    except ValueError:
        return None


def _thousandths(digits: str) -> int:
    if not digits.isdigit():
        msg = f"{digits} is no fraction of a second"
        raise ValueError(msg)
    return int(digits) // 1_000_000
