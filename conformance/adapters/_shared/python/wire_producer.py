"""What producers in Python have in common that send the records of a case to the endpoint of the suite.

The answer tells no more than that all went well: what was sent is seen, and told, by the endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from seglog_adapter import unhexed

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_REQUEST_SIZE = 1 << 26
"""Bytes of a batch or a request: any case goes at once."""
LINGER_MS = 250
"""So long a client waits for more records, where it cannot be told that there are no more: on a busy machine the next
one may take a while to come, and would be a second batch."""
WAIT_SECONDS = 8
"""So long it waits for the answer to what it sent."""

IDEMPOTENT = "idempotent"
TRANSACTIONAL = "transactional"
"""What a place may say of the producer it wants; else it has no producer id."""


class Message(NamedTuple):
    """A record as a producer takes it."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]


def produced(request: dict[str, Any], send: Callable[[str | None, list[Message]], None]) -> dict[str, Any]:
    """Return the answer to ``encode``.

    Args:
        request: with batches and a place.
        send: has the records of a batch sent under a codec, None for none, and returns when they have arrived.
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
