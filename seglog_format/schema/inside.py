"""Names of this package for proofs and generators: the messages in Kafka's own topics, and their declarations.

`seglog schema` prints the layouts of everything else.
"""

from __future__ import annotations

from seglog_format.schema.control_record import KRAFT_VALUES
from seglog_format.schema.coordinator_records import CODES, CONSUMER_PROTOCOL, COORDINATOR_TOPICS
from seglog_format.schema.fields import FORMAT_TYPES, Checked, type_name
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import TAGGED_FIELDS, MessageDefinition, declaration, message, rows

__all__ = [
    "CODES",
    "CONSUMER_PROTOCOL",
    "COORDINATOR_TOPICS",
    "FORMAT_TYPES",
    "FRAMED_TOPICS",
    "KRAFT_VALUES",
    "TAGGED_FIELDS",
    "Checked",
    "MessageDefinition",
    "declaration",
    "message",
    "rows",
    "type_name",
]
