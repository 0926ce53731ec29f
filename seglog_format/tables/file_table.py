"""A table of files: the new files of a part become visible to readers at once, when the manifest is replaced.

The files hold rows as Arrow IPC, Parquet, CSV or JSON lines.
"""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.csv as pa_csv

from seglog_format.errors import UsageError
from seglog_format.storage.files import TEMPORARY_SUFFIX
from seglog_format.storage.output_directory import unhidden
from seglog_format.tables.formats import TEXT_FORMATS, schema_data, schema_of
from seglog_format.tables.progress import progress_of_json
from seglog_format.tables.rows import by_day, table_schema, with_partition, with_path_columns
from seglog_format.tables.settings import other_type
from seglog_format.values.decoder import stored_form, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.storage.output_directory import Output, OutputFile
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.values.decoder import Form


PIECE_SIZE: Final = 2**20
"""Number of bytes written at once."""


class Sink:
    """An output file with the interface of Python's files. It joins the many small pieces that Arrow writes.

    Attributes:
        is_abandoned: whether writing has stopped.
    """

    closed: bool = False

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._pieces = bytearray()
        self.is_abandoned = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if not self.is_abandoned:
            self._pieces += data
            if len(self._pieces) >= PIECE_SIZE:
                self.flush_all()
        return len(data)

    def flush_all(self) -> None:
        """Write the joined pieces."""
        pieces, self._pieces = self._pieces, bytearray()
        if pieces:
            self._file.write(pieces)

    def tell(self) -> int:
        """Return the position."""
        return self._file.size + len(self._pieces)

    def flush(self) -> None:
        """Do nothing: files are synced when they are published."""

    def close(self) -> None:
        """Do nothing: the caller that opened the output file closes it."""


class ArrowWritten:
    """Base class of files that one of Arrow's writers writes; each format creates its writer."""

    _writer: Any

    def __init__(self, file: OutputFile) -> None:
        self._sink = Sink(file)

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Stop writing. Arrow writes a footer in any case; the sink drops it."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()


# -- arrow IPC files, also known as Feather ----------------------------------------------------------------------------


CODEC: Final = "zstd"


class ArrowFile(ArrowWritten):
    """An Arrow IPC file, open for writing; each group of rows becomes a record batch."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        super().__init__(file)
        options = pa.ipc.IpcWriteOptions(compression=CODEC)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows.combine_chunks())


# -- Parquet files: sorted by offset, with the statistics by which readers skip row groups -----------------------------


REPEATING: Final = ("topic", "partition", "timestamp_type", "key", "leader_epoch", "file", "position")
"""Columns whose values repeat, so a dictionary makes them smaller."""
COUNTED: Final = (
    *("topic", "partition", "offset", "timestamp", "timestamp_type", "leader_epoch"),
    *("file", "position", "reason"),
)
"""Columns with statistics; for keys and values they would be large and of little use."""


class ParquetFile(ArrowWritten):
    """A Parquet file, open for writing; each group of rows becomes a row group."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - of the formats, one is used

        names = set(schema.names)
        decoded = [path for name in ("key", "value") if name in names for path in _leaves(schema.field(name))]
        super().__init__(file)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=CODEC,
            use_dictionary=[name for name in REPEATING if name in names] + decoded,
            write_statistics=[name for name in COUNTED if name in names] + decoded,
            write_page_index=True,
            sorting_columns=pq.SortingColumn.from_ordering(schema, [("offset", "ascending")]),
            store_schema=False,  # readers get plain Parquet types, not Arrow's views
        )

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows, row_group_size=rows.num_rows)


def _leaves(field: pa.Field, above: str = "") -> list[str]:
    """Return the paths of decoded fields, as Parquet names them; none for bytes and text as a whole."""
    path = f"{above}{field.name}"
    if pa.types.is_struct(field.type):
        return [leaf for each in field.type for leaf in _leaves(each, f"{path}.")]
    if pa.types.is_map(field.type):
        parts = [pa.field("key", field.type.key_type), pa.field("value", field.type.item_type)]
        return [leaf for each in parts for leaf in _leaves(each, f"{path}.key_value.")]
    if pa.types.is_list(field.type):
        return _leaves(pa.field("element", field.type.value_type), f"{path}.list.")
    return [path] if above else []


