"""The columnar engine as a testee: it delivers Arrow columns, which answers report as records.

The engine leaves unusual entries to the reference, and counts them, so a test can check that the engine reads most
entries itself. It reads logs, which deliver no offset twice: bytes whose offsets decrease are scanned in pieces.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.features import USUAL_RECORD_FIELDS
from seglog_conformance.protocol import PROTOCOL_VERSION
from seglog_conformance.reference.wire import rejection
from seglog_format import engine
from seglog_format.codec.decode import decode_frame, decompressed_bytes
from seglog_format.codec.framing import frame_at, walk
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.reading import delivered
from seglog_format.log.scanning import INT64_MIN, FallbackEntry
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, INT64_MAX, Frame, Tail
from seglog_format.scan_statistics import ScanStatistics
from seglog_format.storage.byte_source import MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.protocol import Json

COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
BATCH_ROWS: Final = 2**16
FEATURES: Final = {
    "magic": [0, 1, 2],
    "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
    "crc": True,
    "control": "hidden",
    "headers": "ordered",
    "batchMeta": False,
    "recordFields": list(USUAL_RECORD_FIELDS),
    "bytesKeys": True,
    "partialTail": False,
    "requirements": True,
    "limit": True,
}


class Stream(MemoryBytes):
    """Bytes that belong to no segment: they may hold any offset, in any order.

    Attributes:
        limit: largest decompressed size of an entry.
        fallback_count: number of entries left to the reference.
        file: the empty name of bytes without a file.
    """

    def __init__(self, data: memoryview, limit: int) -> None:
        super().__init__(data)
        self.limit = limit
        self.fallback_count = 0
        self.file = ""

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Return the lowest and highest allowed offset."""
        return 0, INT64_MAX

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:  # noqa: ARG002 - the order is free
        """Decode an entry by the reference; None at the end of the bytes.

        Raises:
            FormatError: the entry is damaged or refused.
        """
        frame = frame_at(self, position, self.size)
        if isinstance(frame, Tail):
            return None
        self.fallback_count += 1
        batch = decode_frame(frame, at=Location("", position), limit=self.limit)
        records = tuple(delivered(batch, INT64_MIN, INT64_MAX, None))
        return FallbackEntry(frame.header, records, frame.end, batch.last_offset)

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed content of an entry; None if it is damaged or exceeds the limit."""
        frame = frame_at(self, position, self.size)
        return decompressed_bytes(frame, limit=min(limit, self.limit)) if isinstance(frame, Frame) else None

    def end_of_damaged(self, position: int) -> int | None:  # noqa: ARG002 - the first one ends it all
        """Return None: reading ends at the first damaged entry."""
        return None


class Columnar:
    """Answers ``decode`` through `seglog_format.columnar`.

    Attributes:
        fallback_count: number of entries left to the reference, over all requests.
    """

    def __init__(self) -> None:
        self.fallback_count = 0

    def hello(self) -> Json:
        """Return the description of the engine."""
        implementation = {"name": "seglog-format, columnar", "version": version("seglog-format"), "language": "Python"}
        return {
            "ok": True,
            "protocol": PROTOCOL_VERSION,
            "implementation": implementation,
            "ops": ["decode"],
            "features": FEATURES,
        }

    def answer(self, request: Json) -> Json:
        """Return the answer to one request."""
        if request["op"] != "decode":
            return {"skip": {"feature": f"op:{request['op']}"}}
        options = request.get("options", {})
        if not options.get("crc", True):
            return {"skip": {"reason": "it always verifies checksums"}}
        data, records = memoryview(bytes.fromhex(request["data"])), list[Any]()
        if _ends_at_greatest(data):
            return {"skip": {"reason": "it reads ranges of offsets, and no range ends behind the greatest number"}}
        try:
            for piece in _ascending(data):
                stream = Stream(piece, options.get("limit", DEFAULT_OUTPUT_LIMIT))
                records.extend(_records(stream))
                self.fallback_count += stream.fallback_count
        except (FormatError, UsageError) as error:
            return {**rejection(error), "batches": [{"records": records}]}
        return {"ok": True, "batches": [{"records": records}]}


def _ends_at_greatest(data: memoryview) -> bool:
    """Return whether an entry ends at the greatest number of 64 bits, which no log has."""
    with suppress(FormatError):
        return any(frame.header.last_offset == INT64_MAX for frame in walk(data))
    return False


def _ascending(data: memoryview) -> Iterator[memoryview]:
    """Yield pieces in which offsets of entries increase; the last piece includes bytes that cannot be walked."""
    start, last_offset = 0, -1
    try:
        for frame in walk(data):
            if (frame.header.base_offset or 0) <= last_offset and frame.position > start:
                yield data[start : frame.position]
                start = frame.position
            last_offset = frame.header.last_offset
    except FormatError:
        pass
    yield data[start:]


def _records(stream: Stream) -> Iterator[Json]:
    request = engine.scan_request(
        COLUMNS,
        "binary",
        offsets=(INT64_MIN, INT64_MAX),
        timestamps_ms=(INT64_MIN, INT64_MAX),
        batch_rows=BATCH_ROWS,
        limit=stream.limit,
        aborted=(),
        on_corrupt=None,
        borders=None,
        statistics=ScanStatistics(),
    )
    for batch in engine.scan([(stream, engine.scan_start(0, -1, INT64_MIN))], request, 1, None):
        columns = (_plain(batch.column(name)) for name in COLUMNS)
        for row in zip(*columns, strict=True):
            yield _record(*row)


def _plain(column: Any) -> list[Any]:  # noqa: ANN401 - an Arrow array
    """Return times as milliseconds: Python's own types only cover the years 1 to 9999."""
    import pyarrow as pa  # noqa: PLC0415 - comes with the engine

    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


def _record(offset: int, timestamp_ms: int | None, key: bytes | None, value: bytes | None, headers: Any) -> Json:  # noqa: ANN401
    return {
        "offset": str(offset),
        "timestamp": str(-1 if timestamp_ms is None else timestamp_ms),
        "key": _hexed(key),
        "value": _hexed(value),
        "headers": [[_hexed(header["key"]), _hexed(header["value"])] for header in headers],
    }


def _hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
