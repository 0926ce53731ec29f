"""Family 51: every field of every declaration has its limits in some bytes, and planted faults fall twice."""

from __future__ import annotations

import importlib
import pkgutil
import re
import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import lz4.frame
import pytest
from authoring.batches import Batch, Rec, sealed
from authoring.casefile import Family, must
from authoring.derived import (
    APART,
    IN_LOGS,
    LIMITS,
    NOT_ASKED_TO_ENCODE,
    PARSED,
    STRUCTURES,
    WITHOUT,
    fields,
    shortened,
    solved,
)
from authoring.make_cases import CASES
from construct import Struct
from helpers.walking import each_of
from seglog_conformance.cases import load_cases
from seglog_conformance.compare import compare
from seglog_conformance.recipes import made
from seglog_conformance.reference.testee import FEATURES, Reference
from seglog_conformance.verdicts import Verdict

import seglog_format.schema
from seglog_format.cleaning import compaction_rules
from seglog_format.log.transactions import Transactions
from seglog_format.schema.fields import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
DERIVED: Final = {case.id.removeprefix("derived/"): case for case in load_cases(CASES / "51-derived.json")}
ALSO_AT_SCALE: Final = [case for case in load_cases(CASES / "scale") if re.fullmatch(r"scale/..code-\d+-\w+", case.id)]


# -- every field of every declaration ---------------------------------------------------------------------------------


def declarations() -> Iterator[str]:
    """Yield the names of all declarations of structures."""
    for module in pkgutil.iter_modules(seglog_format.schema.__path__):
        if not module.ispkg:
            loaded = importlib.import_module(f"seglog_format.schema.{module.name}")
            for name, value in vars(loaded).items():
                if isinstance(value, Struct) and not name.startswith("_"):
                    yield name


def test_every_declaration_is_walked_or_is_part_of_another() -> None:
    assert {*STRUCTURES, *APART} == set(declarations())