# -- CSV and JSON lines: keys, values and headers as text --------------------------------------------------------------


BYTES: Final = ("key", "value")
"""Columns of bytes; headers also contain bytes."""
UTF8: Final = "utf8"
WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "utf8": bytes.decode,
    "hex": bytes.hex,
    "base64": lambda value: b64encode(value).decode("ascii"),
}


def unwritable(rows: pa.Table, bytes_as: str) -> dict[int, str]:
    """Return the rows that a text file cannot hold, because bytes in them are not UTF-8, each with the reason."""
    if bytes_as != UTF8:
        return {}
    return {
        row: f"{name}: not UTF-8, as which the table holds bytes: {error}"
        for name in ("headers", *BYTES)
        if name in rows.column_names
        for row, error in _not_utf8(rows.column(name))
    }


def _not_utf8(column: pa.ChunkedArray) -> Iterator[tuple[int, UnicodeDecodeError]]:
    if column.type == pa.string() or (column.type == pa.binary() and _is_utf8(column)):
        return
    for row, value in enumerate(column.to_pylist()):
        try:
            _require_utf8(value)
        except UnicodeDecodeError as error:
            yield row, error


def _is_utf8(column: pa.ChunkedArray) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _require_utf8(value: Any) -> None:  # noqa: ANN401 - decoded objects
    if isinstance(value, bytes):
        value.decode()
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            _require_utf8(each)


class TextFile:
    """A text file, open for writing."""

    def __init__(self, file: OutputFile, bytes_as: str) -> None:
        self._file = file
        self._bytes_as = bytes_as

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._file.size

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._file.write(self._text_of(rows))

    def _text_of(self, rows: pa.Table) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is no footer."""

    def abandon(self) -> None:
        """Do nothing: the caller removes the file."""

    def _written(self, value: bytes | None) -> str | None:
        return None if value is None else WRITERS[self._bytes_as](value)

    def _plain(self, value: Any) -> Any:  # noqa: ANN401 - decoded objects
        """Return a decoded object as JSON types."""
        if isinstance(value, bytes):
            return self._written(value)
        if isinstance(value, dict):
            return {name: self._plain(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(each) for each in value]
        if isinstance(value, timedelta):
            seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
            sign = "-" if value < timedelta(0) else ""
            return f"{sign}{seconds}.{micros:06}".rstrip("0").rstrip(".") + "s"  # as Protobuf writes it in JSON
        return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)

    def _headers(self, column: pa.ChunkedArray) -> list[Any]:
        if pa.types.is_map(column.type):
            return [{name: self._written(value) for name, value in each} for each in column.to_pylist()]
        return [
            [{name: self._written(each[name]) for name in ("key", "value")} for each in headers]
            for headers in column.to_pylist()
        ]


class JsonFile(TextFile):
    """A file of JSON lines; times are milliseconds since 1970."""

    def _text_of(self, rows: pa.Table) -> bytes:
        columns = {name: self._column(name, rows.column(name)) for name in rows.column_names}
        lines = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
        return "".join(f"{text}\n" for text in texts).encode()

    def _column(self, name: str, column: pa.ChunkedArray) -> list[Any]:
        if name == "headers":
            return self._headers(column)
        if name == "timestamp":
            column = column.cast(pa.int64())
        values = column.to_pylist()
        return [self._plain(each) for each in values] if name in BYTES else values


class CsvFile(TextFile):
    """A CSV file with a line of column names. Headers are a JSON array; null is empty, and empty text is quoted."""

    def _text_of(self, rows: pa.Table) -> bytes:
        for name in {*BYTES, "headers"} & set(rows.column_names):
            number = rows.schema.get_field_index(name)
            rows = rows.set_column(number, name, self._column(name, rows.column(name)))
        written = io.BytesIO()
        pa_csv.write_csv(rows, written, pa_csv.WriteOptions(include_header=not self.size))
        return written.getvalue()

    def _column(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        if name == "headers":
            texts = [json.dumps(each, ensure_ascii=False) for each in self._headers(column)]
            return pa.array(texts, pa.string())
        return pa.array(map(self._cell, column.to_pylist()), pa.string())

    def _cell(self, value: Any) -> str | None:  # noqa: ANN401 - decoded objects
        plain = self._plain(value)
        is_text = plain is None or isinstance(plain, str)
        return plain if is_text else json.dumps(plain, ensure_ascii=False)


MAX_OPEN_DAYS: Final = 16
"""Maximum open files of a part: each uses memory."""


class NewFiles(Protocol):
    """A location to which files are added."""

    def create(self, name: str) -> OutputFile:
        """Begin a new file."""


class RowFile(Protocol):
    """A file of rows, open for writing."""

    @property
    def size(self) -> int:
        """Approximate number of bytes so far."""

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """

    def close(self) -> None:
        """Complete the file, for example with a footer."""

    def abandon(self) -> None:
        """Stop writing, and release all resources."""


