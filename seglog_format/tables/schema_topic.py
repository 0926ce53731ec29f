"""The schemas of Schema Registry, from the log of its topic `_schemas`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.log.partition import open_partition
from seglog_format.values.schemas import schemas_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from seglog_format.values.schemas import Schemas

DIRECTORY: Final = "_schemas-0"
"""Directory of the topic's partition, under the registry's default name of the topic."""


def read_schemas(path: str | os.PathLike[str]) -> Schemas:
    """Read the schemas that a registry keeps in its topic.

    Args:
        path: of the partition directory, usually ``_schemas-0``.

    Returns:
        The present schemas of the registry: by id, or the newest of a subject.

    Raises:
        UsageError: the path is not a partition directory.
        FormatError: the log is damaged.

    Example:
        >>> from seglog_format import read_schemas
        >>> read_schemas("absent/_schemas-0")
        Traceback (most recent call last):
        seglog_format.errors.UsageError: absent/_schemas-0: no such file or directory
    """
    with open_partition(Path(path)) as partition:
        return schemas_of((record.key, record.value) for record in partition.records())


def beside(paths: Iterable[Path]) -> Path | None:
    """Return the partition directory of `_schemas` in the log directory of some partitions; None if there is none."""
    for directory in sorted({path.absolute().parent for path in paths}):
        if (directory / DIRECTORY).is_dir():
            return directory / DIRECTORY
    return None
