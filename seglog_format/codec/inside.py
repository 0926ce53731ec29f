"""Names of this package for proofs and generators: messages in Kafka's own topics and files, one by one.

`seglog_format.decode_batch` decodes whole entries, and ``seglog dump --decode`` shows the messages in them.
"""

from __future__ import annotations

from seglog_format.codec.compression import decompress
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import (
    decode_application_record,
    decode_metadata_record,
    encode_metadata_record,
    newest_version,
)
from seglog_format.codec.protocol import decode_message, encode_message
from seglog_format.codec.side_files import decode_producer_snapshot

__all__ = [
    "decode_application_record",
    "decode_control_record",
    "decode_message",
    "decode_metadata_record",
    "decode_producer_snapshot",
    "decompress",
    "encode_message",
    "encode_metadata_record",
    "newest_version",
]
