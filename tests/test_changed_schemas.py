"""Schemas and values that are changed at random give a value or a reason, whatever the libraries raise."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from helpers.hostile_schemas import BOMB, GOOD, GOOD_VALUES, HOSTILE_VALUES, PROTOBUF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seglog_format import value_decoder
from seglog_format.errors import UsageError
from seglog_format.values.decoder import TYPES, decoded
from seglog_format.values.schemas import Schemas, SchemaText

HEADER = b"\x00\x00\x00\x00\x01"
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(
        [
            *(
                "int",
                "long",
                "string",
                "bytes",
                "record",
                "enum",
                "fixed",
                "array",
                "map",
                "union",
                "R",
                "null",
                "float",
            ),
            *("date", "decimal", "uuid", "time-millis", "timestamp-micros", "#", "#/definitions/a", "object", "../x"),
            *("\ud800", "\x00", "a.b", "", "(a+)+$", BOMB),
        ]
    ),
)
KEYS = st.sampled_from(
    [
        *(
            "type",
            "name",
            "fields",
            "items",
            "values",
            "symbols",
            "size",
            "default",
            "logicalType",
            "precision",
            "scale",
        ),
        *("aliases", "namespace", "$ref", "properties", "patternProperties", "additionalProperties", "oneOf", "allOf"),
        *("enum", "const", "pattern", "definitions", "$schema", "uniqueItems", "required", "not", "if", "multipleOf"),
    ]
)
SCHEMAS = st.recursive(
    ATOMS,
    lambda inside: st.one_of(st.lists(inside, max_size=4), st.dictionaries(KEYS, inside, max_size=5)),
    max_leaves=20,
)
SEEDS: dict[str, Any] = {
    "avro": json.loads(GOOD["avro"]),
    "json-schema": {**json.loads(GOOD["json-schema"]), "definitions": {"a": {"$ref": "#"}}},
}


@st.composite
def changed(draw: st.DrawFn, seed: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a schema with some parts replaced."""
    if draw(st.integers(0, 5)) == 0:
        return draw(SCHEMAS)
    if isinstance(seed, dict):
        found = {name: draw(changed(each)) for name, each in seed.items()}
        return found | draw(st.dictionaries(KEYS, SCHEMAS, max_size=1))
    return [draw(changed(each)) for each in seed] if isinstance(seed, list) else seed


class Registry(Schemas):
    """A registry with one schema."""

    def __init__(self, kind: str, schema: str) -> None:
        super().__init__()
        self._schema = SchemaText(TYPES[kind], schema)

    def by_id(self, id_: int) -> SchemaText | None:  # noqa: ARG002 - the same for each
        return self._schema


def require_bounded(kind: str, writer: str, reader: str, values: list[bytes]) -> None:
    """Decode values; require a value or a reason for each, or that the reader's schema is refused."""
    try:
        decoder = value_decoder(kind, schema=reader, schemas=Registry(kind, writer))
    except UsageError:
        return  # the reader's schema is refused
    column, failures = decoded(decoder, pa.array([HEADER + value for value in values], pa.binary()))
    assert len(column) == len(values)
    assert column.null_count >= len(failures)
    for failure in failures:
        failure.reason.encode()


ONCE = settings(max_examples=60, deadline=20_000, suppress_health_check=list(HealthCheck))


@ONCE
@given(data=st.data(), kind=st.sampled_from(sorted(SEEDS)))
def test_changed_schemas_give_values_or_reasons(data: st.DataObject, kind: str) -> None:
    schemas = [json.dumps(data.draw(changed(SEEDS[kind]))) for _ in range(2)]
    random_values = data.draw(st.lists(st.binary(max_size=40), max_size=3))
    values = [GOOD_VALUES[kind], *HOSTILE_VALUES[kind], *random_values]
    require_bounded(kind, schemas[0], schemas[1], values)
    require_bounded(kind, schemas[0], GOOD[kind], values)
    require_bounded(kind, GOOD[kind], schemas[1], values)


@ONCE
@given(data=st.data())
def test_changed_descriptors_give_values_or_reasons(data: st.DataObject) -> None:
    seed = base64.b64decode(data.draw(st.sampled_from([text for text in PROTOBUF.values() if text.startswith("Cg")])))
    found = bytearray(seed[:2_000])
    for position in data.draw(st.lists(st.integers(0, len(found) - 1), max_size=4)):
        found[position] = data.draw(st.integers(0, 255))
    text = base64.b64encode(found).decode()
    values = [*HOSTILE_VALUES["protobuf"], *data.draw(st.lists(st.binary(max_size=40), max_size=3))]
    require_bounded("protobuf", text, text, values)
