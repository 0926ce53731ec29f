"""An Iceberg table: each commit adds files, and stores the progress of the table in its snapshot."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

import pyarrow as pa
from pyiceberg.expressions import And, EqualTo
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from seglog_format.errors import SeglogError, UsageError, WriteError, write_errors
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.output_directory import COPY_SIZE, OutputDirectory, StoredOutput, unhidden
from seglog_format.tables.file_table import FilePart
from seglog_format.tables.formats import INTERNAL
from seglog_format.tables.progress import Progress, progress_of_json
from seglog_format.tables.rows import digest_of_last, last_epoch, last_offset, table_schema
from seglog_format.tables.settings import other_type
from seglog_format.values.decoder import stored_form, type_of
from seglog_format.values.shape import renames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from seglog_format.tables.formats import Choice
    from seglog_format.tables.progress import TopicPartition
    from seglog_format.tables.settings import IcebergLocation, TableSettings


# -- its files: local files are synced, files in a store are uploaded when they are complete ---------------------------


class SyncedFileIO(PyArrowFileIO):
    """Local files that are on disk when they are closed: a catalog must not list files that a power cut removes."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a new file."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _SyncedFile(location=location, path=path, fs=self.fs_by_scheme(scheme, netloc))


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - as in the base class
        return _SyncedStream(super().create(overwrite), self._path)


