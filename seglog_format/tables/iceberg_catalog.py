"""The catalog of an Iceberg table: one in the table's directory, or any that pyiceberg's configuration names."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import SeglogError, UsageError, WriteError
from seglog_format.storage.output_directory import OutputDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

CATALOG_NAME: Final = "seglog"
CATALOG_FILE: Final = "catalog.db"
TABLE_NAME: Final = "seglog.records"
"""Name of the table in a catalog of its own."""
DATA: Final = "data"


@dataclass(frozen=True, slots=True)
class IcebergLocation:
    """The location of an Iceberg table.

    Attributes:
        catalog: its name in pyiceberg's configuration; None for a directory with a catalog of its own.
        table: its name in the catalog, with its namespace.
        directory: of the table; None if the catalog chooses it.
    """

    catalog: str | None
    table: str
    directory: Path | None = None

    @property
    def address(self) -> str:
        """The location, as text for messages."""
        return self.table if self.directory is None else str(self.directory)

    def beside(self, suffix: str) -> IcebergLocation:
        """Return a table beside this one: in a directory beside it, or with another name in its catalog."""
        if self.directory is None:
            return replace(self, table=f"{self.table}_{suffix}")
        return replace(self, directory=self.directory.with_name(f"{self.directory.name}-{suffix}"))


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
            catalog = _loaded(location)
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


def _loaded(location: IcebergLocation) -> Catalog:
    if location.directory is None:
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - needs the extra

        return load_catalog(location.catalog)
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - as above

    from seglog_format.storage.iceberg_files import SYNCED_IO_NAME  # noqa: PLC0415 - as above

    path = location.directory.absolute()
    settings = {"uri": f"sqlite:///{path / CATALOG_FILE}", "warehouse": path.as_uri(), "py-io-impl": SYNCED_IO_NAME}
    return SqlCatalog(CATALOG_NAME, **settings)


def _closed(catalog: Any) -> None:  # noqa: ANN401 - some catalogs have connections to close
    close = getattr(catalog, "close", None)
    if close is not None:
        close()
