"""Shared parts of consumers in Python that fetch a case from the endpoint of the suite.

A request has a `place`: the address, a topic of one partition, and a file that appears when the client has requested an
offset after the last record, or has repeated one offset. Records that it delivers later were in its buffers: an empty
poll then means the end.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_adapter import CODECS, decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.02
AFTER_SECONDS = 1.0
MAX_ERRORS = 3
"""Limits on polling after the first error: time in seconds, and further errors."""

MAX_SIZE = 1 << 26
"""Size of a fetch in bytes: every case fits into one."""

CONSUMER_FEATURES = {
    "magic": [0, 1, 2],
    "codec": list(CODECS),
    "crc": True,
    "control": "hidden",
    "headers": "ordered",
    "batchMeta": False,
    "bytesKeys": False,
    "partialTail": False,
    "afterError": True,
}
"""Features of every client here: it hides batches, control records and the bytes of its header keys."""


def answered(
    request: dict[str, Any], poll: Callable[[], list[dict[str, Any]]], position: Callable[[], int]
) -> dict[str, Any]:
    """Return the answer to ``decode``; if a case asks for it, with the client's behaviour after its first error.

    Args:
        request: request with a place.
        poll: returns the records that are available after a short wait.
        position: offset that the client reports as its position.
    """
    answer = decoded(consumed(request, poll))
    if "reject" in answer and request["options"].get("afterError"):
        records = list(went_on(Path(request["place"]["ended"]), poll))
        answer["after"] = {"records": records, "position": str(position())}
    return answer


def went_on(ended: Path, poll: Callable[[], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the records that are delivered after an error, until there are more errors, or no records."""
    error_count, end = 0, time.monotonic() + AFTER_SECONDS
    while error_count < MAX_ERRORS and time.monotonic() < end:
        is_ended = ended.exists()
        try:
            records = poll()
        except Exception:  # noqa: BLE001 - whatever the library raises is one more error
            error_count += 1
            continue
        yield from records
        if is_ended and not records:
            return


def consumed(request: dict[str, Any], poll: Callable[[], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the records of each poll, as one batch.

    Args:
        request: request with a place.
        poll: returns the records that are available after a short wait.
    """
    ended = Path(request["place"]["ended"])
    while True:
        is_ended = ended.exists()
        records = poll()
        if records:
            yield {"records": records}
        elif is_ended:
            return


def checks_crc(request: dict[str, Any]) -> bool:
    """Return whether checksums are to be verified."""
    return bool(request.get("options", {}).get("crc", True))
