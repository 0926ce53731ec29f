"""The schemas of Schema Registry, from the log of its topic `_schemas`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import FormatError, UsageError
from seglog_format.log.partition import open_partition
from seglog_format.values.schemas import OF_ONE_TOPIC, schemas_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.log.partition import Partition
    from seglog_format.values.decoder import Form
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


# -- how the columns of some partitions are decoded --------------------------------------------------------------------


def forms_of(
    kinds: tuple[str, str],
    partitions: Sequence[tuple[str, Callable[[], Partition]]],
    schemas: Schemas | None,
    times: str,
    one: str,
    **of_values: Any,  # noqa: ANN401 - see there
) -> dict[str, Form]:
    """Return the ways to decode the keys and values of some partitions, which share columns.

    Args:
        kinds: of keys and of values.
        partitions: topic and opener of each.
        schemas: as of `form_of`.
        times: as of `form_of`.
        one: text of the error, with ``{}`` for what is wrong with several topics.
        of_values: other parameters of `form_of`, which are those of values.

    Raises:
        UsageError: there is no schema, or the topics have several.
    """
    from seglog_format.values.decoder import form_of  # noqa: PLC0415 - loads Arrow

    topics = sorted({topic for topic, _ in partitions}) or [""]
    if topics[1:] and (kinds[0] in OF_ONE_TOPIC or (kinds[1] in OF_ONE_TOPIC and of_values["schema"] is None)):
        raise UsageError(one.format(f"has one schema, and {', '.join(topics[:5])} have several"))
    as_form = partial(form_of, schemas=schemas, times=times)
    found = {
        "key": as_form(kinds[0], f"{topics[0]}-key"),
        "value": as_form(kinds[1], f"{topics[0]}-value", **of_values),
    }
    return {name: form.with_message_of(_first_of(partitions, name), schemas) for name, form in found.items()}


PEEKED_RECORDS: Final = 1_000
"""Records of each partition that may name the message of a column."""


def _first_of(partitions: Sequence[tuple[str, Callable[[], Partition]]], name: str) -> Iterator[bytes | None]:
    """Yield keys or values of the first records of each partition, up to damage."""
    for _, opened in partitions:
        with suppress(FormatError), opened() as partition:
            yield from map(attrgetter(name), islice(partition.records(on_gap=lambda _: None), PEEKED_RECORDS))