@each_of("structure", STRUCTURES)
def test_every_field_has_limits_or_a_reason(structure: str) -> None:
    names = {row.name for row in layout(STRUCTURES[structure][0])}
    without = {name for one, name in WITHOUT if one == structure}
    assert without <= names
    assert {field.name for field in fields(structure)} == names - without
    assert {name for one, name in LIMITS if one == structure} <= names - without


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag number and the position behind it."""
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
        if data[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at


def fixed(structure: str, data: bytes) -> Iterator[tuple[str, str, int]]:
    """Yield the fields of a structure that have a fixed place, as they stand in some bytes."""
    codes = {"int8": "b", "int16": "h", "int32": "i", "uint32": "I", "int64": "q"}
    for row in layout(STRUCTURES[structure][0]):
        if row.type in codes and row.offset is not None:
            yield structure, row.name, *struct.unpack_from(">" + codes[row.type], data, row.offset)


def stored_fields(log: bytes) -> Iterator[tuple[str, str, int]]:
    """Yield the fields of all entries of a log, and of the records in them."""
    at = 0
    while at + 17 <= len(log):
        size = 12 + int.from_bytes(log[at + 8 : at + 12], "big")
        entry, magic = log[at : at + size], log[at + 16]
        at += size
        if magic < 2:
            yield from fixed(f"MessageV{magic}", entry)
            position = 18 + 8 * magic
            for name in ("key", "value"):
                length = int.from_bytes(entry[position : position + 4], "big", signed=True)
                yield f"MessageV{magic}", name, length
                position += 4 + max(length, 0)
        else:
            yield from fixed("RecordBatchHeader", entry)
            if not entry[22] & 7:
                yield from record_fields(entry[61:], is_control=bool(entry[22] & 0x20))


def record_fields(section: bytes, *, is_control: bool) -> Iterator[tuple[str, str, int]]:
    """Yield the fields of the records of a batch."""
    at = 0
    while at < len(section):
        length, at = varint(section, at)
        yield "Record", "length", length
        at += 1
        contents = []
        for name in ("timestamp_delta", "offset_delta", "key", "value"):
            value, at = varint(section, at)
            yield "Record", name, value
            if name in {"key", "value"}:
                contents.append(section[at : at + max(value, 0)])
                at += max(value, 0)
        count, at = varint(section, at)
        yield "Record", "headers_count", count
        for _ in range(count):
            for name in ("key", "value"):
                value, at = varint(section, at)
                yield "RecordHeader", name, value
                at += max(value, 0)
        if is_control:
            yield from fixed("ControlRecordKey", contents[0])
            yield from fixed("EndTransactionMarker", contents[1]) if len(contents[1]) == 6 else ()


@cache
def in_logs(op: str) -> set[tuple[str, str, int]]:
    found: set[tuple[str, str, int]] = set()
    for case in (*DERIVED.values(), *ALSO_AT_SCALE):
        if case.op == op and case.result == "valid":
            data = case.request.get("data") if op == "decode" else case.expect.get("data")
            found.update(stored_fields(bytes.fromhex(data or "")))
            if op == "encode" and case.is_summed_up:
                found.add(("RecordBatchHeader", "records_count", case.request["batches"][0]["recordsCount"]))
    return found


def limits_of(structure: str, name: str, kind: str, lowest: int, highest: int) -> set[int]:
    """Return the limits of a type and of the smaller ones, computed here once more."""
    if kind in {"length", "count"}:
        some = {0, 127, 128, 255, 256, 65536} | ({-1, 32767, 32768, 65535} if kind == "length" else {65537})
        return {value for value in some if lowest <= value <= highest}
    bits = int(kind.strip("uint"))
    smaller = {16: (8,), 32: (8, 16), 64: (16, 32)}[bits] if not kind.startswith("u") else (8, 16)
    some = {
        edge for fewer in smaller for edge in (-(2 ** (fewer - 1)), 2 ** (fewer - 1) - 1, 2 ** (fewer - 1), 2**fewer)
    }
    some |= {2**53 + 1} if bits == 64 else set()
    whole: tuple[int, ...] = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert (structure, name) in LIMITS or highest == whole[1]
    return {value for value in some if lowest <= value <= highest} | {lowest, highest}


@pytest.mark.parametrize("op", ["decode", "encode"])
@pytest.mark.parametrize("structure", IN_LOGS)
def test_the_limits_of_every_field_of_a_log_stand_in_bytes(structure: str, op: str) -> None:
    for field in fields(structure):
        if op == "encode" and (structure, field.name) in NOT_ASKED_TO_ENCODE:
            continue
        lowest = 0 if op == "encode" and field.name in {"base_timestamp_ms", "max_timestamp_ms"} else field.lowest
        wanted = limits_of(structure, field.name, field.kind, lowest, field.highest)
        wanted -= {-1, *range(7)} if field.name == "type" else set()
        found = {value for one, name, value in in_logs(op) if (one, name) == (structure, field.name)}
        if (structure, field.name) == ("Record", "length"):
            wanted -= {0}
        assert wanted - found == set(), (field.name, sorted(wanted - found))


ENTRIES: Final = {
    "OffsetIndexEntry": (0, 8),
    "TimeIndexEntry": (0, 12),
    "TransactionIndexEntry": (0, 34),
    "ProducerStateEntry": (10, 46),
}


@pytest.mark.parametrize("structure", PARSED)
def test_the_limits_of_every_field_of_a_file_stand_in_bytes(structure: str) -> None:
    parsed = [case for case in DERIVED.values() if case.op == "parse" and case.result == "valid"]
    kind, file_name = PARSED[structure]
    for field in fields(structure):
        found: set[int] = set()
        for case in parsed:
            if case.request["kind"] == kind and (not file_name or case.request["name"] == file_name):
                data = bytes.fromhex(case.request.get("data", ""))
                if structure in ENTRIES:
                    start, size = ENTRIES[structure]
                    for at in range(start, len(data), size):
                        found |= {value for _, name, value in fixed(structure, data[at:]) if name == field.name}
                elif structure == "ProducerSnapshotHeader":
                    found |= {value for _, name, value in fixed(structure, data) if name == field.name}
                else:
                    text = data.decode() or case.request["name"]
                    found |= {int(number) for number in re.findall(r"\d+", text)}
        wanted = limits_of(structure, field.name, field.kind, field.lowest, field.highest)
        wanted -= {65536} if field.highest == 256 else set()
        assert wanted - found == set(), (field.name, sorted(wanted - found))


def test_a_checksum_can_be_chosen() -> None:
    for wanted in (0, 1, 2**31, 2**32 - 1):
        four = solved(lambda four: Batch(recs=(Rec(value=four),)).encoded(), 17, wanted)
        assert Batch(recs=(Rec(value=four),)).encoded()[17:21] == wanted.to_bytes(4, "big")


@pytest.mark.parametrize(
    "value",
    ["00" * 3000, "6162" * 2000 + "63", ["a"] * 2000, [["68", ""]] * 1500, {"data": "ff" * 5000, "short": "00"}],
)
def test_a_recipe_makes_what_it_stands_for(value: Any) -> None:  # noqa: ANN401
    recipe = shortened(value)
    inner, whole = (recipe["data"], value["data"]) if isinstance(value, dict) else (recipe, value)
    assert made(inner) == whole
    assert len(str(recipe)) < len(str(value)) / 10


def test_noise_and_numbered_records_are_the_same_each_time() -> None:
    assert made({"noise": "a", "size": 4}) == "867e2cb0"
    record = {"offset": "5", "timestamp": "9", "key": None}
    assert made({"numbered": record, "times": 2}) == [record, {**record, "offset": "6", "timestamp": "10"}]


# -- planted faults ---------------------------------------------------------------------------------------------------


def failing(fault: Callable[[Reference, Json], Json], *ops: str, part: str = "", cases: Any = None) -> list[str]:  # noqa: ANN401
    """Return the cases that a reference with a fault fails."""
    reference = Reference()
    found = []
    for name, case in (cases or DERIVED).items():
        if case.op in ops and re.search(part, name):
            answer = {"seq": 1, **fault(reference, {"op": case.op, **case.request})}
            if compare(case, answer, FEATURES).verdict is not Verdict.PASS:
                found.append(name)
    return found


def records(answer: Json) -> Iterator[Json]:
    for batch in answer.get("batches") or ():
        yield from batch["records"]


def wrapped(number: Any, bits: int) -> str:  # noqa: ANN401
    """Return a number as it is after it was kept in fewer bits."""
    half = 1 << bits - 1
    return str((int(number) + half) % (2 * half) - half)


BATCH_FIELDS: Final = {
    "baseOffset": 32,
    "lastOffset": 32,
    "partitionLeaderEpoch": 16,
    "maxTimestamp": 32,
    "producerId": 32,
    "producerEpoch": 8,
    "baseSequence": 16,
    "recordsCount": 8,
    "crc": 31,
}
POSITIONS: Final = {
    "baseOffset": (0, 8),
    "partitionLeaderEpoch": (12, 4),
    "crc": (17, 4),
    "lastOffset": (23, 4),
    "maxTimestamp": (35, 8),
    "producerId": (43, 8),
    "producerEpoch": (51, 2),
    "baseSequence": (53, 4),
    "recordsCount": (57, 4),
}
"""Position and size of each."""


@pytest.mark.parametrize("name", BATCH_FIELDS)
@pytest.mark.parametrize("op", ["decode", "encode"])
def test_a_field_of_a_batch_in_fewer_bits_falls_twice(op: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        for batch in answer.get("batches") or ():
            if batch.get(name) is not None:
                batch[name] = wrapped(batch[name], BATCH_FIELDS[name])
        return answer

    def written(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        data, at = bytearray.fromhex(answer["data"]), 0
        while at < len(data):
            size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
            if data[at + 16] == 2:
                start, width = at + POSITIONS[name][0], POSITIONS[name][1]
                kept = int(wrapped(int.from_bytes(data[start : start + width], "big", signed=True), BATCH_FIELDS[name]))
                data[start : start + width] = kept.to_bytes(width, "big", signed=True)
                if name not in {"crc", "baseOffset", "partitionLeaderEpoch"}:
                    data[at : at + size] = sealed(bytes(data[at : at + size]))
            at += size
        return {**answer, "data": data.hex()}

    if (op, name) == ("encode", "lastOffset"):  # stored as a number of 32 bits
        monkeypatch.setitem(BATCH_FIELDS, name, 16)
    part = "record-batch-header-(?!records-count-[89])" if name != "recordsCount" else "records-count"
    assert len(failing(fault if op == "decode" else written, op, part=part)) >= 2


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", ["key", "value", "headers", "header-key", "header-value"])
def test_a_length_in_fewer_bits_falls_twice(name: str, bits: int) -> None:
    def cut(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return value if value["bytes"] < 1 << bits else "00" * (value["bytes"] % (1 << bits))
        return value and value[: len(value) % (2 << bits)]

    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        for record in records(answer):
            pairs = record.get("headers") or []
            if name in record and name != "headers":
                record[name] = cut(record[name])
            elif name == "headers" and pairs:
                record["headers"] = pairs[: len(pairs) % (1 << bits)]
            elif name == "header-key":
                record["headers"] = [[cut(key), value] for key, value in pairs]
            elif name == "header-value":
                record["headers"] = [[key, cut(value)] for key, value in pairs]
        return answer

    part = {"headers": "headers-count", "header-key": "record-header-key", "header-value": "record-header-value"}
    assert len(failing(fault, "decode", part=part.get(name, f"decode-record-{name}"))) >= 2


def test_a_count_of_records_in_16_bits_falls_twice() -> None:
    named = {case.id: case for case in ALSO_AT_SCALE}
    for op in ("decode", "encode"):
        found = []
        for name, case in named.items():
            if re.fullmatch(rf"scale/{op}-\d+-records", name):
                count = int(name.split("-")[1]) % 65536
                few = Family(0, "few", "", "")
                few.valid("few", "Few.", must("SEG-BAT-008"), *([Batch(recs=(Rec(),) * count)] if count else [Batch()]))
                answer = Reference().answer({"op": "decode", **few.cases[0]["request"]})
                data = few.cases[0]["request"]["data"]
                verdict = compare(case, {"seq": 1, **answer, "data": data}, FEATURES).verdict
                found += [name] if verdict is not Verdict.PASS else []
        assert len(found) >= 2


def size_of(request: Json) -> int:
    return max((len(value) // 2 for value in (request.get("data", ""), *request.get("files", {}).values())), default=0)


def test_a_checksum_of_small_batches_alone_falls_twice_in_each_operation() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        if size_of(request) < 65536:
            return answer
        if request["op"] == "decode":
            return reference.answer({**request, "options": {"crc": False}})
        if request["op"] == "validate":
            return {"ok": True, "accept": True}
        return {**answer, "truncatedBytes": 0, "files": request["files"]}

    for op in ("decode", "validate", "recover"):
        found = failing(fault, op, part="flip-large")
        assert len(found) >= 2, op


def test_a_repeated_header_key_that_an_encoder_drops_falls_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        for record in records(request):
            if record.get("headers"):
                record["headers"] = [[key, value] for key, value in dict(record["headers"]).items()]
        return reference.answer(request)

    assert len(failing(fault, "encode", part="encode-headers")) >= 5


def test_linked_blocks_of_lz4_fall_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        entry = bytes.fromhex(answer["data"])
        linked = lz4.frame.compress(lz4.frame.decompress(entry[61:]), block_linked=True, store_size=False)
        return {**answer, "data": sealed(entry[:61] + linked).hex()}

    assert len(failing(fault, "encode", part="encode-lz4-(two|many)-blocks")) >= 2


def test_a_commit_among_the_aborted_falls_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        log = request.get("data") or next(iter(request["files"].values()))
        batches = reference.answer({"op": "decode", "data": log})["batches"]
        markers = [(one, record) for one in batches for record in one["records"] if record.get("control") == "COMMIT"]
        for name in [name for name in answer.get("files", {}) if name.endswith(".txnindex")]:
            entries = [(int(batch["producerId"]), int(record["offset"])) for batch, record in markers]
            rows = [struct.pack(">hqqqq", 0, producer, 0, end, end + 1) for producer, end in entries]
            answer["files"][name] = (answer["files"][name] or "") + b"".join(rows).hex()
        return answer

    for op in ("index", "recover"):
        assert len(failing(fault, op, part="commit|open-since")) >= 2, op


def test_offsets_outside_of_the_log_fall_twice() -> None:
    def found(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        if request["op"] == "read" and not answer["ok"]:
            return {"ok": True, "records": [], "nextOffset": request["offset"]}
        if request["op"] == "lookup" and answer["found"] is None:
            return {"ok": True, "found": {"position": 0, "baseOffset": "100"}}
        return answer

    assert len(failing(found, "lookup", part="lookup-below")) >= 2
    assert len(failing(found, "lookup", part="lookup-above|lookup-time-above")) >= 2
    assert len(failing(found, "read", part="read-outside")) >= 2
    assert len(failing(found, "read", part="read-below-start")) >= 2


def test_times_below_the_log_start_fall_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        return reference.answer({name: value for name, value in request.items() if name != "options"})

    assert len(failing(fault, "lookup", part=r"lookup-time-\d+-from")) >= 2


def test_left_over_bytes_that_are_passed_over_fall_twice_in_each_codec() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        return {**answer, "ok": True, "accept": True, "consumed": size_of(request), "tail": None}

    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert len(failing(fault, "decode", part=f"left-over-.*-{codec}-")) >= 2, codec
    assert len(failing(fault, "validate", part="left-over")) == 2


def test_sequences_of_another_epoch_taken_for_duplicates_fall_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        answer = reference.answer(request)
        new = reference.answer({"op": "decode", "data": request["data"]})["batches"][0]
        for batch in reference.answer({"op": "decode", "data": request["log"]})["batches"]:
            if all(batch[name] == new[name] for name in ("producerId", "baseSequence", "lastSequence")):
                return {"ok": True, "accept": True, "entries": [], "duplicateOf": batch["lastOffset"], "aborted": []}
        return answer

    assert len(failing(fault, "validate", part="newer-epoch")) >= 2


def test_a_sequence_in_16_bits_falls_twice() -> None:
    def fault(reference: Reference, request: Json) -> Json:
        for name in ("data", "log"):
            log, at = bytearray.fromhex(request[name]), 0
            while at < len(log):
                size = 12 + int.from_bytes(log[at + 8 : at + 12], "big")
                log[at + 53 : at + 55] = bytes(2)
                log[at : at + size] = sealed(bytes(log[at : at + size]))
                at += size
            request = {**request, name: log.hex()}
        return reference.answer(request)

    assert len(failing(fault, "validate", part="sequence-|wrapped")) >= 2


@pytest.mark.parametrize("part", ["key", "value"])
def test_empty_taken_for_null_in_the_cleaner_falls_twice(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = compaction_rules._reason_by_key

    def reason(record: Any, newest: Any, *, is_expired: bool) -> Any:  # noqa: ANN401
        if part == "key" and record.key == b"":
            return compaction_rules.RecordReason.NO_KEY
        found = real(record, newest, is_expired=is_expired)
        if part == "value" and record.value == b"" and found is compaction_rules.RecordReason.NEWEST:
            reasons = compaction_rules.RecordReason
            return reasons.EXPIRED_TOMBSTONE if is_expired else reasons.TOMBSTONE
        return found

    monkeypatch.setattr(compaction_rules, "_reason_by_key", reason)
    later = compaction_rules._expires_later

    def expires(kept: Any, facts: Any) -> bool:  # noqa: ANN401
        return later(kept, facts) or any(one.value == b"" for one in kept)

    if part == "value":
        monkeypatch.setattr(compaction_rules, "_expires_later", expires)
    assert len(failing(lambda reference, request: reference.answer(request), "compact", part=f"empty-{part}")) >= 2


def test_a_transaction_since_offset_0_that_is_not_seen_as_open_falls_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def stable(self: Transactions) -> int:
        return min((offset for offset in self.open_offsets.values() if offset), default=self.end_offset)

    monkeypatch.setattr(Transactions, "last_stable_offset", property(stable))
    assert len(failing(lambda reference, request: reference.answer(request), "read", part="open-since-0")) >= 2


@pytest.mark.parametrize("change", [-1, 1])
def test_lines_that_a_count_does_not_cover_fall_twice(change: int) -> None:
    def fault(reference: Reference, request: Json) -> Json:
        lines = bytes.fromhex(request["data"]).decode().splitlines()
        counted, there = int(lines[1]), len(lines) - 2
        is_passed = counted > there if change < 0 else 0 <= counted < there
        return {"ok": True, "object": {"version": 0, "entries": []}} if is_passed else reference.answer(request)

    assert len(failing(fault, "parse", part="parse-(offsets|epochs)-")) >= 2


def test_the_sound_reference_passes_where_faults_are_planted() -> None:
    sound = failing(
        lambda reference, request: reference.answer(request), "validate", "lookup", "read", "index", "recover"
    )
    assert sound == []
