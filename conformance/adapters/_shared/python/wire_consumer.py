"""What consumers in Python have in common that fetch a case from the endpoint of the suite.

A request has a `place`: where to connect, a topic of one partition, and a file that appears when the client has asked
for what follows the last record, or for the same offset again and again. What it hands out after that was in its
buffers, so that an empty answer then is the end.
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
"""For how long, and up to how many more errors, a client is polled after its first one."""

MAX_SIZE = 1 << 26
"""Bytes of a fetch: any case comes whole."""

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
"""What every client here can do and show: it hides batches, control records and the bytes of its header keys."""


def answered(
    request: dict[str, Any], poll: Callable[[], list[dict[str, Any]]], position: Callable[[], int]
) -> dict[str, Any]:
    """Return the answer to ``decode``; where a case asks for it, with what the client does after its first error.

    Args:
        request: with a place.
        poll: gives the records that there are after a short wait.
        position: the offset at which the client says that it stands.
    """
    answer = decoded(consumed(request, poll))
    if "reject" in answer and request["options"].get("afterError"):
        records = list(went_on(Path(request["place"]["ended"]), poll))
        answer["after"] = {"records": records, "position": str(position())}
    return answer


def went_on(ended: Path, poll: Callable[[], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the records that are handed out after an error, until there are more errors, or nothing comes."""
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
    """Yield records as they are handed out, each time as one batch.

    Args:
        request: with a place.
        poll: gives the records that there are after a short wait.
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
    """Tell whether checksums are to be verified."""
    return bool(request.get("options", {}).get("crc", True))
