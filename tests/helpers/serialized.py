"""The topics of `proofs.serialized`, made anew by our server, with records of `_schemas` as they are documented."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext

from helpers.serving import serving
from proofs.serialized import KINDS, PROTOS, TIMES, serializers
from seglog_format import LogConfig, PartitionWriter
from seglog_format.serve.writing import Writers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def registry_records(
    registry: SchemaRegistryClient, texts: dict[str, list[str]]
) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the records of `_schemas` for all that was registered, in the form that the registry's serializer has.

    Args:
        registry: with the schemas.
        texts: what the registry stores for a subject's versions, where it does not keep what a client has sent: it
            turns descriptors of Protobuf into text.
    """
    yield b'{"keytype":"NOOP","magic":0}', None
    yield b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'
    for subject in registry.get_subjects():
        for version in registry.get_versions(subject):
            found = registry.get_version(subject, version)
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            value: dict[str, Any] = {"subject": subject, "version": version, "id": found.schema_id}
            if found.schema.schema_type != "AVRO":
                value["schemaType"] = found.schema.schema_type
            if found.schema.references:
                value["references"] = [
                    {"name": each.name, "subject": each.subject, "version": each.version}
                    for each in found.schema.references
                ]
            stored = texts.get(subject)
            value["schema"] = found.schema.schema_str if stored is None else stored[version - 1]
            yield _json(key), _json(value | {"deleted": False})


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def make_topics(directory: Path, *, has_text: bool = True) -> None:
    """Make a log directory with a topic ``orders-KIND`` for each kind and `_schemas`, through our server.

    Args:
        directory: to make.
        has_text: Protobuf schemas are stored as text, as a registry does; else as the client registers them.
    """
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    records = {f"orders-{kind}": list(_serialized(kind, registry)) for kind in KINDS}
    texts = {"orders-protobuf-value": PROTOS} if has_text else {}
    for topic in ("_schemas", *records):
        with PartitionWriter(directory / f"{topic}-0", LogConfig()) as writer:
            writer.become_leader(0)
    with serving(directory, writers=Writers()) as served:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{served.port}", "linger.ms": 5})
        for key, value in registry_records(registry, texts):
            producer.produce("_schemas", value, key, partition=0)
        for topic, values in records.items():
            for number, value in enumerate(values):
                producer.produce(topic, value, f"key {number}".encode(), partition=0)
        left = producer.flush(30)
        assert left == 0


def _serialized(kind: str, registry: SchemaRegistryClient) -> Iterator[bytes]:
    context = SerializationContext(f"orders-{kind}", MessageField.VALUE)
    made = list(serializers(kind, registry))
    for _ in range(TIMES):
        for serialize in made:
            yield serialize(context)
