"""Schemas that are large, deep, circular or wrong, by kinds, and values for them; and a good schema of each kind."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto

DEEP = 100_000
MANY = 40


def nested_types(depth: int) -> str:
    return '{"type": "array", "items": ' * depth + '"int"' + "}" * depth


def doubled(last: object) -> str:
    """Return a record of two records, each of two others and so on: few names stand for 2**40 fields."""
    schema: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": last}]}
    for number in range(1, MANY):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{number - 1}"}]
        schema = {"type": "record", "name": f"R{number}", "fields": fields}
    return json.dumps(schema)


def chained(count: int) -> str:
    """Return a union of records each of which has the next: deep by names, and flat as text."""
    first = [{"type": "record", "name": f"R{count}", "fields": [{"name": "a", "type": "int"}]}]
    rest = [
        {"type": "record", "name": f"R{number}", "fields": [{"name": "a", "type": f"R{number + 1}"}]}
        for number in range(count - 1, -1, -1)
    ]
    return json.dumps([*first, *rest])


def with_default(kind: object, default: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind, "default": default}]})


def fields_of(count: int, kind: object = "null") -> list[dict[str, Any]]:
    return [{"name": f"f{number}", "type": kind, "default": None} for number in range(count)]


WIDE = {"type": "record", "name": "W", "fields": fields_of(5_000)}
AVRO = {
    "not JSON": "{",
    "a number": "7",
    "no type": "{}",
    "deep brackets": "[" * DEEP,
    "deep objects": '{"type": ' * DEEP,
    "deep arrays": nested_types(500),
    "very deep arrays": nested_types(DEEP),
    "doubled records": doubled("null"),
    "doubled records of numbers": doubled("int"),
    "doubled lists": doubled({"type": "array", "items": "int"}),
    "chained records": chained(300),
    "long chain of records": chained(5_000),
    "record of itself": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "R"}]}',
    "record of itself by default": (
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["R", "null"], "default": {}}]}'
    ),
    "no fields": '{"type": "record", "name": "R", "fields": []}',
    "fields that are none": '{"type": "record", "name": "R", "fields": [7]}',
    "fields of the same name": (
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}'
    ),
    "name with slashes": '{"type": "record", "name": "../../../tmp/R", "fields": [{"name": "/", "type": "int"}]}',
    "name of half a character": '{"type": "record", "name": "R", "fields": [{"name": "\\ud800", "type": "int"}]}',
    "name of nothing": '{"type": "record", "name": "", "fields": []}',
    "symbols that are none": '{"type": "enum", "name": "E", "symbols": [1, null]}',
    "symbols of half a character": '{"type": "enum", "name": "E", "symbols": ["\\ud800"]}',
    "no symbols": '{"type": "enum", "name": "E"}',
    "empty union": "[]",
    "union of nothing": '["null"]',
    "union of unions": '[["int"], ["long"]]',
    "union of the same": '["int", "int"]',
    "wide union": json.dumps([{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(20_000)]),
    "wide record": json.dumps({"type": "record", "name": "R", "fields": fields_of(100_000)}),
    "list of wide records": json.dumps({"type": "array", "items": WIDE}),
    "fixed of no bytes": '{"type": "fixed", "name": "F", "size": 0}',
    "fixed of less": '{"type": "fixed", "name": "F", "size": -1}',
    "fixed of much": '{"type": "fixed", "name": "F", "size": 1000000000}',
    "fixed of too much": '{"type": "fixed", "name": "F", "size": 1000000000000000000000}',
    "precision of less": '{"type": "bytes", "logicalType": "decimal", "precision": -1}',
    "precision of much": '{"type": "bytes", "logicalType": "decimal", "precision": 1000000}',
    "precision of text": '{"type": "bytes", "logicalType": "decimal", "precision": "x"}',
    "logical type of a list": '{"type": "int", "logicalType": ["date"]}',
    "default of another type": with_default("int", "x"),
    "default without a branch": with_default(["null", "int"], "x"),
    "large default": with_default("string", "x" * 1_000_000),
    "default of many": with_default({"type": "array", "items": "int"}, [1] * 300_000),
    "default of half a character": with_default("string", "\ud800"),
    "aliases that are none": '{"type": "record", "name": "R", "fields": [], "aliases": 7}',
}


def doubled_references(keyword: str) -> str:
    """Return definitions that refer twice to the next: few of them stand for 2**40 checks."""
    names = [f"d{number}" for number in range(MANY)]
    definitions: dict[str, Any] = {
        name: {keyword: [{"$ref": f"#/definitions/{following}"}] * 2} for name, following in pairwise(names)
    }
    definitions[names[-1]] = {"type": ["string", "object", "array"]}
    return json.dumps({"$ref": "#/definitions/d0", "definitions": definitions})


def doubled_properties() -> str:
    names = [f"d{number}" for number in range(MANY)]
    definitions: dict[str, Any] = {
        name: {"type": "object", "properties": {each: {"$ref": f"#/definitions/{following}"} for each in "ab"}}
        for name, following in pairwise(names)
    }
    return json.dumps({"$ref": "#/definitions/d0", "definitions": {**definitions, names[-1]: {"type": "string"}}})


BOMB = "^(a+)+$"
PROPERTY = {"a" * 40 + "!": 1}
JSON_SCHEMA = {
    "not JSON": "{",
    "a number": "7",
    "deep brackets": "[" * DEEP,
    "deep objects": '{"not": ' * 500 + "{}" + "}" * 500,
    "pattern": json.dumps({"properties": {"s": {"type": "string", "pattern": BOMB}}}),
    "pattern of properties": json.dumps({"patternProperties": {BOMB: {}}}),
    "pattern of other properties": json.dumps({"patternProperties": {BOMB: {}}, "additionalProperties": False}),
    "pattern of a part with a dialect of its own": json.dumps(
        {"properties": {"s": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": BOMB}}}
    ),
    "pattern of names": json.dumps({"propertyNames": {"pattern": BOMB}}),
    "pattern of unevaluated properties": json.dumps(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "patternProperties": {BOMB: {}},
            "unevaluatedProperties": False,
        }
    ),
    "pattern that is none": json.dumps({"properties": {"s": {"pattern": "("}}}),
    "allOf": doubled_references("allOf"),
    "anyOf": doubled_references("anyOf"),
    "oneOf": doubled_references("oneOf"),
    "properties": doubled_properties(),
    "reference to itself": '{"$ref": "#"}',
    "circle of references": json.dumps(
        {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}
    ),
    "reference to nothing": '{"$ref": "#/definitions/none"}',
    "reference to a file": '{"$ref": "file:///etc/passwd"}',
    "reference to a server": '{"$ref": "http://127.0.0.1:1/x.json"}',
    "reference that is none": '{"$ref": 7}',
    "type that is none": '{"type": "strung"}',
    "type of an object": '{"type": {"a": 1}}',
    "properties of a list": '{"type": "object", "properties": [1]}',
    "properties of half a character": '{"type": "object", "properties": {"\\ud800": {"type": "string"}}}',
    "property of no name": '{"type": "object", "properties": {"": {"type": "string"}, "a.b": {"type": "string"}}}',
    "dialect that is none": '{"$schema": "x:y", "type": "object"}',
    "dialect of a list": '{"$schema": [], "type": "object"}',
    "many values": json.dumps({"properties": {"s": {"enum": [[number] for number in range(50_000)]}}}),
    "many alternatives": json.dumps({"properties": {"s": {"oneOf": [{"type": "string"}] * 50_000}}}),
    "multiple of nothing": '{"properties": {"n": {"multipleOf": 0}}}',
    "multiple of little": '{"properties": {"n": {"multipleOf": 1e-300}}}',
    "length that is none": '{"properties": {"s": {"minLength": "x"}}}',
    "items that are the same": '{"properties": {"l": {"uniqueItems": true}}}',
}
JSON_VALUE = {"s": "a" * 40 + "!", "n": 1e300, "l": [{}] * 3_000 + [1], **PROPERTY}


def descriptor(**fields: Any) -> str:  # noqa: ANN401 - fields of descriptors
    made = FileDescriptorProto(name="value.proto", syntax="proto3", **fields)
    return base64.b64encode(made.SerializeToString()).decode()


def message(name: str, *types: str, label: int = 1) -> dict[str, Any]:
    fields = [
        {"name": f"f{number}", "number": number + 1, "label": label, "type": 11, "type_name": f".{each}"}
        for number, each in enumerate(types)
    ]
    return {"name": name, "field": fields}


def scalars(name: str, *names: str) -> dict[str, Any]:
    return {
        "name": name,
        "field": [{"name": each, "number": number + 1, "label": 1, "type": 9} for number, each in enumerate(names)],
    }


def doubled_messages(label: int = 1) -> list[dict[str, Any]]:
    made = [message(f"M{number}", *[f"M{number + 1}"] * 2, label=label) for number in range(MANY)]
    return [*made, scalars(f"M{MANY}", "a")]


PROTOBUF = {
    "not a schema": "{",
    "no message": 'syntax = "proto3";',
    "deep messages": 'syntax = "proto3";' + "message M {" * 1_000 + "}" * 1_000,
    "very deep messages": 'syntax = "proto3";' + "message M {" * DEEP + "}" * DEEP,
    "import of a file": 'syntax = "proto3"; import "../../../../../../etc/passwd"; message M {}',
    "import of a path": 'syntax = "proto3"; import "/etc/passwd"; message M {}',
    "import of itself": 'syntax = "proto3"; import "seglog-schema.proto"; message M {}',
    "half a character": 'syntax = "proto3"; message M { string a = 1 [json_name = "\ud800"]; }',
    "many messages": 'syntax = "proto3";' + "".join(f"message M{number} {{}}" for number in range(20_000)),
    "many fields": descriptor(message_type=[scalars("M", *(f"f{number}" for number in range(20_000)))]),
    "doubled messages": descriptor(message_type=doubled_messages()),
    "doubled lists": descriptor(message_type=doubled_messages(3)),
    "chained messages": descriptor(
        message_type=[*(message(f"M{number}", f"M{number + 1}") for number in range(3_000)), scalars("M3000", "a")]
    ),
    "names of methods": descriptor(
        message_type=[scalars("M", "HasField", "FromString", "SerializeToString", "DESCRIPTOR", "from", "__class__")]
    ),
    "message without a name": descriptor(message_type=[scalars("", "a")]),
    "name with slashes": descriptor(message_type=[scalars("../M", "../a")]),
    "fields of the same number": descriptor(
        message_type=[{"name": "M", "field": [{"name": each, "number": 1, "label": 1, "type": 9} for each in "ab"]}]
    ),
    "type that is none": descriptor(message_type=[message("M", "Nowhere")]),
    "import of nothing": descriptor(dependency=["nowhere.proto"], message_type=[scalars("M", "a")]),
    "import of any": (
        'syntax = "proto3"; import "google/protobuf/any.proto"; message M { google.protobuf.Any a = 1; M b = 2; }'
    ),
}
HOSTILE = {"avro": AVRO, "json-schema": JSON_SCHEMA, "protobuf": PROTOBUF}
CASES = [(kind, name) for kind, schemas in HOSTILE.items() for name in schemas]

GOOD = {
    "avro": '{"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "string"], "default": null}]}',
    "json-schema": '{"type": "object", "properties": {"x": {"type": "string"}}}',
    "protobuf": 'syntax = "proto3"; message M { optional string x = 1; }',
}
GOOD_VALUES = {"avro": b"\x02\x02a", "json-schema": b'{"x": "a"}', "protobuf": b"\x00\x0a\x01a"}
HOSTILE_VALUES = {
    "avro": [b"", b"\x00", b"\x02\x02a", b"\x7f" * 20, b"\x02" * 1_000, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"],
    "json-schema": [json.dumps(JSON_VALUE).encode(), b"{}", b"[" * DEEP, b'"\\ud800"', b"1" * 10_000, b"NaN"],
    "protobuf": [b"", b"\x00", b"\x00\x0a\x01a", b"\x02\xfe\xff\xff\xff\x0f", b"\x00" + b"\x0a\x00" * 1_000, b"\xff"],
}
