"""Decoders of keys and values: by the wire format of Schema Registry, as text, or as records of Kafka's own topics.

A record of one of Kafka's own topics becomes a struct with a field for each type of record, of which one is not null.
"""

from __future__ import annotations

import base64
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa

from seglog_format.codec.coordinator_records import decode_coordinator_record, decode_metadata_record
from seglog_format.errors import FormatError, UndecodedRecordError, UsageError, WriteError
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import SIMPLE_TYPES, ArrayOf, Structure, table
from seglog_format.values.schema_decoder import SchemaDecoder, of_schema
from seglog_format.values.schemas import (
    KAFKA,
    KINDS,
    TIMES_AS,
    TYPED,
    TYPES,
    SchemaText,
    UndecodedError,
    id_and_rest,
    reason_for,
    schema_of_json,
)
from seglog_format.values.shape import CELL_SIZE, WORK, Shape, grown, list_of, struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from seglog_format.schema.protocol import Field, FieldType, MessageDefinition
    from seglog_format.values.schemas import Schemas

FIELD_SHAPES: Final = {
    "bool": Shape(pa.bool_()),
    "int8": Shape(pa.int32()),
    "int16": Shape(pa.int32()),
    "uint16": Shape(pa.int32()),
    "int32": Shape(pa.int32()),
    "uint32": Shape(pa.int64()),
    "int64": Shape(pa.int64()),
    "float64": Shape(pa.float64(), lambda value: float(value.strip('"')) if isinstance(value, str) else value),
    "uuid": Shape(pa.string()),
    "string": Shape(pa.string()),
    "bytes": Shape(pa.binary(), base64.b64decode),
}
"""Shapes by Kafka's types, of values as decoders give them for JSON; Iceberg has no integers of 8 and 16 bits."""
SCALARS: Final = {id(SIMPLE_TYPES[name]): shape for name, shape in FIELD_SHAPES.items()}
NEWEST: Final = table("cluster_metadata")["release"]
HEAD: Final = {"type": FIELD_SHAPES["string"], "version": FIELD_SHAPES["int16"]}


class KafkaDecoder:
    """Decodes the keys or values of one of Kafka's own topics.

    Attributes:
        type: of the column.
        takes_keys: whether values are decoded by their keys, which say the type of record.
    """

    def __init__(self, topic: str, *, has_keys: bool) -> None:
        """Prepare for a topic.

        Args:
            topic: its name.
            has_keys: whether the column is that of the keys.

        Raises:
            UsageError: the topic is not one of Kafka's own that are decoded.
        """
        if topic not in {**COORDINATOR_TOPICS, **FRAMED_TOPICS}:
            known = ", ".join(sorted({**COORDINATOR_TOPICS, **FRAMED_TOPICS}))
            msg = f"kafka decodes the topics {known}, and not {topic}"
            raise UsageError(msg)
        if has_keys and topic not in COORDINATOR_TOPICS:
            msg = f"the keys of {topic} are null: only its values are decoded"
            raise UsageError(msg)
        self._topic = topic
        self._has_keys = has_keys
        self.takes_keys = not has_keys
        kinds = {kind.type: kind.key if has_keys else kind.value for kind in COORDINATOR_TOPICS.get(topic, {}).values()}
        framed = {each.name: each for each in FRAMED_TOPICS.get(topic, {}).values()}
        parts = {name: _message(each) for name, each in (kinds | framed).items()}
        self._shape = struct_of(HEAD | {name: part for name, part in parts.items() if part.type.num_fields})
        self.type = self._shape.type

    def decode(self, data: Any) -> Any:  # noqa: ANN401 - bytes of a key, or a pair of key and value
        """Decode a key, or a value by its key, to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: its type or version is unknown, or the bytes do not fit it.
        """
        key, value = (data, None) if self._has_keys else data
        WORK.begin(len(key or b"") + len(value or b""))
        try:
            found = self._coordinator(key, value) if self._topic in COORDINATOR_TOPICS else self._framed(value)
        except FormatError as error:
            at = f"{error.location.field} at byte {error.location.position}"
            msg = f"{at}: expected {error.expected}, found {error.found}"
            raise UndecodedError(msg) from error
        WORK.spend(self._shape.width)
        return self._shape.of(found)

    def _coordinator(self, key: bytes | None, value: bytes | None) -> dict[str, object] | None:
        found = decode_coordinator_record(self._topic, key, value)
        if "version" not in found:
            what = "no key" if key is None else f"a key of version {found['unknownVersion']}"
            msg = f"{what}, which no release up to {NEWEST} writes"
            raise UndecodedError(msg)
        kind = str(found["type"])
        if self._has_keys:
            return {"type": kind, "version": found["version"], kind: found["key"]}
        if found["value"] is None:
            return None
        if "valueVersion" not in found:
            msg = f"{kind}: a value of an unknown version: {found['value']}"
            raise UndecodedError(msg)
        return {"type": kind, "version": found["valueVersion"], kind: found["value"]}

    def _framed(self, value: bytes | None) -> dict[str, object]:
        found = decode_metadata_record(self._topic, value)
        if "data" not in found:
            kind = found.get("apiKey", found["type"])
            msg = f"a record of type {kind} and version {found['version']}, which no release up to {NEWEST} writes"
            raise UndecodedError(msg)
        return {"type": found["type"], "version": found["version"], str(found["type"]): found["data"]}