def begun_file(settings: TableSettings, file: OutputFile, schema: pa.Schema) -> RowFile:
    """Begin a file in the format of a table."""
    if settings.format == "arrow":
        return ArrowFile(file, schema)
    if settings.format in TEXT_FORMATS:
        return (CsvFile if settings.format == "csv" else JsonFile)(file, settings.bytes_as)
    return ParquetFile(file, schema)


class _Open(NamedTuple):
    name: str
    file: OutputFile
    writer: RowFile


class FilePart:
    """Files with the rows of a range of offsets of one partition: one file, or one for each day."""

    def __init__(
        self,
        output: NewFiles,
        settings: TableSettings,
        key: TopicPartition,
        name_of: Callable[[str | None], str],
        commit: Callable[[Sequence[str], Progress], None],
    ) -> None:
        """Begin without files.

        Args:
            output: location of the files.
            settings: of the table.
            key: partition of the rows.
            name_of: returns the name of the file for a day; its argument is None if days have no files of their own.
            commit: commits published files, together with the progress.
        """
        self._output = output
        self._settings = settings
        self._key = key
        self._name_of = name_of
        self._commit = commit
        self._open: dict[str | None, _Open] = {}

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return sum(each.writer.size for each in self._open.values())

    @property
    def is_crowded(self) -> bool:
        """Return whether the part should be published, because it has many open files."""
        return len(self._open) >= MAX_OPEN_DAYS

    def write(self, rows: pa.Table) -> None:
        """Write rows.

        Raises:
            WriteError: writing failed.
        """
        full = with_partition(rows, self._settings, *self._key)
        for day, some in by_day(full) if "day" in self._settings.partition_by else [(None, full)]:
            chosen = some.select(self._settings.written)
            self._writer(day, chosen.schema).write(chosen)

    def _writer(self, day: str | None, schema: pa.Schema) -> RowFile:
        if day not in self._open:
            name = self._name_of(day)
            file = self._output.create(name)
            try:
                self._open[day] = _Open(name, file, begun_file(self._settings, file, schema))
            except BaseException:
                file.discard()
                raise
        return self._open[day].writer

    def publish(self, progress: Progress) -> Progress:
        """Commit the part, together with the progress.

        Args:
            progress: without the new files, which this method adds.

        Returns:
            The progress as stored.

        Raises:
            WriteError: writing failed; the next run writes these rows again.
        """
        for each in self._open.values():
            each.writer.close()
        size = sum(each.file.size for each in self._open.values())
        stored = progress.after(file_count=progress.file_count + len(self._open), size=progress.size + size)
        for each in self._open.values():
            each.file.publish()
        self._commit([each.name for each in self._open.values()], stored)
        self._open = {}
        return stored

    def discard(self) -> None:
        """Remove the files that were not published."""
        for each in self._open.values():
            each.writer.abandon()
            each.file.discard()
        self._open = {}


