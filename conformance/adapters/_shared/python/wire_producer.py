"""Shared parts of producers in Python that send the records of a case to the endpoint of the suite.

The answer only says that all went well: the endpoint sees and reports the sent bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from seglog_adapter import unhexed

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_REQUEST_SIZE = 1 << 26
"""Size of a batch or a request in bytes: every case fits into one."""
LINGER_MS = 250
"""Time for which a client waits for more records, if it cannot be flushed: on a busy machine the next record may come
late, and would be a second batch."""
WAIT_SECONDS = 8
"""Time limit for the acknowledgement."""

IDEMPOTENT = "idempotent"
TRANSACTIONAL = "transactional"
"""Value in a place that asks for a transactional producer; by default it has no producer id."""


class Message(NamedTuple):
    """A record in the format for producers."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]


def produced(request: dict[str, Any], send: Callable[[str | None, list[Message]], None]) -> dict[str, Any]:
    """Return the answer to ``encode``.

    Args:
        request: request with batches and a place.
        send: sends the records of a batch under a codec, None for none, and returns when they are acknowledged.
    """
    for batch in request["batches"]:
        codec = batch.get("codec", "none")
        send(None if codec == "none" else codec, [message_of(record) for record in batch["records"]])
    return {"ok": True}


def message_of(record: dict[str, Any]) -> Message:
    """Return a record of a request."""
    headers = [(bytes.fromhex(key).decode(), unhexed(value)) for key, value in record.get("headers", [])]
    timestamp = int(record.get("timestamp", -1))
    return Message(unhexed(record.get("key")), unhexed(record.get("value")), timestamp, headers)
