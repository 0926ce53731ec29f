"""What consumers in Python have in common that fetch a case from the endpoint of the suite.

A request has a `place`: where to connect, a topic of one partition, and a file that appears when the client has asked
for what follows the last record, or for the same offset again and again. What it hands out after that was in its
buffers, so that an empty answer then is the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_adapter import CODECS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_SECONDS = 0.02

MOST_SIZE = 1 << 26
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
}
"""What every client here can do and show: it hides batches, control records and the bytes of its header keys."""


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
