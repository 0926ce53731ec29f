"""Reads files with the compiled Python parsers: ``python kaitai_read.py PARSER_DIRECTORY``.

Standard input: a JSON list of ``{"kind", "hex"}``. Output: a JSON list, for each what was read, or ``{"refused"}``.

This runs in a process of its own. The parsers are modules with names such as ``message``, and millions of objects that
point at each other come of reading; neither is to meet what other tests have left behind.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, TypeAlias

Untyped: TypeAlias = Any
"""What generated parsers and JSON hand out."""


def _fields(structure: Untyped) -> dict[str, Any]:
    return {name: value for name, value in vars(structure).items() if not name.startswith("_")}


def _log(parsed: Untyped) -> list[dict[str, Any]]:
    return [_entry(entry) for entry in getattr(parsed, "entries", ())]


def _entry(entry: Untyped) -> dict[str, Any]:
    if entry.magic != 2:
        message = entry.message.v1 if entry.magic else entry.message.v0
        pair = message.content.fields
        return {"header": _fields(message.header), "key": _nullable(pair.key), "value": _nullable(pair.value)}
    if entry.batch.codec:
        return {"header": _fields(entry.batch.header), "records": None}
    records = [_record(record) for record in entry.batch.content.records]
    control = [_control(record) for record in entry.batch.content.control_records] if entry.batch.is_control else None
    return {"header": _fields(entry.batch.header), "records": records, "control": control}


def _control(record: Untyped) -> dict[str, Any]:
    value = record.value
    value = getattr(value, "v1", None) or getattr(value, "v0", None) or value
    return {**_fields(record.key), "fields": {} if isinstance(value, bytes) else _message(value)}


def _message(value: Untyped) -> Untyped:
    """Fields of Kafka's protocol, without counts and what may be skipped."""
    if isinstance(value, list):
        return [_message(each) for each in value]
    fields = _fields(value) if hasattr(value, "_io") else None
    if fields is None:
        return value
    single = fields.get("text", fields.get("content"))
    if single is not None:
        return single.hex() if isinstance(single, bytes) else single
    return {name: _message(each) for name, each in fields.items() if not name.endswith(("_plus_one", "tagged_fields"))}


def _record(record: Untyped) -> dict[str, Any]:
    return {
        "timestamp_delta": record.timestamp_delta.value,
        "offset_delta": record.offset_delta.value,
        "key": _nullable(record.key),
        "value": _nullable(record.value),
        "headers": [[_nullable(header.key), _nullable(header.value)] for header in record.headers],
    }


def _nullable(field: Untyped) -> str | None:
    content = getattr(field, "content", None)
    return None if content is None else bytes(content).hex()


def _slots(parsed: Untyped) -> list[dict[str, Any]]:
    return [_fields(entry) for entry in parsed.entries]


def _value(parsed: Untyped) -> int:
    value: int = parsed.value
    return value


READERS: dict[str, Any] = {
    "log_segment": _log,
    "offset_index": _slots,
    "time_index": _slots,
    "transaction_index": _slots,
    "producer_snapshot": lambda parsed: [_fields(parsed.header), *map(_fields, parsed.producers)],
    "varint32": _value,
    "varint64": _value,
}


def read(kind: str, data: bytes) -> Untyped:
    """Return what a parser makes of it."""
    parser = getattr(importlib.import_module(kind), kind.title().replace("_", ""))
    try:
        with parser.from_bytes(data) as parsed:
            return READERS[kind](parsed)
    except Exception as error:  # noqa: BLE001 - whatever a generated parser raises is its refusal
        return {"refused": repr(error)}


def main() -> None:
    """Answer what standard input asks."""
    sys.path.insert(0, sys.argv[1])
    questions = json.load(sys.stdin)
    json.dump([read(question["kind"], bytes.fromhex(question["hex"])) for question in questions], sys.stdout)


if __name__ == "__main__":
    main()
