"""Operations on batches: decode, encode, index."""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.protocol import MAX_BYTES_ON_WIRE
from seglog_conformance.reference.wire import LONG, rejection, requirement_in, wire
from seglog_format.codec.build import build_batch
from seglog_format.codec.decode import decode_frame, decode_unverified
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.framing import walk
from seglog_format.codec.reference import declared
from seglog_format.engine import Engine
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.lines.logs import RecordLines, batch_line
from seglog_format.lines.options import LineOptions
from seglog_format.lines.rebuild import LineReader, rebuilt_batch
from seglog_format.lines.sources import Source, SourceKind
from seglog_format.log.scanning import bytes_for
from seglog_format.log.transactions import Transactions
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, Frame, Record, RecordBatch, Tail, TailKind
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.segment_scan import side_files_of

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

OPTIONS: Final = LineOptions(bytes_as="hex", digest_over=MAX_BYTES_ON_WIRE, raw=True, decode=True)
NO_TOPIC: Final = ""
TAIL_CLASSES: Final = {TailKind.ZEROS: "zeros", TailKind.PARTIAL: "partial", TailKind.TRAILING: "partial"}
SOUND_LIMIT: Final = 1 << 22
TEXT_NUMBERS: Final = LONG | {"offsetDelta"}


def decode(request: Json, engine: Engine = Engine.REFERENCE) -> Json:
    """Return every batch with its records, up to the end or to the first refused one."""
    data = bytes_for(engine, bytes.fromhex(request["data"]))
    options = request.get("options", {})
    checks_crc, limit = options.get("crc", True), options.get("limit", DEFAULT_OUTPUT_LIMIT)
    topic = options.get("topic", NO_TOPIC)
    batches: list[Json] = []
    frames = walk(data)
    try:
        for frame in frames:
            batches.append(batch_of(_decoded(frame, limit, checks_crc=checks_crc), topic))  # noqa: PERF401 - kept when one is refused
    except FormatError as error:
        return {**rejection(error), "batches": batches}
    return {"ok": True, "batches": batches, "consumed": frames.position, "tail": _tail(frames.tail)}


def sound_batches(request: Json) -> list[Json]:
    """Return the batches that can be read separately, as far as sizes lead from one to the next."""
    batches = []
    try:
        for frame in walk(declared(bytes.fromhex(request["data"]))):
            with contextlib.suppress(FormatError):
                batches.append(batch_of(_decoded(frame, SOUND_LIMIT, checks_crc=True)))
    except FormatError:
        return batches
    return batches


def _decoded(frame: Frame, limit: int, *, checks_crc: bool) -> RecordBatch:
    read = decode_frame if checks_crc else decode_unverified
    return read(frame, at=Location("", frame.position), limit=limit)


def _tail(tail: Tail) -> Json | None:
    return None if tail.kind is TailKind.NONE else {"class": TAIL_CLASSES[tail.kind], "at": tail.position}


def batch_of(batch: RecordBatch, topic: str = NO_TOPIC) -> Json:
    """Return one batch of an answer; for Kafka's own topics, with the decoded contents of records."""
    line = batch_line("", batch.position, batch.header)
    line["baseOffset"] = batch.base_offset
    return {**wire(line), "records": records_of(batch, topic)}


def records_of(batch: RecordBatch, topic: str = NO_TOPIC) -> list[Json]:
    """Return the records of a batch."""
    return [_record(line) for line in _lines(topic).of(batch)]


@cache
def _lines(topic: str) -> RecordLines:
    source = Source(Path(f"{topic}-0" if topic else "", "00000000000000000000.log"), "data", SourceKind.LOG)
    return RecordLines(source, OPTIONS)


def _record(line: Json) -> Json:
    record = wire(line)
    del record["position"]
    if "control" not in record:
        del record["decoded"]
        record |= {} if line["decoded"] is None else {"decoded": _reported(line["decoded"])}
    if "control" in record:
        record["invalid"] = requirement_in(record["invalid"]) if "invalid" in record else None
    return record


def _reported(decoded: Json) -> Json:
    """Return the decoded contents of a record of one of Kafka's own topics; empty if they are invalid."""
    fields = {name: _as_text(value) for name, value in decoded.items() if name not in {"type", "error"}}
    return {"kind": decoded.get("type"), **fields}


def _as_text(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value with numbers as decimal strings."""
    match value:
        case bool() | None:
            return value
        case int():
            return str(value)
        case dict():
            return {name: _as_text(item) for name, item in value.items()}
        case list():
            return [_as_text(item) for item in value]
        case _:
            return value


def encode(request: Json, engine: Engine = Engine.AUTO) -> Json:
    """Return the bytes of batches; on request only of such that the library also builds from records."""
    is_strict = request.get("options", {}).get("strict", False)
    pieces = []
    try:
        for number, batch in enumerate(request["batches"], 1):
            line = _with_numbers({"isValid": True, "partitionLeaderEpoch": -1, **batch})
            records = [LineReader(number, _with_numbers({"isValid": True, **one}), "hex") for one in batch["records"]]
            rebuilt = rebuilt_batch(LineReader(number, line, "hex"), records)
            if is_strict:
                found = [one for one in rebuilt.records if isinstance(one, Record)]
                build_batch(found, base_offset=rebuilt.base_offset, keeps_offsets=True)
            pieces.append(encode_batch(rebuilt, engine=engine))
    except (UsageError, FormatError) as error:
        return rejection(error)
    return {"ok": True, "data": b"".join(pieces).hex()}


def _with_numbers(line: Json) -> Json:
    return {
        name: int(value) if name in TEXT_NUMBERS and isinstance(value, str) else value for name, value in line.items()
    }


def index(request: Json, engine: Engine) -> Json:
    """Return the indexes of a log, as recovery builds them."""
    data = bytes_for(engine, bytes.fromhex(request["data"]))
    interval = request.get("indexIntervalBytes")
    settings = IndexSettings() if interval is None else IndexSettings(int(interval))
    try:
        found = side_files_of(data, int(request.get("baseOffset", 0)), settings, transactions=Transactions())
    except FormatError as error:
        return rejection(error)
    files = {".index": found.offset_index.hex(), ".timeindex": found.time_index.hex()}
    if found.transaction_index:
        files[".txnindex"] = found.transaction_index.hex()
    return {"ok": True, "files": files}
