"""A partition as a crash may leave it, to recover repeatedly."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from peers import MEMORY


class Crashed:
    """A link to a log, as Java's segment has it, in a directory in memory without any other file."""

    def __init__(self, path: Path) -> None:
        self._scratch = TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.directory = Path(self._scratch.name) / path.parent.name
        self._log = self.directory / path.name
        self.forget()
        self._log.symlink_to(path.resolve())

    def forget(self) -> None:
        """Remove all files but the log."""
        self.directory.mkdir(exist_ok=True)
        for parent in (self.directory, self.directory.parent):
            for file in parent.iterdir():
                if file.is_file() and file != self._log:
                    file.unlink()
