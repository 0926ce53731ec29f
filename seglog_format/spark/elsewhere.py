"""Queries of addresses: the driver plans them, and each task reads its part, as if the files were on this machine."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from seglog_format.errors import SeglogError, UsageError
from seglog_format.spark.mirror import Mirror
from seglog_format.spark.pieces import DirectoryTask, Piece, Task
from seglog_format.spark.stores import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.spark.options import ReadOptions

AnyTask: TypeAlias = Task | DirectoryTask


class Mirrors:
    """What stands here for addresses, as long as a query is planned or a task is read; see `mirrors_of`."""

    def __init__(self, settings: Mapping[str, str], stack: ExitStack) -> None:
        """Start with none.

        Args:
            settings: of the file systems.
            stack: what the mirrors go with.
        """
        self._settings = dict(settings)
        self._stack = stack
        self._mirrors: list[Mirror] = []

    def of(self, address: str, names: Iterable[str] | None = None) -> Path:
        """The directory that stands for an address; as `Mirror`."""
        mirror = self._stack.enter_context(Mirror(address, self._settings, names))
        self._mirrors.append(mirror)
        return mirror.path

    def local(self, options: ReadOptions) -> ReadOptions:
        """Options of the same query over what stands here."""
        paths = tuple(str(self.of(path)) if is_address(path) else path for path in options.paths)
        return replace(options, paths=paths)

    def addressed(self, task: AnyTask) -> AnyTask:
        """A task as it travels: with addresses."""
        if isinstance(task, DirectoryTask):
            return replace(task, path=self.in_words(task.path))
        pieces = tuple(replace(piece, log=self.in_words(piece.log)) for piece in task.pieces)
        return replace(task, pieces=pieces, directory=task.directory and self.in_words(task.directory))

    def here(self, task: AnyTask) -> AnyTask:
        """A task that has travelled, with what stands here for its addresses."""
        if isinstance(task, DirectoryTask):
            return replace(task, here=str(self.of(task.path))) if is_address(task.path) else task
        if task.directory is not None and is_address(task.directory):
            whole = self.of(task.directory)
            return replace(task, pieces=_standing_in(task.pieces, whole), directory=str(whole))
        return replace(task, pieces=tuple(self._each(task.pieces)))

    def _each(self, pieces: tuple[Piece, ...]) -> Iterator[Piece]:
        names: dict[str, dict[str, None]] = {}
        for piece in pieces:
            if is_address(piece.log):
                directory, _, name = piece.log.rpartition("/")
                names.setdefault(directory, {})[name] = None
        paths = {directory: self.of(directory, each) for directory, each in names.items()}
        for piece in pieces:
            path = paths.get(piece.log.rpartition("/")[0])
            yield piece if path is None else _standing_in((piece,), path)[0]

    def in_words(self, text: str) -> str:
        """A text that names files of this machine, with what they stand for instead."""
        for mirror in self._mirrors:
            text = mirror.in_words(text)
        return text


def _standing_in(pieces: tuple[Piece, ...], directory: Path) -> tuple[Piece, ...]:
    return tuple(replace(piece, here=str(directory / piece.log.rpartition("/")[2])) for piece in pieces)


@contextmanager
def mirrors_of(settings: Mapping[str, str]) -> Iterator[Mirrors]:
    """Mirrors, gone with the end of the block; errors that leave it name addresses.

    Raises:
        UsageError: in place of any error of ours.
    """
    with ExitStack() as stack:
        mirrors = Mirrors(settings, stack)
        try:
            yield mirrors
        except SeglogError as error:
            text = str(error)
            if (told := mirrors.in_words(text)) == text:
                raise
            raise UsageError(told) from error