# -- names of the files of a table: directories of its partitioning, as Hive names them, and the first offset ----------


NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of the directory for null."""
PART_NAME: Final = re.compile(r"(?:(?P<topic>.*)-(?P<partition>\d{1,10})-)?(?P<offset>\d{20})\.(?P<suffix>\w+)")


def file_name(settings: TableSettings, key: TopicPartition, first_offset: int, day: str | None = None) -> str:
    """Return the name of a file, below the table's directory.

    Args:
        settings: of the table.
        key: its partition.
        first_offset: a lower bound of the offsets of its rows.
        day: of its rows, such as ``2026-11-24``; None for rows without a time.
    """
    topic, partition = quote(key[0], safe=""), key[1]
    levels = {"topic": topic, "partition": partition, "day": NO_DAY if day is None else day}
    above = "".join(f"{level}={levels[level]}/" for level in settings.partition_by)
    stem = "" if {"topic", "partition"} <= set(settings.partition_by) else f"{topic}-{partition}-"
    return f"{above}{stem}{first_offset:020}.{settings.suffix}"


def parsed_name(settings: TableSettings, name: str) -> tuple[TopicPartition, int] | None:
    """Return the partition and first offset in the name of a file; None for a name that no file of the table has."""
    *above, last = name.split("/")
    found = PART_NAME.fullmatch(last)
    levels = dict(level.partition("=")[::2] for level in above)
    if found is None or tuple(levels) != settings.partition_by or found["suffix"] != settings.suffix:
        return None
    topic = levels.get("topic") if found["topic"] is None else found["topic"]
    partition = levels.get("partition") if found["partition"] is None else found["partition"]
    if topic is None or partition is None or not partition.isdecimal():
        return None
    key, offset, day = (unquote(topic), int(partition)), int(found["offset"]), levels.get("day")
    return (key, offset) if name == file_name(settings, key, offset, None if day == NO_DAY else day) else None


# -- the manifest: a small file of a table that lists its progress, and is replaced after other files are written ------


MANIFEST_NAME: Final = "_seglog.json"
"""Name of the manifest; because of the underscore, readers of tables skip it."""
COMMON_NAME: Final = "_common_metadata"
"""Name of the file with the columns of all Parquet files of a table that has grown; Spark reads it by itself."""
CHANGED: Final = ("json-schema", "protobuf")
"""Kinds of values whose columns had other types in tables that do not store types."""
KIND: Final = "seglog table"
VERSION: Final = 1


class Manifest:
    """The progress of a table that is on disk.

    Attributes:
        settings: of the table when it was created.
    """

    def __init__(self, output: Output, settings: TableSettings) -> None:
        """Read the manifest, or write an empty one into a new directory.

        Raises:
            UsageError: the location has other content, or a table of another form.
            WriteError: the manifest cannot be read or written.
        """
        self._output = output
        self.settings = settings
        self._progress: dict[TopicPartition, Progress] = {}
        data = output.read(MANIFEST_NAME)
        if data is None:
            self._begin()
        else:
            self._load(data)

    def __getitem__(self, key: TopicPartition) -> Progress | None:
        return self._progress.get(key)

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record the progress of a partition; when this returns it is on disk."""
        self._output.replace(MANIFEST_NAME, _data(self.settings, {**self._progress, key: progress}))
        self._progress[key] = progress

    def _begin(self) -> None:
        others = [name for name in self._output.listed() if name != MANIFEST_NAME + TEMPORARY_SUFFIX]
        if others:
            msg = f"{self._output.address} is not empty, and not a table of an export: it has no {MANIFEST_NAME}"
            raise UsageError(msg)
        self._output.replace(MANIFEST_NAME, _data(self.settings, {}))

    def _load(self, data: bytes) -> None:
        name = f"{self._output.address}/{MANIFEST_NAME}"
        try:
            stored = json.loads(data)
            if not isinstance(stored, dict) or stored.get("kind") != KIND or stored.get("version") != VERSION:
                raise ValueError("kind and version")  # noqa: EM101, TRY003, TRY301 - reported below
            found = {_key(each): progress_of_json(each) for each in stored["partitions"]}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            msg = f"{name}: not a manifest of version {VERSION}: {error}"
            raise UsageError(msg) from error
        self.settings = self.settings.continued(stored.get("table"), self._output.address)
        self._progress = found
        before = {name: form for name in self.settings.forms if (form := stored_form(stored["table"][name]))}
        untyped = {name: form for name, form in before.items() if "type" not in stored["table"][name]}
        if untyped:
            self._require_types(untyped)
        if self.settings.as_json() != stored["table"]:
            self._grow(before)

    def _grow(self, before: dict[str, Form]) -> None:
        """Store the settings of a table with a newer schema, and all columns if they have grown, for readers."""
        forms = self.settings.forms
        if self.settings.format == "parquet" and any(type_of(before[name]) != type_of(forms[name]) for name in before):
            self._output.replace(
                COMMON_NAME, schema_data(with_path_columns(table_schema(self.settings), self.settings))
            )
        self._output.replace(MANIFEST_NAME, _data(self.settings, self._progress))

    def _require_types(self, forms: dict[str, Form]) -> None:
        """Refuse to continue a table of an older version if one of its files has another type of a column.

        Raises:
            UsageError: it has, or files of text may have, which hold no types.
        """
        file = next((each for each in self._output.listed() if parsed_name(self.settings, each) is not None), None)
        if file is None:
            return
        schema = schema_of(self.settings.format, self._output.read(file) or b"")
        for name, form in forms.items():
            was: object = "of an older version" if schema is None else schema.field(name).type
            if was != type_of(form) and (schema is not None or form.kind in CHANGED):
                raise other_type(self._output.address, name, was, type_of(form))


