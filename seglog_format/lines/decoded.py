"""Records of Kafka's own topics, decoded on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.application_records import decode_application_record
from seglog_format.errors import FormatError
from seglog_format.names import METADATA_TOPIC, METADATA_TOPICS, FileKind, parse_partition_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.lines.sources import Source

    ApplicationDecoder = Callable[[bytes | None, bytes | None], dict[str, object] | None]

MAX_DECODED_SIZE: Final = 16 * 2**20
"""Maximum bytes of key and value together: many times more than in records that brokers write into these topics."""


def topic_of(source: Source) -> str:
    """Return the topic of a file, by the name of its directory, or by its own name for a metadata snapshot."""
    if FileKind.METADATA_SNAPSHOT.value in source.path.name:
        return METADATA_TOPIC
    topic = directory_topic(source)
    return METADATA_TOPIC if topic in METADATA_TOPICS else topic


def directory_topic(source: Source) -> str:
    """Return the topic in the name of a file's directory; empty if it is not the name of a partition directory."""
    try:
        return parse_partition_directory(source.directory).topic
    except FormatError:
        return ""


def application_decoder(topic: str) -> ApplicationDecoder:
    """Return the decoder for key and value of a topic's records; it returns None if the topic is not one of Kafka's."""

    def decoded(key: bytes | None, value: bytes | None) -> dict[str, object] | None:
        if len(key or b"") + len(value or b"") > MAX_DECODED_SIZE:
            return {"error": f"key and value: expected at most {MAX_DECODED_SIZE} bytes"}
        return decode_application_record(topic, key, value)

    return decoded