class _SyncedStream:
    """An Arrow output stream that syncs its file when it is closed."""

    def __init__(self, stream: Any, path: str) -> None:  # noqa: ANN401 - Arrow is untyped
        self._stream = stream
        self._path = path

    def write(self, data: bytes) -> int:
        """Write bytes."""
        written: int = self._stream.write(data)
        return written

    def tell(self) -> int:
        """Return the position."""
        found: int = self._stream.tell()
        return found

    def close(self) -> None:
        """Close the file, then sync it and its name."""
        if not self._stream.closed:
            self._stream.close()
            _sync(Path(self._path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sync(path: Path) -> None:
    handle = LOCAL_FILES.open_append(path)
    try:
        handle.fsync()
    finally:
        handle.close()
    LOCAL_FILES.fsync_directory(path.parent)


class IcebergStore:
    """The location of a table's data files, in the file system that its catalog uses.

    Args:
        io: of the table.
        root: location of the files.
    """

    def __init__(self, io: FileIO, root: str) -> None:
        self._io = io
        self._root = root

    def create(self, name: str) -> StoredOutput:
        """Begin a new file."""
        return StoredOutput(self, name)

    def upload(self, name: str, file: Any) -> None:  # noqa: ANN401 - a temporary file
        """Send a whole file.

        Raises:
            WriteError: the upload failed.
        """
        location = f"{self._root}/{name}"
        with write_errors(f"writing {location}"), self._io.new_output(location).create() as stream:
            while data := file.read(COPY_SIZE):
                stream.write(data)


# -- the catalog of an Iceberg table: one in the table's directory, or any that pyiceberg's configuration names --------


CATALOG_NAME: Final = "seglog"
CATALOG_FILE: Final = "catalog.db"
TABLE_NAME: Final = "seglog.records"
"""Name of the table in a catalog of its own."""
DATA: Final = "data"


@contextmanager
def catalog_errors(work: str) -> Iterator[None]:
    """Turn any error of a catalog or its files in this block into a `WriteError`.

    Args:
        work: name of the interrupted work.

    Raises:
        WriteError: an operation failed; the errors that catalogs raise are from many libraries.
    """
    try:
        yield
    except SeglogError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        msg = f"{work} stopped: {reason}"
        raise WriteError(msg) from error


@contextmanager
def opened_catalog(location: IcebergLocation) -> Iterator[Catalog]:
    """Open the catalog of a location; lock its directory, if it has one, against other exports of this machine.

    Raises:
        UsageError: there is no such catalog, the directory has other content, or another process writes to it.
        WriteError: the catalog does not answer.
    """
    with ExitStack() as stack:
        if location.directory is not None:
            _take(location.directory, stack)
        with catalog_errors(f"opening the catalog of {location.address}"):
            catalog = _loaded_catalog(location)
        stack.callback(_closed, catalog)
        yield catalog


def _take(directory: Path, stack: ExitStack) -> None:
    output = OutputDirectory(directory)
    stack.enter_context(output.held())
    names = set(output.listed())
    if names - {DATA} and CATALOG_FILE not in names:  # the data directory is created before the catalog
        msg = f"{directory} is not empty, and not an Iceberg table of an export: it has no {CATALOG_FILE}"
        raise UsageError(msg)
    stack.enter_context(OutputDirectory(directory / DATA).held())


def _loaded_catalog(location: IcebergLocation) -> Catalog:
    if location.directory is None:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - needs the extra

        return load_catalog(location.catalog)
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - as above

    path = location.directory.absolute()
    file_class = f"{__name__}.{SyncedFileIO.__name__}"
    settings = {"uri": f"sqlite:///{path / CATALOG_FILE}", "warehouse": path.as_uri(), "py-io-impl": file_class}
    return SqlCatalog(CATALOG_NAME, **settings)


def _closed(catalog: Any) -> None:  # noqa: ANN401 - some catalogs have connections to close
    close = getattr(catalog, "close", None)
    if close is not None:
        close()


# -- the progress of an Iceberg table, from its snapshots, or else from its rows ---------------------------------------


PREFIX: Final = "seglog.progress."
"""Prefix of properties of snapshots; the partition's directory name follows it."""
SEGMENTS_PREFIX: Final = "seglog.segments."
"""Prefix of properties of the table with the closed segments of a log, which only serve to notice compaction."""
PASSED_PREFIX: Final = "seglog.passed."
"""Prefix of properties of the table with the progress after the last row, over records that the table does not have."""

FIRST: Final = 1
"""Sequence number of the first snapshot of a table: while it exists, no snapshot was expired."""


def property_of(key: TopicPartition) -> str:
    """Return the name of the property that holds the progress of a partition."""
    return f"{PREFIX}{key[0]}-{key[1]}"


def segments_property_of(key: TopicPartition) -> str:
    """Return the name of the property that holds the closed segments of a partition."""
    return f"{SEGMENTS_PREFIX}{key[0]}-{key[1]}"


def passed_property_of(key: TopicPartition) -> str:
    """Return the name of the property that holds the progress of a partition after its last row."""
    return f"{PASSED_PREFIX}{key[0]}-{key[1]}"


def texts_of(progress: Progress) -> tuple[str, str]:
    """Return the values of both properties."""
    found = progress.as_json()
    segments = found.pop("segments")
    return json.dumps(found), json.dumps(segments)


def progress_of_table(table: Table, key: TopicPartition) -> Progress | None:
    """Return the progress of a table in a partition; None if the table does not have the partition.

    It is that of the rows, or one that was stored after them. After a rollback, the table has other rows.

    Raises:
        UsageError: the value of a property is not a progress.
    """
    rows = _of_snapshots(table, key)
    text = table.properties.get(passed_property_of(key), "null")
    try:
        passed = json.loads(text) or {"after": None}
        is_next = passed["after"] == (0 if rows is None else rows.next_offset)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _foreign(table, passed_property_of(key), error) from error
    return _parsed(json.dumps(passed), table, key) if is_next else rows


def _foreign(table: Table, name: str, error: Exception) -> UsageError:
    msg = f"{'.'.join(table.name())}: {name} is not the progress of an export: {error}"
    return UsageError(msg)


def _of_snapshots(table: Table, key: TopicPartition) -> Progress | None:
    """Return the progress by the newest snapshot that mentions the partition.

    If snapshots were expired and no other mentions it, the rows decide.
    """
    name = property_of(key)
    oldest: Snapshot | None = None
    for snapshot in _ancestors(table):
        oldest = snapshot
        text = snapshot.summary[name] if snapshot.summary is not None else None
        if text is not None:
            return _parsed(text, table, key)
    is_complete = oldest is None or oldest.sequence_number == FIRST
    return None if is_complete else _of_rows(table, key)


def _ancestors(table: Table) -> Iterator[Snapshot]:
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)


def _parsed(text: str, table: Table, key: TopicPartition) -> Progress:
    segments = table.properties.get(segments_property_of(key), "[]")
    try:
        return progress_of_json(json.loads(text) | {"segments": json.loads(segments)})
    except (ValueError, TypeError, RecursionError) as error:
        raise _foreign(table, property_of(key), error) from error


def _of_rows(table: Table, key: TopicPartition) -> Progress | None:
    is_ours = And(EqualTo("topic", key[0]), EqualTo("partition", key[1]))
    offsets = table.scan(row_filter=is_ours, selected_fields=("offset",)).to_arrow().column("offset")
    if not len(offsets):
        return None
    greatest = max(offsets.to_pylist())
    found = Progress(next_offset=greatest + 1, row_count=len(offsets))
    row = table.scan(row_filter=And(is_ours, EqualTo("offset", greatest))).to_arrow()
    if not set(row.column_names) >= INTERNAL:  # the table lacks what shows that a log was written again
        return found
    return found.after(leader_epoch=last_epoch(row), last_offset=last_offset(row), last_row=digest_of_last(row))


# -- an Iceberg table --------------------------------------------------------------------------------------------------


SETTINGS_PROPERTY: Final = "seglog.table"
RETRIES_PROPERTY: Final = "commit.retry.num-retries"
WITHOUT_STATISTICS: Final = {
    "list": ("key", "value", "headers.element.key", "headers.element.value"),
    "map": ("key", "value", "headers.key", "headers.value"),
}


def write_properties(choice: Choice) -> dict[str, str]:
    """Return the properties that other writers of a table should follow."""
    names = [name for name in WITHOUT_STATISTICS[choice.headers] if choice.has(name.partition(".")[0])]
    without = {f"write.metadata.metrics.column.{name}": "none" for name in names}
    return {"write.parquet.compression-codec": "zstd", **without}


MAX_ATTEMPTS: Final = 10
"""Maximum attempts to commit a part: each fails if another writer commits first."""
FILE_NAME: Final = re.compile(r"(?P<topic>.*)-(?P<partition>\d{1,10})-(?P<offset>\d{20})-[0-9a-f]{32}\.parquet")


@contextmanager
def opened_iceberg(location: IcebergLocation, settings: TableSettings) -> Iterator[IcebergTable]:
    """Open an Iceberg table, or create it; remove files that stopped runs left in a directory.

    Raises:
        UsageError: the location has other content, or another process writes to it.
        WriteError: the catalog or its files fail.
    """
    with opened_catalog(location) as catalog:
        with catalog_errors(f"opening {location.address}"):
            table = _loaded(catalog, location, settings)
        found = IcebergTable(table, location, settings)
        found.remove_unfinished()
        yield found


def _loaded(catalog: Catalog, location: IcebergLocation, settings: TableSettings) -> Table:
    from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415 - needs the extra

    try:
        return catalog.load_table(location.table)
    except NoSuchTableError:
        return _begun(catalog, location, settings)


def _continued(table: Table, location: IcebergLocation, settings: TableSettings) -> TableSettings:
    stored = table.properties.get(SETTINGS_PROPERTY)
    if stored is None:
        msg = f"{location.address}: an export did not create this table"
        raise UsageError(msg)
    known = json.loads(stored)
    now = settings.continued(known, location.address)
    before = {name: form for name in now.forms if (form := stored_form(known[name]))}
    for name, form in before.items():
        _require_type(table, name, type_of(form), location)
    if now.as_json() != known:
        schema = table_schema(now)
        with catalog_errors(f"writing {location.address}"), table.transaction() as transaction:
            transaction.set_properties({SETTINGS_PROPERTY: json.dumps(now.as_json())})
            with transaction.update_schema() as update:
                for name, form in before.items():
                    for path, other in renames(type_of(form), type_of(now.forms[name]), (name,)):
                        update.rename_column(path, other)
            with transaction.update_schema() as update:
                update.union_by_name(pa.schema([schema.field(name) for name in before]))
    return now


def _require_type(table: Table, name: str, kind: pa.DataType, location: IcebergLocation) -> None:
    """Refuse a column whose values would have another type than in the table, which another version began.

    Raises:
        UsageError: it would.
    """
    from pyiceberg.io.pyarrow import pyarrow_to_schema  # noqa: PLC0415 - needs the extra

    was = table.schema().find_field(name)
    try:
        now = pyarrow_to_schema(pa.schema([(name, kind)]), table.schema().name_mapping).find_field(name)
    except ValueError:  # a field that the table does not have
        now = None
    if now is None or now.field_type != was.field_type:
        raise other_type(location.address, name, was.field_type, kind)


def _begun(catalog: Catalog, location: IcebergLocation, settings: TableSettings) -> Table:
    from pyiceberg.transforms import DayTransform, IdentityTransform  # noqa: PLC0415 - as above

    catalog.create_namespace_if_not_exists(location.table.rpartition(".")[0])
    with (
        catalog.create_table_transaction(
            location.table,
            schema=table_schema(settings),
            location=None if location.directory is None else location.directory.absolute().as_uri(),
            properties={SETTINGS_PROPERTY: json.dumps(settings.as_json()), **write_properties(settings.choice)},
        ) as transaction,
        transaction.update_spec() as spec,
    ):
        for level in settings.partition_by:
            is_day = level == "day"
            spec.add_field(
                "timestamp" if is_day else level,
                DayTransform() if is_day else IdentityTransform(),
                "timestamp_day" if is_day else None,
            )
    return catalog.load_table(location.table)


class IcebergTable:
    """An Iceberg table, open for writing.

    Attributes:
        settings: of the table when it was created.
    """

    def __init__(self, table: Table, location: IcebergLocation, settings: TableSettings) -> None:
        """Open a loaded table.

        Raises:
            UsageError: it has other settings, or an export did not create it.
        """
        self._table = table
        self._location = location
        self.settings = _continued(table, location, settings)
        self._local = None if location.directory is None else OutputDirectory(location.directory / DATA)
        self._root = f"{table.location()}/{DATA}"

    def progress_of(self, key: TopicPartition) -> Progress | None:
        """Return the progress of the table in a partition; None if the table does not have the partition.

        Raises:
            UsageError: the value of a property of a snapshot is not a progress.
            WriteError: the catalog or its files fail.
        """
        with catalog_errors(f"reading {self._location.address}"):
            return progress_of_table(self._table, key)

    def store(self, key: TopicPartition, progress: Progress) -> None:
        """Record progress without new rows. Snapshots record that of rows, when files are committed.

        Raises:
            WriteError: the commit failed.
        """
        text, segments = texts_of(progress)
        with catalog_errors(f"writing {self._location.address}"):
            rows = _of_snapshots(self._table, key)
            passed = json.dumps({**json.loads(text), "after": 0 if rows is None else rows.next_offset})
            with self._table.transaction() as transaction:
                transaction.set_properties({segments_property_of(key): segments, passed_property_of(key): passed})

    def begin(self, key: TopicPartition, first_offset: int) -> FilePart:
        """Begin a part with rows of a partition from an offset on; it is hidden until it is published."""
        before = self.progress_of(key)
        output = self._local or IcebergStore(self._table.io, self._root)

        def name_of(_day: str | None) -> str:
            return f"{_plain(key[0])}-{key[1]}-{first_offset:020}-{uuid4().hex}.parquet"

        def commit(names: Sequence[str], progress: Progress) -> None:
            with catalog_errors(f"writing {self._location.address}"):
                self._commit(key, names, before, progress)

        return FilePart(output, self.settings, key, name_of, commit)

    def _commit(self, key: TopicPartition, names: Sequence[str], before: Progress | None, progress: Progress) -> None:
        """Commit files together with the progress; if another writer was first, reload the table and try again."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 - needs the extra

        for _ in range(MAX_ATTEMPTS):
            try:
                self._try_commit(key, names, progress)
            except CommitFailedException:
                self._table.refresh()
                if progress_of_table(self._table, key) != before:
                    msg = f"{self._location.address}: another export adds rows of {key[0]}-{key[1]}"
                    raise UsageError(msg) from None
            else:
                return
        msg = f"{self._location.address}: others committed before each of {MAX_ATTEMPTS} attempts: export again"
        raise UsageError(msg)

    def _try_commit(self, key: TopicPartition, names: Sequence[str], progress: Progress) -> None:
        text, segments = texts_of(progress)
        # not stored: without it pyiceberg would repeat the commit, even if another export had added the same rows
        self._table.metadata.properties[RETRIES_PROPERTY] = "0"
        with self._table.transaction() as transaction:
            transaction.set_properties({segments_property_of(key): segments})
            transaction.add_files(
                [f"{self._root}/{name}" for name in names],
                snapshot_properties={property_of(key): text},
                check_duplicate_files=False,  # their names are new
            )

    def remove_unfinished(self) -> None:
        """Remove files of the directory that are in no snapshot: a run was stopped before it committed them."""
        if self._local is None:
            return
        names = list(self._local.listed())
        hidden = {name for name in names if unhidden(name) != name and FILE_NAME.fullmatch(unhidden(name))}
        unknown = {name for name in set(names) - hidden if self._may_be_left(name)}
        if unknown:
            counted = self._table.inspect.all_files().column("file_path").to_pylist()
            unknown -= {path.rpartition("/")[2] for path in counted}
        for name in sorted(hidden | unknown):
            self._local.remove(name)

    def _may_be_left(self, name: str) -> bool:
        """Return whether the offset in the name of a file is after the rows of its partition."""
        found = FILE_NAME.fullmatch(name)
        if found is None:
            return False
        progress = self.progress_of((found["topic"], int(found["partition"])))
        return progress is None or int(found["offset"]) >= progress.next_offset


def _plain(topic: str) -> str:
    """Return a topic as part of a file name; characters that Kafka does not allow in topics are replaced."""
    return re.sub(r"[^\w.-]", "_", topic, flags=re.ASCII)
