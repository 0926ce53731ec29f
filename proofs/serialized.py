"""Topics with values of stock serializers, each of three versions of a schema, and the registry's topic.

A fixture has them as a stock broker and a registry left them.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from seglog_conformance.toolchains import child_processes

from proofs.harness import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.serialization import SerializationContext

REGISTRY = ROOT / "fixtures" / "registry"
KINDS = ("avro", "json-schema", "protobuf")
TIMES = 7
"""How often each value is sent."""

AVRO = [
    {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "int"}]},
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        ],
    },
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
            {"name": "id", "type": "long"},
            {"name": "title", "type": ["null", "string"], "default": None, "aliases": ["name"]},
            {
                "name": "items",
                "type": {
                    "type": "array",
                    "items": {"type": "record", "name": "Item", "fields": [{"name": "price", "type": "double"}]},
                },
                "default": [],
            },
            {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
            {
                "name": "state",
                "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"], "default": "NEW"},
                "default": "NEW",
            },
            {"name": "raw", "type": ["null", "bytes"], "default": None},
        ],
    },
]
AVRO_VALUES: list[dict[str, Any]] = [
    {"id": 1},
    {"id": 2**40, "name": "zwei", "at": 1_700_000_000_123},
    {
        "at": 1,
        "id": -3,
        "title": "drei \N{SNOWMAN}",
        "items": [{"price": 0.1}, {"price": -1e300}],
        "tags": {"a": 1, "b": -(2**31)},
        "state": "PAID",
        "raw": b"\x00\xff",
    },
]
AVRO_ROWS: list[dict[str, Any]] = [
    {"at": 0, "id": 1, "title": None, "items": [], "tags": {}, "state": "NEW", "raw": None},
    {"at": 1_700_000_000_123, "id": 2**40, "title": "zwei", "items": [], "tags": {}, "state": "NEW", "raw": None},
    AVRO_VALUES[2],
]

JSON_SCHEMAS = [
    {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
        "required": ["id"],
    },
    {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "paid": {"type": "boolean"},
            "items": {"type": "array", "items": {"$ref": "#/definitions/item"}},
            "any": {},
        },
        "required": ["id"],
        "definitions": {"item": {"type": "object", "properties": {"price": {"type": "number"}}}},
    },
]
JSON_VALUES: list[dict[str, Any]] = [
    {"id": 1},
    {"id": 2**53, "name": "zwei"},
    {"id": -3, "name": None, "paid": True, "items": [{"price": 0.1}, {"price": 2}], "any": {"x": [1]}},
]
JSON_ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": None, "paid": None, "items": None, "any": None},
    {"id": 2**53, "name": "zwei", "paid": None, "items": None, "any": None},
    {"id": -3, "name": None, "paid": True, "items": [{"price": 0.1}, {"price": 2.0}], "any": '{"x":[1]}'},
]

PROTOS = [
    'syntax = "proto3"; package shop; message Order { int32 id = 1; string name = 2; }',
    'syntax = "proto3"; package shop; message Order { int64 id = 1; string name = 2; repeated double prices = 3; }',
    """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
    message Order {
      int64 id = 1; string title = 2; repeated double prices = 3;
      State state = 4; google.protobuf.Timestamp at = 5; map<string, int32> tags = 6;
      optional bytes raw = 7; uint64 big = 8; oneof how { string card = 9; bool cash = 10; }
    }
    enum State { NEW = 0; PAID = 1; }""",
]
PROTO_VALUES: list[dict[str, Any]] = [
    {"id": 1, "name": "eins"},
    {"id": 2**40, "name": "zwei", "prices": [0.1, -2.5]},
    {
        "id": -3,
        "title": "drei",
        "state": "PAID",
        "at": "2024-02-29T12:00:00.000000007Z",
        "tags": {"a": 1},
        "raw": "AP8=",
        "big": 2**64 - 1,
        "cash": True,
    },
]
ABSENT = {"state": "NEW", "at": None, "tags": {}, "raw": None, "big": 0, "card": None, "cash": None}
PROTO_ROWS: list[dict[str, Any]] = [
    {"id": 1, "title": "eins", "prices": [], **ABSENT},
    {"id": 2**40, "title": "zwei", "prices": [0.1, -2.5], **ABSENT},
    {
        "id": -3,
        "title": "drei",
        "prices": [],
        "state": "PAID",
        "at": {"seconds": 1_709_208_000, "nanos": 7},
        "tags": {"a": 1},
        "raw": b"\x00\xff",
        "big": 2**64 - 1,
        "card": None,
        "cash": True,
    },
]
ROWS = {"avro": AVRO_ROWS, "json-schema": JSON_ROWS, "protobuf": PROTO_ROWS}
"""What the columns have, by the newest schema, for each of the values."""

Serialize = "Callable[[str, int], bytes]"


def expected_rows(kind: str) -> list[dict[str, Any]]:
    """Return the values of a topic's column, by their offsets."""
    return ROWS[kind] * TIMES


def message_class(text: str, imports: dict[str, str] | None = None) -> Any:  # noqa: ANN401 - made at run time
    """Return the class of the first message of a schema, as protoc makes it."""
    files = FileDescriptorSet.FromString(_compiled({**(imports or {}), "shop.proto": text})).file
    pool = DescriptorPool()
    for each in files:
        pool.AddSerializedFile(each.SerializeToString())
    found = pool.FindFileByName(files[-1].name)
    return GetMessageClass(next(iter(found.message_types_by_name.values())))


def _compiled(texts: dict[str, str]) -> bytes:
    """Return the descriptors of files, the last of which imports the others."""
    with tempfile.TemporaryDirectory(prefix="serialized-") as name:
        for file, text in texts.items():
            (Path(name) / file).write_text(text, encoding="utf-8")
        options = ["-I", name, "--include_imports", "-o", f"{name}/descriptors", list(texts)[-1]]
        child_processes.run([sys.executable, "-m", "grpc_tools.protoc", *options], directory=ROOT, check=True)
        return (Path(name) / "descriptors").read_bytes()


def serializers(kind: str, registry: SchemaRegistryClient) -> Iterator[Callable[[SerializationContext], bytes]]:
    """Yield a function for each version, which registers its schema and serializes its value."""
    if kind == "avro":
        for schema, value in zip(AVRO, AVRO_VALUES, strict=True):
            avro = AvroSerializer(registry, json.dumps(schema))
            yield lambda context, avro=avro, value=value: avro(value, context)
    elif kind == "json-schema":
        for schema, value in zip(JSON_SCHEMAS, JSON_VALUES, strict=True):
            with_schema = JSONSerializer(json.dumps(schema), registry)
            yield lambda context, with_schema=with_schema, value=value: with_schema(value, context)
    else:
        for text, value in zip(PROTOS, PROTO_VALUES, strict=True):
            made = message_class(text)
            protobuf = ProtobufSerializer(made, registry, {"use.deprecated.format": False})
            message = ParseDict(value, made())
            yield lambda context, protobuf=protobuf, message=message: protobuf(message, context)


def unpack_topics(directory: Path) -> None:
    """Make a log directory with the same topics as a stock broker left them, and `_schemas` as a real registry did.

    Args:
        directory: directory to create.
    """
    with tarfile.open(REGISTRY / "files.tar.gz") as archive:
        archive.extractall(directory, filter="data")


def registry_says() -> dict[str, Any]:
    """Return that registry's answers: the newest schema of each subject, the schema of each id."""
    found: dict[str, Any] = json.loads((REGISTRY / "registry.json").read_text("utf-8"))
    return found
