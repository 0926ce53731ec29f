"""A table of files: the new files of a part become visible to readers at once, when the manifest is replaced."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

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

    import pyarrow as pa

    from seglog_format.storage.output_directory import Output, OutputFile
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings
    from seglog_format.values.decoder import Form

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
        from seglog_format.tables.sink import ArrowFile  # noqa: PLC0415 - of the formats, one is used

        return ArrowFile(file, schema)
    if settings.format in TEXT_FORMATS:
        from seglog_format.tables.sink import CsvFile, JsonFile  # noqa: PLC0415 - as above

        return (CsvFile if settings.format == "csv" else JsonFile)(file, settings.bytes_as)
    from seglog_format.tables.sink import ParquetFile  # noqa: PLC0415 - as above

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
    stem = "" if _is_known_by_directory(settings) else f"{topic}-{partition}-"
    return f"{above}{stem}{first_offset:020}.{settings.suffix}"


def _is_known_by_directory(settings: TableSettings) -> bool:
    return {"topic", "partition"} <= set(settings.partition_by)


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
