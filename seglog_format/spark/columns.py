"""The columns of each table with their Spark types. Records have the names and types of Spark's Kafka connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.spark.options import LEFT_OUT, refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql.types import StructType

    from seglog_format.spark.options import ReadOptions

HEADERS: Final = "headers"
CORRUPT: Final = "_corrupt"
TOPIC_ID: Final = "topicId"

CONNECTOR: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
"""Columns that the connector gives by default, in its order."""

ON_REQUEST: Final = {
    HEADERS: "array<struct<key:string,value:binary>>",
    "leaderEpoch": "int",
    "producerId": "bigint",
    "producerEpoch": "smallint",
    "sequence": "int",
    "isTransactional": "boolean",
    "batchOffset": "bigint",
    "codec": "string",
    "file": "string",
    "position": "bigint",
    TOPIC_ID: "string",
    CORRUPT: "struct<file:string,position:bigint,size:bigint,requirement:string,message:string>",
}
"""Columns that a query has only if its schema names them."""

RECORDS: Final = {**CONNECTOR, **ON_REQUEST}

LOCATION: Final = {"topic": "string", "partition": "int", "file": "string"}

BATCHES: Final = {
    **LOCATION,
    "position": "bigint",
    "size": "bigint",
    "magic": "int",
    "baseOffset": "bigint",
    "lastOffset": "bigint",
    "recordsCount": "int",
    "codec": "string",
    "timestampType": "int",
    "baseTimestamp": "bigint",
    "maxTimestamp": "bigint",
    "leaderEpoch": "int",
    "producerId": "bigint",
    "producerEpoch": "int",
    "baseSequence": "int",
    "isTransactional": "boolean",
    "isControl": "boolean",
    "crc": "bigint",
    "crcIsValid": "boolean",
}

SEGMENTS: Final = {
    **LOCATION,
    "baseOffset": "bigint",
    "nextBaseOffset": "bigint",
    "size": "bigint",
    "offsetIndexSize": "bigint",
    "timeIndexSize": "bigint",
    "transactionIndexSize": "bigint",
    "hasSnapshot": "boolean",
    "lastModified": "timestamp",
    TOPIC_ID: "string",
}

FINDINGS: Final = {
    **LOCATION,
    "position": "bigint",
    "field": "string",
    "severity": "string",
    "requirement": "string",
    "expected": "string",
    "found": "string",
    "message": "string",
    "count": "bigint",
}

OMITTED: Final = {
    **LOCATION,
    "kind": "string",
    "position": "bigint",
    "size": "bigint",
    "offset": "bigint",
    "nextOffset": "bigint",
    "requirement": "string",
    "message": "string",
}

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "records": RECORDS,
    "batches": BATCHES,
    "segments": SEGMENTS,
    "findings": FINDINGS,
    LEFT_OUT: OMITTED,
}


def projection(*names: str, table: str = "records") -> str:
    """Return a schema of some columns, for ``spark.read.schema(...)``; other columns are not decoded.

    Spark does not say to a Python source which columns a query uses, so the schema must.

    Args:
        names: of columns, in order.
        table: ``records``, ``batches``, ``segments``, ``findings`` or ``leftout``.

    Raises:
        UsageError: there is no such column or table; the text suggests similar names.
    """
    if table not in COLUMNS:
        refuse("table", table, COLUMNS)
    known = COLUMNS[table]
    for name in names:
        if name not in known:
            refuse("column", name, known)
    return ", ".join(f"`{name}` {known[name]}" for name in names)


def default_schema(options: ReadOptions) -> str:
    """Return the schema of a query without one."""
    return projection(*default_columns(options), table=options.table)


def default_columns(options: ReadOptions) -> tuple[str, ...]:
    """Return the names of the columns of a query without a schema."""
    if options.columns is not None:
        return options.columns
    if options.table != "records":
        return tuple(COLUMNS[options.table])
    return (*CONNECTOR, *([HEADERS] if options.include_headers else ()), *_implied(options))


def _implied(options: ReadOptions) -> list[str]:
    """Return the columns that an option requires."""
    implied = [CORRUPT] if options.mode == "permissive" else []
    return [*implied, TOPIC_ID] if options.recreated == "keep" else implied


def check_schema(schema: StructType, options: ReadOptions, decoded: Mapping[str, str] | None = None) -> None:
    """Refuse a schema that is no selection of the table's columns: nothing is renamed or converted silently.

    Args:
        schema: of the query.
        options: of the query.
        decoded: types of the columns that are decoded, by name.

    Raises:
        UsageError: an unknown name, a wrong type, a repeated name, or a mode that needs another column.
    """
    known = {**COLUMNS[options.table], **(decoded or {})}
    for field in schema.fields:
        if field.name not in known:
            refuse("column", field.name, known)
        found = field.dataType.simpleString()
        if found != known[field.name]:
            msg = f"seglog: column {field.name} is {known[field.name]}, not {found}: read it so and cast it afterwards"
            raise UsageError(msg)
    names = schema.fieldNames()
    if len(set(names)) < len(names):
        msg = f"seglog: columns are repeated: {', '.join(names)}"
        raise UsageError(msg)
    require_corrupt(names, options)


def require_corrupt(names: Collection[str], options: ReadOptions) -> None:
    """Refuse columns that leave out what the mode of a query has to report.

    Raises:
        UsageError: they do.
    """
    if options.table == "records" and options.mode == "permissive" and CORRUPT not in names:
        msg = f"seglog: mode permissive reports damage in column {CORRUPT}: add it to the schema"
        raise UsageError(msg)