def _key(value: dict[str, Any]) -> TopicPartition:
    topic, partition = value["topic"], value["partition"]
    if not isinstance(topic, str) or type(partition) is not int:
        raise ValueError("topic and partition")  # noqa: EM101, TRY003 - the field is all there is to say
    return topic, partition


def _data(settings: TableSettings, partitions: dict[TopicPartition, Progress]) -> bytes:
    lines = [
        json.dumps({"topic": topic, "partition": partition, **progress.as_json()}, separators=(",", ":"))
        for (topic, partition), progress in sorted(partitions.items())
    ]
    head = json.dumps({"kind": KIND, "version": VERSION, "table": settings.as_json()})
    return (head[:-1] + ', "partitions": [\n' + ",\n".join(lines) + "\n]}\n").encode()


# -- a table of files --------------------------------------------------------------------------------------------------


@contextmanager
def opened_table(output: Output, settings: TableSettings) -> Iterator[FileTable]:
    """Open the table at a location, or create it; remove files that stopped runs left.

    Raises:
        UsageError: the location has other content, or another process writes to it.
        WriteError: the location cannot be written.
    """
    with output.held():
        table = FileTable(output, settings)
        table.remove_unfinished()
        yield table


class FileTable:
    """A table of files, open for writing.

    Attributes:
        settings: of the table when it was created.
    """

    def __init__(self, output: Output, settings: TableSettings) -> None:
        self._output = output
        self._manifest = Manifest(output, settings)
        self.settings = self._manifest.settings

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return the progress of the table in a partition; None if the table does not have the partition."""
        return self._manifest[key]

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows."""
        self._manifest.store(key, progress)

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part with rows of a partition from an offset on; it is hidden until it is published."""
        name_of = partial(file_name, self.settings, key, first_offset)

        def commit(_names: Sequence[str], progress: Progress) -> None:
            self._manifest.store(key, progress)

        return FilePart(self._output, self.settings, key, name_of, commit)

    def remove_unfinished(self) -> None:
        """Remove files that are not in the manifest: a run was stopped before it replaced the manifest."""
        for name in list(self._output.listed()):
            found = parsed_name(self.settings, unhidden(name))
            if found is not None:
                progress = self._manifest[found[0]]
                if unhidden(name) != name or progress is None or found[1] >= progress.next_offset:
                    self._output.remove(name)
