"""An Iceberg table: each commit adds files, and stores the progress of the table in its snapshot."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from seglog_format.errors import UsageError
from seglog_format.storage.iceberg_files import IcebergStore
from seglog_format.storage.output_directory import OutputDirectory, unhidden
from seglog_format.tables.file_part import FilePart
from seglog_format.tables.iceberg_catalog import DATA, catalog_errors, opened_catalog
from seglog_format.tables.iceberg_progress import progress_of_table, property_of, segments_property_of, texts_of
from seglog_format.tables.rows import iceberg_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from seglog_format.tables.iceberg_catalog import IcebergLocation
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings

SETTINGS_PROPERTY: Final = "seglog.table"
RETRIES_PROPERTY: Final = "commit.retry.num-retries"
WITHOUT_STATISTICS: Final = ("key", "value", "headers.element.key", "headers.element.value")
WRITE_PROPERTIES: Final = {"write.parquet.compression-codec": "zstd"} | {
    f"write.metadata.metrics.column.{name}": "none" for name in WITHOUT_STATISTICS
}
"""Properties that other writers of the table should follow."""
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
    return settings.continued(json.loads(stored), location.address)


def _begun(catalog: Catalog, location: IcebergLocation, settings: TableSettings) -> Table:
    from pyiceberg.transforms import DayTransform, IdentityTransform  # noqa: PLC0415 - as above

    catalog.create_namespace_if_not_exists(location.table.rpartition(".")[0])
    with (
        catalog.create_table_transaction(
            location.table,
            schema=iceberg_schema(settings),
            location=None if location.directory is None else location.directory.absolute().as_uri(),
            properties={SETTINGS_PROPERTY: json.dumps(settings.as_json()), **WRITE_PROPERTIES},
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
        """Record the segments of the log. Snapshots record the rest of the progress, when files are committed.

        Raises:
            WriteError: the commit failed.
        """
        _, segments = texts_of(progress)
        with catalog_errors(f"writing {self._location.address}"), self._table.transaction() as transaction:
            transaction.set_properties({segments_property_of(key): segments})

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