def _message(definition: MessageDefinition) -> Shape:
    """Return the shape of all versions of a message; a field that a version lacks is null."""
    layouts = (definition, *definition.earlier)
    return _fields(field for layout in layouts for field in layout.fields)


def _fields(fields: Iterable[Field]) -> Shape:
    """Return the shape of fields by their names; those of one name in several layouts are one."""
    by_name: dict[str, list[FieldType]] = {}
    for field in fields:
        by_name.setdefault(field.name, []).append(field.type)
    return struct_of({name: _shape(kinds) for name, kinds in by_name.items()})


def _shape(kinds: list[FieldType]) -> Shape:
    first = kinds[0]
    if isinstance(first, ArrayOf):
        return list_of(_shape([each.element for each in kinds if isinstance(each, ArrayOf)]))
    if isinstance(first, Structure):
        return _fields(field for each in kinds if isinstance(each, Structure) for field in each.fields)
    return SCALARS[id(first)]


NEEDED: Final = {"json-schema": ("jsonschema",), "protobuf": ("google.protobuf", "grpc_tools")}


class Form(NamedTuple):
    """The way to decode a column.

    Attributes:
        kind: one of `KINDS`.
        schema: the reader's; None for kinds without a schema.
        message: name of a Protobuf message, None for the first of the schema; or the subject of a kafka column.
        is_plain: whether values have no header of Schema Registry: the reader's schema is also the writer's.
        times: one of `TIMES_AS`.
        is_message_found: whether the message is that of a value, and the caller gave none.
        older: other schemas that the column was written by, the first one first; it holds the values of all.
    """

    kind: str
    schema: SchemaText | None = None
    message: str | None = None
    is_plain: bool = False
    times: str = TYPED
    is_message_found: bool = False
    older: tuple[SchemaText, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the form as tables store it, with the type of the column."""
        schema = None if self.schema is None else self.schema.as_json()
        found: dict[str, Any] = {"kind": self.kind, "schema": schema, "message": self.message, "plain": self.is_plain}
        found |= {} if self.times == TYPED else {"times": self.times}
        found |= {"older": [each.as_json() for each in self.older]} if self.older else {}
        return found | {"type": str(type_of(self))}

    def begun(self) -> Form:
        """Return the form that the column had in the table's first run."""
        return self._replace(schema=[*self.older, self.schema][0], older=())

    def continued(self, stored: Form | None, column: str) -> Form:
        """Return the form for a table that has one: its column grows, and its message stays, unless others were given.

        Args:
            stored: the table's.
            column: name of the column.

        Raises:
            UsageError: the column cannot grow to that of the schema.
        """
        if stored is None or stored.kind != self.kind:
            return self
        is_given = self.message is not None and not self.is_message_found
        now = self._replace(message=self.message if is_given else stored.message)
        if stored.schema in {None, self.schema}:
            return now._replace(older=stored.older)
        if stored == now._replace(schema=stored.schema, older=stored.older, is_message_found=False):
            grown(type_of(stored), type_of(now), column)
        return now._replace(older=tuple(dict.fromkeys([*stored.older, stored.schema])))

    def with_message_of(self, values: Iterable[bytes | None], schemas: Schemas | None) -> Form:
        """Return the form with the message of the first value that names one of the reader's schema.

        Values of Protobuf name their message by its path in the schema that they were written by. Other forms, and
        those with a message, do not change.

        Args:
            values: some values of the column.
            schemas: as of `decoder_of`.

        Raises:
            UsageError: the library for Protobuf is not installed.
        """
        if self.kind != "protobuf" or self.message is not None or self.is_plain or self.schema is None:
            return self
        _require_libraries(self.kind)
        from seglog_format.values.protobuf import MessageFinder  # noqa: PLC0415 - of the kinds, one is used

        finder = MessageFinder(self.schema)
        for value in values:
            try:
                id_, rest = id_and_rest(value or b"")
                writer = self.schema if schemas is None else schemas.by_id(id_)
                name = None if writer is None else of_schema(partial(finder.message_in, rest, writer))
            except UndecodedError:
                continue
            if name is not None:
                return self._replace(message=name, is_message_found=True)
            if finder.is_tired:
                break
        return self


def stored_form(value: object) -> Form | None:
    """Return the form from the result of `Form.as_json`; None for any other value."""
    if not isinstance(value, dict):
        return None
    try:
        schema = None if value["schema"] is None else schema_of_json(value["schema"])
        older = tuple(map(schema_of_json, value.get("older", ())))
        return Form(value["kind"], schema, value["message"], value["plain"], value.get("times", TYPED), older=older)
    except (KeyError, TypeError, ValueError):
        return None


class Decoder(Protocol):
    """Decodes values of one column.

    Attributes:
        takes_keys: whether a value is decoded from the pair of the record's key and the value.
    """

    takes_keys: bool

    @property
    def type(self) -> pa.DataType:
        """Arrow's type of the column."""

    def decode(self, data: Any) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the value cannot be decoded.
        """


class TextDecoder:
    """Decodes any text, or JSON, which stays text."""

    type: pa.DataType = pa.string()
    takes_keys = False

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json

    def decode(self, data: bytes) -> str:
        """Return the text.

        Raises:
            UndecodedError: the value is not UTF-8, or not JSON.
        """
        if self._is_json:
            from seglog_format.values.json_schema import parsed_json  # noqa: PLC0415 - loads the library

            parsed_json(data)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            msg = f"not UTF-8: {error.reason} at byte {error.start}"
            raise UndecodedError(msg) from error


def decoder_of(form: Form, schemas: Schemas | None = None) -> Decoder | None:
    """Return the decoder of a column; None for bytes.

    Args:
        form: of the column.
        schemas: those that values were written by; None to use the reader's schema for each value.

    Raises:
        UsageError: the schema is not valid for its type, or a library is not installed.
    """
    if form.kind == "bytes":
        return None
    if form.kind in {"string", "json"}:
        return TextDecoder(is_json=form.kind == "json")
    if form.kind == KAFKA:
        topic, _, column = (form.message or "").rpartition("-")
        return KafkaDecoder(topic, has_keys=column == "key")
    _require_libraries(form.kind)
    assert form.schema is not None
    kind: pa.DataType | None = None
    for schema in (*form.older, form.schema):
        found = SchemaDecoder(form.kind, schema, schemas, form.message, form.times, is_plain=form.is_plain)
        kind = found.type = found.type if kind is None else grown(kind, found.type, "column")
    return found


@lru_cache(maxsize=16)
def type_of(form: Form) -> pa.DataType:
    """Return the type of a column.

    Raises:
        UsageError: as `decoder_of`.
    """
    decoder = decoder_of(form)
    return pa.binary() if decoder is None else decoder.type


def _require_libraries(kind: str) -> None:
    for name in NEEDED.get(kind, ()):
        if not _is_installed(name):
            msg = f"decoding {kind} needs {name}: pip install 'seglog-format[decode]'"
            raise UsageError(msg)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # ValueError: a module without a specification
        return False


def form_of(  # noqa: PLR0913 - what decides on a column
    kind: str,
    subject: str,
    schemas: Schemas | None = None,
    *,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
    times: str = TYPED,
) -> Form:
    """Return the way to decode a column.

    Args:
        kind: one of `KINDS`.
        subject: its newest schema is the reader's; such as ``orders-value``.
        schemas: of the registry; None if there is no topic of a registry.
        schema: text of the reader's schema, instead of the subject's.
        message: name of a Protobuf message; by default the first of the schema.
        is_plain: whether values have no header of Schema Registry.
        times: one of `TIMES_AS`.

    Raises:
        UsageError: there is no such kind or no schema.
    """
    if times not in TIMES_AS:
        msg = f"times are {' or '.join(TIMES_AS)}, not {times!r}"
        raise UsageError(msg)
    if kind not in KINDS:
        msg = f"keys and values are decoded as {', '.join(KINDS)}, not {kind!r}"
        raise UsageError(msg)
    if kind == KAFKA:
        if schema is not None:
            msg = "kafka takes no schema: the records of Kafka's own topics name their types"
            raise UsageError(msg)
        return Form(kind, message=subject)
    if kind not in TYPES:
        return Form(kind)
    if schema is not None:
        return Form(kind, SchemaText(TYPES[kind], schema), message, is_plain, times)
    found = None if schemas is None else schemas.latest(subject)
    if found is None:
        msg = f"no schema for the subject {subject}: {_where(schemas, subject)}; give a schema as a file"
        raise UsageError(msg)
    if found.type != TYPES[kind]:
        msg = f"the newest schema of {subject} is of type {found.type}: {kind} does not decode it"
        raise UsageError(msg)
    return Form(kind, found, message, is_plain, times)


def _where(schemas: Schemas | None, subject: str) -> str:
    """Return why a subject has no schema."""
    if schemas is None:
        return "there is no topic _schemas"
    contexts = schemas.contexts_of(subject)
    if contexts:
        return f"only the context {', '.join(contexts)} of the topic _schemas has it, whose ids are not looked up"
    return "the topic _schemas has none"


def value_decoder(  # noqa: PLR0913 - as `form_of`
    kind: str,
    subject: str = "",
    schemas: Schemas | None = None,
    *,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
    times: str = TYPED,
) -> Decoder:
    """Return a decoder of keys or values for `Partition.scan`.

    Needs the extra ``decode``.

    Args:
        kind: ``string``, ``json``, ``avro``, ``json-schema`` or ``protobuf``; or ``kafka`` for Kafka's own topics.
        subject: its newest schema is the reader's; such as ``orders-value``, or ``__consumer_offsets-value``.
        schemas: those that values were written by, from `read_schemas`.
        schema: text of the reader's schema, instead of the subject's.
        message: name of a Protobuf message; by default the first of the schema.
        is_plain: whether values have no header of Schema Registry: they were written by ``schema``.
        times: ``typed`` for columns of times, or ``written``: Protobuf's as seconds and nanoseconds, JSON's as text.

    Raises:
        UsageError: there is no such kind or schema, or a library is not installed.

    Examples:
        >>> from seglog_format import open_partition, value_decoder
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     log.scan(["offset", "value"], value=value_decoder("json")).schema.field("value").type
        DataType(string)
    """
    form = form_of(kind, subject, schemas, schema=schema, message=message, is_plain=is_plain, times=times)
    found = decoder_of(form, schemas)
    if found is None:
        msg = "bytes need no decoder"
        raise UsageError(msg)
    return found


# -- decoding of whole columns -----------------------------------------------------------------------------------------


PIECE_CELLS: Final = 2**20
"""Cells after which decoded objects become a piece of the column, which takes less memory."""


class Failure(NamedTuple):
    """A value that does not decode.

    Attributes:
        row: number of the row, from 0.
        reason: text of the reason.
    """

    row: int
    reason: str


def decoded(
    decoder: Decoder, column: pa.Array | pa.ChunkedArray, keys: pa.Array | pa.ChunkedArray | None = None
) -> tuple[pa.ChunkedArray, list[Failure]]:
    """Return a column of decoded values, and the failures; a value that does not decode is null.

    Args:
        decoder: of the column.
        column: of bytes.
        keys: of the same records, if the decoder takes keys.

    Raises:
        UsageError: the decoder takes keys, and there are none.
    """
    if decoder.takes_keys and keys is None:
        msg = "values of Kafka's own topics are decoded by their keys: also read the column key"
        raise UsageError(msg)
    given = column.to_pylist()
    failures: list[Failure] = []
    pieces: list[pa.Array] = []
    values: list[Any] = []
    cells = 0
    if keys is not None and decoder.takes_keys:
        given = list(zip(keys.to_pylist(), given, strict=True))
    for row, data in enumerate(given):
        value, reason = (None, None) if data is None else _decoded(decoder, data)
        values.append(value)
        if reason is not None:
            failures.append(Failure(row, reason))
        cells += WORK.taken() + (0 if data is None else len(data) // CELL_SIZE)
        if cells > PIECE_CELLS:
            pieces.append(_piece(decoder.type, values, row + 1 - len(values), failures))
            values, cells = [], 0
    pieces.append(_piece(decoder.type, values, len(column) - len(values), failures))
    return pa.chunked_array(pieces, decoder.type), sorted(failures)


def _decoded(decoder: Decoder, data: bytes) -> tuple[Any, str | None]:
    """Decode a value, or return why it does not decode.

    The schema and the bytes may be hostile, and the libraries raise errors of any class: whatever the error is, it
    concerns this value alone.

    Raises:
        WriteError: a compiler of schemas could not write its files.
    """
    try:
        return decoder.decode(data), None
    except WriteError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        return None, reason_for(error)


def _piece(kind: pa.DataType, values: list[Any], first: int, failures: list[Failure]) -> pa.Array:
    """Return values as Arrow's; add those that do not fit the type, such as a large number in JSON, to the failures."""
    try:
        return pa.array(values, kind)
    except Exception:  # noqa: BLE001 - Arrow raises errors of several classes
        return pa.concat_arrays([_single(kind, value, first + row, failures) for row, value in enumerate(values)])


def _single(kind: pa.DataType, value: Any, row: int, failures: list[Failure]) -> pa.Array:  # noqa: ANN401 - any object
    try:
        return pa.array([value], kind)
    except Exception as error:  # noqa: BLE001 - as above
        failures.append(Failure(row, f"no value of type {kind!s:.80}: {reason_for(error)}"))
        return pa.nulls(1, kind)


# -- scans whose keys or values are decoded ----------------------------------------------------------------------------


OFFSET = "offset"


def with_decoded(
    reader: pa.RecordBatchReader,
    decoders: Mapping[str, Decoder],
    on_undecoded: Callable[[UndecodedRecordError], None] | None,
    *,
    keeps_offset: bool = True,
) -> pa.RecordBatchReader:
    """Return a scan with some columns decoded.

    Args:
        reader: of the scan, with offsets.
        decoders: by column.
        on_undecoded: called for each value that cannot be decoded, which then is null; by default the first such value
            ends the scan.
        keeps_offset: whether the result has offsets.
    """
    schema = reader.schema
    for name, decoder in decoders.items():
        schema = schema.set(schema.get_field_index(name), pa.field(name, decoder.type))
    if not keeps_offset:
        schema = schema.remove(schema.get_field_index(OFFSET))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            keys = columns.get("key")
            for name, decoder in decoders.items():
                column, failures = decoded(decoder, columns[name], keys)
                columns[name] = column.combine_chunks()
                for failure in failures:
                    _handle(f"offset {columns[OFFSET][failure.row]}: {name}: {failure.reason}", on_undecoded)
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _handle(text: str, on_undecoded: Callable[[UndecodedRecordError], None] | None) -> None:
    error = UndecodedRecordError(text)
    if on_undecoded is None:
        raise error
    on_undecoded(error)
