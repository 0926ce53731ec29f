"""The manifest: a small file of a table that lists its progress, and is replaced after other files are written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.storage.files import TEMPORARY_SUFFIX
from seglog_format.tables.progress import progress_of_json

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import Output
    from seglog_format.tables.progress import Progress, TopicPartition
    from seglog_format.tables.settings import TableSettings

MANIFEST_NAME: Final = "_seglog.json"
"""Name of the manifest; because of the underscore, readers of tables skip it."""
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
