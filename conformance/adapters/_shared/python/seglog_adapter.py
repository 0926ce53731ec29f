"""Shared parts of adapters in Python: the line protocol, the names, and the exceptions that are refusals.

An adapter gives `serve` its description and one function for each operation. A function that decodes is a generator of
batches: the batches delivered before a refusal are then known. Standard output is reserved for the protocol before the
library is loaded; output of the library goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_TYPES = {None: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
ADAPTERS = str(Path(__file__).resolve().parent.parent.parent)
GZIP_ERRORS = ["zlib.error", "gzip.BadGzipFile", "builtins.EOFError"]
"""Errors by which Python's own `gzip` refuses a stream; `EOFError` says that it is cut."""
CLASSES = (
    ("crc", "crc"),
    ("checksum", "crc"),
    ("codec", "compression"),
    ("compress", "compression"),
    ("snappy", "compression"),
    ("lz4", "compression"),
    ("gzip", "compression"),
    ("zstd", "compression"),
    ("varint", "varint"),
    ("number of", "count"),
    ("magic", "magic"),
    ("buffer", "length"),
    ("size", "length"),
    ("length", "length"),
)

_lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


class SkipError(Exception):
    """The library has no interface for this request."""


class RefusedError(Exception):
    """The library refuses the bytes without an exception.

    Args:
        kind: class of the refusal.
        message: message of the refusal.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def hexed(data: bytes | bytearray | memoryview | None) -> str | None:
    """Return bytes in the format of the protocol."""
    return None if data is None else bytes(data).hex()


def unhexed(text: str | None) -> bytes | None:
    """Return the bytes of a protocol value."""
    return None if text is None else bytes.fromhex(text)


def header_pair(pair: tuple[str | bytes, bytes | None]) -> list[str | None]:
    """Return a header, whose key libraries return as text."""
    key, value = pair
    return [hexed(key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key), hexed(value)]


def why_unencodable(batch: dict[str, Any]) -> str | None:
    """Return a property that producers never write, and their encoders do not support; None if there is none."""
    last = batch["records"][-1]["offset"] if batch["records"] else batch.get("baseOffset")
    for wanted, reason in (
        (batch.get("isControl"), "control batches"),
        (batch.get("timestampType") == "LogAppendTime", "time of the append"),
        (batch.get("deleteHorizonMs") is not None, "delete horizons"),
        (not batch["records"], "empty batches"),
        (str(batch.get("lastOffset", last)) != str(last), "last offset without a record"),
    ):
        if wanted:
            return f"its encoder knows no {reason}"
    return None


def as_stored(data: bytes | bytearray, batch: dict[str, Any]) -> bytes:
    """Return a batch with base offset and leader epoch, which a broker sets after encoding; no checksum covers them."""
    base = int(batch.get("baseOffset") or 0).to_bytes(8, "big", signed=True)
    epoch = int(batch.get("partitionLeaderEpoch", -1)).to_bytes(4, "big", signed=True)
    return base + bytes(data[8:12]) + epoch + bytes(data[16:])


def is_from_library(error: BaseException) -> bool:
    """Return whether a frame outside the adapters raised the exception; else the adapter itself is at fault."""
    frame = error.__traceback__
    while frame is not None:
        if not frame.tb_frame.f_code.co_filename.startswith(ADAPTERS):
            return True
        frame = frame.tb_next
    return False


def reject(error: BaseException) -> dict[str, Any]:
    """Return a refusal; its class is guessed from the message, and only informative."""
    text = f"{type(error).__name__}: {error}"
    kind = next((name for word, name in CLASSES if word in text.lower()), "other")
    if isinstance(error, RefusedError):
        return {"class": error.kind, "message": text[:300]}
    return {"class": kind, "message": text[:300], "error": f"{type(error).__module__}.{type(error).__qualname__}"}


def decoded(batches: Iterator[dict[str, Any]], end: Callable[[], dict[str, Any]] = dict) -> dict[str, Any]:
    """Return the answer to ``decode``: the batches of a generator until it ends or refuses."""
    delivered: list[dict[str, Any]] = []
    try:
        delivered.extend(iter(batches.__next__, None))
    except StopIteration:
        return {"ok": True, "batches": delivered, **end()}
    except Exception as error:
        if isinstance(error, SkipError) or not (isinstance(error, RefusedError) or is_from_library(error)):
            raise
        return {"ok": False, "reject": reject(error), "batches": delivered}
    return {"ok": True, "batches": delivered, **end()}


def answered(operation: Callable[[dict[str, Any]], dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, also for an exception."""
    try:
        return operation(request)
    except SkipError as skip:
        return {"skip": {"reason": str(skip)}}
    except Exception as error:  # noqa: BLE001 - every exception of a library is a refusal
        if isinstance(error, RefusedError) or is_from_library(error):
            return {"ok": False, "reject": reject(error)}
        return {"error": {"message": f"{type(error).__name__}: {error}"}}


def serve(
    implementation: dict[str, str],
    features: dict[str, Any],
    **operations: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Answer requests until the input ends.

    Args:
        implementation: name, version, language and so on.
        features: features of the library, and the data that it reports.
        operations: operations by name.
    """
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "stop":
            break
        if request["op"] == "hello":
            answer = {"ok": True, "protocol": 1, "implementation": implementation}
            answer.update({"ops": list(operations), "features": features})
        elif request["op"] in operations:
            answer = answered(operations[request["op"]], request)
        else:
            answer = {"skip": {"feature": f"op:{request['op']}"}}
        _lines.write(json.dumps({"seq": request["seq"], **answer}, separators=(",", ":")) + "\n")
        _lines.flush()
