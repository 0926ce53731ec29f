"""The settings that a command takes for each topic: options first, then the metadata log, a file, and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cli.output import diagnose, printable
from seglog_format.errors import UsageError
from seglog_format.names import METADATA_TOPICS
from seglog_format.state.config import LogConfig, topic_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seglog_format.cluster.image import MetadataImage
    from seglog_format.log.directory import LogDirectory


class TopicSettings:
    """Finds the settings of a topic, and reports those that come from the metadata log.

    Args:
        directory: the log directory, whose metadata log is read if there is one.
        given: settings from options, by the names of topics or brokers; they override all others.
        config_file: such as a `server.properties`, of which only the settings of logs are used; None for none.

    Raises:
        UsageError: the file cannot be read.
        UnreadableError: the disk refuses the metadata log.
    """

    def __init__(self, directory: LogDirectory, given: Mapping[str, str], config_file: Path | None) -> None:
        found = {} if config_file is None else topic_settings(_read(config_file))
        self._file = {name: value for name, value in found.items() if LogConfig.has_setting(name)}
        self._given = topic_settings(given)
        self._image, self._node_id, self._is_complete = _metadata(directory)
        self._reported: set[str] = set()

    def of(self, topic: str) -> LogConfig:
        """Return the settings of a topic.

        Raises:
            UsageError: a setting is not known, or a value does not fit.
        """
        return LogConfig.from_properties(self._file | self._stored(topic) | self._given)

    def _stored(self, topic: str) -> dict[str, str]:
        if self._image is None:
            return {}
        found = self._image.topic_config(topic, self._node_id)
        shown = " ".join(f"{name}={value}" for name, value in sorted(found.items()) if name not in self._given)
        if shown and topic not in self._reported:
            self._reported.add(topic)
            diagnose(printable(f"{topic}: settings from the metadata log: {shown}"))
        if self._is_complete and self._image.topic_named(topic) is not None:
            found.setdefault("remote.storage.enable", "false")  # no setting of a broker stands for it
        return found


def _metadata(directory: LogDirectory) -> tuple[MetadataImage | None, int | None, bool]:
    """Return the image of the cluster, the broker's id, and whether the image is complete.

    There is no image without a metadata log in the directory.
    """
    if not any(topic in METADATA_TOPICS for topic, _ in directory.partitions):
        return None, None, False
    from seglog_format.cluster.cluster import open_cluster

    cluster = open_cluster(directory.path)
    state, properties = cluster.metadata(), next(iter(cluster.properties.values()))
    if state is None:
        return None, None, False
    for problem in state.problems:
        diagnose(printable(f"settings of topics may be incomplete: {problem}"))
    return state.image, None if properties is None else properties.node_id, not state.problems


def _read(config_file: Path) -> dict[str, str]:
    from seglog_format.schema.text import properties

    try:
        pairs = properties(config_file.read_bytes())
    except OSError as error:
        msg = f"{config_file}: {error.strerror}"
        raise UsageError(msg) from error
    if pairs is None:
        msg = f"{config_file}: not a properties file"
        raise UsageError(msg)
    return dict(pairs)
