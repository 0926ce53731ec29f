"""A topic that is served: its name, and the directories of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.names import COORDINATOR_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class PartitionPaths(Mapping[int, "Path"]):
    """Directories of partitions by number, as paths made at first use.

    Args:
        known: for each number, a directory and the name of a subdirectory; an empty name for the directory itself.
    """

    def __init__(self, known: Mapping[int, tuple[Path, str]]) -> None:
        self._known = known

    def __getitem__(self, number: int) -> Path:
        directory, name = self._known[number]
        return directory / name

    def __contains__(self, number: object) -> bool:
        return number in self._known

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Topic(NamedTuple):
    """A topic and the directories of its partitions.

    Attributes:
        name: of the topic.
        partitions: directories by number.
    """

    name: str
    partitions: Mapping[int, Path]

    @property
    def is_internal(self) -> bool:
        """Return whether brokers created the topic for themselves."""
        return self.name in COORDINATOR_TOPICS
